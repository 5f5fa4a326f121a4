// SPDX-License-Identifier: BSD-2-Clause
// What becomes of packets on the witness's link (provider.hpp), for tests to choose. Any thread.
#pragma once

#include <cstdint>

namespace verbatim::harness {

/// How many of a hundred packets meet each fate.
struct Weather {
  unsigned lost = 0;
  unsigned doubled = 0;
  unsigned late = 0;
  std::uint32_t seed = 1;
};

/// From here on the link does so.
void set_weather(const Weather& weather);

}  // namespace verbatim::harness
