// SPDX-License-Identifier: BSD-2-Clause
// A member of teams: plays what its second argument names, and ends with 0 if all was as it has to be.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "tests/coll/member.hpp"
#include "tests/coll/operations.hpp"
#include "tests/support/deadline.hpp"

namespace verbatim::harness {
namespace {

void destroy(vbt_coll_team* team) { CHECK(vbt_coll_destroy_team(team) == 0); }

vbt_coll_team_facts facts_of(vbt_coll_team* team) {
  vbt_coll_team_facts facts;
  CHECK(vbt_coll_query_team(team, &facts, sizeof facts) == 0);
  return facts;
}

/// Arguments: how, count ...
void play_operations(const Member& member) {
  vbt_coll_team* const team = make_team(member, "world", all_of(member));
  const vbt_coll_team_facts facts = facts_of(team);
  CHECK(facts.rank == static_cast<std::uint32_t>(member.rank));
  CHECK(facts.size == static_cast<std::uint32_t>(member.size));
  CHECK(facts.is_one_host == 1 && facts.error == 0 && facts.rank_at_fault == -1);
  const std::string& how = member.arguments[1];
  for (std::size_t i = 2; i < member.arguments.size(); ++i)
    check_all(team, std::stoul(member.arguments[i]),
              how == "blocking" ? How::kBlocking
              : how == "polled" ? How::kPolled
                                : How::kWaited);
  destroy(team);
}

/// That members read in place, and are said to.
void play_mapped(const Member& member) {
  vbt_coll_team* const team = make_team(member, "world", all_of(member));
  CHECK(facts_of(team).is_mapped == (member.size > 1 ? 1u : 0u));
  check_in_place_read(team, 100'000);
  check_some(team, 100'000);
  destroy(team);
}

void play_teams(const Member& member) {
  std::vector<int> backwards;
  std::vector<int> alike;
  for (int i = member.size - 1; i >= 0; --i) backwards.push_back(i);
  for (int i = member.rank % 2; i < member.size; i += 2) alike.push_back(i);
  const int first = member.rank / 2 * 2;
  const std::vector<int> pair =
      first + 1 < member.size ? std::vector<int>{first, first + 1} : std::vector<int>{first};
  // The world comes last for some: numbers of members differ from process to process.
  vbt_coll_team* const some = make_team(member, "alike" + std::to_string(member.rank % 2), alike);
  vbt_coll_team* const two = make_team(member, "pair" + std::to_string(first), pair);
  vbt_coll_team* const world = make_team(member, "world", all_of(member));
  vbt_coll_team* const reversed = make_team(member, "backwards", backwards);
  std::vector<vbt_coll_team*> teams = {some, two, world, reversed};
  for (int turn = 0; turn < 3; ++turn)
    for (vbt_coll_team* const team : teams) {
      check_some(team, 10);
      check_many_at_once(team, 500);
    }
  // Begun on all, ended backwards.
  std::int64_t sums[4] = {};
  const std::int64_t one = 1;
  vbt_coll_request* requests[4];
  for (std::size_t i = 0; i < teams.size(); ++i)
    CHECK(vbt_coll_iallreduce(teams[i], &one, &sums[i], 1, VBT_COLL_INT64, VBT_COLL_SUM,
                              &requests[i]) == 0);
  for (std::size_t i = teams.size(); i-- > 0;) {
    CHECK(vbt_coll_wait(&requests[i]) == 0);
    CHECK(sums[i] == static_cast<std::int64_t>(facts_of(teams[i]).size));
  }
  destroy(two);
  check_some(world, 1000);
  destroy(world);
  // Numbers and blocks of those that are gone are used again.
  for (int i = 0; i < 20; ++i) {
    vbt_coll_team* const again = make_team(member, "again" + std::to_string(i), backwards);
    check_some(again, 3);
    destroy(again);
  }
  check_some(some, 100);
  destroy(some);
  destroy(reversed);
}

void play_begun(const Member& member) {
  vbt_coll_team* const team = make_team(member, "world", all_of(member));
  for (const std::size_t count : {0, 1, 50, 5000, 50'000}) check_many_at_once(team, count);
  vbt_coll_request* request = nullptr;
  CHECK(vbt_coll_ibarrier(team, &request) == 0);
  CHECK(vbt_coll_destroy_team(team) == EBUSY);
  CHECK(vbt_coll_wait(&request) == 0);
  CHECK(vbt_coll_wait(&request) == 0);  // of none
  CHECK(vbt_coll_poll(&request) == 0);
  destroy(team);
}

int do_one(vbt_coll_team* team, const std::string& name, std::size_t count, bool begins) {
  const auto ranks = static_cast<std::size_t>(facts_of(team).size);
  std::vector<double> send(count * ranks, 1.0);
  std::vector<double> receive(count * ranks);
  vbt_coll_request* request = nullptr;
  const auto ended = [&](int error) {
    if (error != 0 || !begins) return error;
    return vbt_coll_wait(&request);
  };
  constexpr vbt_coll_type kType = VBT_COLL_DOUBLE;
  if (name == "barrier")
    return ended(begins ? vbt_coll_ibarrier(team, &request) : vbt_coll_barrier(team));
  if (name == "bcast")  // from the one that dies
    return ended(begins ? vbt_coll_ibcast(team, send.data(), count, kType, 1, &request)
                        : vbt_coll_bcast(team, send.data(), count, kType, 1));
  if (name == "reduce")
    return ended(
        begins ? vbt_coll_ireduce(team, send.data(), receive.data(), count, kType, VBT_COLL_SUM, 0,
                                  &request)
               : vbt_coll_reduce(team, send.data(), receive.data(), count, kType, VBT_COLL_SUM, 0));
  if (name == "allreduce")
    return ended(
        begins ? vbt_coll_iallreduce(team, send.data(), receive.data(), count, kType, VBT_COLL_SUM,
                                     &request)
               : vbt_coll_allreduce(team, send.data(), receive.data(), count, kType, VBT_COLL_SUM));
  if (name == "allgather")
    return ended(
        begins ? vbt_coll_iallgather(team, send.data(), receive.data(), count, kType, &request)
               : vbt_coll_allgather(team, send.data(), receive.data(), count, kType));
  CHECK(name == "alltoall");
  return ended(begins
                   ? vbt_coll_ialltoall(team, send.data(), receive.data(), count, kType, &request)
                   : vbt_coll_alltoall(team, send.data(), receive.data(), count, kType));
}

/// Arguments: collective, count, "begun" or "blocking". Member 1 is killed; the others are told, and
/// go on in a team without it.
void play_dies(const Member& member) {
  vbt_coll_team* const team = make_team(member, "world", all_of(member));
  std::vector<int> others;
  for (int i = 0; i < member.size; ++i)
    if (i != 1) others.push_back(i);
  vbt_coll_team* const rest = member.rank != 1 ? make_team(member, "rest", others) : nullptr;
  const std::string& name = member.arguments[1];
  const std::size_t count = std::stoul(member.arguments[2]);
  const bool begins = member.arguments[3] == "begun";
  for (int i = 0; i < 3; ++i) CHECK(do_one(team, name, count, begins) == 0);
  // Who ends a collective may be ahead of those who have nothing to say to it.
  say(member, "through" + std::to_string(member.rank));
  if (member.rank == 1) {
    for (const int i : others) await(member, "through" + std::to_string(i));
    ::raise(SIGKILL);
  }
  const auto start = std::chrono::steady_clock::now();
  int error = 0;
  // Of some the others' part ends without it, for a while.
  while (error == 0) error = do_one(team, name, count, begins);
  CHECK(error == ECONNRESET);
  CHECK(ms_since(start) < 5000);
  CHECK(std::strstr(vbt_coll_why(), "member") != nullptr);
  const vbt_coll_team_facts facts = facts_of(team);
  CHECK(facts.error == ECONNRESET);
  CHECK(facts.rank_at_fault >= 0);
  CHECK(vbt_coll_barrier(team) == ECONNRESET);
  vbt_coll_request* request = nullptr;
  CHECK(vbt_coll_ibarrier(team, &request) == ECONNRESET);
  CHECK(request == nullptr);
  destroy(team);
  check_some(rest, 100);
  destroy(rest);
}

/// Member 1 comes when the others' time has run out, and hears that they have given up.
void play_late(const Member& member) {
  const bool begins = member.arguments[1] == "begun";
  TeamOptions options;
  options.timeout_ms = member.rank == 1 ? 0 : 300;
  vbt_coll_team* const team = make_team(member, "world", all_of(member), options);
  CHECK(vbt_coll_barrier(team) == 0);
  if (member.rank == 1) {
    for (int i = 0; i < member.size; ++i)
      if (i != 1) await(member, "late" + std::to_string(i));
    // What the others have said before lies there, and may be all of one.
    int error = 0;
    for (int i = 0; i < 3 && error == 0; ++i) error = do_one(team, "allreduce", 10, begins);
    CHECK(error == ECONNRESET);
    say(member, "told");
  } else {
    const int error = do_one(team, "allreduce", 10, begins);
    // Who is told by one whose time ran out before its own, hears that.
    CHECK(error == ETIMEDOUT || (member.size > 2 && error == ECONNRESET));
    if (error == ETIMEDOUT && member.size == 2) {
      CHECK(facts_of(team).rank_at_fault == 1);
      CHECK(std::strstr(vbt_coll_why(), "member 1 has not come within 300 ms") != nullptr);
    }
    say(member, "late" + std::to_string(member.rank));
    // It is told by words, not by the end of this process.
    await(member, "told");
  }
  destroy(team);
}

/// Counts that differ end the team at all, without a byte beyond what was named.
void play_differ(const Member& member) {
  vbt_coll_team* const team = make_team(member, "world", all_of(member));
  std::vector<std::int32_t> send(64, 1);
  std::vector<std::int32_t> receive(64, 7);
  const std::size_t count = member.rank == 0 ? 8 : 12;
  const int error =
      vbt_coll_allreduce(team, send.data(), receive.data(), count, VBT_COLL_INT32, VBT_COLL_SUM);
  CHECK(error == EMSGSIZE || error == ECONNRESET);
  for (std::size_t i = 12; i < receive.size(); ++i) CHECK(receive[i] == 7);
  destroy(team);
}

void count_calls(void*) { ++idle_calls; }

/// A member that waits calls the program's function meanwhile.
void play_idle(const Member& member) {
  TeamOptions options;
  options.idle = count_calls;
  vbt_coll_team* const team = make_team(member, "world", all_of(member), options);
  idle_calls = 0;
  if (member.rank == 0) {
    CHECK(vbt_coll_barrier(team) == 0);
    CHECK(idle_calls >= 10);
  } else {
    // Some milliseconds of the other's wait; it is a wait that is tested.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(vbt_coll_barrier(team) == 0);
  }
  destroy(team);
}

void play_forks(const Member& member) {
  vbt_coll_team* const team = make_team(member, "world", all_of(member));
  const pid_t child = ::fork();
  if (child == 0) {
    vbt_coll_team* other = nullptr;
    vbt_coll_team_attr attr = {};
    attr.size = 1;
    const bool is_refused = vbt_coll_barrier(team) == EPERM &&
                            vbt_coll_destroy_team(team) == EPERM &&
                            vbt_coll_create_team(&attr, sizeof attr, &other) == EPERM &&
                            vbt_coll_alloc(1) == nullptr && errno == EPERM;
    ::_exit(is_refused ? 0 : 1);
  }
  int status = -1;
  CHECK(child > 0 && ::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  check_some(team, 100);
  destroy(team);
}

/// Teams of several threads, made at once.
void play_threads(const Member& member) {
  TeamOptions options;
  options.flags = VBT_COLL_THREADS;
  vbt_coll_team* const world = make_team(member, "world", all_of(member), options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&member, &options, t] {
      for (int i = 0; i < 5; ++i) {
        vbt_coll_team* const team = make_team(
            member, "of" + std::to_string(t) + "-" + std::to_string(i), all_of(member), options);
        check_some(team, 20);
        check_many_at_once(team, 20);
        destroy(team);
      }
    });
  for (std::thread& thread : threads) thread.join();
  check_some(world, 20);
  destroy(world);
}

/// What cannot be is refused, and the team goes on.
void play_refused(const Member& member) {
  vbt_coll_team* none = nullptr;
  vbt_coll_team_attr attr = {};
  CHECK(vbt_coll_create_team(nullptr, sizeof attr, &none) == EINVAL);
  CHECK(vbt_coll_create_team(&attr, sizeof attr, &none) == EINVAL);  // of no members
  attr.size = 1;
  CHECK(vbt_coll_create_team(&attr, 8, &none) == EINVAL);
  CHECK(vbt_coll_create_team(&attr, sizeof attr, nullptr) == EINVAL);
  attr.rank = 1;
  CHECK(vbt_coll_create_team(&attr, sizeof attr, &none) == EINVAL);
  CHECK(std::strstr(vbt_coll_why(), "attr.rank is 1 of 1 members") != nullptr);
  attr.rank = 0;
  attr.flags = 1u << 7;
  CHECK(vbt_coll_create_team(&attr, sizeof attr, &none) == EINVAL);
  attr.flags = 0;
  attr.size = 2;
  CHECK(vbt_coll_create_team(&attr, sizeof attr, &none) == EINVAL);  // no exchange
  CHECK(none == nullptr);
  CHECK(vbt_coll_destroy_team(nullptr) == 0);
  CHECK(vbt_coll_barrier(nullptr) == EINVAL);
  CHECK(vbt_coll_poll(nullptr) == EINVAL);
  errno = 0;
  CHECK(vbt_coll_alloc(0) == nullptr && errno == EINVAL);
  CHECK(vbt_coll_free(&attr) == EINVAL);
  CHECK(vbt_coll_type_size(static_cast<vbt_coll_type>(31)) == 0);
  const std::map<vbt_coll_type, int> operations = {
      {VBT_COLL_BYTE, 3},   {VBT_COLL_INT8, 10},         {VBT_COLL_UINT64, 10},
      {VBT_COLL_DOUBLE, 4}, {VBT_COLL_FLOAT_COMPLEX, 2}, {VBT_COLL_BOOL, 3}};
  for (const auto& [type, count] : operations) {
    int found = 0;
    for (int op = VBT_COLL_SUM; op <= VBT_COLL_BXOR; ++op)
      found += vbt_coll_is_op_of(static_cast<vbt_coll_op>(op), type);
    CHECK(found == count);
  }
  CHECK(vbt_coll_is_op_of(VBT_COLL_BAND, VBT_COLL_DOUBLE) == 0);
  CHECK(vbt_coll_is_op_of(VBT_COLL_MIN, VBT_COLL_FLOAT_COMPLEX) == 0);
  CHECK(vbt_coll_is_op_of(static_cast<vbt_coll_op>(15), VBT_COLL_INT8) == 0);

  vbt_coll_team* const team = make_team(member, "world", all_of(member));
  const auto size = static_cast<std::uint32_t>(member.size);
  std::vector<std::int32_t> a(2 * size + 8);
  std::vector<std::int32_t> b(2 * size + 8);
  const auto bad_type = static_cast<vbt_coll_type>(0);
  const auto bad_op = static_cast<vbt_coll_op>(11);
  CHECK(vbt_coll_bcast(team, a.data(), 1, bad_type, 0) == EINVAL);
  CHECK(vbt_coll_bcast(team, a.data(), 1, VBT_COLL_INT32, size) == EINVAL);
  CHECK(vbt_coll_bcast(team, nullptr, 1, VBT_COLL_INT32, 0) == EINVAL);
  CHECK(vbt_coll_allreduce(team, a.data(), b.data(), 1, VBT_COLL_INT32, bad_op) == EINVAL);
  CHECK(vbt_coll_allreduce(team, a.data(), b.data(), 1, VBT_COLL_DOUBLE, VBT_COLL_BXOR) == EINVAL);
  CHECK(vbt_coll_allreduce(team, a.data(), nullptr, 1, VBT_COLL_INT32, VBT_COLL_SUM) == EINVAL);
  CHECK(vbt_coll_allreduce(team, a.data(), a.data() + 1, 2, VBT_COLL_INT32, VBT_COLL_SUM) ==
        EINVAL);
  CHECK(std::strstr(vbt_coll_why(), "overlap") != nullptr);
  CHECK(vbt_coll_allreduce(team, a.data(), b.data(), SIZE_MAX / 2, VBT_COLL_INT32, VBT_COLL_SUM) ==
        EINVAL);
  CHECK(vbt_coll_allgather(team, a.data(), a.data(), 1, VBT_COLL_INT32) == EINVAL);
  CHECK(vbt_coll_alltoall(team, a.data(), a.data() + 1, 2, VBT_COLL_INT32) == EINVAL);
  if (size > 1) {
    const std::uint32_t root = member.rank == 0 ? 1 : 0;
    CHECK(vbt_coll_reduce(team, VBT_COLL_IN_PLACE, a.data(), 1, VBT_COLL_INT32, VBT_COLL_SUM,
                          root) == EINVAL);
  }
  vbt_coll_request* request = reinterpret_cast<vbt_coll_request*>(&attr);
  CHECK(vbt_coll_iallreduce(team, a.data(), nullptr, 1, VBT_COLL_INT32, VBT_COLL_SUM, &request) ==
        EINVAL);
  CHECK(request == nullptr);
  CHECK(vbt_coll_ibarrier(team, nullptr) == EINVAL);
  CHECK(vbt_coll_query_team(team, nullptr, 8) == EINVAL);
  // A structure of another age.
  std::uint32_t facts[16];
  std::memset(facts, 0xff, sizeof facts);
  CHECK(vbt_coll_query_team(team, reinterpret_cast<vbt_coll_team_facts*>(facts), sizeof facts) ==
        0);
  CHECK(facts[1] == size && facts[15] == 0);
  check_some(team, 5);
  destroy(team);
}

int exchange_with_one_more(void* self, const void* mine, void* all, std::size_t bytes) {
  const int error = FileExchange::call(self, mine, all, bytes);
  std::memcpy(static_cast<unsigned char*>(all) + 2 * bytes, mine, bytes);
  return error;
}

/// Of two members: what one finds wrong none of them gets.
void play_disagree(const Member& member) {
  vbt_coll_team* team = nullptr;
  vbt_coll_team_attr attr = {};
  const auto size = static_cast<std::uint32_t>(member.size);
  attr.rank = static_cast<std::uint32_t>(member.rank);
  attr.size = size;
  attr.exchange = FileExchange::call;
  FileExchange sizes(member, "sizes", member.rank, member.size);
  attr.context = &sizes;
  // Has room for one more than there are, whose words are not there: its own are put there twice.
  if (member.rank == 1) attr.exchange = exchange_with_one_more;
  if (member.rank == 1) attr.size = size + 1;
  CHECK(vbt_coll_create_team(&attr, sizeof attr, &team) == EINVAL);
  attr.exchange = FileExchange::call;
  attr.size = size;
  attr.rank = member.rank == 1 ? 0 : attr.rank;  // two say that they are member 0
  FileExchange ranks(member, "ranks", member.rank, member.size);
  attr.context = &ranks;
  CHECK(vbt_coll_create_team(&attr, sizeof attr, &team) == EINVAL);
  attr.rank = static_cast<std::uint32_t>(member.rank);
  attr.flags = member.rank == 1 ? VBT_COLL_LEAVE_ALONE : 0;
  FileExchange flags(member, "flags", member.rank, member.size);
  attr.context = &flags;
  CHECK(vbt_coll_create_team(&attr, sizeof attr, &team) == EINVAL);
  if (member.rank == 0) CHECK(std::strstr(vbt_coll_why(), "VBT_COLL_LEAVE_ALONE") != nullptr);
  CHECK(team == nullptr);
  vbt_coll_team* const good = make_team(member, "world", all_of(member));
  check_some(good, 5);
  destroy(good);
}

/// Each leaves a team when it likes, while others are in its last operation or have not come to it.
void play_leave_alone(const Member& member) {
  TeamOptions options;
  options.flags = VBT_COLL_LEAVE_ALONE;
  vbt_coll_team* const team = make_team(member, "world", all_of(member), options);
  vbt_coll_team* const other = make_team(member, "other", all_of(member), options);
  const std::string left = "left-";
  for (const std::size_t count : {5, 200'000}) check_some(team, count);
  std::vector<double> told(50'000, member.rank == 0 ? 3.5 : 0.0);
  const auto tell = [&](std::size_t elements) {
    CHECK(vbt_coll_bcast(team, told.data(), elements, VBT_COLL_DOUBLE, 0) == 0);
    CHECK(told[elements - 1] == 3.5);
  };
  tell(told.size());
  std::fill(told.begin(), told.end(), member.rank == 0 ? 3.5 : 0.0);
  // One after the other: of the first word the root waits for nobody.
  if (member.rank > 0) await(member, left + std::to_string(member.rank - 1));
  tell(1);
  destroy(team);
  say(member, left + std::to_string(member.rank));
  check_some(other, 5);
  // In another order at each, and blocks that some have not left are not used again yet.
  std::vector<vbt_coll_team*> many;
  for (int i = 0; i < 6; ++i) {
    many.push_back(make_team(member, "many" + std::to_string(i), all_of(member), options));
    check_some(many.back(), 7);
    if (i % member.size != member.rank) continue;
    destroy(many.front());
    many.erase(many.begin());
  }
  for (; !many.empty(); many.pop_back()) destroy(many.back());
  check_some(other, 5);
  destroy(other);
  const std::string ended = "ended-";
  say(member, ended + std::to_string(member.rank));
  for (int i = 0; i < member.size; ++i) await(member, ended + std::to_string(i));
}

/// Member 1's device is not there: all hear of it, and who made it.
void play_no_device(const Member& member) {
  if (member.rank == 1) ::setenv("VERBATIM_MPI_DEVICE", "none_of_this_name", 1);
  vbt_coll_team* team = nullptr;
  CHECK(try_team(member, "world", all_of(member), team) == ENODEV);
  CHECK(std::strstr(vbt_coll_why(), member.rank == 1 ? "none_of_this_name" : "member 1") !=
        nullptr);
  CHECK(team == nullptr);
}

/// An exchange whose members all hear of member 0 that messages cost what no message costs.
struct GarbledCosts {
  FileExchange exchange;
  bool is_first = true;

  static int call(void* self, const void* mine, void* all, std::size_t bytes) {
    auto& here = *static_cast<GarbledCosts*>(self);
    const int error = FileExchange::call(&here.exchange, mine, all, bytes);
    // They are the last thing that members introduce themselves with.
    constexpr std::size_t kCosts = 72;
    if (error == 0 && here.is_first && bytes > kCosts)
      std::memset(static_cast<char*>(all) + bytes - kCosts, 0xff, kCosts);
    here.is_first = false;
    return error;
  }
};

/// They choose by built-in costs, all of them.
void play_garbled_costs(const Member& member) {
  GarbledCosts garbled = {FileExchange(member, "world", member.rank, member.size)};
  vbt_coll_team_attr attr = {};
  attr.size = static_cast<std::uint32_t>(member.size);
  attr.rank = static_cast<std::uint32_t>(member.rank);
  attr.exchange = GarbledCosts::call;
  attr.context = &garbled;
  vbt_coll_team* team = nullptr;
  CHECK(vbt_coll_create_team(&attr, sizeof attr, &team) == 0);
  for (const std::size_t count : {1, 100, 3000, 100'000}) check_some(team, count);
  destroy(team);
}

const std::map<std::string, std::function<void(const Member&)>> scenarios = {
    {"operations", play_operations},
    {"mapped", play_mapped},
    {"teams", play_teams},
    {"begun", play_begun},
    {"dies", play_dies},
    {"late", play_late},
    {"differ", play_differ},
    {"idle", play_idle},
    {"forks", play_forks},
    {"threads", play_threads},
    {"refused", play_refused},
    {"disagree", play_disagree},
    {"no_device", play_no_device},
    {"leave_alone", play_leave_alone},
    {"garbled_costs", play_garbled_costs},
};

}  // namespace
}  // namespace verbatim::harness

int main(int argc, char** argv) {
  using namespace verbatim::harness;
  const Member member = member_of(argc, argv);
  if (member.arguments.empty()) give_up("no scenario");
  const auto found = scenarios.find(member.arguments[0]);
  if (found == scenarios.end()) give_up("no scenario %s", member.arguments[0].c_str());
  found->second(member);
  return 0;
}
