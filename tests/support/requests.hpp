// SPDX-License-Identifier: BSD-2-Clause
//
// What a test says to an Endpoint: plain values that name memory by region number, so that the same
// words serve an endpoint in this process and one in another (side.hpp).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <initializer_list>

namespace verbatim::harness {

/// Where the bytes of a region come from, which decides how peers reach them.
enum class MemoryKind : std::uint32_t {
  kMapped,   ///< vbt_alloc_shared: peers map it
  kOrdinary  ///< malloc: peers copy by the kernel, or the owner's service thread copies
};

inline constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

struct RegionInfo {
  std::int32_t id = -1;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
};

/// How a region comes to be, beyond a plain ibv_reg_mr of memory of its own.
struct RegionWish {
  std::int32_t of = -1;      ///< region whose memory it takes; -1: the whole address space
  std::uint64_t offset = 0;  ///< in that memory
  std::uint64_t size = 0;    ///< bytes
  std::int32_t access = kAllAccess;
  std::int32_t with_iova = 0;  ///< ibv_reg_mr_iova2 with `iova`
  std::uint64_t iova = 0;
  std::int32_t foreign_pd = 0;  ///< in another protection domain
};

/// How memory goes while it is registered.
enum class Loss : std::int32_t {
  kForbidden,  ///< no right is left (PROT_NONE)
  kTruncated   ///< it was a file's, which is shorter now
};

struct WindowInfo {
  std::int32_t id = -1;
  std::uint32_t rkey = 0;
  std::int32_t type = 0;
};

/// ibv_bind_mw for a window of type 1, IBV_WR_BIND_MW for one of type 2.
struct WindowBind {
  std::uint64_t wr_id = 0;
  std::int32_t window = -1;
  std::int32_t region = -1;  ///< -1: none
  std::uint32_t rkey = 0;    ///< type 2: the key that it is to have
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t access = 0;
  std::uint32_t flags = IBV_SEND_SIGNALED;
};

/// A piece of a region, in place of an ibv_sge.
struct Slice {
  std::int32_t region = -1;
  std::uint32_t length = 0;
  std::uint64_t offset = 0;
  std::uint32_t lkey = 0;  ///< 0: the region's own
};

inline Slice slice(const RegionInfo& region, std::uint64_t offset, std::uint64_t length) {
  return {region.id, static_cast<std::uint32_t>(length), offset, 0};
}

/// One more than any device of ours takes, so that the excess can be tested.
inline constexpr std::int32_t kSliceSlots = 17;

struct SliceList {
  std::int32_t count = 0;
  Slice at[kSliceSlots];

  SliceList() = default;
  SliceList(std::initializer_list<Slice> slices) {
    for (const Slice& piece : slices) add(piece);
  }
  SliceList(const Slice& only) { add(only); }  // NOLINT: one slice is a list
  void add(const Slice& piece) { at[count++] = piece; }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (std::int32_t i = 0; i < count; ++i) sum += at[i].length;
    return sum;
  }
};

struct Receive {
  std::uint64_t wr_id = 0;
  SliceList to;
};

inline Receive receive(std::uint64_t wr_id, const SliceList& to = {}) { return {wr_id, to}; }

/// A send request. Signaled unless told otherwise; the members that return Request refine it.
struct Request {
  std::uint64_t wr_id = 0;
  SliceList from;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = IBV_SEND_SIGNALED;
  std::uint32_t imm = 0;  ///< host order
  std::uint32_t rkey = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint32_t invalidate_rkey = 0;  ///< of SEND_WITH_INV and LOCAL_INV
  std::int32_t ah = -1;               ///< UD: an address handle number, and whom it reaches there
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;
  std::uint32_t remote_srqn = 0;  ///< XRC

  Request with(unsigned more_flags) const {
    Request changed = *this;
    changed.flags |= more_flags;
    return changed;
  }
  Request unsignaled() const {
    Request changed = *this;
    changed.flags &= ~static_cast<unsigned>(IBV_SEND_SIGNALED);
    return changed;
  }
  Request with_imm(std::uint32_t value) const {
    Request changed = *this;
    changed.imm = value;
    changed.opcode = opcode == IBV_WR_SEND ? IBV_WR_SEND_WITH_IMM : IBV_WR_RDMA_WRITE_WITH_IMM;
    return changed;
  }
};

inline Request send(std::uint64_t wr_id, const SliceList& from) {
  Request request;
  request.wr_id = wr_id;
  request.from = from;
  return request;
}
inline Request one_sided(ibv_wr_opcode opcode, std::uint64_t wr_id, const SliceList& local,
                         const RegionInfo& remote, std::uint64_t offset) {
  Request request = send(wr_id, local);
  request.opcode = opcode;
  request.rkey = remote.rkey;
  request.remote_address = remote.address + offset;
  return request;
}
inline Request write(std::uint64_t wr_id, const SliceList& from, const RegionInfo& remote,
                     std::uint64_t offset = 0) {
  return one_sided(IBV_WR_RDMA_WRITE, wr_id, from, remote, offset);
}
inline Request read(std::uint64_t wr_id, const SliceList& to, const RegionInfo& remote,
                    std::uint64_t offset = 0) {
  return one_sided(IBV_WR_RDMA_READ, wr_id, to, remote, offset);
}
inline Request fetch_add(std::uint64_t wr_id, const Slice& old_value, const RegionInfo& remote,
                         std::uint64_t offset, std::uint64_t add) {
  Request request = one_sided(IBV_WR_ATOMIC_FETCH_AND_ADD, wr_id, old_value, remote, offset);
  request.compare_add = add;
  return request;
}
/// A datagram. The receiver's buffer gets 40 bytes of routing header in front (IBTA 11.4.1.2).
inline Request datagram(std::uint64_t wr_id, const SliceList& from, std::int32_t ah,
                        std::uint32_t remote_qpn, std::uint32_t remote_qkey) {
  Request request = send(wr_id, from);
  request.ah = ah;
  request.remote_qpn = remote_qpn;
  request.remote_qkey = remote_qkey;
  return request;
}
inline Request compare_swap(std::uint64_t wr_id, const Slice& old_value, const RegionInfo& remote,
                            std::uint64_t offset, std::uint64_t compare, std::uint64_t swap) {
  Request request = one_sided(IBV_WR_ATOMIC_CMP_AND_SWP, wr_id, old_value, remote, offset);
  request.compare_add = compare;
  request.swap = swap;
  return request;
}

/// With `key` of the receiver's that ends with the message.
inline Request send_with_invalidate(std::uint64_t wr_id, const SliceList& from, std::uint32_t key) {
  Request request = send(wr_id, from);
  request.opcode = IBV_WR_SEND_WITH_INV;
  request.invalidate_rkey = key;
  return request;
}
inline Request local_invalidate(std::uint64_t wr_id, std::uint32_t key) {
  Request request;
  request.wr_id = wr_id;
  request.opcode = IBV_WR_LOCAL_INV;
  request.invalidate_rkey = key;
  return request;
}

/// The answer of a post verb: its errno, and which request of the list *bad_wr named (-1: none).
struct Posted {
  std::int32_t error = 0;
  std::int32_t bad = -1;
};

struct QpWish {
  std::uint32_t send_depth = 128;
  std::uint32_t receive_depth = 128;
  std::uint32_t max_sge = 16;
  std::uint32_t max_inline = 220;
  std::int32_t signal_all = 0;
  std::int32_t send_cq = -1;  ///< a CQ number; -1: a CQ of its own
  std::int32_t receive_cq = -1;
  std::int32_t cq_depth = 512;    ///< of the CQs it gets
  std::int32_t with_channel = 0;  ///< its own CQs share a completion channel of their own
  ibv_qp_type type = IBV_QPT_RC;
  std::int32_t srq = -1;       ///< an SRQ number; -1: none
  std::uint64_t send_ops = 0;  ///< ibv_qp_create_send_ops_flags: made for ibv_wr_*
  std::int32_t in_domain = 0;  ///< it and its CQs are of a thread domain of their own
};

struct SrqWish {
  std::uint32_t depth = 128;
  std::uint32_t max_sge = 4;
  std::uint32_t limit = 0;
  std::int32_t xrc = 0;           ///< of the endpoint's XRC domain, with a CQ of its own
  std::int32_t with_channel = 0;  ///< that CQ has a completion channel
};

struct SrqInfo {
  std::int32_t id = -1;
  std::int32_t cq = -1;    ///< XRC: where its receives complete
  std::uint32_t srqn = 0;  ///< XRC: its number for senders
  ibv_srq_attr granted{};
};

/// A queue pair's number here, its address for the other side, and what it was granted.
struct QpInfo {
  std::int32_t id = -1;
  std::int32_t send_cq = -1;
  std::int32_t receive_cq = -1;
  ibv_qp_type type = IBV_QPT_RC;
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;
  std::uint16_t lid = 0;
  ibv_gid gid{};
  ibv_qp_cap cap{};
  std::uint32_t vendor = 0;  ///< of the device (tests/support/quirks.hpp)
};

/// Not privileged: IBTA 10.2.5 keeps the highest bit.
inline constexpr std::uint32_t kQkey = 0x1234567;

/// Attributes of the three transitions, with the values that most programs use.
struct Link {
  ibv_mtu mtu = IBV_MTU_4096;
  std::uint8_t min_rnr_timer = 12;  // 0.64 ms
  std::uint8_t timeout = 14;        // 67 ms
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;  // for ever
  std::uint8_t max_rd_atomic = 16;
  std::uint8_t use_gid = 0;  ///< a global route header, as with -g
  int access = kAllAccess;
  std::uint32_t qkey = kQkey;  ///< UD
};

struct AsyncEvent {
  std::int32_t type = -1;  ///< ibv_event_type; -1 when none came in time
  std::int32_t qp = -1;    ///< number of the QP it names, if one
  std::int32_t cq = -1;
  std::int32_t srq = -1;
};

}  // namespace verbatim::harness
