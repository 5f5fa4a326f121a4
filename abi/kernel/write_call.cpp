// SPDX-License-Identifier: BSD-2-Clause
#include "abi/kernel/write_call.hpp"

#include <cstring>

namespace verbatim::kernel {
namespace {

bool is_extended(const WriteCommand& command) noexcept { return (command.number & kExtended) != 0; }

/// Plain commands count in words of 4 bytes, extended ones in words of 8.
bool fills_words(const WriteCommand& command) noexcept {
  const std::size_t word = is_extended(command) ? 8 : 4;
  return (command.in_size | command.out_size | command.driver.in_size | command.driver.out_size) %
             word ==
         0;
}

void set_reply_address(const WriteCommand& command, std::uint64_t address) noexcept {
  if (is_extended(command) || command.out_size == 0) return;
  std::memcpy(command.in, &address, sizeof address);
}

struct Writer {
  std::span<std::byte> left;
  std::size_t used = 0;

  void put(const void* bytes, std::size_t size) noexcept {
    if (size != 0) std::memcpy(left.data() + used, bytes, size);
    used += size;
  }
};

}  // namespace

IoctlCall through_ioctl(const WriteCommand& command, std::uint32_t driver) noexcept {
  IoctlCall call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, driver);
  set_reply_address(command, reinterpret_cast<std::uintptr_t>(command.out));
  call.constant(UVERBS_ATTR_WRITE_CMD, command.number);
  call.in(UVERBS_ATTR_CORE_IN, command.in, command.in_size);
  if (command.out_size != 0) call.out(UVERBS_ATTR_CORE_OUT, command.out, command.out_size);
  call.driver(command.driver);
  return call;
}

std::size_t through_write(const WriteCommand& command, void* reply,
                          std::span<std::byte> buffer) noexcept {
  const bool extended = is_extended(command);
  const std::size_t heads =
      sizeof(ib_uverbs_cmd_hdr) + (extended ? sizeof(ib_uverbs_ex_cmd_hdr) : 0);
  const std::size_t total = heads + command.in_size + command.driver.in_size;
  if (!fills_words(command) || total > buffer.size()) return 0;
  if (reply_size(command) > kMostReplyBytes) return 0;

  const auto words = [extended](std::size_t bytes) {
    return static_cast<std::uint16_t>(bytes / (extended ? 8 : 4));
  };
  const std::uint64_t reply_address =
      reply_size(command) == 0 ? 0 : reinterpret_cast<std::uintptr_t>(reply);
  ib_uverbs_cmd_hdr head{};
  head.command = command.number;
  Writer out{buffer};
  if (extended) {
    head.in_words = words(command.in_size);
    head.out_words = words(command.out_size);
    ib_uverbs_ex_cmd_hdr more{};
    more.response = reply_address;
    more.provider_in_words = words(command.driver.in_size);
    more.provider_out_words = words(command.driver.out_size);
    out.put(&head, sizeof head);
    out.put(&more, sizeof more);
  } else {
    head.in_words = words(total);
    head.out_words = words(reply_size(command));
    set_reply_address(command, reply_address);
    out.put(&head, sizeof head);
  }
  out.put(command.in, command.in_size);
  out.put(command.driver.in, command.driver.in_size);
  return out.used;
}

}  // namespace verbatim::kernel
