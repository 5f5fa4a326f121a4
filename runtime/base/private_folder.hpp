// SPDX-License-Identifier: BSD-2-Clause
//
// Folders through which the processes of one user share what is theirs alone: owner checked, no
// rights for others, never a symbolic link. Any thread; no allocation.
#pragma once

#include <cstddef>

#include "runtime/base/unique_fd.hpp"

namespace verbatim {

/// Why a folder is not used: an errno, and the cause with its fix, to follow "<path>: ".
struct FolderRefusal {
  int error = 0;
  char why[192] = "";
};

/// Opens `name` below the folder `parent` (or AT_FDCWD), making it first if it is missing.
[[nodiscard]] int open_private_folder(int parent, const char* name, UniqueFd& folder,
                                      FolderRefusal& refusal) noexcept;

/// Where a user's folder is: in `runtime_dir` (nullptr or empty: none), or in /tmp where that
/// cannot be written.
[[nodiscard]] const char* base_of_user_folder(const char* runtime_dir) noexcept;

/// Opens <base>/verbatim-<uid>. `path` is written in any case.
[[nodiscard]] int open_user_folder(const char* base, UniqueFd& folder, char* path,
                                   std::size_t capacity, FolderRefusal& refusal) noexcept;
/// Opens the user's folder where XDG_RUNTIME_DIR leads.
[[nodiscard]] int open_user_folder(UniqueFd& folder, char* path, std::size_t capacity,
                                   FolderRefusal& refusal) noexcept;

}  // namespace verbatim
