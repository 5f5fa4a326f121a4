// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/scratch_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace verbatim::perf {

ScratchFolder::ScratchFolder() {
  const char* base = std::getenv("XDG_RUNTIME_DIR");
  if (base == nullptr || access(base, W_OK | X_OK) != 0) base = "/tmp";
  path_ = std::string(base) + "/verbatim-perf-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(),
                            "make a folder in " + std::string(base));
  }
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace verbatim::perf
