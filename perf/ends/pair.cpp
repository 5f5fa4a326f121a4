// SPDX-License-Identifier: BSD-2-Clause
#include "perf/ends/pair.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "perf/ends/wire.hpp"
#include "perf/support/interrupt.hpp"

namespace verbatim::perf {
namespace {

// Far more than any block takes, also on a loaded machine under a sanitizer.
constexpr int kBlockTimeoutMs = 60'000;

Child start_end(const char* side, int cpu, const std::string& fabric, int supervisor, int peer,
                int memory) {
  SpawnOptions options;
  options.fds = {{supervisor, kSupervisorFd}, {peer, kPeerFd}, {memory, kSharedFd}};
  // What the library keeps for the user's other processes goes with the run, too.
  options.environment = {"VERBATIM_FABRIC=" + fabric, "XDG_RUNTIME_DIR=" + fabric};
  options.hold_interrupts = true;
  return Child({own_path(), "--end", side, std::to_string(cpu), std::to_string(getpid())}, options);
}

}  // namespace

Pair::Pair(const CorePair& cores, const std::string& fabric)
    : memory_(create_shared_page()), shared_(map_shared_page(memory_.get())) {
  auto [near_here, near_there] = socket_pair();
  auto [far_here, far_there] = socket_pair();
  auto [peer_near, peer_far] = socket_pair();
  near_ = start_end("near", cores.near, fabric, near_there.get(), peer_near.get(), memory_.get());
  far_ = start_end("far", cores.far, fabric, far_there.get(), peer_far.get(), memory_.get());
  near_socket_ = std::move(near_here);
  far_socket_ = std::move(far_here);
}

Pair::~Pair() { munmap(shared_, sizeof *shared_); }

Reply Pair::await_replies(const std::string& what) {
  Reply near_reply;
  double waited_ns = 0, cpu_ns = 0, switches = 0;
  std::array<int, 2> waiting = {near_socket_.get(), far_socket_.get()};
  while (waiting[0] >= 0 || waiting[1] >= 0) {
    const std::size_t who = wait_readable(waiting, kBlockTimeoutMs);
    const char* name = who == 0 ? "near" : "far";
    Reply reply;
    if (!receive_record(waiting[who], reply)) {
      throw std::runtime_error(what + ": the " + name + " process has ended unexpectedly");
    }
    if (reply.error != 0) {
      throw std::runtime_error(what + ": " + name + " process: " + reply.message);
    }
    if (who == 0) near_reply = reply;
    waited_ns += reply.waited_ns;
    cpu_ns += reply.cpu_ns;
    switches += reply.switches;
    waiting[who] = -1;
  }
  near_reply.waited_ns = waited_ns;
  near_reply.cpu_ns = cpu_ns;
  near_reply.switches = switches;
  return near_reply;
}

Reply Pair::run(const Request& request, const std::string& what) {
  try {
    send_record(far_socket_.get(), request);
    send_record(near_socket_.get(), request);
    return await_replies(what);
  } catch (const TimedOut&) {
    throw std::runtime_error(what + ": no answer within " + std::to_string(kBlockTimeoutMs / 1000) +
                             " s");
  } catch (const std::exception&) {
    check_interrupt();  // whoever was signaled together with us may have ended first
    throw;
  }
}

}  // namespace verbatim::perf
