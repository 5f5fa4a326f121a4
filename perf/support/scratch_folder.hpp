// SPDX-License-Identifier: BSD-2-Clause
// A private folder, mode 0700, that is removed with all its content: the fabric folder of the
// measured processes, so that a run meets nobody else and leaves nothing behind.
#pragma once

#include <string>

namespace verbatim::perf {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace verbatim::perf
