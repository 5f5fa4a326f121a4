// SPDX-License-Identifier: BSD-2-Clause
// What `verbatim run` was asked for.
#pragma once

namespace verbatim::cli {

enum class Binding { kByItself, kCore, kNone };

struct RunOptions {
  int ranks = 1;
  bool has_prefix = false;
  Binding binding = Binding::kByItself;  ///< to cores, when there is one for each rank
  double grace_seconds = 3;
  bool wants_help = false;
  char** program = nullptr;  ///< and its arguments, up to a null pointer
};

inline constexpr int kMostRanks = 4096;

/// Throws Failure. Options end at the first word that is none: the program.
RunOptions parse_run(int argc, char** argv);

}  // namespace verbatim::cli
