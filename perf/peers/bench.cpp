// SPDX-License-Identifier: BSD-2-Clause
#include "perf/peers/bench.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "perf/support/table.hpp"

namespace verbatim::perf {

Pair& Bench::pair() {
  if (!pair_) {
    pair_.emplace(cores, fabric);
    pair_->run({.kind = Kind::kConnect}, "connect");
  }
  return *pair_;
}

bool Bench::wants(const std::string& row) const {
  return options.rows.empty() ||
         std::find(options.rows.begin(), options.rows.end(), row) != options.rows.end();
}

void Bench::run(Probes& probes, const std::string& title, int rounds) {
  constexpr int kFewestRounds = 3;
  for (int round = 0; round < rounds; ++round) {
    if (round >= kFewestRounds && is_late()) break;
    for (Probe& probe : probes) {
      progress_.show(static_cast<double>(round) / rounds, title + ": " + probe.name);
      if (probe.missing.empty()) take_once(probe);
    }
  }
  progress_.clear();
}

bool Bench::is_late() const {
  return static_cast<double>(now_ns() - start_ns_) > 1e9 * options.seconds;
}

void Bench::take_once(Probe& probe) {
  std::optional<Taken> best;
  double best_ns = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t start = now_ns();
    std::optional<Taken> now;
    try {
      now = probe.take();
    } catch (const std::runtime_error& failure) {
      if (!probe.is_theirs) throw;
      probe.missing = failure.what();
      probe.blocks = {};
      return;
    }
    if (!now) {
      probe.missing = "not offered by this machine";
      return;
    }
    if (!best || now->waited_ns < best->waited_ns) {
      best = now;
      best_ns = static_cast<double>(now_ns() - start);
    }
    if (!best->disturbed || is_late()) break;
    if (attempt + 1 < kAttempts) ++retaken;
  }
  disturbed += best->disturbed;
  probe.disturbed += best->disturbed;
  probe.blocks.add(best->value);
  kept_ns_ += best_ns;
  kept_waited_ns_ += best->waited_ns;
}

Noise Bench::noise() const {
  Noise noise = watch_.noise();
  // Two processes measure.
  if (kept_ns_ > 0) noise.waited = kept_waited_ns_ / kept_ns_ / 2;
  noise.floor_spread = floor_spread;
  return noise;
}

Probe Bench::ours(const std::string& name, const Request& request, Unit unit) {
  auto cell = std::make_shared<Cell>();
  cell->name = name;
  cell->request = request;
  cell->unit = unit;
  return {name,
          [this, cell, ready = false]() mutable -> std::optional<Taken> {
            if (!ready) calibrate(pair(), *cell, options.block_ms);
            ready = true;
            if (cell->unavailable) return std::nullopt;
            const Reply reply = pair().run(cell->request, cell->name);
            return taken(reply, value_of(reply, cell->unit));
          },
          {},
          {}};
}

Probe Bench::theirs(const std::string& name, bool installed, const char* package,
                    std::function<Taken()> take) {
  Probe probe{name, [take = std::move(take)]() -> std::optional<Taken> { return take(); }, {}, {}};
  probe.is_theirs = true;
  if (!installed) probe.missing = std::string(package) + " is not installed";
  return probe;
}

void Bench::judge_ratio(const std::string& row, const std::string& figure, Sense sense,
                        double target, const Probe& value, const Probe& reference,
                        const char* unit) {
  Verdict verdict{row, figure, "x", sense, target, paired_ratio(value.blocks, reference.blocks),
                  {},  {}};
  verdict.detail = value.name + " " + number_text(value.blocks.median()) + " / " + reference.name +
                   " " + number_text(reference.blocks.median()) + " " + unit;
  verdict.missing = value.missing.empty() ? reference.missing : value.missing;
  verdict.disturbed = value.is_unreliable() || reference.is_unreliable();
  verdict.of = unit;
  verdicts.push_back(std::move(verdict));
}

void Bench::judge_value(const std::string& row, const std::string& figure, Sense sense,
                        double target, const Probe& value, const char* unit) {
  verdicts.push_back({row, figure, unit, sense, target, value.blocks, value.name, value.missing,
                      value.is_unreliable()});
}

const Probe& best_of(const Probes& probes, const std::string& prefix, Sense sense) {
  const Probe* best = nullptr;
  for (const Probe& probe : probes) {
    if (!probe.name.starts_with(prefix) || probe.blocks.empty()) continue;
    const bool better = best == nullptr || (probe.blocks.median() < best->blocks.median()) ==
                                               (sense == Sense::kAtMost);
    if (better) best = &probe;
  }
  if (best == nullptr)
    throw std::logic_error("no probe was measured whose name starts with " + prefix);
  return *best;
}

const Probe& named(const Probes& probes, const std::string& name) {
  for (const Probe& probe : probes) {
    if (probe.name == name) return probe;
  }
  throw std::logic_error("no probe is named " + name);
}

}  // namespace verbatim::perf
