// SPDX-License-Identifier: BSD-2-Clause
// The supervisor's side of a hub and its peers: one measuring process that has a connection with
// each of many others, which are this same program too. One of them talks to it at a time, and the
// others sleep, so that two cores are enough for any number. The destructor ends them all; a failure
// of any comes out as an exception that names it. Main thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "perf/ends/request.hpp"
#include "perf/support/affinity.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {

class Crowd {
 public:
  static constexpr std::uint32_t kMostPeers = 64;

  /// Starts them: the hub on the near core, `peers` others on the far one. `fabric`: see start_end.
  Crowd(const CorePair& cores, const std::string& fabric, std::uint32_t peers);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  /// The hub connects with each peer: the time of one, and `extra[0]`: the bytes that one costs the
  /// hub, in memory of its own and of others that it has mapped.
  Reply join();
  /// `request.iterations` messages there and back, in `turns` equal parts, each with another peer.
  /// Those by which a peer wakes up are not timed.
  Reply talk(const Request& request, std::uint32_t turns);
  /// At the hub alone.
  Reply ask_hub(const Request& request, const std::string& what);

  std::vector<pid_t> pids() const;

 private:
  struct Member {
    Fd socket;
    Child process;
    std::string name;
  };

  std::uint64_t hub_memory() const;

  Member hub_;
  std::vector<Member> peers_;
};

}  // namespace verbatim::perf
