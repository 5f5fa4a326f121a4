// SPDX-License-Identifier: BSD-2-Clause
//
// A fabric folder of this test process's own (VERBATIM_FABRIC), so that tests that run at the
// same time, or a user's programs, never meet. Children inherit it by the environment. Removed at
// the end.
#pragma once

#include <string>
#include <vector>

namespace verbatim::harness {

class FabricDirectory {
 public:
  /// Makes the folder and names it in the environment. REQUIRES: no device list was asked for yet.
  FabricDirectory();
  ~FabricDirectory();
  FabricDirectory(const FabricDirectory&) = delete;
  FabricDirectory& operator=(const FabricDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Everything below the current VERBATIM_FABRIC, as relative paths, sorted.
std::vector<std::string> fabric_contents();

}  // namespace verbatim::harness
