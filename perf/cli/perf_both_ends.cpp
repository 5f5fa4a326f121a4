// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_both_ends.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>

#include "perf/cli/deadline.hpp"
#include "perf/cli/failure.hpp"
#include "runtime/topo/host.hpp"

namespace verbatim::cli {
namespace {

constexpr long kServerEndMs = 10'000;  // how long the server may take once the client is through
constexpr long kEndPauseMs = 5;

std::vector<int> allowed_processors() {
  std::vector<int> processors;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return processors;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) processors.push_back(cpu);
  }
  return processors;
}

/// Who was not told where to run is bound, so that the two neither share a core nor wander.
void place_ends(PerfOptions* server, PerfOptions* client) {
  if (server->numa_node) return;
  std::optional<std::pair<int, int>> two;
  if (server->cores.size() >= 2)
    two = {server->cores[0], server->cores[1]};
  else if (server->cores.empty())
    two = near_processors(topo::host_machine(), allowed_processors());
  if (!two) return;
  client->end_cores = {two->second, two->first};
  server->cores = {two->first};
  client->cores = {two->second};
}

/// A client that has failed before it came would leave its server waiting.
void let_go(std::uint16_t port, const StopSignals& stop) {
  constexpr long kOnceMs = 100;
  try {
    (void)Conversation::connect(kOwnHost, port, stop, kOnceMs);
  } catch (const Failure&) {  // it waits no more
  } catch (const Stopped&) {
  }
}

/// The first of the two ends that fails says why; what the other meets follows from that.
class FirstFailure {
 public:
  /// Runs an end; true: it was good.
  template <class End>
  bool runs_well(const End& end) {
    try {
      end();
      return true;
    } catch (const Failure& failure) {
      if (!failed_.exchange(true) && !failure.line.empty()) {
        std::fprintf(stderr, "%s\n", failure.line.c_str());
      }
    } catch (const Stopped&) {
      stopped_ = true;
    }
    return false;
  }
  void conclude() const {
    if (failed_) throw Failure{"", 1};  // what came after it was stopped for it
    if (stopped_) throw Stopped{};
  }

 private:
  std::atomic<bool> failed_ = false;
  std::atomic<bool> stopped_ = false;
};

void run_as_threads(const PerfOptions& server, const PerfOptions& client, Listener listener,
                    const StopSignals& stop, const PerfEnd& run_end) {
  FirstFailure first;
  const std::uint16_t port = listener.port();
  std::thread other(
      [&] { (void)first.runs_well([&] { run_end(server, std::move(listener), stop); }); });
  if (!first.runs_well([&] { run_end(client, std::nullopt, stop); })) let_go(port, stop);
  other.join();
  first.conclude();
}

/// Its exit status; -1: it hung, or a signal ended it.
int await_end(pid_t child, const StopSignals& stop) {
  const Deadline deadline(kServerEndMs);
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (ended < 0 && errno != EINTR) return -1;
    if (deadline.over()) break;
    try {
      (void)wait_for(-1, 0, kEndPauseMs, stop);
    } catch (const Stopped&) {
      break;
    }
  }
  kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return -1;
}

void run_as_processes(const PerfOptions& server, const PerfOptions& client, Listener listener,
                      const StopSignals& stop, const PerfEnd& run_end) {
  // Of both processes, so that there is one first.
  void* const shared = mmap(nullptr, sizeof(FirstFailure), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail("Couldn't start the other end: %s", std::strerror(errno));
  FirstFailure& first = *new (shared) FirstFailure;  // which lives as long as this program
  std::fflush(nullptr);  // or the child would write what is not out yet once more
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) fail("Couldn't start the other end: %s", std::strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    const bool good = first.runs_well([&] { run_end(server, std::move(listener), stop); });
    std::fflush(nullptr);
    _exit(good ? 0 : 1);
  }
  { const Listener not_ours = std::move(listener); }
  const bool good = first.runs_well([&] { run_end(client, std::nullopt, stop); });
  if (!good) kill(child, SIGTERM);  // it may wait for a client that never came
  const int status = await_end(child, stop);
  first.conclude();
  if (status > 0) throw Failure{"", 1};  // and it has said why
  if (status < 0)
    fail("the other end, process %d, did not come to its end", static_cast<int>(child));
}

}  // namespace

std::optional<std::pair<int, int>> near_processors(const topo::Machine& machine,
                                                   const std::vector<int>& allowed) {
  std::optional<std::pair<int, int>> best;
  int points = -1;
  const bool known = machine.is_this_host();
  const auto pu = [&](int cpu) -> const topo::Pu* {
    const std::uint32_t index =
        known ? machine.pu_of_cpu(static_cast<std::uint32_t>(cpu)) : topo::kNone;
    return index != topo::kNone ? &machine.pus()[index] : nullptr;
  };
  for (std::size_t first = 0; first < allowed.size() && points < 3; ++first) {
    for (std::size_t second = first + 1; second < allowed.size() && points < 3; ++second) {
      const topo::Pu* const one = pu(allowed[first]);
      const topo::Pu* const two = pu(allowed[second]);
      int found = 0;
      if (one != nullptr && two != nullptr && one->core != two->core) {
        found = one->group == two->group && one->group != topo::kNone ? 3
                : one->node == two->node                              ? 2
                                                                      : 1;
      }
      if (found <= points) continue;
      points = found;
      best = {allowed[first], allowed[second]};
    }
  }
  return best;
}

void run_both_ends(PerfOptions server, PerfOptions client, const StopSignals& stop,
                   const PerfEnd& run_end) {
  place_ends(&server, &client);
  server.quiet = true;
  server.floors = false;
  server.json_file.reset();
  server.jsonl_file.reset();
  server.csv_file.reset();
  server.least_bandwidth.reset();
  server.least_rate.reset();
  server.counters.clear();
  Listener listener(0, 1, kOwnHost);
  client.tcp_port = listener.port();
  if (server.ends == PerfEnds::kProcess)
    run_as_threads(server, client, std::move(listener), stop, run_end);
  else
    run_as_processes(server, client, std::move(listener), stop, run_end);
}

}  // namespace verbatim::cli
