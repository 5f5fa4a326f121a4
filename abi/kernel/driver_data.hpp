// SPDX-License-Identifier: BSD-2-Clause
// What a driver's own user space adds behind a command of the uverbs ABI, in both directions (the
// kernel calls it UHW, user hardware). Plain data.
#pragma once

#include <cstddef>

namespace verbatim::kernel {

/// Sizes are multiples of 4. The memory belongs to the caller, until the command has returned.
struct DriverData {
  const void* in = nullptr;
  std::size_t in_size = 0;
  void* out = nullptr;
  std::size_t out_size = 0;

  /// A reply without a request: what rxe has.
  template <class Reply>
  [[nodiscard]] static DriverData reply(Reply& reply) noexcept {
    return {nullptr, 0, &reply, sizeof reply};
  }
};

}  // namespace verbatim::kernel
