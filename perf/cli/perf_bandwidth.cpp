// SPDX-License-Identifier: BSD-2-Clause
// Bandwidth: one end, or both, keep as many requests under way as they may, and take what comes.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "perf/cli/failure.hpp"
#include "perf/cli/perf_clock.hpp"
#include "perf/cli/perf_completion.hpp"
#include "perf/cli/perf_pacer.hpp"
#include "perf/cli/perf_run.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::cli {
namespace {

constexpr std::size_t kBatch = 16;
constexpr double kDrainNs = 200e6;

class BandwidthLoop {
 public:
  BandwidthLoop(const PerfRun& run, std::uint32_t size,
                const std::function<void(const PerfThroughput&)>& tell)
      : run_{run},
        o_{run.options},
        size_{size},
        all_{o_.iterations * o_.queue_pairs},
        clock_{o_},
        pacer_{o_, size, perf::ns_per_tick()},
        tell_{tell},
        interval_{static_cast<std::uint64_t>(o_.duration * 1e9 / perf::ns_per_tick())},
        waiting_{run.exchange,         run.stop, run.queues.channel(), run.queues.send_cq(),
                 run.queues.recv_cq(), size},
        receives_{o_.receives()},
        sends_{o_.sends()},
        posted_receives_(o_.queue_pairs, o_.receives_each()),
        used_receives_(o_.queue_pairs, 0) {
    if (!o_.no_peak && sends_) {
      prepare_room(&posted_, all_);
      prepare_room(&completed_, all_ / o_.cq_moderation + o_.queue_pairs + 1);
    }
  }

  /// To its end, or till a signal comes.
  PerfThroughput run() {
    bool stopped = false;
    try {
      transfer();
    } catch (const Stopped&) {
      stopped = true;
      blocks_.stop(timed() ? counted_ : sends_ ? completed_count_ : received_, perf::ticks());
    }
    PerfThroughput found = figures();
    if (!stopped) return found;
    found.stopped = true;
    if (!timed()) found.messages = sends_ ? completed_count_ : received_;
    return found;
  }

 private:
  void transfer() {
    // A server that sends too waits for the first message, since till then its client may not be
    // ready.
    may_send_ = sends_ && (o_.client() || !receives_);
    if (may_send_) start();
    while (!over()) {
      if (o_.endless) tell_of_interval();
      bool found = may_send_ && post_all();
      if (receives_) found = take_received() || found;
      if (sends_) found = take_sent() || found;
      if (found)
        waiting_.busy();
      else
        waiting_.idle();
    }
    if (timed()) take_what_is_under_way();
  }

  bool timed() const { return o_.duration != 0; }
  bool over() const {
    if (timed()) return clock_.over(perf::ticks());
    return (!sends_ || completed_count_ >= all_) && (!receives_ || received_ >= all_);
  }
  void start() {
    if (timed()) clock_.start();
    first_ = told_at_ = perf::ticks();
    if (!timed()) blocks_.start(first_, all_, 0);
  }

  void tell_of_interval() {
    const std::uint64_t now = perf::ticks();
    if (!clock_.started() || now - told_at_ < interval_) return;
    tell_({counted_ - told_, now - told_at_, 0});
    told_at_ = now;
    told_ = counted_;
  }

  bool post_all() {
    bool any = false;
    for (PerfSender& sender : run_.queues.senders()) {
      while ((timed() || sender.posted < o_.iterations) &&
             sender.posted - sender.completed + o_.post_list <= o_.tx_depth) {
        if (o_.rate && !may_post_more()) break;
        if (!o_.no_peak) posted_.insert(posted_.end(), o_.post_list, perf::ticks());
        run_.queues.post(sender);
        if (o_.rate) pacer_.posted(o_.post_list, perf::ticks());
        any = true;
      }
    }
    return any;
  }

  bool may_post_more() { return pacer_.may_post(perf::ticks()); }

  /// Nothing counts any more; but a request that outlives its queue pair's peer fails, which is told.
  void take_what_is_under_way() {
    const auto end = perf::ticks() + static_cast<std::uint64_t>(kDrainNs / perf::ns_per_tick());
    const auto under_way = [this] {
      return std::ranges::any_of(run_.queues.senders(), [this](const PerfSender& sender) {
        return sender.posted - sender.completed >= o_.cq_moderation;
      });
    };
    while (sends_ && under_way() && perf::ticks() < end) {
      const bool received = receives_ && take_received();
      if (!take_sent() && !received) waiting_.idle();
    }
  }

  bool take_sent() {
    std::array<ibv_wc, kBatch> wc;
    const std::size_t count = look(run_.queues.send_cq(), wc, "send", run_.exchange);
    if (count == 0) return false;
    const std::uint64_t now = perf::ticks();
    for (const ibv_wc& one : std::span(wc).first(count)) {
      if (one.wr_id >= run_.queues.senders().size()) continue;
      PerfSender& sender = run_.queues.senders()[one.wr_id];
      // The last one of all completes by itself, before a whole number of them.
      std::uint64_t more = o_.cq_moderation;
      if (!timed()) more = std::min<std::uint64_t>(more, o_.iterations - sender.completed);
      sender.completed += more;
      completed_count_ += more;
      if (clock_.counts(now)) count_more(more, now);
      if (!o_.no_peak) completed_.push_back({completed_count_, now});
    }
    last_ = now;
    if (!timed()) blocks_.add(completed_count_, now);
    return true;
  }

  bool take_received() {
    std::array<ibv_wc, kBatch> wc;
    const std::size_t count = look(run_.queues.recv_cq(), wc, "receive", run_.exchange);
    if (count == 0) return false;
    if (!may_send_ && received_ == 0) {
      may_send_ = sends_;
      start();
    }
    const std::uint64_t now = perf::ticks();
    const std::uint32_t header = o_.datagrams() ? kRoutingHeader : 0;
    for (const ibv_wc& one : std::span(wc).first(count)) {
      if (one.byte_len != size_ + header) fail_length(one.byte_len - header, size_);
      ++received_;
      if (clock_.counts(now)) count_more(1, now);
      const auto pair = static_cast<std::uint32_t>(one.wr_id);
      if (pair >= posted_receives_.size()) continue;
      if (!timed() && posted_receives_[pair] >= o_.iterations) continue;
      if (++used_receives_[pair] < o_.receive_list) continue;
      used_receives_[pair] = 0;
      run_.queues.post_receives(pair);
      posted_receives_[pair] += o_.receive_list;
    }
    if (!sends_) last_ = now;
    if (!sends_ && !timed()) blocks_.add(received_, now);
    return true;
  }

  /// Within the margins of -D.
  void count_more(std::uint64_t more, std::uint64_t now) {
    counted_ += more;
    if (!blocks_.started()) blocks_.start(clock_.first(), 0, clock_.last());
    blocks_.add(counted_, now);
  }

  PerfThroughput figures() {
    PerfThroughput found;
    found.messages = timed() ? counted_ : all_;
    found.all_messages = (sends_ ? completed_count_ : 0) + (receives_ ? received_ : 0);
    found.ticks = timed() ? clock_.counted_ticks_till(perf::ticks()) : last_ - first_;
    if (!o_.no_peak) found.peak_ticks = fewest_ticks_for_one(posted_, completed_);
    found.marks = blocks_.take();
    return found;
  }

  const PerfRun& run_;
  const PerfOptions& o_;
  std::uint32_t size_;
  std::uint64_t all_;
  PerfClock clock_;
  PerfPacer pacer_;
  const std::function<void(const PerfThroughput&)>& tell_;
  std::uint64_t interval_;  // of an endless test, in ticks
  std::uint64_t told_ = 0, told_at_ = 0;
  PerfWaiting waiting_;
  PerfBlocks blocks_;
  bool receives_;
  bool sends_;
  bool may_send_ = false;
  std::uint64_t first_ = 0, last_ = 0;
  std::uint64_t completed_count_ = 0, received_ = 0, counted_ = 0;
  std::vector<std::uint64_t> posted_receives_;
  std::vector<std::uint32_t> used_receives_;  // since the last list of them
  std::vector<std::uint64_t> posted_;
  std::vector<PerfCompletion> completed_;
};

}  // namespace

PerfThroughput measure_bandwidth(const PerfRun& run, std::uint32_t size,
                                 const std::function<void(const PerfThroughput&)>& tell) {
  return BandwidthLoop(run, size, tell).run();
}

void warm_up(const PerfRun& run) {
  PerfWaiting waiting(run.exchange, run.stop, run.queues.channel(), run.queues.send_cq(),
                      run.queues.recv_cq(), run.options.size);
  for (PerfSender& sender : run.queues.senders()) {
    // A list at a time, each until its last request has completed.
    const std::uint64_t requests =
        std::max<std::uint64_t>(run.options.post_list, run.options.cq_moderation);
    while (sender.posted < requests) run.queues.post(sender);
    for (std::uint64_t done = 0; done + run.options.cq_moderation <= sender.posted;) {
      ibv_wc wc[1];
      if (look(run.queues.send_cq(), wc, "send", run.exchange) == 0)
        waiting.idle();
      else
        done += run.options.cq_moderation;
    }
    sender.posted = 0;
  }
}

}  // namespace verbatim::cli
