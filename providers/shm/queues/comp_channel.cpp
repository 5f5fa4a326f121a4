// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/comp_channel.hpp"

#include <bit>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/queues/cq.hpp"
#include "providers/shm/queues/live.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/sync/futex.hpp"
#include "runtime/sync/pause.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim::shm {
namespace {

/// The records in use. A parent's stay so in a forked child, whose segment is another.
constinit std::atomic<std::uint64_t> taken[kMaxCompChannels / 64] = {};

/// Number + 1, or 0.
std::uint32_t take_record() noexcept {
  for (std::uint32_t w = 0; w < kMaxCompChannels / 64; ++w) {
    std::uint64_t word = taken[w].load(std::memory_order_relaxed);
    while (word != ~std::uint64_t{0}) {
      const auto bit = static_cast<std::uint32_t>(std::countr_one(word));
      if (taken[w].compare_exchange_weak(word, word | std::uint64_t{1} << bit,
                                         std::memory_order_acquire, std::memory_order_relaxed))
        return w * 64 + bit + 1;
    }
  }
  return 0;
}

bool is_due() noexcept {
  return Process::get().segment().doorbells().cq_wake.summary.load(std::memory_order_seq_cst) != 0;
}

void collect() noexcept {
  Process& process = Process::get();
  process.segment().doorbells().cq_wake.drain(process.hooks().cq_wake);
}

constexpr EventCollector kCollector{is_due, collect};

/// Who falls asleep looks at four bytes, half of the summary: those of the CQs below this number.
constexpr std::uint32_t kCqsLookedAt = DoorbellBlock::kBits / 2;

/// A microsecond or two: waking a thread takes longer.
constexpr int kLooksForSleeper = 64;

void look_for_us() noexcept {
  if (is_due()) Process::get().self().wake_service();
}

}  // namespace

ShmCompChannel::~ShmCompChannel() { give_record(); }

void ShmCompChannel::give_record() noexcept {
  if (record_ == 0) return;
  const std::uint32_t at = record_ - 1;
  taken[at / 64].fetch_and(~(std::uint64_t{1} << (at % 64)), std::memory_order_release);
  record_ = 0;
}

int ShmCompChannel::open() noexcept {
  if (const int error = SoftCompChannel::open(); error != 0) return error;
  record_ = take_record();
  if (record_ == 0) return 0;
  OwnSegment& segment = Process::get().segment();
  CompChannelRecord& shown = segment.head().comp_channels[record_ - 1];
  static_assert(std::endian::native == std::endian::little);
  const void* const due = &segment.doorbells().cq_wake.summary;
  if (!gate().let_others_wake({&shown.bed, &shown.on_the_way, due, look_for_us})) give_record();
  return 0;
}

int create_comp_channel(verbatim::Context&, CompChannel** out) noexcept {
  auto* const channel = make_nothrow<ShmCompChannel>();
  if (channel == nullptr) return ENOMEM;
  if (const int error = channel->open(); error != 0) {
    destroy_nothrow(channel);
    return error;
  }
  LockGuard<Mutex> guard(live.mutex);
  live.comp_channels.add(*channel);
  *out = channel;
  return 0;
}

int destroy_comp_channel(CompChannel& handle) noexcept {
  auto& channel = static_cast<ShmCompChannel&>(handle);
  if (!Process::get().segment().has_its_files()) channel.doubt_descriptor();
  {
    LockGuard<Mutex> guard(live.mutex);
    live.comp_channels.remove(channel);
  }
  destroy_nothrow(&channel);
  return 0;
}

int get_cq_event(CompChannel& channel, verbatim::Cq** out) noexcept {
  return static_cast<ShmCompChannel&>(channel).get(out, &kCollector);
}

bool wake_sleeper(const PeerSegment& segment, std::uint32_t record, std::uint32_t cq,
                  std::uint32_t bit) noexcept {
  if (record - 1 >= kMaxCompChannels) return false;  // 0 too
  const CompChannelRecord& shown = segment.live_head().comp_channels[record - 1];
  if (futex_wake(shown.bed, 1, true) != 0) return true;
  if (cq >= kCqsLookedAt) return false;
  // After the bells were rung, and a full fence: whoever is on the way now hears that one, and
  // whoever has silenced this one since polls.
  const CqDoorbells& rung = segment.doorbells().cqs[cq];
  for (int looks = 0; looks != kLooksForSleeper; ++looks) {
    if (shown.on_the_way.load(std::memory_order_seq_cst) != 0 || !rung.is_rung(bit)) return true;
    cpu_pause();
  }
  return false;
}

void raise_locked(Cq& cq) noexcept {
  cq.armed->store(CqRecord::kIdle, std::memory_order_relaxed);
  if (cq.plain.channel != nullptr)
    static_cast<SoftCompChannel&>(CompChannel::from(cq.plain.channel)).notify(cq);
}

}  // namespace verbatim::shm
