// SPDX-License-Identifier: BSD-2-Clause
//
// Long messages to memory that cannot be mapped go through the stream ring or by CMA. Which is
// faster depends on where the two cores are and on who has which lines in its cache, so both are
// timed.
//
// Under the send lock.
#pragma once

#include <cstdint>

namespace verbatim::shm {

class CopyChoice {
 public:
  /// So many bytes tell how fast a way is.
  static constexpr std::uint64_t kSample = 64u << 10;

  /// How many of the last bytes of a message of `length` go by CMA; the others take the stream
  /// ring.
  std::uint64_t bytes_by_kernel(std::uint64_t length) noexcept;

  void note_stream(std::uint64_t bytes, std::uint64_t ns) noexcept { note(stream_ns_, bytes, ns); }
  void note_kernel(std::uint64_t bytes, std::uint64_t ns) noexcept { note(kernel_ns_, bytes, ns); }

 private:
  /// The slower way is looked at by so many messages in a row: the first find the lines where the
  /// other way has left them.
  static constexpr std::uint32_t kLook = 16;
  static constexpr std::uint32_t kLookEvery = 600;
  static constexpr std::uint32_t kMostTimes = 10;

  bool kernel_is_faster() const noexcept;
  /// No copy is faster than the way is, and many are slower, since somebody else had the core.
  static void note(std::uint32_t& known, std::uint64_t bytes, std::uint64_t ns) noexcept;

  std::uint32_t stream_ns_ = 0;  ///< of kSample bytes; 0: not known
  std::uint32_t kernel_ns_ = 0;
  std::uint32_t until_look_ = 2 * kLook;  ///< messages until the next look is over
  bool looks_at_kernel_ = false;
};

}  // namespace verbatim::shm
