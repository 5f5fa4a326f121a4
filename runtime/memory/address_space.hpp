// SPDX-License-Identifier: BSD-2-Clause
//
// Is there memory at an address, may it be used so, and copies that answer where an instruction
// would be killed. A program may name any address; nothing here raises a signal for it. Any thread;
// no allocation. Spec: madvise(2) (MADV_POPULATE_*, Linux 5.14), process_vm_readv(2), proc(5)
// (maps; its question PROCMAP_QUERY since Linux 6.11).
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbatim {

/// Why a byte cannot be used.
enum class Lack : std::uint8_t {
  kNothing,  ///< it can
  kMapping,
  kRights,   ///< its mapping may not be read (PROT_NONE)
  kWriting,  ///< its mapping may only be read
  kPage,     ///< past the end of the file that is mapped there, or of a pool of huge pages
  kUser      ///< addresses of the kernel, or of nobody
};

struct MissingByte {
  std::uint64_t at = 0;  ///< the first one
  Lack lack = Lack::kNothing;
};

/// "is not mapped" and its like.
[[nodiscard]] const char* words_of(Lack lack) noexcept;

/// What a device that pins [address, address + length) would miss. Of a few pages all are brought
/// in, as pinning does, in half a microsecond. Of more none is, since where pages lie is for whoever
/// touches them first to say: their mappings are looked at, and the last page of those of files.
/// Before Linux 6.11, which cannot be asked about single mappings, rights are judged at both ends.
[[nodiscard]] MissingByte find_missing_to_register(std::uint64_t address, std::uint64_t length,
                                                   bool for_writing) noexcept;

/// Looks at every mapping, whatever that takes, and brings in a few pages at most.
[[nodiscard]] MissingByte find_missing(std::uint64_t address, std::uint64_t length,
                                       bool for_writing) noexcept;

/// Brings [address, address + length) in, for reading or for writing: 0, or EFAULT: not all of it
/// is memory that we may use so. What another thread unmaps meanwhile is its affair.
[[nodiscard]] int fault_in(std::uint64_t address, std::uint64_t length, bool for_writing) noexcept;

/// Asks for it ahead of time, without waiting: 0 or EFAULT.
[[nodiscard]] int will_need(std::uint64_t address, std::uint64_t length) noexcept;

/// Copies by the kernel, from or to an address behind which there may be no memory (any more): false
/// when there is none, and a part may have been copied. Some microsecond each. REQUIRES: the other
/// side is memory.
[[nodiscard]] bool copy_from_doubtful(void* to, std::uint64_t from, std::size_t bytes) noexcept;
[[nodiscard]] bool copy_to_doubtful(std::uint64_t to, const void* from, std::size_t bytes) noexcept;

/// Has doubtful memory copied through a pipe from now on, without process_vm_readv and
/// process_vm_writev.
void copy_doubtful_without_cma() noexcept;

}  // namespace verbatim
