// SPDX-License-Identifier: BSD-2-Clause
//
// A copy of the files in which a host tells about itself, made up by a test: for `verbatim doctor
// --root`. One thread; removed at the end.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace verbatim::tools {

class FakeHost {
 public:
  FakeHost() {
    char name[] = "/tmp/vbt-host-XXXXXX";
    if (mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp");
    root_ = name;
    std::filesystem::permissions(root_, std::filesystem::perms(0755));
  }
  ~FakeHost() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  const std::string& root() const { return root_; }
  std::string path(const std::string& file) const { return root_ + '/' + file; }

  FakeHost& file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    return *this;
  }
  FakeHost& link(const std::string& name, const std::string& target) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::filesystem::create_symlink(target, path(name));
    return *this;
  }
  /// A kernel device with everything but its node.
  FakeHost& device(const std::string& name, const std::string& uverbs, const std::string& number) {
    const std::string verbs = "sys/class/infiniband_verbs/";
    file("proc/modules", "ib_uverbs 1 0 - Live 0x0\nrdma_rxe 1 0 - Live 0x0\n");
    file(verbs + "abi_version", "6\n").file(verbs + uverbs + "/ibdev", name + '\n');
    file(verbs + uverbs + "/dev", number + '\n').file(verbs + uverbs + "/abi_version", "2\n");
    return file("sys/class/infiniband/" + name + "/node_type", "1: CA\n");
  }
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_))
      if (!entry.is_directory()) all.push_back(entry.path().string());
    return all;
  }

 private:
  std::string root_;
};

}  // namespace verbatim::tools
