// SPDX-License-Identifier: BSD-2-Clause
// Asks for the machine, as a process of its own: the tests read what it prints and logs. With an
// argument, hwloc has given up before.
#include <cstdio>

#include "runtime/topo/host.hpp"
#include "runtime/topo/hwloc_shims.hpp"
#include "runtime/topo/process_limits.hpp"

#if VBT_HAS_HWLOC
extern "C" void vbt_hwloc_assert_fail(const char* expression, const char* file, unsigned line,
                                      const char* function);
#endif

namespace {

bool hwloc_gives_up() {
#if VBT_HAS_HWLOC
  return !verbatim::topo::run_guarded(
      [](void*) { vbt_hwloc_assert_fail("depth >= 0", "src/topology.c", 1, "insert"); }, nullptr);
#else
  return true;
#endif
}

}  // namespace

int main(int argc, char**) {
  using namespace verbatim::topo;
  if (argc > 1 && !hwloc_gives_up()) return 2;
  const Machine& machine = host_machine();
  static ProcessLimits limits;
  read_process_limits(limits);
  const AllowedProcessors allowed = allowed_processors(machine, limits);
  std::printf("%s %zu nodes %zu cores %zu processors; allowed %u cores %u processors\n",
              machine.known() ? "known" : "unknown", machine.nodes().size(), machine.cores().size(),
              machine.pus().size(), allowed.cores, allowed.processors);
  return &host_machine() == &machine ? 0 : 1;
}
