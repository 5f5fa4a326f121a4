// SPDX-License-Identifier: BSD-2-Clause
//
// What this process holds according to the kernel, to compare before and after: a library that was
// closed must leave nothing behind.
#pragma once

#include <map>
#include <set>
#include <string>

namespace verbatim::harness {

struct ProcessCensus {
  std::map<int, std::string> descriptors;  ///< number -> what it is
  std::set<std::string> threads;           ///< thread ids
  std::multiset<std::string>
      files_mapped;               ///< names of all mappings that have one, memfds included
  std::size_t address_space = 0;  ///< bytes

  static ProcessCensus take();
  /// How many processes' segments of the shm provider are mapped, this one's included.
  std::size_t segments() const { return files_mapped.count("/memfd:verbatim-segment (deleted)"); }
};

/// Everything that `after` has and `before` had not, one a line; empty when nothing was left
/// behind.
std::string left_behind(const ProcessCensus& before, const ProcessCensus& after);

}  // namespace verbatim::harness
