// SPDX-License-Identifier: BSD-2-Clause
// Each rank has a processor with a clock, and a port. A message holds its sender's processor for o and
// then its port for its bytes, of which each but the first takes G; the port takes the next one g later,
// one at a time and in their order, while the processor goes on. It is there L after it has left, behind
// the bytes of those that came before it, and holds its receiver for o; two are taken g apart. The clock
// depends on what the messages of its fence were sent at alone: so no queue of events is needed, and a
// rank has its turn when a message that it waits for has begun. Where a node's ranks share its link, the one
// whose clock shows least has its turn.
#include "perf/sim/simulation.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

namespace verbatim::sim {
namespace {

using vmpi::Step;

/// A message that has begun at one end, or at both.
struct Message {
  const Step* send = nullptr;
  const Step* receive = nullptr;
  double sent = 0;  ///< its first byte leaves the port
  [[nodiscard]] bool is_whole() const { return send != nullptr && receive != nullptr; }
};

struct Rank {
  const Step* next = nullptr;
  const Step* end = nullptr;
  double now = 0;
  double free_to_send = 0;     ///< when the port may take the next message
  double free_to_receive = 0;  ///< when the first byte of the next one may come
  bool waits = false;
  std::uint64_t parts = 0;            ///< of its processor that noise was reckoned of
  std::vector<std::size_t> sent;      ///< messages since the last fence
  std::vector<std::size_t> received;  ///< likewise
};

class Simulation {
 public:
  Simulation(const std::vector<std::unique_ptr<vmpi::Plan>>& plans, const Model& model)
      : plans_(plans),
        model_(model),
        ranks_(plans.size()),
        links_(plans.size() / static_cast<std::size_t>(model.ranks_of_node) + 1) {}

  Result run(std::uint32_t each_first) {
    const auto count = static_cast<std::uint32_t>(plans_.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      const vmpi::Plan& plan = *plans_[i];
      if (!plan.is_good()) result_.wrong = "a plan has no memory";
      ranks_[i].next = plan.begin();
      ranks_[i].end = plan.end();
      be_ready(each_first % 2 == 0 ? i : count - 1 - i);
      result_.most_temporary =
          std::max(result_.most_temporary, static_cast<std::uint64_t>(plan.temporary_bytes()));
      result_.most_state =
          std::max<std::uint64_t>(result_.most_state, plan.size_in_steps() * sizeof(Step));
    }
    // The last that became ready, or the first: two orders that differ much.
    while (has_ready() && result_.wrong.empty()) advance(take_ready(each_first / 2 % 2 != 0));
    for (std::uint32_t i = 0; i < count && result_.wrong.empty(); ++i) {
      if (ranks_[i].next != ranks_[i].end || ranks_[i].waits)
        result_.wrong = "rank " + std::to_string(i) + " waits for ever, at step " +
                        std::to_string(ranks_[i].next - plans_[i]->begin()) + " of " +
                        std::to_string(plans_[i]->size_in_steps());
      result_.ns = std::max(result_.ns, ranks_[i].now);
      result_.first_ns = i == 0 ? ranks_[i].now : std::min(result_.first_ns, ranks_[i].now);
    }
    return result_;
  }

 private:
  /// When what leaves or reaches a node next may.
  struct Link {
    double free_to_send = 0;
    double free_to_receive = 0;
  };

  void be_ready(std::uint32_t rank) {
    if (model_.nodes_share_link)
      ready_by_time_.emplace(ranks_[rank].now, rank);
    else
      ready_.push_back(rank);
  }
  [[nodiscard]] bool has_ready() const { return !ready_.empty() || !ready_by_time_.empty(); }
  [[nodiscard]] std::uint32_t take_ready(bool takes_last) {
    if (model_.nodes_share_link) {
      const std::uint32_t rank = ready_by_time_.top().second;
      ready_by_time_.pop();
      return rank;
    }
    const std::uint32_t rank = takes_last ? ready_.back() : ready_.front();
    if (takes_last)
      ready_.pop_back();
    else
      ready_.pop_front();
    return rank;
  }

  /// When a message that is ready to be sent would leave, were there only the latency before it: behind
  /// others at the links of both nodes.
  [[nodiscard]] double leave_node(int from, int to, double ready, double bytes) {
    if (!model_.nodes_share_link || model_.is_within(from, to)) return ready;
    const LogGP& link = model_.between;
    Link& out = links_[static_cast<std::size_t>(from / model_.ranks_of_node)];
    Link& in = links_[static_cast<std::size_t>(to / model_.ranks_of_node)];
    const double sent = std::max(ready, out.free_to_send);
    out.free_to_send = sent + link.gap + bytes;
    const double there = std::max(sent + link.latency, in.free_to_receive);
    in.free_to_receive = there + link.gap + bytes;
    return there - link.latency;
  }

  /// What is under way from one rank to another and has only one end yet, in order.
  struct Row {
    std::deque<std::size_t> messages;
    bool has_sends = false;
  };

  [[nodiscard]] static std::uint64_t pair_of(std::uint32_t from, std::uint32_t to) {
    return std::uint64_t{from} << 32 | to;
  }

  /// What a part of a rank's processor takes with its noise: by the rank and its own count of parts alone.
  [[nodiscard]] double busy(std::uint32_t me, double ns) {
    if (model_.noise == 0) return ns;
    // SplitMix64's finish.
    std::uint64_t mixed =
        model_.seed * 0x9e3779b97f4a7c15u + (std::uint64_t{me} << 32) + ++ranks_[me].parts;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    const double chance = static_cast<double>((mixed ^ mixed >> 31) >> 11) * 0x1p-53;
    return ns * (1 + 2 * model_.noise * chance);
  }

  [[nodiscard]] static double extra(const Message& message, const LogGP& link) {
    const std::int64_t bytes = message.send->from.bytes();
    return bytes > 1 ? static_cast<double>(bytes - 1) * link.gap_of_bytes : 0;
  }

  void begin(std::uint32_t me, const Step& step) {
    Rank& rank = ranks_[me];
    const bool is_send = step.kind == Step::Kind::kSend;
    if (step.peer < 0 || static_cast<std::size_t>(step.peer) >= ranks_.size()) {
      result_.wrong = "rank " + std::to_string(me) + " names rank " + std::to_string(step.peer);
      return;
    }
    const auto peer = static_cast<std::uint32_t>(step.peer);
    Row& row = rows_[is_send ? pair_of(me, peer) : pair_of(peer, me)];
    std::size_t index = messages_.size();
    if (!row.messages.empty() && row.has_sends != is_send) {
      index = row.messages.front();
      row.messages.pop_front();
    } else {
      messages_.emplace_back();
      row.messages.push_back(index);
      row.has_sends = is_send;
    }
    Message& message = messages_[index];
    (is_send ? message.send : message.receive) = &step;
    (is_send ? rank.sent : rank.received).push_back(index);
    if (is_send) {
      const LogGP& link = model_.of(static_cast<int>(me), step.peer);
      rank.now += busy(me, link.overhead);
      const double at_port = std::max(rank.now, rank.free_to_send);
      message.sent = leave_node(static_cast<int>(me), step.peer, at_port, extra(message, link));
      rank.free_to_send = at_port + link.gap + extra(message, link);
      ++result_.messages;
      result_.bytes += static_cast<std::uint64_t>(step.from.bytes());
    }
    if (message.is_whole()) match(me, peer, message);
  }

  void match(std::uint32_t me, std::uint32_t peer, const Message& message) {
    if (message.send->from.bytes() > message.receive->to.bytes())
      result_.wrong = "rank " + std::to_string(me) + " and rank " + std::to_string(peer) +
                      " name messages of " + std::to_string(message.send->from.bytes()) + " and " +
                      std::to_string(message.receive->to.bytes()) + " bytes";
    if (result_.wrong.empty() && model_.moves_data)
      vmpi::copy(message.send->from, message.receive->to);
    if (ranks_[peer].waits) {
      ranks_[peer].waits = false;
      be_ready(peer);
    }
  }

  /// False: not all messages have both ends.
  bool fence(std::uint32_t me) {
    Rank& rank = ranks_[me];
    const auto is_whole = [this](std::size_t i) { return messages_[i].is_whole(); };
    if (!std::all_of(rank.sent.begin(), rank.sent.end(), is_whole) ||
        !std::all_of(rank.received.begin(), rank.received.end(), is_whole)) {
      rank.waits = true;
      return false;
    }
    std::sort(rank.received.begin(), rank.received.end(), [this](std::size_t a, std::size_t b) {
      return messages_[a].sent < messages_[b].sent;
    });
    double may_take = rank.now;
    for (const std::size_t i : rank.received) {
      const Message& message = messages_[i];
      const LogGP& link = model_.of(static_cast<int>(me), message.receive->peer);
      const double bytes = extra(message, link);
      const double first = std::max(message.sent + link.latency, rank.free_to_receive);
      rank.free_to_receive = first + bytes;
      const double taken = std::max({rank.now, first + bytes, may_take});
      may_take = taken + link.gap;
      rank.now = taken + busy(me, link.overhead);
    }
    rank.sent.clear();
    rank.received.clear();
    return true;
  }

  void advance(std::uint32_t me) {
    Rank& rank = ranks_[me];
    while (result_.wrong.empty()) {
      const bool is_end = rank.next == rank.end;
      if (is_end || rank.next->kind == Step::Kind::kFence) {
        if (!fence(me) || is_end) return;
        ++rank.next;
        if (!model_.nodes_share_link) continue;
        // Others whose clocks show less come first to the links.
        be_ready(me);
        return;
      }
      const Step& step = *rank.next++;
      switch (step.kind) {
        case Step::Kind::kSend:
        case Step::Kind::kReceive:
          begin(me, step);
          break;
        case Step::Kind::kCopy:
          if (model_.moves_data) vmpi::copy(step.from, step.to);
          rank.now += busy(me, model_.copy_of_bytes * static_cast<double>(step.from.bytes()));
          break;
        case Step::Kind::kCombine:
          if (model_.moves_data)
            vmpi::reduce(*plans_[me]->op(), *step.from.type, step.from.count, step.from.buffer,
                         step.to.buffer);
          rank.now += busy(me, model_.combine_of_bytes * static_cast<double>(step.from.bytes()));
          break;
        case Step::Kind::kFence:
          break;
      }
    }
  }

  const std::vector<std::unique_ptr<vmpi::Plan>>& plans_;
  const Model& model_;
  std::vector<Rank> ranks_;
  std::deque<Message> messages_;
  std::unordered_map<std::uint64_t, Row> rows_;
  std::deque<std::uint32_t> ready_;
  using Turn = std::pair<double, std::uint32_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> ready_by_time_;
  std::vector<Link> links_;
  Result result_;
};

}  // namespace

Result simulate(const std::vector<std::unique_ptr<vmpi::Plan>>& plans, const Model& model,
                std::uint32_t each_first) {
  return Simulation(plans, model).run(each_first);
}

}  // namespace verbatim::sim
