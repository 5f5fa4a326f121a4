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

std::vector<Setting> all_settings();
/// Without kSelf, for tests in which the ends must differ.
std::vector<Setting> settings_with_two_ends();
/// Without kTwoProcesses too, for tests that need their hands on both ends.
std::vector<Setting> settings_in_one_process();
/// Both kinds of memory, `b` in a child.
std::vector<Setting> settings_with_two_processes();

/// The same on every device that the program's registry lists.
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
