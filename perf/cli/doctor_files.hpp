// SPDX-License-Identifier: BSD-2-Clause
// The files in which a host tells about itself (/proc, /sys, /dev), or a copy of them in another
// folder. Every one may be missing, empty, enormous, a pipe without a writer or full of nonsense:
// then it says nothing. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace verbatim::cli {

class HostFiles {
 public:
  /// `root` stands before every path; empty: this host's own files.
  explicit HostFiles(std::string root);

  bool is_this_host() const { return root_.empty(); }
  std::string path(const std::string& file) const { return root_ + file; }
  /// Of the device tree: SYSFS_PATH, or /sys under the root.
  std::string sysfs(const std::string& file) const;

  /// The file's text, at most 1 MiB of it. These three take whole paths.
  static std::optional<std::string> text(const std::string& path);
  /// Its first line without its end.
  static std::optional<std::string> line(const std::string& path);
  /// Its first word as a decimal number; nothing for "max", signs and what is too large.
  static std::optional<std::uint64_t> number(const std::string& path);
  /// The names in a folder, sorted; at most 1024.
  static std::vector<std::string> names(const std::string& folder);
  static std::optional<std::string> link(const std::string& path);

 private:
  std::string root_;
};

/// The tightest limit among the control groups that this process is in.
struct GroupLimit {
  std::uint64_t limit;
  std::uint64_t used;  // of that group; 0: unknown
  std::string file;
};
struct GroupFiles {
  const char* controller;
  const char* limit_v2;
  const char* used_v2;
  const char* limit_v1;
  const char* used_v1;
};
std::optional<GroupLimit> tightest_limit(const HostFiles& files, const GroupFiles& names);
/// The folders of our control groups for that controller, our own first (version 2, then 1).
std::vector<std::string> group_folders(const HostFiles& files, const char* controller,
                                       bool version_2);

/// "rest" of the line "name: rest" of a text.
std::optional<std::string> field(const std::string& text, const std::string& name);

}  // namespace verbatim::cli
