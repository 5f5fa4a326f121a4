// SPDX-License-Identifier: BSD-2-Clause
//
// Two connected RC queue pairs, `a` and `b`, in each of the places where they can live. Most tests
// of RC are written against a Pair and run over every Setting.
#pragma once

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/side.hpp"

namespace verbatim::harness {

enum class Placement : std::uint32_t {
  kSelf,         ///< one QP connected to itself
  kOneContext,   ///< two QPs of one PD
  kTwoContexts,  ///< two contexts of this process
  kTwoProcesses  ///< `b` in a child
};

struct Setting {
  Placement placement = Placement::kTwoProcesses;
  MemoryKind memory = MemoryKind::kMapped;
  const char* device = nullptr;  ///< the first one when null
};

/// The simplest.
inline constexpr Setting kHere{Placement::kOneContext, MemoryKind::kMapped};

/// For names of tests: "TwoProcesses_Mapped", or "shm0_TwoProcesses_Mapped".
std::string name_of(const Setting& setting);
/// For GoogleTest's own words.
void PrintTo(const Setting& setting, std::ostream* out);

// A sentence names its settings by the ways that its bytes go. There are four: looped back to the
// queue pair itself; within a process, where each address is at hand whatever memory lies there;
// between processes into memory that the sender has mapped; and there into ordinary memory, by the
// kernel's copy between processes or, without that (VERBATIM_SHM_CMA=off), by the owner's service
// thread. Two contexts of one process go the way of one; they are a setting of their own where
// contexts are what a sentence is about. With VERBATIM_TEST_SETTINGS=every in the environment, each
// function adds what goes a way that is there already: the other kind of memory, two contexts.

/// Within a process, and between two with either kind of memory.
std::vector<Setting> each_way();
/// And to the queue pair itself.
std::vector<Setting> each_way_and_loopback();
/// And between two contexts of a process.
std::vector<Setting> each_way_and_two_contexts();
/// For sentences that need their hands on both ends.
std::vector<Setting> within_a_process();
/// `b` in a child, with either kind of memory.
std::vector<Setting> between_processes();

/// `settings` on every device that the program's registry lists.
std::vector<Setting> on_every_device(const std::vector<Setting>& settings);
/// The names of those devices; they stay valid to the end.
const std::vector<const char*>& every_device();

struct PairWish {
  QpWish a;
  QpWish b;
  Link link_a;
  Link link_b;
  std::map<std::string, std::string> child_environment;
  bool connected = true;
};

class Pair {
 public:
  explicit Pair(Setting setting, const PairWish& wish = {});

  /// Through all transitions, both ends.
  void connect();
  /// Both ends to RESET and through all transitions again, after an error.
  void reconnect();
  /// A further QP on each side, connected to each other.
  std::pair<QpInfo, QpInfo> add_qps(const QpWish& wish_a, const QpWish& wish_b);

  Side& a;
  Side& b;
  QpInfo qa;
  QpInfo qb;
  const Setting setting;

 private:
  struct Sides {
    std::unique_ptr<Side> first;
    std::unique_ptr<Side> second;  ///< null for kSelf
  };
  Pair(Setting setting, const PairWish& wish, Sides sides);
  static Sides make_sides(Setting setting, const PairWish& wish);

  Sides sides_;
  PairWish wish_;
};

}  // namespace verbatim::harness
