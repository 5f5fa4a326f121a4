// SPDX-License-Identifier: BSD-2-Clause
// Other processes, as far as this one has to do with them: state is made for those that are talked
// to, and a connection for those that messages go to.
//
// Connecting: each of both has one queue pair for the other, whose number it says in a Hello by
// the UD queue pair, repeated until the other's `has_yours` is heard. So requests that cross need
// no rule, and who is heard may be sent to: both queue pairs are connected by then.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/fabric.hpp"
#include "mpi_shim/core/ring.hpp"
#include "mpi_shim/core/transfer.hpp"
#include "mpi_shim/core/wire.hpp"

namespace vmpi {

/// An answer that waits for room in the send queue.
struct Answer {
  Answer* next;
  AnswerHead head;
  std::uint32_t data_of;  ///< of kData: the transfer whose payload goes with it
};

/// What a receive of the peer's has invited (invitations.hpp).
struct Invitation {
  std::uint32_t context;
  std::int32_t tag;
  bool is_mapped;
  std::uint32_t id;
  std::uint32_t rkey;
  std::uint64_t capacity;
  std::uint64_t address;
};

struct Peer {
  std::uint32_t rank = 0;
  bool has_address = false;
  bool is_connected = false;  ///< our queue pair to theirs
  bool is_ready = false;      ///< theirs to ours, as well: messages may go
  bool is_asking = false;     ///< a Hello is repeated
  bool is_busy = false;       ///< in the list of those with something to send
  bool is_dead = false;
  bool is_lost_to_other = false;  ///< one who ends all collectives with it
  bool has_lost_us = false;       ///< it ends all collectives with this process
  bool is_loss_told = false;
  std::uint32_t lost_to = 0;  ///< of is_lost_to_other: rank of who found out
  bool has_left = false;      ///< perhaps by MPI_Finalize, after the failure of another
  std::uint16_t credits = kCredits;
  std::uint16_t owed = 0;        ///< credits to be given back
  std::uint16_t held = 0;        ///< its payloads that lie unmatched here
  std::uint32_t in_queue = 0;    ///< requests in the send queue
  std::uint32_t unsignaled = 0;  ///< of these, since the last one with a completion
  Address address = {};
  ibv_ah* ah = nullptr;
  ibv_qp* qp = nullptr;
  const char* suspicion = nullptr;  ///< why it may be gone
  std::uint64_t suspected_at = 0;   ///< number of the look
  std::int64_t ask_at = 0;          ///< ns
  std::int64_t ask_interval = 0;
  std::int64_t asked_since = 0;
  Request* first_send = nullptr;  ///< those that wait
  Request* last_send = nullptr;
  Answer* first_answer = nullptr;
  Answer* last_answer = nullptr;
  Transfer* first_read = nullptr;
  Transfer* last_read = nullptr;
  Transfer* first_stream = nullptr;  ///< whose pieces wait for room in the ring
  Transfer* last_stream = nullptr;
  std::uint64_t sent = 0;   ///< messages that are matched there
  std::uint64_t heard = 0;  ///< that are matched here
  std::uint64_t heard_when_sent = 0;
  Array<Invitation> invitations;
  RingWriter* out = nullptr;               ///< by which it is told all messages, once there is one
  struct InRing* in = nullptr;             ///< by which it tells us (rings.hpp)
  struct OutWindow* out_window = nullptr;  ///< for pieces (streams.hpp)
  struct InWindow* in_window = nullptr;
  std::uint64_t offered_window = 0;
  std::uint32_t window_key = 0;
  std::uint64_t offered_ring = 0;  ///< its address, until it is mapped; 0: none
  std::uint32_t offered_key = 0;
  Peer* next_busy = nullptr;
  Peer* next_asking = nullptr;

  [[nodiscard]] std::uint32_t room() const noexcept { return Fabric::kSendQueue - in_queue; }
  [[nodiscard]] bool has_work() const noexcept {
    return first_send != nullptr || first_answer != nullptr || first_read != nullptr ||
           first_stream != nullptr;
  }
};

/// Null: no memory.
[[nodiscard]] Peer* peer_of(std::uint32_t world_rank) noexcept;
/// By rank in the world.
extern LastingArray<Peer*> peers;
/// Null: nobody has asked for it yet.
[[nodiscard]] inline Peer* known_peer(std::uint32_t world_rank) noexcept {
  return world_rank < peers.size() ? peers[world_rank] : nullptr;
}
/// By the number of our queue pair; null: it is none of ours.
[[nodiscard]] Peer* peer_of_qp(std::uint32_t qpn) noexcept;
/// Theirs is connected to ours.
void be_ready(Peer& peer) noexcept;
/// Of teams: the process with this address, which is new unless it was met before. Null: no memory.
[[nodiscard]] Peer* meet_peer(const Address& address) noexcept;
/// Completes what the device does not say of our address.
void know_own_address() noexcept;
/// Says what the bootstrap must know of us. False: the launcher refused.
[[nodiscard]] bool publish_address() noexcept;
/// Reads it of another. False: it is none, or no address.
[[nodiscard]] bool learn_address(Peer& peer) noexcept;

void begin_connecting(Peer& peer) noexcept;
void hear_hello(const Hello& hello, std::uint32_t from_qpn) noexcept;
/// Says again what was not answered. True: something was said.
bool ask_again() noexcept;
[[nodiscard]] bool is_anybody_asked() noexcept;
void stop_peers() noexcept;

/// It seems to be gone. It is failed with the next look, when all that it had sent has been taken.
void suspect(Peer& peer, const char* cause) noexcept;
/// Ends everything that depends on the peer with MPI_ERR_PROC_ABORTED (failure.cpp).
void fail_peer(Peer& peer, const char* cause) noexcept;
/// Set where there are teams: hears of each that is lost, instead of the user.
extern void (*peer_is_lost)(const Peer& peer, const char* cause) noexcept;
/// Likewise: a peer has given up what this context is of.
extern void (*peer_gave_up)(const Peer& peer, std::uint32_t context) noexcept;
/// Likewise: whether messages of this context, which nobody has asked for yet, are worth keeping.
extern bool (*is_context_wanted)(std::uint32_t context) noexcept;
[[nodiscard]] bool is_dead(std::uint32_t world_rank) noexcept;
/// Whether any rank that sends in a communicator is: receives from any source end then.
[[nodiscard]] bool is_any_dead(const Comm& comm) noexcept;
/// A peer says that a rank is lost to it, as `finder` has found: collectives with that one are
/// over, since who waits for one that has left them would wait for ever. Its messages to this
/// process are what they were. If it is this process that is lost, collectives with the two are
/// over.
void hear_of_loss(const Peer& teller, std::uint32_t world_rank, std::uint32_t finder) noexcept;
/// Of one to which messages may go from now on: nobody could tell it before.
[[gnu::cold]] void tell_of_losses(Peer& peer) noexcept;
/// On this host, as its address says.
[[nodiscard]] bool is_process_gone(const Peer& peer) noexcept;
/// How many ranks are gone, and how many of these did not say that they left.
extern std::uint32_t gone_ranks;
extern std::uint32_t dead_ranks;
/// The rank in the world of a member of a communicator, or of the whole that it is a part of, that
/// died here or elsewhere; -1: there is none. No collective of it ends at all ranks any more, so
/// each ends with an error at those that live.
[[nodiscard, gnu::cold]] int dead_member(const Comm& comm) noexcept;
/// One that died or left.
[[nodiscard, gnu::cold]] int gone_member(const Comm& comm) noexcept;
/// How long a collective goes on when a member is gone that may have done its part of it (ns).
inline constexpr std::int64_t kPatienceForLeft = 2'000'000'000;
/// MPI_Finalize's word to the others when it does not wait for them.
void say_that_we_leave() noexcept;
/// What a collective looks at before it begins.
[[nodiscard]] inline bool has_dead_member(const Comm& comm) noexcept {
  return dead_ranks != 0 && dead_member(comm) >= 0;
}
/// Whether the message of a receive will not come, or not for sure, since a rank is gone.
[[nodiscard]] bool is_hopeless(const Request& receive) noexcept;
/// Looks for asynchronous events and for processes of this host that ended; now and then.
void look_for_failures() noexcept;
/// Further failures are not told: after one, ranks leave as they like.
void lament_no_more() noexcept;
/// Ends of peers are no failures any more.
void stop_looking() noexcept;

[[nodiscard]] std::int64_t now_ns() noexcept;

template <class Visit>
void each_peer(Visit visit) noexcept {
  for (Peer* peer : peers)
    if (peer != nullptr) visit(*peer);
}

}  // namespace vmpi
