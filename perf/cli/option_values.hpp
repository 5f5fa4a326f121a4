// SPDX-License-Identifier: BSD-2-Clause
// The values of options, read strictly: a bad one is a Failure that names the option and what it
// takes. Any thread; pure.
#pragma once

#include <infiniband/verbs.h>

#include "perf/cli/failure.hpp"
#include "perf/cli/numbers.hpp"

namespace verbatim::cli {

/// `text` as a number from `low` to `high`; `option` is how the user wrote it ("-s").
inline long long option_number(const char* what, const char* option, const char* text,
                               long long low, long long high) {
  if (const auto value = number_in(text, low, high)) return *value;
  fail("%s '%s' is not a number from %lld to %lld (%s)", what, text, low, high, option);
}

/// A path MTU in bytes.
inline ibv_mtu option_mtu(const char* text) {
  for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; ++mtu) {
    if (number_in(text, 128LL << mtu, 128LL << mtu)) return static_cast<ibv_mtu>(mtu);
  }
  fail("path MTU '%s' is none of 256, 512, 1024, 2048, 4096 (-m)", text);
}

}  // namespace verbatim::cli
