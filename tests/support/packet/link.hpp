// SPDX-License-Identifier: BSD-2-Clause
//
// A link in memory, for a provider that sends packets: a train goes in, bursts come out, and on the
// way packets are lost, doubled and put behind others, by chance and repeatably. One thread at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/packet/weather.hpp"

namespace verbatim::harness {

template <class Packet>
class PacketLink {
 public:
  void set(const Weather& weather) {
    weather_ = weather;
    chance_.seed(weather.seed);
  }

  void send(std::vector<Packet>&& train) {
    for (Packet& packet : train) {
      if (happens(weather_.lost)) continue;
      if (happens(weather_.doubled)) way_.push_back(packet);
      if (happens(weather_.late) && !way_.empty())
        way_.insert(way_.end() - 1, std::move(packet));
      else
        way_.push_back(std::move(packet));
    }
  }

  /// What has arrived, at most kBurst packets; nothing: the link is empty.
  std::vector<Packet> receive() {
    std::vector<Packet> burst;
    while (!way_.empty() && burst.size() < kBurst) {
      burst.push_back(std::move(way_.front()));
      way_.pop_front();
    }
    return burst;
  }

 private:
  static constexpr std::size_t kBurst = 16;

  bool happens(unsigned of_a_hundred) {
    return of_a_hundred != 0 && chance_() % 100 < of_a_hundred;
  }

  Weather weather_;
  std::minstd_rand chance_{1};
  std::deque<Packet> way_;
};

}  // namespace verbatim::harness
