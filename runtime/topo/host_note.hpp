// SPDX-License-Identifier: BSD-2-Clause
//
// Short texts that the processes of a user on a host leave for each other until the host starts anew:
//
//   <user's folder>/.<name>-<boot>   replaced as a whole (rename)
//
// (A name of a fabric never begins with a dot.) Any thread. Where it fails there is no text, and
// VERBATIM_LOG=info says why. What is read was written by others: the caller judges it.
#pragma once

#include <limits.h>

#include <cstddef>
#include <span>

#include "runtime/base/unique_fd.hpp"

namespace verbatim::topo {

class HostNote {
 public:
  /// False: there is nowhere to keep it. `name` has up to 20 characters.
  [[nodiscard]] bool open(const char* name) noexcept;
  /// Ended with '\0'. False: there is none, or none of ours that fits.
  [[nodiscard]] bool read(std::span<char> text) const noexcept;
  /// False: it cannot be kept.
  [[nodiscard]] bool write(const char* text) const noexcept;
  /// Empty before open().
  [[nodiscard]] const char* path() const noexcept { return path_; }

 private:
  [[nodiscard]] const char* file() const noexcept { return path_ + folder_length_ + 1; }

  UniqueFd folder_;
  std::size_t folder_length_ = 0;
  char path_[PATH_MAX] = "";
};

}  // namespace verbatim::topo
