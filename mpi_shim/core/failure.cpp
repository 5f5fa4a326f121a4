// SPDX-License-Identifier: BSD-2-Clause
// What happens when a peer is gone: requests that need it end with MPI_ERR_PROC_ABORTED. It is
// found out by completions in error, by asynchronous events, and by looking, while there is nothing
// else to do, at the processes of this host whose numbers their addresses say.
//
// What the peer sent before it ended may lie in the completion queue still. Looks come after polls
// in vain, so at the second look after a suspicion nothing of it does.
#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

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
std::uint32_t dead = 0;
bool is_quiet = false;
bool is_over = false;  ///< ends of peers are no failures any more

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
    const Address& at = peer->address;
    if (at.host == fabric.address.host && at.host != 0 && !is_alive(at.process, at.began))
      suspect(*peer, world.is_of_teams ? "its process has ended"
                                       : "its process has ended without MPI_Finalize");
  }
}

}  // namespace

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
  ++dead;
  if (peer_is_lost != nullptr)
    peer_is_lost(peer, cause);
  else if (!is_quiet)
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
  if (dead == 0) return false;
  for (int member : comm.peers().members)
    if (is_dead(static_cast<std::uint32_t>(member))) return true;
  return false;
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
}

void lament_no_more() noexcept { is_quiet = true; }

void stop_looking() noexcept { is_over = true; }

}  // namespace vmpi
