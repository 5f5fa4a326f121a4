// SPDX-License-Identifier: BSD-2-Clause
// One RC queue pair, connected, with its buffers registered: what the verbs blocks use. Only the
// public API (<infiniband/verbs.h>, <verbatim/memory.h>), as any program would; the attributes are
// exchanged over the socket that joins the two ends.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "perf/ends/end.hpp"
#include "perf/support/qp_address.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::perf {

inline constexpr std::uint32_t kSendDepth = 128;  // perftest's defaults for its bandwidth tests
inline constexpr std::uint32_t kRecvDepth = 512;
inline constexpr std::uint32_t kInlineMax = 220;
/// Sends between two signaled ones where nothing needs each completion.
inline constexpr std::uint32_t kSignalEvery = 32;

/// A fresh context on the first device; throws when there is none.
ContextHandle open_first_device();
QpHandle create_rc_qp(ibv_pd* pd, ibv_cq* send_cq, ibv_cq* recv_cq, std::uint32_t send_depth,
                      std::uint32_t recv_depth);
/// The same, good for ibv_wr_send and ibv_wr_rdma_write too.
QpHandle create_built_qp(ibv_pd* pd, ibv_cq* send_cq, ibv_cq* recv_cq, std::uint32_t send_depth,
                         std::uint32_t recv_depth);
/// A CQ good for both ways of polling; of a thread domain, if one is given.
CqHandle create_cursor_cq(ibv_context* context, std::uint32_t entries, ibv_pd* parent = nullptr,
                          std::uint32_t flags = 0, std::uint64_t fields = IBV_WC_STANDARD_FLAGS);
TdHandle create_thread_domain(ibv_context* context);
PdHandle create_parent_domain(ibv_pd* pd, ibv_td* domain);
QpAddress address_of(ibv_context* context, ibv_qp* qp);
/// An RC queue pair that takes its receives from `srq`, and a UD one.
QpHandle create_sharing_qp(ibv_pd* pd, ibv_cq* send_cq, ibv_cq* recv_cq, ibv_srq* srq);
QpHandle create_datagram_qp(ibv_pd* pd, ibv_cq* send_cq, ibv_cq* recv_cq);
/// INIT, RTR, RTS.
void start_datagrams(ibv_qp* qp);
AhHandle create_ah_to(ibv_pd* pd, const QpAddress& peer);
/// INIT, RTR, RTS.
void connect_rc(ibv_qp* qp, const QpAddress& own, const QpAddress& peer);

struct Region {
  Area area;
  std::uint32_t lkey;
};

struct RemoteRegion {
  std::uint64_t out;
  std::uint64_t in;
  std::uint32_t rkey;
};

/// Bytes in front of a datagram in its receive: the routing header (IBTA 11.4.1.2).
inline constexpr std::uint32_t kDatagramHeader = 40;
inline constexpr std::uint32_t kQkey = 0x11111111;

/// How messages go through one service.
struct Way {
  ibv_qp* qp;
  ibv_cq* send_cq;
  ibv_cq* recv_cq;
  ibv_srq* srq;               // null: receives are posted to `qp`
  ibv_ah* ah;                 // UD: where to
  std::uint32_t remote_qpn;   // UD
  std::uint32_t header;       // bytes of a receive before the message
  ibv_comp_channel* channel;  // of recv_cq; null: who waits polls

  void post_recv(ibv_recv_wr* list) const;
};

class Endpoint {
 public:
  explicit Endpoint(End& end);

  ibv_context* context() const { return context_.get(); }
  ibv_pd* pd() const { return pd_.get(); }
  ibv_qp* qp() const { return qp_.get(); }
  ibv_cq* send_cq() const { return send_cq_.get(); }
  ibv_cq* recv_cq() const { return recv_cq_.get(); }
  Way way(Service service) const;
  const Region& region(Memory memory) const { return regions_[index(memory)]; }
  ibv_mr* mr(Memory memory) const { return mrs_[index(memory)].get(); }
  const RemoteRegion& remote(Memory memory) const { return remotes_[index(memory)]; }

  /// Posts `count` receives of `size` bytes, the i-th to `in + i % slots * size`.
  void post_receives(Memory memory, std::uint64_t size, std::uint32_t count, std::uint32_t slots,
                     Service service = Service::kReliable);

 private:
  static std::size_t index(Memory memory) { return static_cast<std::size_t>(memory); }

  ContextHandle context_;
  PdHandle pd_;
  SharedMemory shared_memory_;
  std::array<MrHandle, 2> mrs_;
  std::array<Region, 2> regions_{};
  std::array<RemoteRegion, 2> remotes_{};
  CqHandle send_cq_;
  CqHandle recv_cq_;
  QpHandle qp_;
  ChannelHandle channel_;
  CqHandle event_cq_;
  QpHandle event_qp_;
  TdHandle domain_;
  PdHandle parent_;
  CqHandle domain_send_cq_;
  CqHandle domain_recv_cq_;
  QpHandle domain_qp_;
  SrqHandle srq_;
  QpHandle sharing_qp_;
  AhHandle ah_;
  QpHandle datagram_qp_;
  std::uint32_t remote_datagram_qpn_ = 0;
};

/// Polls until `count` completions have come; throws with the opcode and status of the first bad
/// one.
void await_completions(ibv_cq* cq, std::uint32_t count);
[[noreturn]] void throw_bad_status(std::uint64_t wr_id, ibv_wc_status status);
[[noreturn]] void throw_verbs(int error, const char* what);

/// One look; the number of completions found, all of them good.
inline int poll_some(ibv_cq* cq, std::span<ibv_wc> found) {
  const int count = ibv_poll_cq(cq, static_cast<int>(found.size()), found.data());
  if (count < 0) [[unlikely]]
    throw_verbs(-count, "ibv_poll_cq");
  for (int i = 0; i < count; ++i) {
    if (found[static_cast<std::size_t>(i)].status != IBV_WC_SUCCESS) [[unlikely]] {
      throw_bad_status(found[static_cast<std::size_t>(i)].wr_id,
                       found[static_cast<std::size_t>(i)].status);
    }
  }
  return count;
}

inline void post_send(ibv_qp* qp, ibv_send_wr* list) {
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp, list, &bad);
  if (error != 0) [[unlikely]]
    throw_verbs(error, "ibv_post_send");
}

/// The same by ibv_start_poll and its companions; a program reads the status and the wr_id.
inline int walk_some(ibv_cq_ex* cq, std::size_t most) {
  ibv_poll_cq_attr attr{};
  if (ibv_start_poll(cq, &attr) != 0) return 0;
  int count = 0;
  do {
    if (cq->status != IBV_WC_SUCCESS) [[unlikely]]
      throw_bad_status(cq->wr_id, cq->status);
    ++count;
  } while (static_cast<std::size_t>(count) < most && ibv_next_poll(cq) == 0);
  ibv_end_poll(cq);
  return count;
}

/// A look in the way of `kCalls`.
template <Calls kCalls>
inline int look(ibv_cq* cq, std::span<ibv_wc> found) {
  if constexpr (kCalls == Calls::kCursor)
    return walk_some(reinterpret_cast<ibv_cq_ex*>(cq), found.size());
  else
    return poll_some(cq, found);
}

/// Posts copies of a list's requests, made now, as a program does whose requests differ.
inline void fill_and_post(ibv_qp* qp, const ibv_send_wr* list) {
  ibv_send_wr filled[kSignalEvery];
  ibv_sge pieces[kSignalEvery];
  std::size_t count = 0;
  for (const ibv_send_wr* wr = list; wr != nullptr; wr = wr->next, ++count) {
    ibv_send_wr& each = filled[count];
    pieces[count] = *wr->sg_list;
    each.wr_id = wr->wr_id;
    each.next = wr->next != nullptr ? &each + 1 : nullptr;
    each.sg_list = &pieces[count];
    each.num_sge = 1;
    each.opcode = wr->opcode;
    each.send_flags = wr->send_flags;
    each.wr.rdma = wr->wr.rdma;
  }
  post_send(qp, filled);
}

/// Posts a list of SENDs or WRITEs of one piece in the way of `kCalls`.
template <Calls kCalls>
inline void post(ibv_qp* qp, ibv_send_wr* list) {
  if constexpr (kCalls == Calls::kFilled) {
    fill_and_post(qp, list);
  } else if constexpr (kCalls != Calls::kBuilt) {
    post_send(qp, list);
  } else {
    auto* const built = reinterpret_cast<ibv_qp_ex*>(qp);
    ibv_wr_start(built);
    for (const ibv_send_wr* wr = list; wr != nullptr; wr = wr->next) {
      built->wr_id = wr->wr_id;
      built->wr_flags = wr->send_flags & ~unsigned{IBV_SEND_INLINE};
      if (wr->opcode == IBV_WR_SEND)
        ibv_wr_send(built);
      else
        ibv_wr_rdma_write(built, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
      const ibv_sge& sge = *wr->sg_list;
      if ((wr->send_flags & IBV_SEND_INLINE) != 0)
        ibv_wr_set_inline_data(built, reinterpret_cast<void*>(sge.addr), sge.length);
      else
        ibv_wr_set_sge(built, sge.lkey, sge.addr, sge.length);
    }
    const int error = ibv_wr_complete(built);
    if (error != 0) [[unlikely]]
      throw_verbs(error, "ibv_wr_complete");
  }
}

/// Calls `body` with the constant that `calls` is.
template <class Body>
void with_calls(Calls calls, Body&& body) {
  switch (calls) {
    case Calls::kClassic:
      return body(std::integral_constant<Calls, Calls::kClassic>{});
    case Calls::kFilled:
      return body(std::integral_constant<Calls, Calls::kFilled>{});
    case Calls::kBuilt:
      return body(std::integral_constant<Calls, Calls::kBuilt>{});
    case Calls::kCursor:
      return body(std::integral_constant<Calls, Calls::kCursor>{});
  }
}

inline void post_recv(ibv_qp* qp, ibv_recv_wr* list) {
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(qp, list, &bad);
  if (error != 0) [[unlikely]]
    throw_verbs(error, "ibv_post_recv");
}

/// To `srq`, where there is one.
inline void post_recv(ibv_qp* qp, ibv_srq* srq, ibv_recv_wr* list) {
  if (srq == nullptr) return post_recv(qp, list);
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_srq_recv(srq, list, &bad);
  if (error != 0) [[unlikely]]
    throw_verbs(error, "ibv_post_srq_recv");
}

inline void Way::post_recv(ibv_recv_wr* list) const { perf::post_recv(qp, srq, list); }

}  // namespace verbatim::perf
