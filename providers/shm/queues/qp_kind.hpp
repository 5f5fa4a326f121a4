// SPDX-License-Identifier: BSD-2-Clause
//
// What a kind of queue pair does in its own way, chosen when it is made: the rooms of UD and XRC fill
// such a table, and those below ask it and call neither; of their data they know what the roles show.
// A connected queue pair has none. Nothing on a small message's shortest way asks.
#pragma once

#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/step.hpp"

namespace verbatim::shm {

struct LocalRange;
class SendLock;

enum class Verdict : std::uint8_t {
  kSound,      ///< a datagram, or the word of one that the queue pair's own receive refuses
  kUnfounded,  ///< it was refused for a receive that is not the one it would have: somebody was
               ///< faster, or it is made up
  kLie         ///< no honest sender says so
};

/// What is nullptr goes the way of a connected queue pair.
struct QpKind {
  // Sending; the send lock is held.

  /// Keeps whom a request is for. False: beside that it is as a connected one's.
  bool (*address)(const Qp& qp, const ibv_send_wr& wr, PendingSend& send) noexcept = nullptr;
  /// One step of what waits at the head of the queue.
  Step (*send)(Qp& qp, SendLock& lock, const PendingSend& send,
               const LocalRange* local) noexcept = nullptr;
  /// It has no other half that would have to be attached before.
  bool is_unconnected = false;

  // What is sent over its endpoints, and what comes over them; `parent` is the queue pair.

  /// Is that where an endpoint of `parent` may lead?
  bool (*is_destination)(const Qp& parent, const QpRecord& record) noexcept = nullptr;
  /// Makes our halves of the endpoints that ask to connect to it. Service thread; live.mutex is
  /// held.
  void (*accept)(Qp& parent) noexcept = nullptr;
  /// The target by which the sender of an endpoint comes. False: by none, or by one whose process
  /// is still to be met. Service thread; live.mutex is held.
  bool (*find_target)(const Qp& parent, const Peer& from, const QpRecord& endpoint,
                      XrcTarget& out) noexcept = nullptr;
  /// What the peer of an incoming endpoint may do now. False: nothing any more.
  bool (*find_rights)(const Qp& endpoint, std::uint32_t& rights) noexcept = nullptr;
  /// Of message `index` of an incoming endpoint, by one copy of its sender's words. The receive
  /// CQ's lock is held.
  Verdict (*judge)(Qp& endpoint, std::uint64_t index, SlotKind kind, std::uint64_t h,
                   std::uint64_t length, std::uint64_t start) noexcept = nullptr;
  /// Writes what stands before a message into the receive's room. False: there is no memory. The
  /// receive CQ's lock is held.
  bool (*show_path)(const Qp& endpoint, const LocalRange* room, std::uint32_t count,
                    const Slot& slot, std::uint64_t h, ibv_wc& wc) noexcept = nullptr;

  // States.

  /// Nothing more is accepted (error state). No lock after the send lock is held.
  void (*stop_accepting)(Qp& qp) noexcept = nullptr;
  /// Others are to hear of its events too.
  void (*tell_openers)(Qp& qp, ibv_event_type type) noexcept = nullptr;
  /// The verbs, where they mean something else.
  int (*modify)(Qp& qp, ibv_qp_attr& attr, int mask) noexcept = nullptr;
  int (*query)(Qp& qp, ibv_qp_attr& attr) noexcept = nullptr;
  int (*destroy)(Qp& qp) noexcept = nullptr;
  /// It goes, with its number.
  void (*retire)(Qp& qp) noexcept = nullptr;
};

}  // namespace verbatim::shm
