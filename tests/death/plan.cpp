// SPDX-License-Identifier: BSD-2-Clause
#include "tests/death/plan.hpp"

#include <iterator>
#include <random>
#include <sstream>

namespace verbatim::death {
namespace {

constexpr const char* kOps[] = {"none",  "small",       "medium", "large",      "huge",
                                "write", "write-large", "read",   "read-large", "add"};
constexpr const char* kMoments[] = {"opening",      "connecting", "traffic",
                                    "half-written", "churn",      "leaving"};

}  // namespace

Plan Plan::of(std::uint64_t seed, std::uint32_t round) {
  std::mt19937_64 random(seed * 1'000'003 + round);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const auto one_in = [&](std::uint32_t n) { return below(n) == 0; };
  Plan plan;
  plan.seed = seed;
  plan.round = round;
  static constexpr Moment kOften[] = {
      Moment::kOpening, Moment::kConnecting, Moment::kConnecting,  Moment::kTraffic,
      Moment::kTraffic, Moment::kTraffic,    Moment::kHalfWritten, Moment::kChurn,
      Moment::kChurn,   Moment::kLeaving};
  plan.moment = kOften[below(std::size(kOften))];
  plan.qps = 1 + below(kMaxQps);
  static constexpr Op kFlowing[] = {
      Op::kNone,  Op::kSendSmall,  Op::kSendSmall, Op::kSendMedium, Op::kSendLarge,
      Op::kWrite, Op::kWriteLarge, Op::kRead,      Op::kReadLarge,  Op::kFetchAdd};
  for (std::uint32_t q = 0; q < plan.qps; ++q) {
    plan.by_survivor[q] = kFlowing[below(std::size(kFlowing))];
    plan.by_victim[q] = kFlowing[below(std::size(kFlowing))];
  }
  if (plan.moment == Moment::kHalfWritten) {
    plan.qps = 1;
    plan.by_survivor[0] = Op::kNone;
    plan.by_victim[0] = Op::kSendHuge;
  }
  plan.depth = 1 + below(4);
  plan.pattern = static_cast<std::uint8_t>(1 + below(255));
  plan.mapped = one_in(2);
  plan.one_cq = one_in(2);
  plan.survivor_sleeps = one_in(3);
  plan.with_bystander = one_in(3);
  plan.leaves_child = one_in(8);
  plan.keys_first = one_in(2);
  // Time enough for the moment to be anywhere in what the victim does.
  static constexpr std::uint32_t kSpanUs[] = {4000, 1500, 1500, 1500, 2000, 1500};
  plan.kill_after_us = below(kSpanUs[static_cast<std::uint32_t>(plan.moment)]);
  // Who has met its peer learns of its death also without a timeout of its own.
  bool will_have_met = false;
  if (plan.moment >= Moment::kTraffic && plan.moment != Moment::kHalfWritten) {
    for (std::uint32_t q = 0; q < plan.qps; ++q) {
      const Op theirs = plan.by_victim[q];
      will_have_met = will_have_met || plan.by_survivor[q] != Op::kNone ||
                      (theirs >= Op::kSendSmall && theirs <= Op::kSendHuge);
    }
  }
  // For ever, or 1 ms a try; a sanitizer makes everything slow.
#ifdef VBT_UNDER_SANITIZER
  constexpr std::uint8_t kShort = 14;
#else
  constexpr std::uint8_t kShort = 8;
#endif
  plan.timeout = will_have_met && one_in(2) ? 0 : kShort;
  return plan;
}

std::string Plan::describe() const {
  std::ostringstream out;
  out << "seed " << seed << " round " << round << ": killed while "
      << kMoments[static_cast<std::uint32_t>(moment)] << " after " << kill_after_us << " us,";
  for (std::uint32_t q = 0; q < qps; ++q)
    out << " [" << kOps[static_cast<std::uint32_t>(by_survivor[q])] << "/"
        << kOps[static_cast<std::uint32_t>(by_victim[q])] << "]";
  out << " depth " << depth << " timeout " << int{timeout} << (mapped ? " mapped" : " ordinary")
      << (one_cq ? " one-cq" : "") << (survivor_sleeps ? " sleeps" : "")
      << (with_bystander ? " bystander" : "") << (leaves_child ? " child" : "")
      << (keys_first ? " keys-first" : "");
  return out.str();
}

}  // namespace verbatim::death
