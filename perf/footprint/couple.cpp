// SPDX-License-Identifier: BSD-2-Clause
#include "perf/footprint/couple.hpp"

#include <sys/socket.h>

#include <array>
#include <stdexcept>

#include "perf/ends/wire.hpp"
#include "perf/support/clock.hpp"
#include "perf/support/interrupt.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {
namespace {

constexpr int kAnswerMs = 20'000;

class Started {
 public:
  Started(const Couple& couple, const CorePair& cores, const std::string& fabric) {
    auto [a_here, a_there] = socket_pair();
    auto [b_here, b_there] = socket_pair();
    auto [peer_a, peer_b] = socket_pair();
    start_ns_ = now_ns();
    const RestoredAffinity restored_at_the_end;
    pin_to(cores.far);
    b_ = start(couple, "b", fabric, b_there.get(), peer_b.get());
    pin_to(cores.near);
    a_ = start(couple, "a", fabric, a_there.get(), peer_a.get());
    a_socket_ = std::move(a_here);
    b_socket_ = std::move(b_here);
  }

  std::uint64_t start_ns() const { return start_ns_; }
  std::array<pid_t, 2> pids() const { return {a_.pid(), b_.pid()}; }
  void await_a(char wanted) const { await(a_socket_.get(), wanted); }
  void await_b(char wanted) const { await(b_socket_.get(), wanted); }

  /// Lets both leave by themselves; an error in their clean-up is an error of the measurement.
  void finish() {
    a_socket_.reset();
    b_socket_.reset();
    if (a_.wait() != 0 || b_.wait() != 0) throw std::runtime_error("a program ended with an error");
  }

 private:
  static Child start(const Couple& couple, const char* side, const std::string& fabric,
                     int supervisor, int peer) {
    SpawnOptions options;
    options.fds = {{supervisor, kSupervisorFd}, {peer, kPeerFd}};
    options.environment = {"VERBATIM_FABRIC=" + fabric};
    std::vector<std::string> argv = {couple.program, side};
    if (!couple.mode.empty()) argv.push_back(couple.mode);
    return Child(argv, options);
  }

  static void await(int fd, char wanted) {
    char byte = 0;
    wait_readable(std::array{fd}, kAnswerMs);
    if (recv(fd, &byte, 1, 0) != 1 || byte != wanted) {
      throw std::runtime_error("a program ended before its report");
    }
  }

  std::uint64_t start_ns_ = 0;
  Fd a_socket_;
  Fd b_socket_;
  Child a_;
  Child b_;
};

}  // namespace

StartTime time_to_message(const Couple& couple, const CorePair& cores, const std::string& fabric) {
  Started started(couple, cores, fabric);
  started.await_b('m');
  const std::uint64_t end = now_ns();
  started.await_b('i');
  started.await_a('i');
  double waited = 0;
  for (const pid_t pid : started.pids()) waited += waited_for_core_ns(pid);
  started.finish();
  return {static_cast<double>(end - started.start_ns()), waited};
}

MemoryUse idle_memory(const Couple& couple, const CorePair& cores, const std::string& fabric) {
  Started started(couple, cores, fabric);
  if (couple.mode.empty()) started.await_b('m');
  started.await_a('i');
  started.await_b('i');
  const MemoryUse use = memory_use(started.pids());
  started.finish();
  return use;
}

}  // namespace verbatim::perf
