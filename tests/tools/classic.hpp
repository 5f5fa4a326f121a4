// SPDX-License-Identifier: BSD-2-Clause
//
// The distribution's own tools, when they are installed: what ours must be compared with. They run
// over the fake library (fake_verbs.c), as ours does in `fake_tool`.
#pragma once

#include <unistd.h>

#include <string>

#include "tests/tools/tool_process.hpp"

namespace verbatim::tools {

inline bool classic_installed(const std::string& name) {
  return access(("/usr/bin/" + name).c_str(), X_OK) == 0;
}

inline Program classic_tool(const std::string& name, Environment environment) {
  environment["LD_LIBRARY_PATH"] = VERBATIM_FAKE_LIBRARY_FOLDER;
  return {"/usr/bin/" + name, name, std::move(environment)};
}

/// Our tool, called by a classic name, over the fake library.
inline Program fake_tool(const std::string& name, Environment environment) {
  return {VERBATIM_FAKE_TOOL, name, std::move(environment)};
}

/// Our tool as users get it.
inline Program real_tool(const std::string& name, Environment environment = {}) {
  return {VERBATIM_TOOL, name, std::move(environment)};
}

}  // namespace verbatim::tools

/// In the body of a test: skips it, saying why, where the classic tool is not installed.
#define VBT_NEEDS_CLASSIC(name)                                                  \
  if (!::verbatim::tools::classic_installed(name)) {                             \
    GTEST_SKIP() << "no /usr/bin/" << (name) << " here (Debian: ibverbs-utils)"; \
  }
