// SPDX-License-Identifier: BSD-2-Clause
// A stdio file that is closed when it goes. Any thread.
#pragma once

#include <cstdio>
#include <memory>

namespace verbatim::cli {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FileHandle = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace verbatim::cli
