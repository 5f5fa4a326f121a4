// SPDX-License-Identifier: BSD-2-Clause
// What happens when a peer is gone: requests that need it end with MPI_ERR_PROC_ABORTED. It is
// found out by completions in error, by asynchronous events, and by looking, while there is nothing
// else to do, at the processes of this host whose numbers their addresses say.
//
// Receives of collectives that it has a part in end, too: who waits for a rank that lives may wait for
// one that has left the collective with an error. After a failure ranks call MPI_Finalize without
// waiting for each other, and say so: one that is gone so has perhaps done its part of a collective
// that the others are still in, so these have time to end it.
//
// What the peer sent before it ended may lie in the completion queue still. Looks come after polls
// in vain, so at the second look after a suspicion nothing of it does.
#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "mpi_shim/core/input.hpp"
#include "mpi_shim/core/invitations.hpp"
#include "mpi_shim/core/matching.hpp"
#include "mpi_shim/core/output.hpp"
#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/core/process_life.hpp"
#include "mpi_shim/core/rings.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {
namespace {

constexpr std::int64_t kEvery = 50'000'000;  ///< ns between two looks
constexpr int kPeersPerLook = 16;

std::int64_t looked_at = 0;
std::uint64_t looks = 1;
std::uint32_t next_rank = 0;
bool is_quiet = false;
bool is_over = false;  ///< ends of peers are no failures any more
bool is_leaving = false;

/// Of a collective that all ranks of its communicator have a part in.
bool is_of_all(const Request& request) noexcept {
  return request.plane == Plane::kCollective &&
         ((request.tag & kApart) == 0 || request.comm->remote != nullptr);
}

enum class Gone : std::uint8_t { kAnyhow, kByDeath };

int gone_among(const Group& group, Gone how) noexcept {
  for (int member : group.members) {
    const Peer* const peer = known_peer(static_cast<std::uint32_t>(member));
    if (peer == nullptr) continue;
    if (peer->is_lost_to_other || peer->has_lost_us ||
        (peer->is_dead && (how == Gone::kAnyhow || !peer->has_left)))
      return member;
  }
  return -1;
}

int gone_member(const Comm& comm, Gone how) noexcept {
  const Comm* whole = &comm;
  while (whole->whole != nullptr) whole = whole->whole;
  const int found = gone_among(*whole->group, how);
  return found >= 0 || whole->remote == nullptr ? found : gone_among(*whole->remote, how);
}

/// Numbers of receives (Matching) that have waited for kPatienceForLeft since a rank was gone last.
struct LongWaits {
  std::uint64_t up_to = 0;
  std::uint64_t next = 0;
  std::int64_t next_at = 0;
  std::uint32_t gone = 0;

  void look(std::int64_t now) noexcept {
    if (gone == gone_ranks && now < next_at) return;
    up_to = gone == gone_ranks ? next : 0;
    gone = gone_ranks;
    next = matching.posts();
    next_at = now + kPatienceForLeft;
  }
};
LongWaits long_waits;

bool depends_on(const Request& receive, std::uint32_t rank) noexcept {
  const Group& senders = receive.comm->peers();
  if (receive.peer != MPI_ANY_SOURCE) return senders.world_rank(receive.peer) == rank;
  for (int member : senders.members)
    if (member == static_cast<int>(rank)) return true;
  return false;
}

void hear_events() noexcept {
  ibv_async_event event;
  while (ibv_get_async_event(fabric.context, &event) == 0) {
    const ibv_qp* failed = nullptr;
    switch (event.event_type) {
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
        failed = event.element.qp;
        break;
      case IBV_EVENT_DEVICE_FATAL:
      case IBV_EVENT_CQ_ERR:
      case IBV_EVENT_SRQ_ERR:
        fabric.is_failed = true;
        break;
      default:
        break;
    }
    ibv_ack_async_event(&event);
    each_peer([failed](Peer& peer) noexcept {
      if (failed != nullptr && peer.qp == failed) suspect(peer, "its process is gone");
    });
  }
  // A call may have told of it, too.
  if (fabric.is_failed)
    each_peer([](Peer& peer) noexcept { suspect(peer, "the RDMA device failed"); });
}

/// Also of ranks that nothing was ever sent to: a receive may wait for them.
void look_at_processes() noexcept {
  for (int looked = 0; looked < kPeersPerLook && looked < world.size; ++looked) {
    const std::uint32_t rank = next_rank++ % static_cast<std::uint32_t>(world.size);
    if (rank == static_cast<std::uint32_t>(world.rank)) continue;
    Peer* const peer = peer_of(rank);
    if (peer == nullptr || peer->is_dead || (!peer->has_address && !learn_address(*peer))) continue;
    if (!is_process_gone(*peer)) continue;
    // After a failure of another it may have left; without a connection it could not say so.
    if (gone_ranks != 0 && !peer->is_ready) peer->has_left = true;
    suspect(*peer, world.is_of_teams ? "its process has ended"
                                     : "its process has ended without MPI_Finalize");
  }
}

void tell_loss(Peer& peer, const Peer& lost) noexcept {
  const std::uint32_t finder =
      lost.is_lost_to_other ? lost.lost_to : static_cast<std::uint32_t>(world.rank);
  answer(peer, MessageKind::kLost, lost.rank, finder);
}

/// Not all see each end, and some only lose what others keep: that one itself, too.
void tell_losses() noexcept {
  each_peer([](Peer& lost) noexcept {
    if (lost.is_loss_told || (!lost.is_lost_to_other && (!lost.is_dead || lost.has_left))) return;
    lost.is_loss_told = true;
    each_peer([&lost](Peer& peer) noexcept {
      if (peer.is_ready && !peer.is_dead) tell_loss(peer, lost);
    });
  });
}

void hear_that_we_are_lost_to(std::uint32_t world_rank) noexcept {
  Peer* const peer =
      world_rank != static_cast<std::uint32_t>(world.rank) ? peer_of(world_rank) : nullptr;
  if (peer == nullptr || peer->has_lost_us || peer->is_lost_to_other ||
      (peer->is_dead && !peer->has_left))
    return;
  peer->has_lost_us = true;
  ++gone_ranks;
  ++dead_ranks;
  if (!is_quiet)
    (void)std::fprintf(stderr, "rank %d of %d: rank %u has lost this rank\n", world.rank,
                       world.size, world_rank);
}

/// What collectives of the dead wait for from those that live: it may never come. Who finds a dead rank
/// may be in the midst of the engine's lists, so it is done with a look. (Teams see to it themselves.)
void end_hopeless_collectives(std::int64_t now) noexcept {
  if (gone_ranks == 0 || world.is_of_teams) return;
  tell_losses();
  long_waits.look(now);
  matching.each_receive([](Request& receive) noexcept {
    const Gone how = receive.sequence <= long_waits.up_to ? Gone::kAnyhow : Gone::kByDeath;
    if (!is_of_all(receive) || gone_member(*receive.comm, how) < 0) return;
    // A peer that may be writing to it is asked not to: it ends with the answer.
    receive.error = MPI_ERR_PROC_ABORTED;
    if (revoke(receive)) return;
    matching.withdraw(receive);
    receive.source = receive.peer;
    complete(receive, MPI_ERR_PROC_ABORTED);
  });
  turn_away_hopeless();
}

}  // namespace

std::uint32_t dead_ranks = 0;
std::uint32_t gone_ranks = 0;
void (*peer_is_lost)(const Peer& peer, const char* cause) noexcept = nullptr;
void (*peer_gave_up)(const Peer& peer, std::uint32_t context) noexcept = nullptr;
bool (*is_context_wanted)(std::uint32_t context) noexcept = nullptr;

void suspect(Peer& peer, const char* cause) noexcept {
  if (peer.suspicion != nullptr) return;
  peer.suspicion = cause;
  peer.suspected_at = looks;
}

void fail_peer(Peer& peer, const char* cause) noexcept {
  if (peer.is_dead || is_over) return;
  peer.is_dead = true;
  ++gone_ranks;
  if (!peer.has_left) ++dead_ranks;
  if (peer_is_lost != nullptr)
    peer_is_lost(peer, cause);
  else if (!is_quiet && !peer.is_lost_to_other && !peer.has_lost_us)
    (void)std::fprintf(stderr, "rank %d of %d: rank %u is lost: %s\n", world.rank, world.size,
                       peer.rank, cause);
  if (peer.qp != nullptr) {
    // Nothing may be read or written for requests that are said to be over.
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    (void)ibv_modify_qp(peer.qp, &attr, IBV_QP_STATE);
  }
  leave_ring(peer);
  peer.offered_ring = peer.offered_window = 0;
  while (peer.first_answer != nullptr) {
    Answer* const gone = peer.first_answer;
    peer.first_answer = gone->next;
    std::free(gone);
  }
  peer.last_answer = nullptr;
  peer.first_read = peer.last_read = nullptr;
  peer.first_stream = peer.last_stream = nullptr;
  while (peer.first_send != nullptr) {
    Request& send = *peer.first_send;
    if (!take_back(send)) break;
    complete(send, MPI_ERR_PROC_ABORTED);
  }
  transfers.each([&peer](Transfer& transfer) noexcept {
    if (transfer.rank != peer.rank) return;
    Request& request = *transfer.request;
    if (transfer.step == Transfer::Step::kInvited) {
      // The receive is posted, and ends as such.
      withdraw_invitation(request);
      return;
    }
    release_transfer(transfer);
    complete(request, MPI_ERR_PROC_ABORTED);
  });
  matching.each_receive([&peer](Request& receive) noexcept {
    if (!depends_on(receive, peer.rank)) return;
    matching.withdraw(receive);
    receive.source = receive.peer;
    complete(receive, MPI_ERR_PROC_ABORTED);
  });
}

bool is_dead(std::uint32_t world_rank) noexcept {
  const Peer* const peer = known_peer(world_rank);
  return peer != nullptr && peer->is_dead;
}

bool is_any_dead(const Comm& comm) noexcept {
  if (gone_ranks == 0) return false;
  for (int member : comm.peers().members)
    if (is_dead(static_cast<std::uint32_t>(member))) return true;
  return false;
}

int dead_member(const Comm& comm) noexcept {
  return dead_ranks != 0 ? gone_member(comm, Gone::kByDeath) : -1;
}

int gone_member(const Comm& comm) noexcept {
  return gone_ranks != 0 ? gone_member(comm, Gone::kAnyhow) : -1;
}

bool is_hopeless(const Request& receive) noexcept {
  if (gone_ranks == 0) return false;
  if (is_of_all(receive) && dead_member(*receive.comm) >= 0) return true;
  return receive.peer == MPI_ANY_SOURCE ? is_any_dead(*receive.comm)
                                        : is_dead(receive.comm->peers().world_rank(receive.peer));
}

void hear_of_loss(const Peer& teller, std::uint32_t world_rank, std::uint32_t finder) noexcept {
  if (is_over || world.is_of_teams) return;
  if (world_rank == static_cast<std::uint32_t>(world.rank)) {
    hear_that_we_are_lost_to(teller.rank);
    hear_that_we_are_lost_to(finder);
    return;
  }
  Peer* const lost = peer_of(world_rank);
  if (lost == nullptr || lost->is_lost_to_other || (lost->is_dead && !lost->has_left)) return;
  // Their link has failed, which is the teller's loss, as is said already: the others count on the
  // other one.
  if (teller.is_lost_to_other && teller.lost_to == world_rank) return;
  lost->is_lost_to_other = true;
  lost->lost_to = finder;
  ++gone_ranks;
  ++dead_ranks;
  if (!is_quiet)
    (void)std::fprintf(stderr, "rank %d of %d: rank %u is lost: rank %u has lost it\n", world.rank,
                       world.size, world_rank, teller.rank);
}

void tell_of_losses(Peer& peer) noexcept {
  each_peer([&peer](Peer& lost) noexcept {
    if (lost.is_loss_told && !peer.is_dead) tell_loss(peer, lost);
  });
  if (is_leaving && !peer.is_dead) answer(peer, MessageKind::kLeft, 0);
}

bool is_process_gone(const Peer& peer) noexcept {
  const Address& at = peer.address;
  return peer.has_address && at.host != 0 && at.host == fabric.address.host &&
         !is_alive(at.process, at.began);
}

void say_that_we_leave() noexcept {
  is_leaving = true;
  each_peer([](Peer& peer) noexcept {
    if (peer.is_ready && !peer.is_dead) answer(peer, MessageKind::kLeft, 0);
  });
}

void look_for_failures() noexcept {
  if (!fabric.is_open() || is_over) return;
  const std::int64_t now = now_ns();
  if (looked_at == 0) looked_at = now;
  if (now - looked_at < kEvery) return;
  looked_at = now;
  ++looks;
  each_peer([](Peer& peer) noexcept {
    if (peer.suspicion != nullptr && peer.suspected_at < looks) fail_peer(peer, peer.suspicion);
  });
  hear_events();
  look_at_processes();
  end_hopeless_collectives(now);
}

void lament_no_more() noexcept { is_quiet = true; }

void stop_looking() noexcept { is_over = true; }

}  // namespace vmpi
