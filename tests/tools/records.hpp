// SPDX-License-Identifier: BSD-2-Clause
//
// Records as a test writes them: files in a folder of their own, and lines that say what it wants.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace verbatim::tools {

/// A folder that goes with its test.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = ::testing::TempDir() + "verbatim-records-XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

/// One line of a file of records. `more` is put behind the members, with a comma in front.
inline std::string record_line(const std::string& kind, const std::string& name, unsigned at,
                               const std::string& unit, const std::vector<double>& blocks,
                               const std::string& more = "") {
  std::ostringstream line;
  line << R"({"schema":"verbatim-record-1","host":"h","kernel":"k","processor":"p","kind":")"
       << kind << R"(","name":")" << name << R"(","parameter":"size","at":)" << at << R"(,"unit":")"
       << unit << R"(","blocks":[)";
  for (std::size_t i = 0; i < blocks.size(); ++i) line << (i == 0 ? "" : ",") << blocks[i];
  line << "]" << more << "}\n";
  return line.str();
}

}  // namespace verbatim::tools
