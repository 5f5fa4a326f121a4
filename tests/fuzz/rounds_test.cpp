// SPDX-License-Identifier: BSD-2-Clause
//
// A target without libFuzzer: its corpus, and rounds that a seeded generator derives from it. The
// same in every run, under every compiler and sanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/input.hpp"

namespace verbatim::fuzz {
namespace {

using Words = std::vector<unsigned char>;

std::vector<Words> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(VERBATIM_CORPUS))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Words> all;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return all;
}

/// Bytes changed, parts cut out, repeated, or put in from elsewhere.
void mutate(Words& words, const std::vector<Words>& seeds, std::mt19937& random) {
  const auto below = [&random](std::size_t bound) { return random() % (bound == 0 ? 1 : bound); };
  for (std::size_t changes = 1 + below(6); changes != 0; --changes) {
    const auto at = words.begin() + static_cast<std::ptrdiff_t>(below(words.size() + 1));
    const auto end =
        at + static_cast<std::ptrdiff_t>(below(static_cast<std::size_t>(words.end() - at) + 1));
    switch (below(5)) {
      case 0:
        if (at != words.end()) *at = static_cast<unsigned char>(random());
        break;
      case 1:
        if (at != words.end()) *at ^= static_cast<unsigned char>(1u << below(8));
        break;
      case 2:
        words.erase(at, end);
        break;
      case 3: {
        const Words part(at, end);
        words.insert(at, part.begin(), part.end());
        break;
      }
      default: {
        const Words& other = seeds[below(seeds.size())];
        const auto from = static_cast<std::ptrdiff_t>(below(other.size() + 1));
        words.insert(at, other.begin() + from, other.end());
        break;
      }
    }
  }
  if (words.size() > 2048) words.resize(2048);
}

TEST(Fuzz, WhatTheCorpusHoldsIsHarmless) {
  const auto seeds = corpus();
  ASSERT_GE(seeds.size(), 3u);
  for (const Words& seed : seeds) run_one(seed);
}

TEST(Fuzz, SeededRoundsAreHarmless) {
  const auto seeds = corpus();
  ASSERT_GE(seeds.size(), 3u);
  std::mt19937 random(2026);
  // What is random in time bounds itself: a sanitizer on a busy machine does fewer.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(8);
  int rounds = 0;
  for (; rounds < VERBATIM_ROUNDS && std::chrono::steady_clock::now() < end; ++rounds) {
    Words words = seeds[random() % seeds.size()];
    mutate(words, seeds, random);
    run_one(words);
  }
  RecordProperty("rounds", rounds);
  EXPECT_GE(rounds, VERBATIM_ROUNDS / 50);
}

}  // namespace
}  // namespace verbatim::fuzz
