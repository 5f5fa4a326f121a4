// SPDX-License-Identifier: BSD-2-Clause
// Options and their values, read strictly: a bad one is a Failure that names the option and what it
// takes. Any thread; pure, but for refuse_option.
#pragma once

#include <getopt.h>
#include <infiniband/verbs.h>

#include <cstring>
#include <string>

#include "perf/cli/failure.hpp"
#include "perf/cli/numbers.hpp"

namespace verbatim::cli {

/// What getopt_long has not taken, for commands that set opterr to 0 and begin `letters` with ':'.
/// `answer` is what it answered. Main thread: reads getopt's variables.
[[noreturn]] inline void refuse_option(int answer, const char* letters, char** argv) {
  const char* const word = argv[optind - 1];
  const bool is_long = word[0] == '-' && word[1] == '-';
  // Of letters in one word the word may still be to come.
  const bool is_letter = optopt > 0 && optopt < 256;
  const std::string letter = {'-', static_cast<char>(optopt)};
  if (answer == ':') {
    fail("%s: '%s' needs a value (see --help)", argv[0],
         is_long || !is_letter ? word : letter.c_str());
  }
  if (optopt != 0 && (!is_letter || std::strchr(letters, optopt) != nullptr)) {
    fail("%s: '%s' takes no value (see --help)", argv[0], word);
  }
  fail("%s: there is no option '%s' (see --help)", argv[0], is_letter ? letter.c_str() : word);
}

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
