// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/pair.hpp"

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string_view>

namespace verbatim::harness {
namespace {

const char* name_of(Placement placement) {
  switch (placement) {
    case Placement::kSelf:
      return "Self";
    case Placement::kOneContext:
      return "OneContext";
    case Placement::kTwoContexts:
      return "TwoContexts";
    case Placement::kTwoProcesses:
      return "TwoProcesses";
  }
  return "?";
}

/// VERBATIM_TEST_SETTINGS=every: also what takes a way that another setting takes.
bool every_setting_is_asked_for() {
  const char* const text = std::getenv("VERBATIM_TEST_SETTINGS");
  if (text == nullptr) return false;
  if (std::string_view(text) == "every") return true;
  std::fprintf(stderr, "VERBATIM_TEST_SETTINGS=%s: must be 'every'\n", text);
  std::exit(2);
}

using PlacementList = std::initializer_list<Placement>;

/// `own_way` with what of memory makes a difference there, and when every setting is asked for,
/// those of `same_way` too and each kind of memory.
std::vector<Setting> settings_at(PlacementList own_way, PlacementList same_way = {}) {
  const bool every = every_setting_is_asked_for();
  std::vector<Setting> settings;
  const auto add = [&](Placement placement) {
    // Within a process each address is at hand, whatever memory lies there. Which kind is taken
    // differs with the placement, so that both are registered and used within a process, too.
    const bool both = every || placement == Placement::kTwoProcesses;
    if (both || placement != Placement::kOneContext) {
      settings.push_back({placement, MemoryKind::kMapped});
    }
    if (both || placement == Placement::kOneContext) {
      settings.push_back({placement, MemoryKind::kOrdinary});
    }
  };
  for (const Placement placement : own_way) add(placement);
  if (every) {
    for (const Placement placement : same_way) add(placement);
  }
  return settings;
}

}  // namespace

std::string name_of(const Setting& setting) {
  const std::string device = setting.device == nullptr ? "" : std::string(setting.device) + '_';
  return device + name_of(setting.placement) +
         (setting.memory == MemoryKind::kMapped ? "_Mapped" : "_Ordinary");
}

void PrintTo(const Setting& setting, std::ostream* out) { *out << name_of(setting); }

std::vector<Setting> each_way_and_loopback() {
  return settings_at({Placement::kSelf, Placement::kOneContext, Placement::kTwoProcesses},
                     {Placement::kTwoContexts});
}
std::vector<Setting> each_way() {
  return settings_at({Placement::kOneContext, Placement::kTwoProcesses}, {Placement::kTwoContexts});
}
std::vector<Setting> each_way_and_two_contexts() {
  return settings_at({Placement::kOneContext, Placement::kTwoContexts, Placement::kTwoProcesses});
}
std::vector<Setting> within_a_process() {
  return settings_at({Placement::kOneContext}, {Placement::kTwoContexts});
}
std::vector<Setting> between_processes() { return settings_at({Placement::kTwoProcesses}); }

const std::vector<const char*>& every_device() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    ibv_device** const list = ibv_get_device_list(nullptr);
    for (ibv_device** at = list; at != nullptr && *at != nullptr; ++at) {
      // Queue pairs that are led from state to state, with addresses that the two ends exchange,
      // are not iWARP's, which connects as TCP does: tests/vm/siw_ends has its sentences.
      if ((*at)->transport_type == IBV_TRANSPORT_IWARP) {
        std::fprintf(stderr, "%s: left out, iWARP connects through a connection manager\n",
                     ibv_get_device_name(*at));
        continue;
      }
      found.emplace_back(ibv_get_device_name(*at));
    }
    ibv_free_device_list(list);
    return found;
  }();
  static const std::vector<const char*> pointers = [] {
    std::vector<const char*> all;
    for (const std::string& name : names) all.push_back(name.c_str());
    return all;
  }();
  return pointers;
}

std::vector<Setting> on_every_device(const std::vector<Setting>& settings) {
  std::vector<Setting> all;
  for (const char* device : every_device()) {
    for (Setting setting : settings) {
      setting.device = device;
      all.push_back(setting);
    }
  }
  return all;
}

Pair::Sides Pair::make_sides(Setting setting, const PairWish& wish) {
  Sides sides;
  // The child first: it starts while we open our own device.
  if (setting.placement == Placement::kTwoProcesses) {
    auto environment = wish.child_environment;
    if (setting.device != nullptr) environment[kDeviceVariable] = setting.device;
    sides.second = std::make_unique<Side>(environment);
  }
  const auto session = std::make_shared<Session>(setting.device);
  sides.first = std::make_unique<Side>(session);
  if (setting.placement == Placement::kOneContext) {
    sides.second = std::make_unique<Side>(session);
  } else if (setting.placement == Placement::kTwoContexts) {
    sides.second = std::make_unique<Side>(std::make_shared<Session>(setting.device));
  }
  return sides;
}

Pair::Pair(Setting chosen, const PairWish& wish) : Pair(chosen, wish, make_sides(chosen, wish)) {}

Pair::Pair(Setting chosen, const PairWish& wish, Sides sides)
    : a(*sides.first),
      b(sides.second ? *sides.second : *sides.first),
      setting(chosen),
      sides_(std::move(sides)),
      wish_(wish) {
  qa = a.create_qp(wish.a);
  qb = sides_.second ? b.create_qp(wish.b) : qa;
  if (wish.connected) connect();
}

void Pair::connect() {
  a.connect(qa, qb, wish_.link_a);
  if (sides_.second) b.connect(qb, qa, wish_.link_b);
}

void Pair::reconnect() {
  if (a.to_state(qa, IBV_QPS_RESET) != 0) throw std::runtime_error("no way to RESET");
  if (sides_.second && b.to_state(qb, IBV_QPS_RESET) != 0) {
    throw std::runtime_error("no way to RESET");
  }
  connect();
}

std::pair<QpInfo, QpInfo> Pair::add_qps(const QpWish& wish_a, const QpWish& wish_b) {
  const QpInfo more_a = a.create_qp(wish_a);
  const QpInfo more_b = sides_.second ? b.create_qp(wish_b) : more_a;
  a.connect(more_a, more_b, wish_.link_a);
  if (sides_.second) b.connect(more_b, more_a, wish_.link_b);
  return {more_a, more_b};
}

}  // namespace verbatim::harness
