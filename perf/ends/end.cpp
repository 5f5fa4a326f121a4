// SPDX-License-Identifier: BSD-2-Clause
#include "perf/ends/end.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "perf/ends/crowd_member.hpp"
#include "perf/ends/reply_of.hpp"
#include "perf/ends/wire.hpp"
#include "perf/support/affinity.hpp"
#include "perf/support/arguments.hpp"
#include "perf/support/call_count.hpp"
#include "perf/support/clock.hpp"
#include "perf/verbs/endpoint.hpp"
#include "perf/verbs/many_qps.hpp"
#include "perf/verbs/many_regions.hpp"

namespace verbatim::perf {
namespace {

// A block that needs longer than this for its peer to arrive shares a core with it.
constexpr unsigned kSpinsBeforeYield = 20'000;

std::byte* touched_memory(std::size_t bytes) {
  void* memory = std::aligned_alloc(4096, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  return static_cast<std::byte*>(memory);
}

}  // namespace

End::End(Side side, int supervisor_fd, int peer_fd, SharedPage* shared, const SharedPage* view)
    : side_(side), supervisor_fd_(supervisor_fd), peer_fd_(peer_fd), shared_(shared), view_(view) {
  std::byte* memory = touched_memory(2 * kAreaBytes);
  local_ = {memory, memory + kAreaBytes};
}

End::~End() { std::free(local_.out); }

Area End::mapped() const {
  return is_near() ? Area{shared_->near_out, shared_->near_in}
                   : Area{shared_->far_out, shared_->far_in};
}

Area End::peer_mapped() const {
  return is_near() ? Area{shared_->far_out, shared_->far_in}
                   : Area{shared_->near_out, shared_->near_in};
}

void End::meet() {
  ++meetings_;
  auto& own = is_near() ? shared_->near_meets : shared_->far_meets;
  auto& peer = is_near() ? shared_->far_meets : shared_->near_meets;
  own.store(meetings_,
            std::memory_order_release);  // what I did before is done; pairs with the load below
  for (unsigned spins = 0; peer.load(std::memory_order_acquire) < meetings_; ++spins) {
    if (spins >= kSpinsBeforeYield) {
      const CallCountPause no_part_of_the_block;
      sched_yield();
    }
    cpu_relax();
  }
}

Endpoint& End::endpoint() {
  if (!endpoint_) throw std::logic_error("no endpoint yet: kConnect comes first");
  return *endpoint_;
}

void End::introduce() {
  struct Card {
    pid_t pid;
    Area local;
  };
  const Card card = exchange_record(peer_fd_, Card{getpid(), local_});
  peer_pid_ = card.pid;
  peer_local_ = card.local;
}

Reply End::answer(const Request& request) {
  return reply_of([&](Reply& reply) {
    std::optional<CallCount> count;
    if (request.counts_calls != 0) count.emplace();
    perform(request, reply);
    if (!count) return;
    if (const auto calls = count->calls()) reply.system_calls = static_cast<double>(*calls);
  });
}

void End::perform(const Request& request, Reply& reply) {
  switch (request.kind) {
    case Kind::kHandover:
      run_handover(*this, request, reply);
      break;
    case Kind::kCopyPingPong:
      run_copy_ping_pong(*this, request, reply);
      break;
    case Kind::kEventPingPong:
      run_event_ping_pong(*this, request, reply);
      break;
    case Kind::kEmptyCalls:
      run_empty_calls(*this, request, reply);
      break;
    case Kind::kLocalCopy:
      run_local_copy(*this, request, reply);
      break;
    case Kind::kSingleCopy:
      run_single_copy(*this, request, reply);
      break;
    case Kind::kTrain:
      run_train(*this, request, reply);
      break;
    case Kind::kConnect:
      run_connect(*this, request, reply);
      break;
    case Kind::kPingPong:
      run_ping_pong(*this, request, reply);
      break;
    case Kind::kCompletion:
      run_completion(*this, request, reply);
      break;
    case Kind::kStream:
      run_stream(*this, request, reply);
      break;
    case Kind::kSleeping:
      run_sleeping(*this, request, reply);
      break;
    case Kind::kConnectMany:
      run_connect_many(*this, request, reply);
      break;
    case Kind::kUseMany:
      run_use_many(*this, request, reply);
      break;
    case Kind::kInTurn:
      run_in_turn(*this, request, reply);
      break;
    case Kind::kEmptyPoll:
      run_empty_poll(*this, request, reply);
      break;
    case Kind::kThreads:
      run_threads(*this, request, reply);
      break;
    case Kind::kFloor:
      run_floor(*this, request, reply);
      break;
    case Kind::kRegister:
      run_register(*this, request, reply);
      break;
    case Kind::kRegisterMany:
      run_register_many(*this, request, reply);
      break;
    case Kind::kWriteMany:
      run_write_many(*this, request, reply);
      break;
    case Kind::kAllocate:
      run_allocate(*this, request, reply);
      break;
    case Kind::kPages:
      run_pages(*this, request, reply);
      break;
    case Kind::kBuffers:
      run_buffers(*this, request, reply);
      break;
    case Kind::kPrepareCrowd:
    case Kind::kJoinCrowd:
    case Kind::kTalk:
      throw std::logic_error("a hub and its peers do that");
  }
}

void End::serve() {
  // CMA between siblings is refused by yama unless the target allows it; the floor is measured as a
  // program that wants CMA would have it.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  introduce();
  ns_per_tick();
  Request request;
  while (receive_record(supervisor_fd_, request)) send_record(supervisor_fd_, answer(request));
}

int run_if_end(int argc, char** argv) {
  // verbatim_xyz --end near|far|hub|peer CPU PARENT-PID, with the fds of pair.cpp or crowd.cpp.
  if (argc != 5 || std::string_view(argv[1]) != "--end") return -1;
  try {
    const auto cpu = parse_count(argv[3], 0, CPU_SETSIZE - 1);
    const auto parent = parse_count(argv[4], 1, 1 << 30);
    if (!cpu || !parent) throw std::invalid_argument("--end is for the program's own use");
    end_with_parent(*parent);
    pin_to(*cpu);
    const std::string_view role = argv[2];
    if (role == "hub" || role == "peer") {
      serve_in_crowd(role == "hub");
      return 0;
    }
    const Side side = role == "near" ? Side::kNear : Side::kFar;
    End end(side, kSupervisorFd, kPeerFd, map_shared_page(kSharedFd), view_shared_page(kSharedFd));
    end.serve();
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "measuring process: %s\n", failure.what());
    return 1;
  }
}

}  // namespace verbatim::perf
