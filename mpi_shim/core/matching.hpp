// SPDX-License-Identifier: BSD-2-Clause
// Which receive takes which message (MPI 5.0 section 3.5): the receives that nothing has matched
// yet and the messages that no receive has asked for, both hashed by (context, source, tag).
// Receives with a wildcard are in a list apart, by which the common case is O(1); who of two was
// posted first, its sequence number tells.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/wire.hpp"

namespace vmpi {

struct Envelope {
  std::uint32_t context;
  std::int32_t source;  ///< rank in the communicator, MPI_ANY_SOURCE
  std::int32_t tag;     ///< MPI_ANY_TAG

  [[nodiscard]] bool is_wild() const noexcept {
    return source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG;
  }
  /// REQUIRES: `message` has no wildcard.
  [[nodiscard]] bool takes(const Envelope& message) const noexcept {
    return context == message.context && (source == message.source || source == MPI_ANY_SOURCE) &&
           (tag == message.tag || tag == MPI_ANY_TAG);
  }
};

[[nodiscard]] inline std::uint32_t context_of(const Comm& comm, Plane plane) noexcept {
  return comm.context + (plane == Plane::kCollective ? 1u : 0u);
}
[[nodiscard]] inline Envelope envelope_of(const Request& receive) noexcept {
  return {context_of(*receive.comm, receive.plane), receive.peer, receive.tag};
}

/// A message without a receive. 56 bytes, and 8 of the hash: a million of them are no trouble.
struct Unexpected {
  Envelope envelope;
  std::uint32_t sender_id;
  std::uint32_t rkey;
  std::uint32_t world_rank : 24;
  std::uint32_t kind : 6;       ///< MessageKind
  std::uint32_t is_mapped : 1;  ///< of kRendezvous: `place` is in memory that we can map
  std::uint32_t is_own : 1;     ///< sent by this process to itself: `place` is its Request
  std::uint64_t length;
  std::uint64_t place;  ///< address at the sender, or of the copied payload here (malloc), or 0
  std::uint32_t hash_next, hash_previous;
  std::uint32_t order_next, order_previous;
};
static_assert(sizeof(Unexpected) <= 64);

/// Of a message that no receive takes any more.
void release_payload(const Unexpected& message) noexcept;

class Matching {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;

  /// False: no memory.
  [[nodiscard]] bool start() noexcept;
  void stop() noexcept;

  void post(Request& receive) noexcept;
  /// The number of the receive that was posted last (Request::sequence).
  [[nodiscard]] std::uint64_t posts() const noexcept { return sequence_; }
  void withdraw(Request& receive) noexcept;
  [[nodiscard]] static bool is_posted(const Request& receive) noexcept {
    return receive.sequence != 0;
  }
  /// Whether the next message of this receive's source and tag is its own: no wildcard and no other
  /// receive of them is posted. REQUIRES: it is posted and has no wildcard.
  [[nodiscard]] bool is_certain(const Request& receive) noexcept;
  /// Neither a message nor a receive is here that a receive for `wanted`, without wildcards, would
  /// come behind.
  [[nodiscard]] bool is_free_for(const Envelope& wanted) noexcept {
    return (kept_ == 0 || find_message(wanted) == kNone) && wild_.first == nullptr &&
           (posted_ == 0 || find_receive(wanted) == nullptr);
  }
  [[nodiscard]] bool has_receives() const noexcept {
    return posted_ != 0 || wild_.first != nullptr;
  }
  /// Maybe, if one with wildcards is posted. REQUIRES: `message` has no wildcard.
  [[nodiscard]] bool has_receive_for(const Envelope& message) noexcept {
    return wild_.first != nullptr || (posted_ != 0 && find_receive(message) != nullptr);
  }
  /// The receive that a message matches, withdrawn; null: none.
  [[nodiscard]] Request* take_receive(const Envelope& message) noexcept;

  /// Keeps a message; its links are set here. False: no memory.
  [[nodiscard]] bool keep(const Unexpected& message) noexcept;
  /// The first message that `wanted` takes; kNone: there is none.
  [[nodiscard]] std::uint32_t find_message(const Envelope& wanted) const noexcept;
  /// The first that `is_meant(message)`.
  template <class Predicate>
  [[nodiscard]] std::uint32_t find_message_if(Predicate is_meant) const noexcept {
    std::uint32_t index = order_.first;
    while (index != kNone && !is_meant(at(index))) index = at(index).order_next;
    return index;
  }
  [[nodiscard]] const Unexpected& message(std::uint32_t index) const noexcept { return at(index); }
  [[nodiscard]] Unexpected take_message(std::uint32_t index) noexcept;

  /// visit(Request&) for every receive that is posted; it may withdraw that one.
  template <class Visit>
  void each_receive(Visit visit) noexcept {
    for (std::size_t i = 0; i <= buckets_.size(); ++i) {
      Request* next = i == buckets_.size() ? wild_.first : buckets_[i].first;
      while (next != nullptr) {
        Request& receive = *next;
        next = receive.next;
        visit(receive);
      }
    }
  }

 private:
  struct Receives {
    Request* first;
    Request* last;
  };
  struct Messages {
    std::uint32_t first;
    std::uint32_t last;
  };
  static constexpr std::size_t kSlab = 1024;

  [[nodiscard]] Unexpected& at(std::uint32_t index) const noexcept {
    return slabs_[index / kSlab][index % kSlab];
  }
  /// The first without wildcards that takes it; null: none.
  [[nodiscard]] Request* find_receive(const Envelope& message) noexcept;
  [[nodiscard]] Receives& receives_of(const Envelope& envelope) noexcept;
  [[nodiscard]] Messages& messages_of(const Envelope& envelope) noexcept;
  void spread_receives() noexcept;
  void spread_messages() noexcept;
  void append_to_hash(std::uint32_t index) noexcept;

  LastingArray<Receives> buckets_;
  Receives wild_ = {nullptr, nullptr};
  std::size_t posted_ = 0;
  std::uint64_t sequence_ = 0;

  LastingArray<Messages> message_buckets_;
  Messages order_ = {kNone, kNone};
  std::size_t kept_ = 0;
  LastingArray<Unexpected*> slabs_;
  std::uint32_t free_ = kNone;
};

extern Matching matching;

}  // namespace vmpi
