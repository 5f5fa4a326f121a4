// SPDX-License-Identifier: BSD-2-Clause
// Latency: of SEND and WRITE there and back, of which a half is one message's; of READ and atomics
// until one has come back.
#include <utility>

#include "perf/cli/perf_clock.hpp"
#include "perf/cli/perf_completion.hpp"
#include "perf/cli/perf_run.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::cli {
namespace {

/// What the three loops share: stamps, the pause before a message, and the wait for a completion.
class LatencyLoop {
 public:
  LatencyLoop(const PerfRun& run, std::uint32_t size)
      : run_{run}, size_{size}, clock_{run.options}, waiting_{run.exchange,
                                                              run.stop,
                                                              run.queues.channel(),
                                                              run.queues.send_cq(),
                                                              run.queues.recv_cq(),
                                                              size} {
    if (!timed()) prepare_room(&found_.stamps, run.options.iterations);
    gap_ticks_ =
        run.options.latency_gap == 0
            ? 0
            : static_cast<std::uint64_t>(run.options.latency_gap * 1e3 / perf::ns_per_tick());
  }

  bool timed() const { return run_.options.duration != 0; }
  bool over() { return timed() ? clock_.over(perf::ticks()) : sent_ >= run_.options.iterations; }

  /// A message, and its completion.
  void send() {
    if (gap_ticks_ != 0) pause();
    if (!timed()) found_.stamps.push_back(perf::ticks());
    ++sent_;
    run_.queues.post(run_.queues.senders().front());
  }
  void await_sent() {
    while (look(run_.queues.send_cq(), wc_, "send", run_.exchange) == 0) waiting_.idle();
    waiting_.busy();
  }
  /// False when the time of -D is over first.
  bool await_received() {
    while (look(run_.queues.recv_cq(), wc_, "receive", run_.exchange) == 0) {
      waiting_.idle();
      if (timed() && clock_.over(perf::ticks())) return false;
    }
    waiting_.busy();
    const std::uint32_t header = run_.options.datagrams() ? kRoutingHeader : 0;
    if (wc_[0].byte_len != size_ + header) fail_length(wc_[0].byte_len - header, size_);
    return true;
  }

  void start_clock() {
    if (timed() && !clock_.started()) clock_.start();
  }
  void count() {
    if (!timed()) return;
    const std::uint64_t now = perf::ticks();
    if (!clock_.counts(now)) return;
    // Of -D no stamps are kept: a histogram is as large after a day as after a second.
    if (counted_at_ != 0) found_.single.record(now - counted_at_);
    counted_at_ = now;
    if (!blocks_.started()) blocks_.start(clock_.first(), 0, clock_.last());
    blocks_.add(++found_.messages, now);
  }
  /// `play` to its end, or till a signal comes.
  template <class Play>
  PerfLatencies played(Play play) {
    try {
      play();
    } catch (const Stopped&) {
      found_.stopped = true;
      blocks_.stop(found_.messages, perf::ticks());
    }
    found_.all_messages = sent_;
    found_.ticks = timed() ? clock_.counted_ticks_till(perf::ticks()) : 0;
    found_.marks = blocks_.take();
    return std::move(found_);
  }

 protected:
  const PerfRun& run_;
  std::uint32_t size_;
  PerfClock clock_;
  PerfWaiting waiting_;
  std::uint64_t sent_ = 0;

 private:
  void pause() {
    const std::uint64_t end = perf::ticks() + gap_ticks_;
    for (std::uint64_t now = perf::ticks(), looked = now; now < end; now = perf::ticks()) {
      if (now - looked < kTicksBetweenLooks) continue;
      waiting_.look_for_stop();
      looked = now;
    }
  }

  static constexpr std::uint64_t kTicksBetweenLooks = std::uint64_t{1} << 26;

  PerfLatencies found_;
  PerfBlocks blocks_;
  std::uint64_t counted_at_ = 0;
  std::uint64_t gap_ticks_;
  ibv_wc wc_[1] = {};
};

/// One end begins, the other answers what it gets.
class SendLatency : LatencyLoop {
 public:
  SendLatency(const PerfRun& run, std::uint32_t size) : LatencyLoop(run, size) {}

  PerfLatencies play() {
    return played([this] { exchange(); });
  }

 private:
  void exchange() {
    const std::uint64_t all = run_.options.iterations;
    std::uint64_t received = 0;
    const std::uint32_t posted = run_.options.receives_each();
    // Of WRITE the server begins, whether it is received or seen.
    const bool begins = run_.options.client() == (run_.options.test.verb == PerfVerb::kSend);
    while (timed() ? !over() : sent_ < all || received < all) {
      if ((timed() || received < all) && (sent_ > 0 || !begins)) {
        if (!await_received()) break;
        ++received;
        start_clock();
        count();
        if (timed() || received + posted <= all) run_.queues.post_receives(0);
      }
      if (!timed() && sent_ >= all) continue;
      send();
      await_sent();
    }
  }
};

/// The server begins; each waits until the last byte of its memory is what must come next.
class WriteLatency : LatencyLoop {
 public:
  WriteLatency(const PerfRun& run, std::uint32_t size)
      : LatencyLoop(run, size),
        ours_{run.queues.sent_byte(size)},
        theirs_{run.queues.arriving_byte(size)} {}

  PerfLatencies play() {
    return played([this] { exchange(); });
  }

 private:
  void exchange() {
    const std::uint64_t all = run_.options.iterations;
    std::uint64_t received = 0;
    while (timed() ? !over() : sent_ < all || received < all) {
      if ((timed() || received < all) && (sent_ > 0 || run_.options.client())) {
        if (!await_byte(static_cast<char>(received + 1))) break;
        ++received;
        start_clock();  // not before: perftest takes its time between the exchange and its test
      }
      if (!timed() && sent_ >= all) continue;
      *ours_ = static_cast<char>(sent_ + 1);
      send();
      await_sent();
      count();
    }
  }

  bool await_byte(char wanted) {
    while (__atomic_load_n(theirs_, __ATOMIC_ACQUIRE) != wanted) {
      waiting_.idle_on_memory();
      if (timed() && clock_.over(perf::ticks())) return false;
    }
    waiting_.busy();
    return true;
  }

  volatile char* ours_;
  volatile char* theirs_;
};

/// READ and atomics, which need nobody at the other end.
class FetchLatency : LatencyLoop {
 public:
  FetchLatency(const PerfRun& run, std::uint32_t size) : LatencyLoop(run, size) {}

  PerfLatencies play() {
    return played([this] { exchange(); });
  }

 private:
  void exchange() {
    start_clock();
    while (!over()) {
      send();
      await_sent();
      count();
    }
  }
};

}  // namespace

PerfLatencies measure_latency(const PerfRun& run, std::uint32_t size) {
  if (run.options.test.fetches()) return FetchLatency(run, size).play();
  if (!run.options.delivers()) return WriteLatency(run, size).play();
  return SendLatency(run, size).play();
}

}  // namespace verbatim::cli
