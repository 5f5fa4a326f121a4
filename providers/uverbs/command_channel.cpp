// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/command_channel.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace verbatim::uverbs {
namespace {

int linux_ioctl(const System&, int fd, kernel::IoctlCall::Message& message) noexcept {
  return ::ioctl(fd, RDMA_VERBS_IOCTL, &message) == 0 ? 0 : errno;
}

int linux_write(const System&, int fd, const void* bytes, std::size_t size) noexcept {
  const ssize_t written = ::write(fd, bytes, size);
  if (written < 0) return errno;
  return static_cast<std::size_t>(written) == size ? 0 : EIO;
}

/// A reply that the kernel never wrote still has this in every byte. No reply of any command can:
/// its first word is a handle, a descriptor or a count.
constexpr unsigned char kUnwritten = 0xff;

bool unwritten(const unsigned char* reply, std::size_t size) noexcept {
  return std::all_of(reply, reply + size, [](unsigned char byte) { return byte == kUnwritten; });
}

}  // namespace

constinit const System linux_system{linux_ioctl, linux_write};

int CommandChannel::call(kernel::IoctlCall& call) noexcept {
  if (call.overflown()) return EINVAL;
  if (const int error = system_.ioctl(system_, fd_.get(), call.message())) return heard(error);
  return call.all_answered() ? 0 : EPROTO;
}

int CommandChannel::command(const kernel::WriteCommand& command) noexcept {
  if (!no_ioctl_commands_.load(std::memory_order_relaxed)) {
    kernel::IoctlCall as_method = kernel::through_ioctl(command, driver_);
    const int error = call(as_method);
    if (!has_no_method(error)) return error;
    no_ioctl_commands_.store(true, std::memory_order_relaxed);
  }
  return command_by_write(command);
}

int CommandChannel::ring_by_command(const kernel::Doorbell& bell) noexcept {
  // Behind the header it is the command's structure.
  constexpr std::size_t kSize = sizeof bell - offsetof(kernel::Doorbell, response);
  kernel::Doorbell request = bell;
  ib_uverbs_post_send_resp reply{};
  return command({IB_USER_VERBS_CMD_POST_SEND, &request.response, kSize, &reply, sizeof reply, {}});
}

int CommandChannel::command_by_write(const kernel::WriteCommand& command) noexcept {
  alignas(8) std::byte bytes[kernel::kMostCommandBytes];
  alignas(8) unsigned char reply[kernel::kMostReplyBytes];
  std::memset(reply, kUnwritten, sizeof reply);
  const std::size_t size = kernel::through_write(command, reply, bytes);
  if (size == 0) return EINVAL;
  if (const int error = system_.write(system_, fd_.get(), bytes, size)) return heard(error);
  if (command.out_size != 0) {
    // Some file took the bytes and is no uverbs device: /dev/null does.
    if (unwritten(reply, command.out_size)) return EPROTO;
    std::memcpy(command.out, reply, command.out_size);
  }
  if (command.driver.out_size != 0) {
    if (unwritten(reply + command.out_size, command.driver.out_size)) return EPROTO;
    std::memcpy(command.driver.out, reply + command.out_size, command.driver.out_size);
  }
  return 0;
}

}  // namespace verbatim::uverbs
