// SPDX-License-Identifier: BSD-2-Clause
// Floors of memory: memcpy of one core (F2), two copies through a ring that two cores share (F5),
// and the sum of two vectors (F13).
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>

#include "perf/ends/end.hpp"
#include "perf/floors/floors.hpp"
#include "perf/support/clock.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace verbatim::perf {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

/// Three vectors of `size` bytes, whose pages are there; kept, since the next block wants them too.
std::byte* three_vectors(std::uint64_t size) {
  static std::unique_ptr<std::byte, Free> memory;
  static std::uint64_t held = 0;
  if (size == 0 || size > kLargestMemcpy) throw std::invalid_argument("size of a memory floor");
  if (held < 3 * size) {
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(4096, (3 * size + 4095) & ~4095ull)));
    if (!memory) throw std::bad_alloc();
    held = 3 * size;
    std::memset(memory.get(), 0, held);
  }
  return memory.get();
}

#if defined(__x86_64__)
void copy_past_caches(std::byte* to, const std::byte* from, std::uint64_t size) {
  for (std::uint64_t at = 0; at + 64 <= size; at += 64) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    for (int part = 0; part < 4; ++part) {
      _mm_stream_si128(target + part, _mm_load_si128(source + part));
    }
  }
  _mm_sfence();
}
constexpr bool kHasStreamingStores = true;

#if defined(__clang__) || defined(__GNUC__)
__attribute__((target("avx512f"))) void add_wide(float* sum, const float* a, const float* b,
                                                 std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; i += 16) {
    _mm512_store_ps(sum + i, _mm512_add_ps(_mm512_load_ps(a + i), _mm512_load_ps(b + i)));
  }
}
#endif
bool has_wide() { return __builtin_cpu_supports("avx512f") != 0; }
#else
void copy_past_caches(std::byte*, const std::byte*, std::uint64_t) {}
constexpr bool kHasStreamingStores = false;
void add_wide(float*, const float*, const float*, std::uint64_t) {}
bool has_wide() { return false; }
#endif

void add_portably(float* __restrict sum, const float* __restrict a, const float* __restrict b,
                  std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

}  // namespace

void run_memcpy(End& end, const Request& request, Reply& reply) {
  if (!end.is_near()) return;
  const bool past = request.batch == 1;
  if (past && !kHasStreamingStores) {
    return say_unavailable(reply, "this processor's streaming stores are not used here");
  }
  std::byte* const from = three_vectors(request.size);
  std::byte* const to = from + request.size;
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    if (past)
      copy_past_caches(to, from, request.size);
    else
      std::memcpy(to, from, request.size);
    asm volatile("" : : "r"(to) : "memory");
  }
  const auto copies = static_cast<double>(request.iterations);
  count_block(reply, start, now_ns(), copies, copies * static_cast<double>(request.size));
}

void run_pipeline(End& end, const Request& request, Reply& reply) {
  constexpr std::uint64_t kChunks = 8;
  if (request.size == 0 || kChunks * request.size > kAreaBytes) {
    throw std::invalid_argument("chunk of the pipeline floor");
  }
  auto& own = end.own_line();
  const auto& peer = end.peer_line();
  own.store(0, std::memory_order_release);
  end.meet();
  std::byte* const ring = end.is_near() ? end.mapped().out : end.peer_mapped().out;
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    std::byte* const chunk = ring + i % kChunks * request.size;
    if (end.is_near()) {
      while (i - peer.load(std::memory_order_acquire) >= kChunks) cpu_relax();
      std::memcpy(chunk, end.local().out + i % kChunks * request.size, request.size);
    } else {
      while (peer.load(std::memory_order_acquire) <= i) cpu_relax();
      std::memcpy(end.local().in + i % kChunks * request.size, chunk, request.size);
    }
    own.store(i + 1, std::memory_order_release);
  }
  while (end.is_near() && peer.load(std::memory_order_acquire) != request.iterations) cpu_relax();
  const auto chunks = static_cast<double>(request.iterations);
  count_block(reply, start, now_ns(), chunks, chunks * static_cast<double>(request.size));
}

void run_sum(End& end, const Request& request, Reply& reply) {
  if (!end.is_near()) return;
  auto* const a = reinterpret_cast<float*>(three_vectors(request.size));
  const std::uint64_t count = request.size / sizeof(float);
  const bool wide = has_wide();
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    if (wide)
      add_wide(a + 2 * count, a, a + count, count);
    else
      add_portably(a + 2 * count, a, a + count, count);
    asm volatile("" : : "r"(a) : "memory");
  }
  const auto sums = static_cast<double>(request.iterations);
  count_block(reply, start, now_ns(), sums, sums * static_cast<double>(request.size));
}

}  // namespace verbatim::perf
