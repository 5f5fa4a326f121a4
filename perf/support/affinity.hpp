// SPDX-License-Identifier: BSD-2-Clause
// Which two cores to measure between, and pinning to them.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace verbatim::perf {

struct CorePair {
  int near = 0;
  int far = 0;
  bool distinct = false;  // false: one core only, so no figure between cores means anything
  std::string note;       // how the two relate, for the head of a table
};

/// CPUs this process may run on, ascending.
std::vector<int> allowed_cpus();

/// Two allowed CPUs on different physical cores, of one package when possible; sibling threads only
/// when there is nothing else.
CorePair choose_core_pair(const std::vector<int>& allowed);

/// Pins the calling thread; throws std::system_error.
void pin_to(int cpu);
/// Leaves the calling thread those two.
void allow_only(const CorePair& cores);

/// Gives the calling thread back the CPUs that it had: what it starts meanwhile inherits what it is pinned to.
class RestoredAffinity {
 public:
  RestoredAffinity() { sched_getaffinity(0, sizeof saved_, &saved_); }
  ~RestoredAffinity() { sched_setaffinity(0, sizeof saved_, &saved_); }
  RestoredAffinity(const RestoredAffinity&) = delete;
  RestoredAffinity& operator=(const RestoredAffinity&) = delete;

 private:
  cpu_set_t saved_;
};

/// Since the process's main thread started: how long it was runnable without running, because
/// others had its core. 0 where the kernel does not tell, or the process is gone; 0 as pid means
/// this one.
double waited_for_core_ns(int pid = 0);

/// "AMD EPYC ..." from /proc/cpuinfo, or the architecture's name.
std::string processor_name();
/// "2 CPUs, 2 cores, 1 package": those that this process may run on.
std::string topology_text();

}  // namespace verbatim::perf
