// SPDX-License-Identifier: BSD-2-Clause
// The older half of the uverbs ABI: commands with a number, a structure and a reply. Most of them
// still travel so, either inside one ioctl method (INVOKE_WRITE) or, to kernels without it, through
// write(2). Both encodings are made here from one description. One thread; lives on the stack.
// Layout: <rdma/ib_user_verbs.h>.
#pragma once

#include <rdma/ib_user_verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "abi/kernel/driver_data.hpp"
#include "abi/kernel/ioctl_call.hpp"

namespace verbatim::kernel {

constexpr std::uint32_t kExtended = IB_USER_VERBS_CMD_FLAG_EXTENDED;

struct WriteCommand {
  std::uint32_t number;  ///< IB_USER_VERBS_CMD_*, or IB_USER_VERBS_EX_CMD_* with kExtended
  /// The command's structure, without headers. Of a plain command with a reply it begins with the
  /// reply's address: filled here.
  void* in;
  std::size_t in_size;
  void* out;
  std::size_t out_size;
  DriverData driver;
};

/// The command as the method INVOKE_WRITE of the device.
[[nodiscard]] IoctlCall through_ioctl(const WriteCommand& command, std::uint32_t driver) noexcept;

/// The command as the bytes of a write(2). The reply, then the driver's, will lie at `reply`, which
/// has reply_size() bytes. Returns the bytes used, or 0 when they do not fit or are no command.
[[nodiscard]] std::size_t through_write(const WriteCommand& command, void* reply,
                                        std::span<std::byte> buffer) noexcept;
[[nodiscard]] constexpr std::size_t reply_size(const WriteCommand& command) noexcept {
  return command.out_size + command.driver.out_size;
}

/// The most that through_write() needs for any command of this library.
constexpr std::size_t kMostCommandBytes = 512;
constexpr std::size_t kMostReplyBytes = 1024;

/// POST_SEND of nothing: how rings in shared memory are told that something was put into them.
struct Doorbell {
  ib_uverbs_cmd_hdr header;
  std::uint64_t response;
  std::uint32_t qp_handle;
  std::uint32_t wr_count;
  std::uint32_t sge_count;
  std::uint32_t wqe_size;
};
static_assert(sizeof(Doorbell) == sizeof(ib_uverbs_cmd_hdr) + sizeof(ib_uverbs_post_send));
static_assert(sizeof(Doorbell) == 32);

/// `response` must stay valid for as long as the doorbell is rung.
[[nodiscard]] inline Doorbell make_doorbell(std::uint32_t qp_handle,
                                            ib_uverbs_post_send_resp& response) noexcept {
  Doorbell bell{};
  bell.header.command = IB_USER_VERBS_CMD_POST_SEND;
  bell.header.in_words = sizeof(Doorbell) / 4;
  bell.header.out_words = sizeof response / 4;
  bell.response = reinterpret_cast<std::uintptr_t>(&response);
  bell.qp_handle = qp_handle;
  bell.wqe_size = sizeof(ib_uverbs_send_wr);
  return bell;
}

}  // namespace verbatim::kernel
