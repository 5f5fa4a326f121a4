// SPDX-License-Identifier: BSD-2-Clause
// How a team ends before its time: a member is lost, has given it up, or does not come. It is marked
// where that is found out; what is under way on it is given up where calls wait, since those who
// find out are in the midst of the engine's lists.
#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "mpi_shim/coll/host_team.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/fabric.hpp"
#include "mpi_shim/core/input.hpp"
#include "mpi_shim/core/matching.hpp"
#include "mpi_shim/core/output.hpp"
#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/core/transfer.hpp"
#include "mpi_shim/teams/entry.hpp"
#include "mpi_shim/teams/team.hpp"
#include "runtime/base/log.hpp"

namespace vmpi {

vbt_coll_team* first_team = nullptr;

namespace {

constexpr std::size_t kText = 256;
/// That a member which lives may leave a message untaken that this one has given up.
constexpr std::int64_t kPatienceNs = 5'000'000'000;
constexpr std::int64_t kBetweenIdlesNs = 100'000;

// Looked at by calls that wait: no function is to be called for where they lie.
[[gnu::tls_model("initial-exec")]] constinit thread_local char why[kText] = {};
[[gnu::tls_model("initial-exec")]] constinit thread_local WaitingCall* call_here = nullptr;

/// Those that are not settled. What is under way on them may take a while.
std::uint32_t failed_teams = 0;

[[nodiscard]] int rank_in(const Comm& comm, std::uint32_t world_rank) noexcept {
  for (int i = 0; i < comm.size(); ++i)
    if (comm.group->world_rank(i) == world_rank) return i;
  return -1;
}

void lose_peer(const Peer& peer, const char* cause) noexcept {
  for (vbt_coll_team* team = first_team; team != nullptr; team = team->next)
    if (const int rank = rank_in(*team->comm, peer.rank); rank >= 0)
      fail_team(*team, ECONNRESET, rank, "member %d (process %" PRId32 ") is lost: %s", rank,
                peer.address.process, cause);
}

[[nodiscard]] vbt_coll_team* team_of(std::uint32_t context) noexcept {
  for (vbt_coll_team* team = first_team; team != nullptr; team = team->next)
    if (team->comm->context == (context & ~std::uint32_t{3})) return team;
  return nullptr;
}

void hear_giving_up(const Peer& peer, std::uint32_t context) noexcept {
  vbt_coll_team* const team = team_of(context);
  const int rank = team != nullptr ? rank_in(*team->comm, peer.rank) : -1;
  if (rank >= 0) fail_team(*team, ECONNRESET, rank, "member %d has given the team up", rank);
}

[[nodiscard]] bool is_wanted(std::uint32_t context) noexcept {
  const vbt_coll_team* const team = team_of(context);
  return team != nullptr && team->error == 0;
}

void look_at_call() noexcept {
  if (failed_teams != 0) settle_failures();
  if (call_here != nullptr) call_here->wait_in_vain();
}

void say_failure(const vbt_coll_team& team) noexcept {
  const Comm& comm = *team.comm;
  if (comm.team != nullptr) comm.team->give_up();
  for (int i = 0; i < comm.size(); ++i)
    if (Peer* const peer = known_peer(comm.group->world_rank(i));
        peer != nullptr && peer->is_ready && !peer->is_dead)
      answer(*peer, MessageKind::kGaveUp, comm.context);
}

void give_up_sends(const Comm& comm) noexcept {
  for (int i = 0; i < comm.size(); ++i) {
    Peer* const peer = known_peer(comm.group->world_rank(i));
    Request* next = nullptr;
    for (Request* send = peer != nullptr ? peer->first_send : nullptr; send != nullptr;
         send = next) {
      next = send->next;
      if (send->comm == &comm && take_back(*send)) complete(*send, MPI_ERR_PROC_ABORTED);
    }
  }
}

void give_up_receives(const Comm& comm) noexcept {
  matching.each_receive([&comm](Request& receive) noexcept {
    // One that a peer may be writing to ends when that one has heard that it is not to.
    if (receive.comm == &comm && cancel(receive) && receive.is_complete)
      receive.error = MPI_ERR_PROC_ABORTED;
  });
}

/// True: nothing is under way on it any more.
bool settle(vbt_coll_team& team) noexcept {
  Comm& comm = *team.comm;
  if (!team.is_said) {
    team.is_said = true;
    say_failure(team);
    turn_away(comm, Plane::kCollective);
  }
  give_up_sends(comm);
  give_up_receives(comm);
  const bool is_late = now_ns() - team.failed_at > kPatienceNs;
  bool is_settled = true;
  transfers.each([&](Transfer& transfer) noexcept {
    if (transfer.request == nullptr || transfer.request->comm != &comm) return;
    Peer* const peer = known_peer(transfer.rank);
    if (is_late && peer != nullptr && !peer->is_dead)
      fail_peer(*peer, "it does not take a message that was given up");
    else
      is_settled = false;
  });
  return is_settled;
}

[[nodiscard]] int rank_awaited_by(const Comm& comm) noexcept {
  int rank = comm.team != nullptr ? comm.team->who_is_awaited() : -1;
  matching.each_receive([&](Request& receive) noexcept {
    if (receive.comm == &comm && receive.peer >= 0) rank = receive.peer;
  });
  return rank;
}

}  // namespace

void hear_of_failures() noexcept {
  peer_is_lost = lose_peer;
  peer_gave_up = hear_giving_up;
  is_context_wanted = is_wanted;
  wait_in_vain = look_at_call;
}

int refuse_call(int error, const char* format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  verbatim::log_refusal_of(format, "%s", why);
  return error;
}

void fail_team(vbt_coll_team& team, int error, int rank_at_fault, const char* format,
               ...) noexcept {
  if (team.error != 0) return;
  team.error = error;
  team.rank_at_fault = rank_at_fault;
  team.failed_at = now_ns();
  team.comm->has_failed = true;
  ++failed_teams;
  int length = std::snprintf(team.why, sizeof team.why, "team %s, member %d of %d: ", team.name,
                             team.comm->rank(), team.comm->size());
  std::va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(team.why + length, sizeof team.why - static_cast<std::size_t>(length),
                       format, arguments);
  va_end(arguments);
  if (team.is_leaving)
    verbatim::log_info("%s, as the team ends", team.why);
  else
    verbatim::log_error("%s", team.why);
}

void fail_by_time(vbt_coll_team& team, std::int64_t ns) noexcept {
  const int rank = rank_awaited_by(*team.comm);
  const long long milliseconds = ns / 1'000'000;
  if (rank >= 0)
    fail_team(team, ETIMEDOUT, rank, "member %d has not come within %lld ms", rank, milliseconds);
  else
    fail_team(team, ETIMEDOUT, -1, "not all members have come within %lld ms", milliseconds);
}

void settle_failures() noexcept {
  failed_teams = 0;
  for (vbt_coll_team* team = first_team; team != nullptr; team = team->next)
    if (team->error != 0 && !settle(*team)) ++failed_teams;
}

int answer_for(vbt_coll_team& team, int engine_error) noexcept {
  if (engine_error == MPI_SUCCESS && team.error == 0) [[likely]]
    return 0;
  if (team.error == 0) {
    const HostTeam* const on_host = team.comm->team;
    const int rank = on_host != nullptr ? on_host->who_gave_up() : -1;
    switch (engine_error) {
      case MPI_ERR_TRUNCATE:
        fail_team(team, EMSGSIZE, -1, "members disagree about the call or its length");
        break;
      case MPI_ERR_NO_MEM:
        fail_team(team, ENOMEM, -1, "there is no memory");
        break;
      default:
        if (fabric.is_failed)
          fail_team(team, EIO, -1, "the RDMA device failed");
        else if (rank >= 0)
          fail_team(team, ECONNRESET, rank, "member %d has given the team up", rank);
        else
          fail_team(team, ECONNRESET, -1, "a member has given the team up");
        break;
    }
  }
  settle_failures();
  std::memcpy(why, team.why, sizeof why);
  return team.error;
}

WaitingCall::WaitingCall(vbt_coll_team& team, std::int64_t timeout_ns, std::int64_t since) noexcept
    : team_(&team), timeout_ns_(timeout_ns), since_(since) {
  call_here = this;
}

WaitingCall::~WaitingCall() { call_here = nullptr; }

void WaitingCall::wait_in_vain() noexcept {
  if (timeout_ns_ == 0 && team_->idle == nullptr) return;
  const std::int64_t now = now_ns();
  if (since_ == 0) since_ = now;
  if (idle_at_ == 0) idle_at_ = now + kBetweenIdlesNs;
  if (timeout_ns_ != 0 && now - since_ > timeout_ns_) fail_by_time(*team_, timeout_ns_);
  if (team_->idle == nullptr || now < idle_at_) return;
  // The program's function may take its time, and other threads theirs.
  call_here = nullptr;
  big_lock.unlock();
  team_->idle(team_->context);
  big_lock.lock();
  call_here = this;
  idle_at_ = now_ns() + kBetweenIdlesNs;
}

}  // namespace vmpi

VBT_COLL_ENTRY const char* vbt_coll_why() { return vmpi::why; }
