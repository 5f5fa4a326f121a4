// SPDX-License-Identifier: BSD-2-Clause
//
// Files without a name (memfd) that processes map together. Sizing and backing are apart: a file
// may be large and sparse, and every piece of it is given memory by back_memory_file before first
// use, so that "no memory" is an error code there and never SIGBUS at a store.
//
// Any thread. Whoever fails here has logged the cause and the fix. Spec: memfd_create(2),
// fallocate(2), getrlimit(2) (a file grown beyond RLIMIT_FSIZE raises SIGXFSZ, so the limit is read
// first).
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/unique_fd.hpp"

namespace verbatim {

/// The largest file this process may make (RLIMIT_FSIZE), ~0 for no limit.
[[nodiscard]] std::uint64_t file_size_limit() noexcept;
/// Address space this process may still map (RLIMIT_AS less what it has), ~0 for no limit.
[[nodiscard]] std::uint64_t address_space_left() noexcept;

/// A sparse file of `size` bytes that may be sealed. 0 or a positive errno.
[[nodiscard]] int make_memory_file(const char* name, std::uint64_t size, UniqueFd& fd) noexcept;
/// Adds F_SEAL_* seals; a kernel that lacks F_SEAL_FUTURE_WRITE (before 5.1) gets the others.
[[nodiscard]] int seal_memory_file(int fd, int seals) noexcept;
/// The file's seals, or 0 for a descriptor that cannot have any, and for one whose pages may be
/// missing when they are touched: the system may have no huge page left for a file of such.
[[nodiscard]] int memory_file_seals(int fd) noexcept;

/// Gives [offset, offset + bytes) memory. `check_room` asks the memory cgroup first
/// (memory_headroom.hpp).
[[nodiscard]] int back_memory_file(int fd, std::uint64_t offset, std::uint64_t bytes,
                                   const char* what, bool check_room) noexcept;
/// Maps all of a file for reading and writing, large ones at a huge page's boundary so that huge
/// pages can be used where they are on, and all at a multiple of `alignment` (a power of two).
/// `sparse`: most of it may never be touched (sparse_map.hpp). 0 or a positive errno.
[[nodiscard]] int map_memory_file(int fd, std::uint64_t size, const char* what,
                                  unsigned char*& base, std::uint64_t alignment,
                                  bool sparse) noexcept;
/// Takes the memory of a range back; it reads as zeros afterwards.
void punch_memory_file(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;

/// The system's page size; and those of huge ones where it is 4 KiB.
[[nodiscard]] std::size_t page_bytes() noexcept;
inline constexpr std::uint64_t kHugePage = 2u << 20;
inline constexpr std::uint64_t kGiantPage = 1u << 30;

}  // namespace verbatim
