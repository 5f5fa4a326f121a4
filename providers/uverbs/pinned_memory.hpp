// SPDX-License-Identifier: BSD-2-Clause
//
// What it takes to pin memory: kernel devices reach pages by their physical address, so each
// registration counts against what the process may lock (RLIMIT_MEMLOCK, unless CAP_IPC_LOCK lifts
// it), and the kernel's only answer to too much is ENOMEM. Here is the account that it keeps, the
// pages are made before it asks for them, and what it refuses is explained. Any thread; control
// code; no allocation. Spec: getrlimit(2), madvise(2) (MADV_POPULATE_*).
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbatim::uverbs {

/// What the kernel compares. Bytes.
struct PinAccount {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  std::uint64_t limit = kNone;  ///< RLIMIT_MEMLOCK; kNone: unlimited, or it cannot be read
  std::uint64_t most = kNone;   ///< how far the process may raise it (the hard limit)
  std::uint64_t used = 0;       ///< pinned by this process, for whatever device (VmPin)
  bool lifted = false;          ///< CAP_IPC_LOCK, of the first user namespace
};
[[nodiscard]] PinAccount read_pin_account() noexcept;

/// One registration. The pages of a large one are there when this is made, if they can be and if
/// the limit allows them: so that the kernel, under its locks, finds them, and what is not mapped
/// is told from what may not be pinned. Regions that page on demand pin nothing.
///
///   const Pinning pinning(addr, length, access);
///   const int error = ...the command...;
///   if (error != 0) pinning.explain(error);
class Pinning {
 public:
  Pinning(const void* addr, std::size_t length, unsigned access) noexcept;
  /// Whole pages, as the kernel counts; 0 when nothing is pinned.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return end_ - begin_; }
  /// Writes one line for what memory can be the reason of (ENOMEM, EFAULT): the limit, what is
  /// pinned, what was asked, what to do. `lifts`: CAP_IPC_LOCK lifts the limit for this driver.
  [[gnu::cold]] void explain(int error, bool lifts) const noexcept;

 private:
  /// Less is left to the kernel: two calls more are half of what registering a page takes.
  static constexpr std::uint64_t kWorthMaking = 256u << 10;
  /// 0, or why there are none; EINVAL also of kernels that do not know it, and make them
  /// themselves.
  int make_pages() const noexcept;

  std::uintptr_t asked_ = 0;
  std::uintptr_t begin_ = 0;
  std::uintptr_t end_ = 0;
  bool writes_ = false;
};

/// Says once, when a kernel device is opened, that the limit leaves next to nothing.
void warn_of_low_memlock(const char* device) noexcept;

}  // namespace verbatim::uverbs
