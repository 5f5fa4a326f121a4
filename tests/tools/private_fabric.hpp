// SPDX-License-Identifier: BSD-2-Clause
//
// A fabric folder of one test's own, handed to the programs it starts (not to this process), so
// that tests that run side by side, or a user's programs, never meet. Removed at the end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/tools/tool_process.hpp"

namespace verbatim::tools {

class PrivateFabric {
 public:
  PrivateFabric() {
    char name[] = "/tmp/vbt-tools-XXXXXX";
    if (mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = name;
  }
  ~PrivateFabric() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  PrivateFabric(const PrivateFabric&) = delete;
  PrivateFabric& operator=(const PrivateFabric&) = delete;

  Environment environment(Environment more = {}) const {
    more["VERBATIM_FABRIC"] = folder_;
    more["XDG_RUNTIME_DIR"] = folder_;
    return more;
  }

  /// What processes that ended have left: their sockets. (The folder's own lock file stays.)
  std::vector<std::string> sockets() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.is_socket()) found.push_back(entry.path().string());
    }
    return found;
  }

 private:
  std::string folder_;
};

}  // namespace verbatim::tools
