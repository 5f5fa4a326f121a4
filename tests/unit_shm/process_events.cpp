// SPDX-License-Identifier: BSD-2-Clause
#include "tests/unit_shm/process_events.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "runtime/memory/arena.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/process_census.hpp"
#include "tests/support/role.hpp"

namespace verbatim::shm {
namespace {

ProcessEvents events;

void note_thread() {
  if (!Process::get().on_service_thread()) events.on_service_thread = false;
}

constexpr ServiceHooks kNotingHooks = {
    .request =
        [](std::uint32_t bit) noexcept {
          note_thread();
          events.request_bits += bit + 1;
          ++events.requests;
          while (events.holds_requests) sched_yield();
          return false;
        },
    .asked = []() noexcept { return false; },
    .cq_wake =
        [](std::uint32_t cq) noexcept {
          note_thread();
          events.last_cq = cq;
          ++events.cq_wakes;
        },
    .tick =
        []() noexcept {
          note_thread();
          ++events.ticks;
        },
    .sweep =
        []() noexcept {
          note_thread();
          ++events.sweeps;
        },
    .due = [](std::uint64_t) noexcept { return ~std::uint64_t{0}; },
    .peer_ready =
        [](Peer&) noexcept {
          note_thread();
          pollfd watched{events.watched, POLLIN, 0};
          if (watched.fd >= 0 && ::poll(&watched, 1, 0) == 1) events.readable_when_ready = true;
          WaitClock& clock = Process::get().wait_clock();
          events.heard_when_ready = clock.heard(clock.now());
          events.ticks_when_ready = events.ticks.load();
          ++events.peers_ready;
        },
    .peer_knows_us = [](Peer&) noexcept {},
    .peer_dead =
        [](Peer&) noexcept {
          note_thread();
          ++events.peers_dead;
        },
    .dead_stay = []() noexcept {},
    .arena_ready =
        [](Peer&) noexcept {
          note_thread();
          ++events.arenas_ready;
        },
    .names_stand =
        [](bool stand) noexcept {
          note_thread();
          ++(stand ? events.names_back : events.names_lost);
        },
    .failed = []() noexcept {},
    .ends = []() noexcept {},
};

/// What `look` sees of the owner of `qpn`; 0 when nobody is known.
template <class Look>
std::uint64_t of_peer(std::uint32_t qpn, Look look) {
  Peer* const peer = Process::get().hold_peer(qpn);
  if (peer == nullptr) return 0;
  const auto seen = static_cast<std::uint64_t>(look(*peer));
  Process::get().release_peer(*peer);
  return seen;
}

}  // namespace

ProcessEvents& ProcessEvents::get() { return events; }
const ServiceHooks& ProcessEvents::hooks() { return kNotingHooks; }

void ProcessEvents::reset() {
  request_bits = 0;
  requests = cq_wakes = last_cq = ticks = sweeps = peers_ready = peers_dead = arenas_ready = 0;
  names_lost = names_back = 0;
  on_service_thread = true;
  watched = -1;
  readable_when_ready = false;
  holds_requests = false;
  ticks_when_ready = 0;
  heard_when_ready = 0;
}

RunningProcess::RunningProcess() {
  if (const int error = Process::start(kNotingHooks); error != 0) {
    throw std::runtime_error("Process::start: errno " + std::to_string(error));
  }
}

RunningProcess::~RunningProcess() { Process::stop(); }

VBT_ROLE(process) {
  int status = Process::start(kNotingHooks);
  control.send_value(status);
  if (status != 0) return 1;
  unsigned char* memory = nullptr;
  bool running = true;
  for (;;) {
    const auto question = control.receive_value<Question>();
    const auto qpn = static_cast<std::uint32_t>(question.value);
    std::uint64_t answer = 0;
    switch (question.ask) {
      case Ask::kTakeQpn: {
        std::uint32_t index = 0;
        std::uint32_t taken = 0;
        if (Process::get().take_qpn(index, taken) == 0) answer = taken;
        break;
      }
      case Ask::kMeet:
        answer = harness::wait_until([&] {
          Process::get().want_peer(qpn);
          return Process::get().find_peer(qpn) != nullptr;
        });
        break;
      case Ask::kCma:
        answer = of_peer(qpn, [](const Peer& peer) { return static_cast<int>(peer.cma.load()); });
        break;
      case Ask::kHasPidfd:
        answer = of_peer(qpn, [](const Peer& peer) { return peer.pidfd.valid(); });
        break;
      case Ask::kWake:
        answer = of_peer(qpn, [](const Peer& peer) {
          return ::send(peer.wake.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
        });
        break;
      case Ask::kCanBeMet:
        answer = Process::get().can_be_met();
        break;
      case Ask::kNamesBack:
        answer = events.names_back;
        break;
      case Ask::kAlive:
        answer = of_peer(qpn, [](const Peer& peer) { return peer.alive.load(); });
        break;
      case Ask::kAllocate: {
        int error = 0;
        memory = static_cast<unsigned char*>(alloc_shared(question.value, error));
        ArenaView view;
        if (memory == nullptr || !arena_hold(memory, question.value, view)) return 2;
        std::memset(memory, 0x5a, question.value);
        answer = view.number;
        break;
      }
      case Ask::kShare:
        arena_share(static_cast<std::uint32_t>(question.value));
        break;
      case Ask::kByteAt:
        answer = memory[question.value];
        break;
      case Ask::kEvents:
        answer = std::uint64_t{events.peers_ready} << 32 | events.peers_dead;
        break;
      case Ask::kDescriptors:
        answer = harness::ProcessCensus::take().descriptors.size();
        break;
      case Ask::kFork: {
        const pid_t child = fork();
        if (child == 0) {
          alarm(60);  // whatever becomes of the test
          pause();
          _exit(0);
        }
        answer = static_cast<std::uint64_t>(child);
        break;
      }
      case Ask::kStopProcess:
        Process::stop();
        running = false;
        break;
      case Ask::kQuit:
        if (running) Process::stop();
        control.send_value(answer);
        return 0;
    }
    control.send_value(answer);
  }
}

}  // namespace verbatim::shm
