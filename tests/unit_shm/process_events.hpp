// SPDX-License-Identifier: BSD-2-Clause
//
// A process of the fabric whose hooks only count, standing for the data path; and the role of a
// second process with one.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/shm/fabric/process.hpp"

namespace verbatim::shm {

struct ProcessEvents {
  std::atomic<std::uint64_t> request_bits{0};  ///< sum of bit + 1
  std::atomic<std::uint32_t> requests{0};
  std::atomic<std::uint32_t> cq_wakes{0};
  std::atomic<std::uint32_t> last_cq{0};
  std::atomic<std::uint32_t> ticks{0};
  std::atomic<std::uint32_t> sweeps{0};
  std::atomic<std::uint32_t> peers_ready{0};
  std::atomic<std::uint32_t> peers_dead{0};
  std::atomic<std::uint32_t> arenas_ready{0};
  std::atomic<std::uint32_t> names_lost{0};
  std::atomic<std::uint32_t> names_back{0};
  std::atomic<bool> on_service_thread{true};  ///< of every hook so far

  /// Set by a test: a descriptor that is looked at when a peer is ready.
  std::atomic<int> watched{-1};
  std::atomic<bool> readable_when_ready{false};

  /// Set by a test: the service thread stays in the next request until it is taken back.
  std::atomic<bool> holds_requests{false};
  /// When the last peer was ready.
  std::atomic<std::uint32_t> ticks_when_ready{0};
  std::atomic<std::uint64_t> heard_when_ready{0};

  static ProcessEvents& get();
  static const ServiceHooks& hooks();
  void reset();
};

/// start() and stop() around a scope.
class RunningProcess {
 public:
  RunningProcess();
  ~RunningProcess();
  RunningProcess(const RunningProcess&) = delete;
  RunningProcess& operator=(const RunningProcess&) = delete;

  Process& operator*() const { return Process::get(); }
  Process* operator->() const { return &Process::get(); }
};

/// What the role "process" is told, one value each; it answers with one std::uint64_t.
enum class Ask : std::uint32_t {
  kTakeQpn,      ///< -> qpn
  kMeet,         ///< qpn -> 1 when its owner was met in time
  kCma,          ///< qpn -> Cma of its owner
  kHasPidfd,     ///< qpn -> 1 when its owner is watched by a pidfd
  kWake,         ///< qpn -> 1 when its owner had a socket open for the byte that wakes it
  kCanBeMet,     ///< -> 1 when its names stand in the folder; if not it makes them anew
  kNamesBack,    ///< -> how often that was done
  kAlive,        ///< qpn -> 1 while its owner is thought alive
  kAllocate,     ///< bytes -> arena number; the memory is filled with 0x5a
  kShare,        ///< arena number -> 0
  kByteAt,       ///< offset -> byte of the memory of the last kAllocate
  kEvents,       ///< -> peers_ready << 32 | peers_dead
  kDescriptors,  ///< -> how many descriptors are open
  kFork,         ///< -> pid of a child that holds all inherited descriptors and sleeps
  kStopProcess,  ///< -> 0; the process lives on
  kQuit          ///< leaves by stop and exit
};
struct Question {
  Ask ask;
  std::uint64_t value;
};

}  // namespace verbatim::shm
