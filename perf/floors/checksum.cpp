// SPDX-License-Identifier: BSD-2-Clause
// Floor F11: CRC-32 as RoCE's ICRC has it (IEEE 802.3, reflected), by tables of eight bytes at a
// time, and by folding with carry-less multiplication (V. Gopal et al., Intel, 2009). Both must
// agree before the faster one is timed.
#include <array>
#include <cstring>
#include <stdexcept>

#include "perf/ends/end.hpp"
#include "perf/floors/floors.hpp"
#include "perf/support/clock.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace verbatim::perf {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables kTables = [] {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0xedb88320u : 0);
    tables[0][byte] = rest;
  }
  for (std::size_t table = 1; table < 8; ++table) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t last = tables[table - 1][byte];
      tables[table][byte] = (last >> 8) ^ tables[0][last & 0xff];
    }
  }
  return tables;
}();

/// `state` is the complement of a checksum, as everywhere here.
std::uint32_t by_tables(std::uint32_t state, const std::byte* at, std::uint64_t size) {
  for (; size >= 8; size -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    word ^= state;
    state = 0;
    for (unsigned byte = 0; byte < 8; ++byte) {
      state ^= kTables[7 - byte][(word >> (8 * byte)) & 0xff];
    }
  }
  for (; size != 0; --size, ++at) {
    state = (state >> 8) ^ kTables[0][(state ^ static_cast<std::uint32_t>(*at)) & 0xff];
  }
  return state;
}

#if defined(__x86_64__)
#define VBT_FOLDING __attribute__((target("pclmul,sse4.1")))

VBT_FOLDING __m128i folded(__m128i value, __m128i by, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(value, by, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

VBT_FOLDING __m128i sixteen(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

/// Of at least 64 bytes. What is left after folding is sixteen bytes with the checksum of all: the
/// tables finish them.
VBT_FOLDING std::uint32_t by_folding(std::uint32_t state, const std::byte* at, std::uint64_t size) {
  const __m128i by_four = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i lanes[4] = {sixteen(at), sixteen(at + 16), sixteen(at + 32), sixteen(at + 48)};
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(state)));
  for (at += 64, size -= 64; size >= 64; at += 64, size -= 64) {
    for (int lane = 0; lane < 4; ++lane) {
      lanes[lane] = folded(lanes[lane], by_four, sixteen(at + 16 * lane));
    }
  }
  __m128i all = folded(lanes[0], by_one, lanes[1]);
  all = folded(all, by_one, lanes[2]);
  all = folded(all, by_one, lanes[3]);
  for (; size >= 16; at += 16, size -= 16) all = folded(all, by_one, sixteen(at));
  alignas(16) std::byte rest[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(rest), all);
  return by_tables(by_tables(0, rest, sizeof rest), at, size);
}
bool has_folding() {
  return __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
}
#else
std::uint32_t by_folding(std::uint32_t state, const std::byte* at, std::uint64_t size) {
  return by_tables(state, at, size);
}
bool has_folding() { return false; }
#endif

}  // namespace

void run_checksum(End& end, const Request& request, Reply& reply) {
  if (!end.is_near()) return;
  if (request.size < 64 || request.size > kAreaBytes) throw std::invalid_argument("checksum size");
  const bool folds = request.batch == 1;
  if (folds && !has_folding()) {
    return say_unavailable(reply, "the processor has no carry-less multiplication");
  }
  std::byte* const bytes = end.local().out;
  for (std::uint64_t i = 0; i < request.size; ++i) bytes[i] = static_cast<std::byte>(i * 37);
  if (folds && by_folding(~0u, bytes, request.size) != by_tables(~0u, bytes, request.size)) {
    throw std::logic_error("two ways to a checksum do not agree");
  }
  std::uint32_t state = ~0u;
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    state = folds ? by_folding(state, bytes, request.size) : by_tables(state, bytes, request.size);
    asm volatile("" : "+r"(state) : : "memory");
  }
  const auto sums = static_cast<double>(request.iterations);
  count_block(reply, start, now_ns(), sums, sums * static_cast<double>(request.size));
}

}  // namespace verbatim::perf
