// SPDX-License-Identifier: BSD-2-Clause
// How a team is made and ends. All members go through the same exchanges, each of which says whether
// something was wrong before it: so all of them end with the same one, and nobody waits for another
// that has refused.
//
//   introductions   who and where each is, and from which number on its contexts are free
//   meetings        its address, and whether the greatest such number is free at it too: if not
//                   (another thread makes a team at once), once more
//   votes           whether it has a communicator: from now on it keeps messages of the team
//   (messages)      a team of one host is made, or a barrier goes by
//   votes           whether that went well
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/host_team.hpp"
#include "mpi_shim/coll/select.hpp"
#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/context_ids.hpp"
#include "mpi_shim/core/costs.hpp"
#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/fabric.hpp"
#include "mpi_shim/core/input.hpp"
#include "mpi_shim/core/op.hpp"
#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/core/process_life.hpp"
#include "mpi_shim/core/world.hpp"
#include "mpi_shim/teams/entry.hpp"
#include "mpi_shim/teams/team.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace vmpi {
namespace {

constexpr std::uint32_t kMostMembers = 65536;
constexpr std::int64_t kPatienceToMakeNs = 60'000'000'000;
constexpr std::int64_t kPatienceToLeaveNs = 1'000'000'000;
constexpr int kMostMeetings = 32;
constexpr std::uint32_t kFlagsOfAll = VBT_COLL_LEAVE_ALONE;
constexpr std::uint32_t kFlags = VBT_COLL_THREADS | kFlagsOfAll;
/// Changes with whatever members tell each other, here and in core/wire.hpp, and with what they choose by.
constexpr std::uint64_t kIntroduction = 0x33006c6c'6f637476u ^ kChoosing;  // "vtcoll", version 3
/// Below are those that communicators of MPI agree on.
constexpr std::uint32_t kFirstContext = 4 * 64 * kContextWords;
constexpr std::uint32_t kMostContext = 1u << 31;

struct Introduction {
  std::uint64_t magic;
  std::int32_t error;
  std::uint32_t rank;
  std::uint32_t size;
  std::uint32_t context;  ///< it and those above are free
  std::uint64_t host;
  std::uint64_t began;
  std::int32_t process;
  std::uint32_t flags;  ///< of attr, those on which all have to agree
  Costs costs;          ///< of member 0: what all choose algorithms by
};
struct Meeting {
  std::int32_t error;     ///< EAGAIN: the context is taken
  std::uint32_t context;  ///< from which on they are free now
  std::uint32_t is_memory;
  std::uint32_t reserved;
  Address address;
};
struct Vote {
  std::int32_t error;
};

bool is_child = false;
std::uint32_t next_context = kFirstContext;
std::uint32_t teams_made = 0;

/// What this process says where it is member 0: found once.
[[nodiscard]] const Costs& own_costs() noexcept {
  static constinit Costs found = {};
  static constinit bool is_found = false;
  if (!is_found) {
    char path[1];
    (void)find_costs(found, path);
    is_found = true;
  }
  return found;
}

struct Members {
  explicit Members(const vbt_coll_team_attr& asked) noexcept : attr(asked) {}

  const vbt_coll_team_attr& attr;
  Introduction own = {};
  Array<Introduction> all;
  Array<Meeting> addresses;
  bool is_one_host = false;
  int here = 0;

  [[nodiscard]] std::size_t size() const noexcept { return attr.size; }
};

/// 0, or what the program's function answers.
[[nodiscard]] int exchange_among(const vbt_coll_team_attr& attr, const void* mine, void* all,
                                 std::size_t bytes) noexcept {
  if (attr.size == 1) {
    std::memcpy(all, mine, bytes);
    return 0;
  }
  big_lock.unlock();
  const int error = attr.exchange(attr.context, mine, all, bytes);
  big_lock.lock();
  if (error != 0) return refuse_call(error > 0 ? error : EIO, "the exchange answered %d", error);
  return 0;
}

template <class Said>
[[nodiscard]] int exchange_among(const vbt_coll_team_attr& attr, const Said& mine,
                                 Array<Said>& all) noexcept {
  static_assert(sizeof(Said) <= 512, "verbatim/coll.h says so");
  return exchange_among(attr, &mine, all.data(), sizeof mine);
}

/// The first refusal that anybody has said, which all hear alike; 0: none.
template <class Said>
[[nodiscard]] int first_refusal(const Members& members, const Array<Said>& all) noexcept {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::int32_t error = all[i].error;
    if (error == 0 || error == EAGAIN) continue;
    const int answered = error > 0 && error < 4096 ? error : EPROTO;
    // This process has its own words already.
    return i == members.attr.rank
               ? answered
               : refuse_call(answered, "member %zu cannot: %s", i, std::strerror(answered));
  }
  return 0;
}

/// What a process has once, before its first team. 0, or an errno.
[[nodiscard]] int begin_engine() noexcept {
  if (world.stage != Stage::kBefore) {
    if (world.is_of_teams) return 0;
    return refuse_call(EBUSY, "this process has called MPI_Init of the same library");
  }
  if (read_algorithm_choices != nullptr)
    if (const char* const wrong = read_algorithm_choices(); wrong != nullptr)
      return refuse_call(EINVAL, "%s", wrong);
  world.is_of_teams = true;
  world.rank = 0;
  world.size = 1;
  if (!make_predefined_types() || !make_predefined_ops() || !make_predefined_comms() ||
      ::pthread_atfork(nullptr, nullptr, [] { is_child = true; }) != 0 ||
      start_engine() != nullptr) {
    world.is_of_teams = false;
    return refuse_call(ENOMEM, "there is no memory");
  }
  world.stage = Stage::kRunning;
  know_own_address();
  hear_of_failures();
  return 0;
}

[[nodiscard]] bool is_memory() noexcept {
  return std::strncmp(ibv_get_device_name(fabric.context->device), "shm", 3) == 0;
}

/// Opens the device with the first team that needs one. 0, or an errno.
[[nodiscard]] int have_device(const Members& members) noexcept {
  world.here = std::max(world.here, members.here);
  if (fabric.is_open()) {
    choose_waiting();
  } else {
    world.is_one_host = members.is_one_host;
    Address& own = fabric.address;
    if (::getrandom(&own.token, sizeof own.token, 0) != sizeof own.token)
      own.token = static_cast<std::uint32_t>(own.began * 0x9e3779b9u) ^
                  static_cast<std::uint32_t>(own.process);
    if (const char* const wrong = open_device(); wrong != nullptr)
      return refuse_call(ENODEV, "%s", wrong);
  }
  if (is_memory() && !members.is_one_host)
    return refuse_call(EHOSTUNREACH,
                       "members are on several hosts, and this process's device is the memory of "
                       "one, as its first team was: name another in VERBATIM_MPI_DEVICE");
  return 0;
}

/// What all members hear alike, and what this one finds wrong with it. 0, or an errno.
[[nodiscard]] int judge(Members& members) noexcept {
  members.is_one_host = true;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Introduction& other = members.all[i];
    if (other.magic != kIntroduction)
      return refuse_call(EPROTO, "member %zu has another version of this library", i);
    if (other.size != members.attr.size)
      return refuse_call(EINVAL, "attr.size is %u, member %zu says %u", members.attr.size, i,
                         other.size);
    if (other.flags != members.own.flags)
      return refuse_call(EINVAL, "attr.flags says VBT_COLL_LEAVE_ALONE of %s, and not of %s",
                         members.own.flags != 0 ? "this member" : "others",
                         members.own.flags != 0 ? "all others" : "this member");
    if (other.rank != i)
      return refuse_call(EINVAL,
                         "attr.rank is %u of the member whose words the exchange puts at %zu",
                         other.rank, i);
    const bool is_here = other.host != 0 && other.host == members.own.host;
    if (is_here)
      ++members.here;
    else
      members.is_one_host = false;
    if (is_here && i != members.attr.rank && other.process == members.own.process &&
        other.began == members.own.began)
      return refuse_call(EINVAL, "members %u and %zu are one process", members.attr.rank, i);
  }
  if (members.size() == 1) members.is_one_host = true;
  return 0;
}

[[nodiscard]] bool take_context(std::uint32_t context) noexcept {
  if (context < next_context || context >= kMostContext) return false;
  next_context = context + 4;
  return true;
}

template <class Said>
[[nodiscard]] std::uint32_t greatest_context(const Array<Said>& all) noexcept {
  std::uint32_t greatest = kFirstContext;
  for (const Said& each : all) greatest = std::max(greatest, each.context & ~std::uint32_t{3});
  return greatest;
}

/// Until a context is free at all members. `error`: what is wrong here. 0 and `context`, or an errno.
[[nodiscard]] int meet(Members& members, int error, std::uint32_t& context) noexcept {
  context = greatest_context(members.all);
  for (int i = 0; i < kMostMeetings; ++i) {
    Meeting own = {};
    own.error = error != 0 ? error : take_context(context) ? 0 : EAGAIN;
    own.context = next_context;
    if (fabric.is_open()) {
      own.address = fabric.address;
      own.is_memory = is_memory() ? 1 : 0;
    }
    if (const int failed = exchange_among(members.attr, own, members.addresses); failed != 0)
      return failed;
    if (const int refused = first_refusal(members, members.addresses); refused != 0) return refused;
    bool is_agreed = true;
    for (const Meeting& other : members.addresses) is_agreed = is_agreed && other.error == 0;
    if (is_agreed) return 0;
    context = greatest_context(members.addresses);
  }
  return refuse_call(ENOMEM, "no number for the team was found that is free at all members");
}

/// The communicator, and numbers for members that were not met before. 0, or an errno.
[[nodiscard]] int make_comm_of(Members& members, std::uint32_t context,
                               vbt_coll_team& team) noexcept {
  Array<int> numbers;
  if (!numbers.resize(members.size())) return refuse_call(ENOMEM, "there is no memory");
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i == members.attr.rank) continue;
    const Meeting& other = members.addresses[i];
    if ((other.is_memory != 0) != is_memory())
      return refuse_call(
          EHOSTUNREACH, "member %zu has opened another device: name one in VERBATIM_MPI_DEVICE", i);
    Peer* const peer = meet_peer(other.address);
    if (peer == nullptr) return refuse_call(ENOMEM, "there is no memory");
    if (peer->is_dead) return refuse_call(ECONNRESET, "member %zu was lost before", i);
    numbers[i] = static_cast<int>(peer->rank);
  }
  Group* const group = make_group(numbers.data(), numbers.size());
  if (group == nullptr) return refuse_call(ENOMEM, "there is no memory");
  team.comm = make_comm(*find_comm(MPI_COMM_WORLD), *group, nullptr, context);
  release(*group);
  if (team.comm == nullptr) return refuse_call(ENOMEM, "there is no memory");
  if (members.size() > 1) team.comm->costs = keep_costs(members.all[0].costs);
  if (members.size() > 1 && team.comm->costs == nullptr)
    return refuse_call(ENOMEM, "there is no memory");
  // From now on its messages are kept, and its failures heard of.
  team.next = first_team;
  first_team = &team;
  return 0;
}

void forget(vbt_coll_team& team) noexcept {
  for (vbt_coll_team** at = &first_team; *at != nullptr; at = &(*at)->next) {
    if (*at != &team) continue;
    *at = team.next;
    break;
  }
  team.magic = 0;
  if (team.comm != nullptr) {
    turn_away(*team.comm, Plane::kCollective);
    release(*team.comm);
  }
  verbatim::destroy_nothrow(&team);
}

/// All of them try the way that operations will go. 0, or an errno.
[[nodiscard]] int connect(const Members& members, vbt_coll_team& team) noexcept {
  if (members.size() == 1) return 0;
  const WaitingCall call(team, team.timeout_ns != 0 ? team.timeout_ns : kPatienceToMakeNs);
  int error = MPI_SUCCESS;
  if (members.is_one_host) {
    (void)make_host_team(*team.comm, error);
  } else {
    have_no_host_team(*team.comm);
  }
  if (error == MPI_SUCCESS && team.comm->team == nullptr)
    error = do_collective(Collective::kBarrier, *team.comm, {});
  return answer_for(team, error);
}

[[nodiscard]] int vote(const Members& members, int error) noexcept {
  Array<Vote> votes;
  // Who has no memory for the votes cannot hear them, and is not waited for in what follows.
  if (!votes.resize(members.size())) return refuse_call(ENOMEM, "there is no memory");
  if (const int failed = exchange_among(members.attr, Vote{error}, votes); failed != 0)
    return failed;
  return first_refusal(members, votes);
}

[[nodiscard]] int create(const vbt_coll_team_attr& attr, vbt_coll_team*& made) noexcept {
  Members members(attr);
  if (!members.all.resize(attr.size) || !members.addresses.resize(attr.size))
    return refuse_call(ENOMEM, "there is no memory for what %u members say", attr.size);
  auto* const team = verbatim::make_nothrow<vbt_coll_team>();
  int error = team != nullptr ? begin_engine() : refuse_call(ENOMEM, "there is no memory");
  Introduction& own = members.own;
  own = {kIntroduction,
         error,
         attr.rank,
         attr.size,
         next_context,
         fabric.address.host,
         fabric.address.began,
         fabric.address.process,
         attr.flags & kFlagsOfAll,
         {}};
  // Where the engine has not begun there are no operations to measure, and nobody will need it.
  if (attr.rank == 0 && attr.size > 1 && error == 0) own.costs = own_costs();
  if (const int failed = exchange_among(attr, own, members.all); failed != 0) {
    verbatim::destroy_nothrow(team);
    return failed;
  }
  std::uint32_t context = 0;
  int refused = first_refusal(members, members.all);
  if (refused == 0) {
    team->timeout_ns = std::int64_t{attr.timeout_ms} * 1'000'000;
    team->leaves_alone = (attr.flags & VBT_COLL_LEAVE_ALONE) != 0;
    team->idle = attr.idle;
    team->context = attr.context;
    if (attr.name != nullptr)
      (void)std::snprintf(team->name, sizeof team->name, "%s", attr.name);
    else
      (void)std::snprintf(team->name, sizeof team->name, "%u", ++teams_made);
    error = judge(members);
    if (error == 0 && attr.size > 1) error = have_device(members);
    team->is_one_host = members.is_one_host;
    refused = meet(members, error, context);
  }
  if (refused == 0) refused = vote(members, make_comm_of(members, context, *team));
  if (refused == 0) refused = vote(members, connect(members, *team));
  if (refused != 0) {
    if (team != nullptr) forget(*team);
    return refused;
  }
  made = team;
  return 0;
}

/// Copies what the caller's structure has. 0, or EINVAL.
[[nodiscard]] int read_attr(const vbt_coll_team_attr* from, std::size_t size,
                            vbt_coll_team_attr& attr) noexcept {
  if (from == nullptr) return refuse_call(EINVAL, "attr is NULL");
  if (size < offsetof(vbt_coll_team_attr, timeout_ms))
    return refuse_call(EINVAL, "attr_size is %zu, which ends before timeout_ms", size);
  std::memcpy(&attr, from, std::min(size, sizeof attr));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  for (std::size_t i = sizeof attr; i < size; ++i)
    if (bytes[i] != 0)
      return refuse_call(EINVAL, "attr says what this library does not know, at byte %zu", i);
  if (attr.size == 0 || attr.size > kMostMembers)
    return refuse_call(EINVAL, "attr.size is %u, of 1 to %u", attr.size, kMostMembers);
  if (attr.rank >= attr.size)
    return refuse_call(EINVAL, "attr.rank is %u of %u members", attr.rank, attr.size);
  if (attr.exchange == nullptr && attr.size > 1)
    return refuse_call(EINVAL, "attr.exchange is NULL, of %u members", attr.size);
  if ((attr.flags & ~kFlags) != 0)
    return refuse_call(EINVAL, "attr.flags is 0x%x, which has bits without a meaning", attr.flags);
  return 0;
}

}  // namespace

bool is_forked_child() noexcept { return is_child; }

int check_team(const vbt_coll_team* team, const char* function) noexcept {
  if (team == nullptr || team->magic != kTeamMagic) [[unlikely]]
    return refuse_call(EINVAL, "%s: that is no team", function);
  if (is_child) [[unlikely]]
    return refuse_call(EPERM, "%s: the team is that of the process which forked", function);
  return 0;
}

}  // namespace vmpi

using namespace vmpi;

VBT_COLL_ENTRY int vbt_coll_create_team(const vbt_coll_team_attr* attr, std::size_t attr_size,
                                        vbt_coll_team** team) {
  vbt_coll_team_attr known = {};
  if (const int error = read_attr(attr, attr_size, known); error != 0) return error;
  if (team == nullptr) return refuse_call(EINVAL, "team is NULL: there is no place for it");
  if (is_forked_child()) return refuse_call(EPERM, "the parent of this process has teams");
  if ((known.flags & VBT_COLL_THREADS) != 0) big_lock.be_needed(true);
  const BigGuard guard;
  return create(known, *team);
}

VBT_COLL_ENTRY int vbt_coll_destroy_team(vbt_coll_team* team) {
  if (team == nullptr) return 0;
  if (const int error = check_team(team, "vbt_coll_destroy_team"); error != 0) return error;
  const BigGuard guard;
  if (team->requests != 0)
    return refuse_call(EBUSY, "vbt_coll_destroy_team: %u requests were not given back",
                       team->requests);
  team->is_leaving = true;
  if (team->error == 0 && team->leaves_alone) {
    // What others still read of it stays until they have left too.
    drain_to(*team->comm, 0);
  } else if (team->error == 0) {
    const WaitingCall call(*team, team->timeout_ns);
    // Nothing is left on the way to who may end after it: neither words of before, nor the barrier's.
    drain_to(*team->comm, now_ns() + kPatienceToLeaveNs);
    const int error = do_collective(Collective::kBarrier, *team->comm, {});
    drain_to(*team->comm, now_ns() + kPatienceToLeaveNs);
    // What happens to others here is the end of the team all the same.
    if (error != MPI_SUCCESS) (void)answer_for(*team, error);
  }
  settle_failures();
  forget(*team);
  return 0;
}

VBT_COLL_ENTRY int vbt_coll_query_team(vbt_coll_team* team, vbt_coll_team_facts* facts,
                                       std::size_t size) {
  if (team == nullptr || team->magic != kTeamMagic)
    return refuse_call(EINVAL, "vbt_coll_query_team: that is no team");
  if (facts == nullptr || size == 0)
    return refuse_call(EINVAL, "vbt_coll_query_team: there is no place for the facts");
  const vbt_coll_team_facts all = {static_cast<std::uint32_t>(team->comm->rank()),
                                   static_cast<std::uint32_t>(team->comm->size()),
                                   team->is_one_host ? 1u : 0u,
                                   team->comm->team != nullptr ? 1u : 0u,
                                   team->error,
                                   team->rank_at_fault};
  std::memset(facts, 0, size);
  std::memcpy(facts, &all, std::min(size, sizeof all));
  return 0;
}
