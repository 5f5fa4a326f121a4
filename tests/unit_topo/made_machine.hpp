// SPDX-License-Identifier: BSD-2-Clause
// Machines for tests: made by hand, or described to hwloc in an environment of their own.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/topo/host.hpp"
#include "runtime/topo/machine_check.hpp"
#include "runtime/topo/machine_read.hpp"
#include "runtime/topo/snapshot.hpp"

namespace verbatim::topo {

/// A folder that processes of one test share, instead of the user's.
class PrivateRuntime {
 public:
  PrivateRuntime() {
    char name[] = "/tmp/vbt-topo-XXXXXX";
    root_ = ::mkdtemp(name);
    ::setenv("XDG_RUNTIME_DIR", root_.c_str(), 1);
  }
  ~PrivateRuntime() {
    for (const char* name : {"XDG_RUNTIME_DIR", "HWLOC_XMLFILE", "HWLOC_SYNTHETIC"})
      ::unsetenv(name);
    std::filesystem::remove_all(root_);
  }
  PrivateRuntime(const PrivateRuntime&) = delete;
  PrivateRuntime& operator=(const PrivateRuntime&) = delete;
  const std::string& root() const { return root_; }
  /// Where the machines are.
  std::string folder() const { return root_ + "/verbatim-" + std::to_string(::geteuid()); }

 private:
  std::string root_;
};

/// Two packages of one node, one L3 cache and one core with two processors each; processor numbers
/// with a hole. Checked, until a test spoils it.
inline Snapshot made_by_hand() {
  MachineHead head{};
  head.magic = kMachineMagic;
  head.version = kLayoutVersion;
  head.package_count = head.node_count = head.group_count = head.core_count = 2;
  head.pu_count = 4;
  head.cpu_end = 70;
  const MachineTables at(head);
  head.bytes = static_cast<std::uint32_t>(at.end);
  Snapshot made;
  EXPECT_TRUE(made.allocate(at.end));
  made.head() = head;
  constexpr std::array<std::uint32_t, 4> kCpus = {0, 1, 68, 69};
  auto* const pu_of_cpu = made.table<std::uint32_t>(at.pu_of_cpu);
  std::fill_n(pu_of_cpu, head.cpu_end, kNone);
  for (std::uint32_t i = 0; i < 4; ++i) {
    made.table<Pu>(at.pus)[i] = {.cpu = kCpus[i], .core = i / 2, .group = i / 2, .node = i / 2};
    pu_of_cpu[kCpus[i]] = i;
  }
  for (std::uint32_t i = 0; i < 2; ++i) {
    made.table<Node>(at.nodes)[i] = {.number = i * 3,
                                     .package = i,
                                     .memory_bytes = 1u << 30,
                                     .cpu_count = 2,
                                     .kind = NodeKind::kMain};
    made.table<Group>(at.groups)[i] = {
        .cache_bytes = 1u << 20, .package = i, .node = i, .first_pu = i * 2, .pu_count = 2};
    made.table<Core>(at.cores)[i] = {.number = i,
                                     .package = i,
                                     .group = i,
                                     .node = i,
                                     .first_pu = i * 2,
                                     .pu_count = 2,
                                     .efficiency = kNone,
                                     .reserved = 0};
    made.table<std::uint64_t>(at.cpus)[i * at.cpu_words + i] = i == 0 ? 0x3 : 0x30;
    made.table<std::uint32_t>(at.distances)[i * 2 + i] = 10;
    made.table<std::uint32_t>(at.distances)[i * 2 + 1 - i] = 21;
  }
  made.head().checksum = machine_checksum(made.bytes(), made.size());
  return made;
}

/// A machine that hwloc reads from a description, through everything that a process goes through.
class Described {
 public:
  static Described file(const std::string& name) {
    return Described("HWLOC_XMLFILE", std::string(VERBATIM_TOPOLOGIES) + "/" + name);
  }
  static Described text(const std::string& synthetic) {
    return Described("HWLOC_SYNTHETIC", synthetic);
  }
  Described(const char* variable, const std::string& value) {
    ::setenv(variable, value.c_str(), 1);
    if (find_machine(snapshot_)) machine = Machine(snapshot_.bytes());
    ::unsetenv(variable);
  }
  Machine machine;

 private:
  Snapshot snapshot_;
};

/// Whether this build can read machines; what needs it is skipped otherwise.
inline bool has_reader() { return reader_version() != 0; }

}  // namespace verbatim::topo
