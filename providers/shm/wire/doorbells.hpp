// SPDX-License-Identifier: BSD-2-Clause
//
// Doorbells: how processes of one host tell each other that there is something to look at. They are
// hints only: one that is rung wrongly costs its owner a look, one that is silenced wrongly is
// repaired by the service thread's sweep.
//
// DoorbellBlock has bits, which whoever rings sets by locked instructions. CqDoorbells has bytes,
// which are written by plain stores: a SEND rings one of them, and a locked instruction would wait
// until the lines that it has just written come from the receiver's core.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "runtime/base/cache_line.hpp"

namespace verbatim::shm {

/// A two-level bitmap of hints. Indices beyond 4095 fold: one bit then stands for several objects.
struct DoorbellBlock {
  static constexpr std::uint32_t kBits = 4096;
  static constexpr std::uint32_t kGroups = kBits / 64;
  // One line for both, of the first 448 objects: each is written wherever the other is.
  /// By group of 64: somebody of it has rung.
  alignas(kCacheLine) std::atomic<std::uint64_t> summary;
  std::atomic<std::uint64_t> words[kGroups];

  /// Says "look at all that `bit` has". The read-modify-writes also order whatever was published
  /// before them, and the load of an armed word after them, as a full fence.
  void ring(std::uint32_t bit) noexcept {
    bit &= kBits - 1;
    words[bit / 64].fetch_or(mask_of(bit), std::memory_order_seq_cst);
    // Whoever takes the summary takes the words after it: a group that is in there is yet to be
    // looked at.
    const std::uint64_t mask = mask_of(bit / 64);
    if ((summary.load(std::memory_order_seq_cst) & mask) == 0)
      summary.fetch_or(mask, std::memory_order_seq_cst);
  }
  /// Nobody has looked since.
  bool is_rung(std::uint32_t bit) const noexcept {
    bit &= kBits - 1;
    return (words[bit / 64].load(std::memory_order_relaxed) & mask_of(bit)) != 0;
  }
  /// Takes all bits and calls f with each. One set meanwhile is found by the next call: whoever sets
  /// it says so in the summary after it, or wakes somebody.
  template <class F>
  void drain(F f) noexcept {
    std::uint64_t groups = summary.exchange(0, std::memory_order_seq_cst);
    for (; groups != 0; groups &= groups - 1) {
      const auto group = static_cast<std::uint32_t>(std::countr_zero(groups));
      std::uint64_t bits = words[group].exchange(0, std::memory_order_seq_cst);
      for (; bits != 0; bits &= bits - 1)
        f(group * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
    }
  }

 private:
  static std::uint64_t mask_of(std::uint32_t bit) noexcept { return std::uint64_t{1} << bit % 64; }
};
static_assert(sizeof(DoorbellBlock) == 9 * kCacheLine);

/// What a completion queue's doorbell says. Lines of a ring are numbered without end.
namespace bell {
inline constexpr std::uint8_t kSilent = 0;
inline constexpr std::uint8_t kAll = 1;  ///< look at all that is there
/// Fewer lines than this can be told apart.
inline constexpr std::uint64_t kLines = 128;
/// The messages up to this line are published. REQUIRES: fewer than kLines of them are not taken.
constexpr std::uint8_t up_to(std::uint64_t line) {
  return static_cast<std::uint8_t>(kLines | (line & (kLines - 1)));
}
constexpr bool names_line(std::uint8_t bell) { return (bell & kLines) != 0; }
/// How many lines lie between `line`, up to which they are taken, and the one that the bell names.
constexpr std::uint32_t lines_behind(std::uint8_t bell, std::uint64_t line) {
  return static_cast<std::uint32_t>((bell - line) & (kLines - 1));
}
}  // namespace bell

/// A byte for each of 4032 queue pairs, with one for each group of 64, and one for all: a page.
///
/// Whoever rings writes from the small to the large, whoever looks silences from the large to the
/// small by locked instructions: so what is silenced has been published before, and is seen by
/// the look that follows. Several may ring one bell, and the last one's word stands, so a bell names
/// a line rather than a number of messages: it covers all that was published until then.
///
/// All of them are silenced by who has the completion queue's lock.
struct CqDoorbells {
  static constexpr std::uint32_t kGroups = 63;
  static constexpr std::uint32_t kBells = kGroups * 64;
  static constexpr std::uint32_t kPerWord = 8;
  static constexpr std::uint32_t kWordsPerGroup = 64 / kPerWord;

  alignas(kCacheLine) std::uint8_t groups[kGroups];
  std::uint8_t any;
  alignas(kCacheLine) std::uint8_t bells[kBells];

  /// REQUIRES: at < kBells.
  void ring(std::uint32_t at, std::uint8_t what = bell::kAll) noexcept {
    __atomic_store_n(&bells[at], what, __ATOMIC_RELEASE);
    show(at / 64);
    show_any();
  }
  /// Somebody looks, at whatever else is due there too.
  void show_any() noexcept { __atomic_store_n(&any, std::uint8_t{1}, __ATOMIC_RELEASE); }
  bool is_any_rung() const noexcept { return __atomic_load_n(&any, __ATOMIC_RELAXED) != 0; }
  bool is_rung(std::uint32_t at) const noexcept {
    return __atomic_load_n(&bells[at], __ATOMIC_RELAXED) != 0;
  }
  /// The bells from 8 * `word` on, as they lie in memory.
  std::uint64_t look(std::uint32_t word) const noexcept {
    return __atomic_load_n(word_of(&bells[word * kPerWord]), __ATOMIC_ACQUIRE);
  }

  /// A look begins: takes the groups in which somebody has rung, a bit each. What is rung from here
  /// on is announced anew.
  std::uint64_t take_groups() noexcept {
    std::uint64_t rung = 0;
    // The last word first, in which `any` lies.
    for (std::uint32_t word = kWordsPerGroup; word-- != 0;) {
      Word* const at = word_of(&groups[word * kPerWord]);
      if (word != kWordsPerGroup - 1 && __atomic_load_n(at, __ATOMIC_RELAXED) == 0) continue;
      rung |= std::uint64_t{rung_of(__atomic_exchange_n(at, 0, __ATOMIC_SEQ_CST))}
              << word * kPerWord;
    }
    return rung & ~(std::uint64_t{1} << kGroups);
  }
  /// Takes what look() shows, and silences it.
  std::uint64_t take(std::uint32_t word) noexcept {
    return __atomic_exchange_n(word_of(&bells[word * kPerWord]), 0, __ATOMIC_SEQ_CST);
  }
  /// Puts back what was taken, and says so to nobody. Who has rung meanwhile has named a later line.
  void put_back(std::uint32_t word, std::uint64_t rung) noexcept {
    if (rung == 0) return;
    std::uint64_t now = look(word);
    while (!__atomic_compare_exchange_n(word_of(&bells[word * kPerWord]), &now,
                                        now | (rung & ~whole_bytes(now)), true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
    }
  }
  /// Says that somebody of it has rung, to who looks; show_any() says it to who does not.
  void show(std::uint32_t group) noexcept {
    __atomic_store_n(&groups[group], std::uint8_t{1}, __ATOMIC_RELEASE);
  }
  void silence_all() noexcept {
    for (std::uint32_t word = 0; word != kBells / kPerWord; ++word)
      __atomic_store_n(word_of(&bells[word * kPerWord]), std::uint64_t{0}, __ATOMIC_RELAXED);
    for (std::uint32_t word = 0; word != kWordsPerGroup; ++word)
      __atomic_store_n(word_of(&groups[word * kPerWord]), std::uint64_t{0}, __ATOMIC_RELAXED);
  }

  /// Which of a word's bells are rung, a bit each; and one of them.
  static std::uint32_t rung_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(((word | word >> 7) & kEach) * 0x0102040810204080 >> 56);
  }
  static std::uint8_t bell_of(std::uint64_t word, std::uint32_t at) noexcept {
    return static_cast<std::uint8_t>(word >> at * 8);
  }
  /// The bells of the word that `which` has the bits of.
  static std::uint64_t part_of(std::uint64_t word, std::uint32_t which) noexcept {
    std::uint64_t part = 0;
    for (; which != 0; which &= which - 1)
      part |= word & std::uint64_t{0xff} << std::countr_zero(which) * 8;
    return part;
  }

 private:
  static_assert(std::endian::native == std::endian::little);
  static constexpr std::uint64_t kEach = 0x0101010101010101;
  using Word [[gnu::may_alias]] = std::uint64_t;
  static Word* word_of(std::uint8_t* bytes) noexcept { return reinterpret_cast<Word*>(bytes); }
  static const Word* word_of(const std::uint8_t* bytes) noexcept {
    return reinterpret_cast<const Word*>(bytes);
  }
  /// All bits of each byte that is not 0. Every bell that is rung has its first or its last bit.
  static std::uint64_t whole_bytes(std::uint64_t word) noexcept {
    return ((word | word >> 7) & kEach) * 0xff;
  }
};
static_assert(sizeof(CqDoorbells) == 4096);

}  // namespace verbatim::shm
