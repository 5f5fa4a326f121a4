// SPDX-License-Identifier: BSD-2-Clause
// What it takes a process to know the machine: the first of a user's on a host asks hwloc and
// leaves what it found for the others, which read a file. Both are found anew here as each process
// does it once, in a folder of their own.
#include <stdlib.h>

#include <memory>
#include <string>

#include "perf/peers/bench.hpp"
#include "perf/support/scratch_folder.hpp"
#include "runtime/topo/host.hpp"
#include "runtime/topo/machine_read.hpp"
#include "runtime/topo/snapshot.hpp"

namespace verbatim::perf {
namespace {

/// Where processes leave the machine, until the end of the scope.
class SharedFolder {
 public:
  SharedFolder() {
    if (const char* const value = getenv(kName)) before_ = std::make_unique<std::string>(value);
    setenv(kName, folder_.path().c_str(), 1);
  }
  ~SharedFolder() {
    if (before_ == nullptr) {
      unsetenv(kName);
    } else {
      setenv(kName, before_->c_str(), 1);
    }
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

 private:
  static constexpr const char* kName = "XDG_RUNTIME_DIR";
  ScratchFolder folder_;
  std::unique_ptr<std::string> before_;
};

Taken time_to_find() {
  topo::Snapshot snapshot;
  const std::uint64_t start = now_ns();
  const bool found = topo::find_machine(snapshot);
  const auto elapsed = static_cast<double>(now_ns() - start);
  return {elapsed / 1e6, 0, !found};
}

}  // namespace

void judge_topology(Bench& bench) {
  const std::string missing =
      topo::reader_version() == 0 ? "the library is built without hwloc" : "";
  Probes probes;
  probes.push_back({"first process",
                    [] {
                      const SharedFolder empty;
                      return std::optional(time_to_find());
                    },
                    missing,
                    {}});
  probes.push_back({"second process",
                    [] {
                      const SharedFolder filled;
                      (void)time_to_find();
                      return std::optional(time_to_find());
                    },
                    missing,
                    {}});
  bench.run(probes, "topology", 3 * bench.options.rounds);
  bench.judge_value("R13", "topology for the second process of a host", Sense::kAtMost, 1,
                    probes[1], "ms");
  bench.judge_value("R13", "topology for the first one", Sense::kShown, 0, probes[0], "ms");
}

}  // namespace verbatim::perf
