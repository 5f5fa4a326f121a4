// SPDX-License-Identifier: BSD-2-Clause
//
// The witness's objects and packets, and what its parts have of each other. All of it is under the
// device's one lock, but for a batch that is being built: that is its builder's (Qp::builds).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/software/arming.hpp"
#include "runtime/verbs/software/capacities.hpp"
#include "runtime/verbs/software/completion_ring.hpp"
#include "runtime/verbs/software/copying_cursor.hpp"
#include "runtime/verbs/software/key_table.hpp"
#include "runtime/verbs/software/posted_receives.hpp"
#include "runtime/verbs/software/posted_sends.hpp"
#include "runtime/verbs/software/retry.hpp"
#include "runtime/verbs/software/scatter_gather.hpp"
#include "runtime/verbs/software/send_end.hpp"
#include "runtime/verbs/software/shared_receives.hpp"
#include "tests/support/packet/link.hpp"
#include "tests/support/packet/request_batch.hpp"

namespace verbatim::packet {

inline constexpr QueueLimits kLimits{"packet", 1024, 16, 256, 4096};
inline constexpr std::uint32_t kKeys = 4096;
inline constexpr std::uint32_t kPsnMask = 0xffffff;
inline constexpr std::uint64_t kMtu = 4096;

using Bytes = std::vector<unsigned char>;

/// How far `psn` lies behind `from`, in the 24 bits that there are.
inline std::int32_t distance(std::uint32_t psn, std::uint32_t from) {
  return static_cast<std::int32_t>((psn - from) << 8) >> 8;
}

enum class Kind : std::uint8_t {
  kRequest,
  kAck,
  kAnswer,
  kNotReady,
  kOutOfOrder,
  kRefused,
  kDatagram
};

/// What a packet says besides its bytes.
struct Header {
  Kind kind = Kind::kRequest;
  std::uint32_t to = 0;
  std::uint32_t from = 0;
  std::uint32_t psn = 0;
  std::uint32_t opcode = 0;
  std::uint32_t flags = 0;
  std::uint32_t immediate = 0;
  std::uint32_t rkey = 0;  ///< of a datagram its Q_Key
  std::uint64_t address = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint64_t length = 0;
  std::uint32_t code = 0;  ///< RNR timer, or the status that refuses
  ibv_ah_attr path{};      ///< of a datagram
};

struct Packet : Header {
  Bytes bytes;
};

using Receive = PostedReceive<ibv_sge>;

/// Of a queue pair, or shared.
struct ReceiveQueue : PostedReceives<ibv_sge> {
  std::vector<ibv_sge> memory;
  std::vector<std::uint64_t> ids;
  std::uint64_t posted = 0;
  std::uint64_t taken = 0;

  void make(std::uint32_t wrs, std::uint32_t pieces) {
    max = wrs;
    max_sge = static_cast<std::uint16_t>(pieces);
    mask = completion_places(wrs) - 1;
    memory.resize((mask + 1) * max_sge);
    sges = memory.data();
    ids.resize(mask + 1);
    wr_ids = ids.data();
  }
  std::uint64_t waiting() const { return posted - taken; }
  int post(ibv_recv_wr* wr, ibv_recv_wr** bad) {
    return post_in_order(wr, bad, [this](const ibv_recv_wr& next) {
      const int error = check(next, waiting());
      if (error == 0) keep(posted++, next);
      return error;
    });
  }
};

/// A request that waits, or whose answer does.
struct Send : Header {
  std::uint64_t wr_id = 0;
  std::uint32_t num_sge = 0;
  bool is_inline = false;

  void clear() { *this = {}; }
};

struct Stored {
  ibv_wc wc;
  const void* owner;
  std::uint32_t number;
  bool is_send;
  bool is_solicited = false;
};

struct Cq : verbatim::Cq, CompletionRing<Stored> {
  CopiedCompletion cursor;
  std::uint32_t armed = armed::kForNothing;
  bool has_overrun = false;
  std::uint32_t told = 0;  ///< the number behind the last completion that an event told of
  ~Cq() { delete[] ring; }
};

struct World;
World& world();

struct Srq : verbatim::Srq {
  Srq() noexcept;
  SpinLock& lock;
  ReceiveQueue store;
  std::uint32_t limit = 0;
};
inline std::uint64_t waiting(const Srq& srq) { return srq.store.waiting(); }
inline int resize(Srq&, std::uint32_t) { return EOPNOTSUPP; }

struct Qp : verbatim::Qp {
  Cq* send_cq;
  Cq* receive_cq;
  Srq* srq;
  std::uint32_t pd;
  bool signal_all;
  ReceiveQueue receives;
  // Requester.
  PostedSends<Send, kLimits.max_inline> sends;
  SpinLock builds;  ///< from wr_start to wr_complete or wr_abort
  RequestBatch batch;
  std::uint32_t head = 0;  ///< requests [head, tail) wait, of which [head, sent) were sent
  std::uint32_t sent = 0;
  std::uint32_t tail = 0;
  std::uint32_t freed = 0;  ///< requests whose completion was polled, or of one behind them
  std::uint32_t tries = 0;
  std::uint32_t not_ready = 0;
  bool rests = false;  ///< until the responder's RNR timer is over
  std::uint64_t repeat_at = kForEver;
  Drain drain;
  FirstError first_error;
  // Responder.
  std::uint32_t expected = 0;
  bool was_heard = false;                  ///< its peer, once since RTR
  bool has_complained = false;             ///< of a gap, once for each
  std::map<std::uint32_t, Bytes> atomics;  ///< what was answered, by PSN

  ~Qp() {
    sends.free({});
    batch.free({});
  }
  ibv_qp_state state() const { return plain.state; }
  bool awaits_answer() const { return head != sent; }
  ReceiveQueue& from() { return srq != nullptr ? srq->store : receives; }
};

struct Context : verbatim::Context {
  using verbatim::Context::Context;
  SoftEvents events;
};

/// All of the device, under one lock.
struct World {
  SpinLock lock;
  harness::PacketLink<Packet> link;
  std::map<std::uint32_t, Qp*> queue_pairs;
  KeyTable<PrivateKeys<kKeys>> keys;
  std::uint32_t next_qpn = 0x11;
};

inline Srq::Srq() noexcept : lock(world().lock) {}

template <class Object>
SoftEvents& events_of(const Object& object) {
  return static_cast<Context&>(verbatim::Context::from(object.plain.context)).events;
}
ibv_gid own_gid();

// Completions, and how queue pairs end (completions.cpp).

/// An event, if the queue is armed for something that none has told of.
void tell(Cq& cq);
void store(Cq& cq, const Stored& stored);
ibv_wc completion(const Qp& qp, std::uint64_t wr_id, ibv_wc_opcode opcode, ibv_wc_status status);
/// Completes the oldest of the requests that wait.
void complete_oldest(Qp& qp, ibv_wc_status status);
void complete(Qp& qp, const Receive& receive, ibv_wc_status status);
void forget_completions(Qp& qp);
void flush_sends(Qp& qp);
void flush(Qp& qp);
/// What has come to its end with the state ERR.
void end(Qp& qp);
void enter_error(Qp& qp);
/// The oldest request ends the queue pair, or of UD its send queue.
void fail(Qp& qp, ibv_wc_status status);

// Requests as they are posted (posting.cpp).

/// IBV_QP_EX_WITH_*: those that its queue pairs have.
std::uint64_t operations(ibv_qp_type type);
int post_list(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad);
/// The calls of ibv_wr_* that are asked for. False: no memory.
bool make_calls(Qp& qp, const ibv_qp_init_attr_ex& attr);

// Bytes of SGEs (memory.cpp).

/// False: some of them are not there.
bool gather(std::uint32_t pd, const ibv_sge* list, std::uint32_t count, bool is_inline, Bytes& out);
ibv_wc_status scatter(std::uint32_t pd, const ibv_sge* list, std::uint32_t count,
                      const Bytes& bytes);

// The requester (requester.cpp).

void send(Packet&& packet);
/// Sends what waits, as far as it may go now: not behind a READ or an atomic that it is fenced from,
/// and not when its own bytes are missing, which is told when it is the oldest.
void transmit(Qp& qp);
/// What the other side has answered.
void hear(Qp& qp, const Packet& packet);
void repeat_late(std::uint64_t now);

// The responder (responder.cpp).

void respond(Qp& qp, const Packet& packet);
void take_datagram(Qp& qp, Packet& packet);

// The link (network.cpp).

/// Until the link is empty.
void pump();
/// What an application's call does at last: what it caused happens, and what is late is repeated.
void progress();

}  // namespace verbatim::packet
