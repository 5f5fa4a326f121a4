// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/fabric_directory.hpp"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace verbatim::harness {
namespace {

constexpr const char* kVariable = "VERBATIM_FABRIC";

}  // namespace

FabricDirectory::FabricDirectory()
    : path_((std::filesystem::temp_directory_path() / "verbatim-test-XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + path_);
  setenv(kVariable, path_.c_str(), 1);
}

FabricDirectory::~FabricDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> fabric_contents() {
  const char* folder = getenv(kVariable);
  std::vector<std::string> found;
  if (folder == nullptr) return found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    found.push_back(entry.path().lexically_relative(folder).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace verbatim::harness
