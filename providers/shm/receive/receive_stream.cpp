// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/receive/receive_stream.hpp"

#include "providers/shm/memory/region_fast.hpp"

namespace verbatim::shm {
namespace {

/// Stream ring bytes [position, position + bytes) to message bytes from `from` on.
Pull take_from_stream_ring(const Qp& qp, const LocalRange* ranges, std::uint32_t count,
                           std::uint64_t from, std::uint64_t position,
                           std::uint64_t bytes) noexcept {
  const std::uint64_t w = qp.in.remote->stream_ring.load(std::memory_order_acquire);
  const std::uint32_t log = extent::log(w);
  if (w == 0 || log > 40) return Pull::kBroken;
  const std::uint64_t size = std::uint64_t{1} << log;
  const auto* base = qp.in.peer->segment.at<unsigned char>(extent::offset(w), size);
  if (base == nullptr || bytes > size) return Pull::kBroken;
  const std::uint64_t start = position & (size - 1);
  const std::uint64_t first = bytes < size - start ? bytes : size - start;
  return scatter(ranges, count, from, base + start, first) &&
                 (first == bytes || scatter(ranges, count, from + first, base, bytes - first))
             ? Pull::kWhole
             : Pull::kMissing;
}

constexpr std::uint64_t align_up(std::uint64_t n) { return (n + 63) & ~std::uint64_t{63}; }

void publish_stream_consumed(Qp& qp, std::uint64_t position) noexcept {
  qp.own->stream_consumed.store(position, std::memory_order_release);
}

}  // namespace

Pull pull_stream(Qp& qp, const Slot& slot, std::uint64_t length, std::uint64_t start,
                 const LocalRange* ranges, std::uint32_t count, std::uint64_t most) noexcept {
  constexpr std::uint64_t kPiece = 32u << 10;
  const std::uint64_t stop =
      most < ~qp.in.stream_taken ? qp.in.stream_taken + most : ~std::uint64_t{0};
  for (;;) {
    // Pairs with the stores in stream_on(); the word for "the rest is placed" first, since what it
    // cuts off was never produced.
    std::uint64_t end = __atomic_load_n(&slot.large.placed_from, __ATOMIC_ACQUIRE);
    if (end > length) end = length;
    const std::uint64_t produced = qp.in.remote->stream_produced.load(std::memory_order_acquire);
    if (qp.in.stream_taken >= end) break;
    std::uint64_t n = produced - start - qp.in.stream_taken;
    if (produced - start < qp.in.stream_taken) n = 0;
    if (n > end - qp.in.stream_taken) n = end - qp.in.stream_taken;
    if (n > kPiece) n = kPiece;
    if (n == 0 || qp.in.stream_taken >= stop) return Pull::kPart;
    if (const Pull pull = take_from_stream_ring(qp, ranges, count, qp.in.stream_taken,
                                                start + qp.in.stream_taken, n);
        pull != Pull::kWhole)
      return pull;
    qp.in.stream_taken += n;
    publish_stream_consumed(qp, start + qp.in.stream_taken);
  }
  publish_stream_consumed(qp, align_up(start + qp.in.stream_taken));
  qp.in.stream_taken = 0;
  return Pull::kWhole;
}

Pull pull_whole(Qp& qp, std::uint64_t length, std::uint64_t start, const LocalRange* ranges,
                std::uint32_t count) noexcept {
  if (const Pull pull = take_from_stream_ring(qp, ranges, count, qp.headroom, start, length);
      pull != Pull::kWhole)
    return pull;
  publish_stream_consumed(qp, align_up(start + length));
  return Pull::kWhole;
}

}  // namespace verbatim::shm
