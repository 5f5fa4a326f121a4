// SPDX-License-Identifier: BSD-2-Clause
//
// A kernel that answers with the bytes of an input: over netlink, and to commands by every way. It
// succeeds mostly, since a failure is the end of what can be done with an object.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "abi/kernel/write_call.hpp"
#include "providers/rxe/layout.hpp"
#include "providers/uverbs/netlink_port.hpp"
#include "providers/uverbs/system.hpp"
#include "tests/fuzz/input.hpp"

namespace verbatim::fuzz {

struct NetlinkStranger : uverbs::NetlinkPort {
  explicit NetlinkStranger(Input& from) : NetlinkPort{send_entry, receive_entry}, input(&from) {}
  static int send_entry(const uverbs::NetlinkPort&, const void*, std::size_t) noexcept { return 0; }
  static ssize_t receive_entry(const uverbs::NetlinkPort& self, void* buffer,
                               std::size_t size) noexcept {
    Input& input = *static_cast<const NetlinkStranger&>(self).input;
    if (input.empty()) return -EAGAIN;
    const std::size_t length = std::min<std::size_t>(size, input.below(512));
    auto* const bytes = static_cast<unsigned char*>(buffer);
    for (std::size_t i = 0; i < length; ++i) bytes[i] = input.take();
    return static_cast<ssize_t>(length);
  }
  Input* input;
};

/// Answers every call with the input's bytes.
struct CommandStranger : uverbs::System {
  explicit CommandStranger(Input& from) : System{ioctl_entry, write_entry}, input(&from) {}
  ~CommandStranger() {
    if (writer >= 0) ::close(writer);
  }

  /// A descriptor that may be closed, or a number that is none.
  int descriptor() {
    if (input->flag()) return -1 - static_cast<int>(input->take());
    int ends[2];
    VBT_HOLDS(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    if (writer >= 0) ::close(writer);
    writer = ends[1];
    given = ends[0];
    return given;
  }
  int status() {
    constexpr int kErrors[] = {ENOTTY, EPROTONOSUPPORT, EIO,   EINVAL,
                               ENOMEM, EOPNOTSUPP,      EBUSY, ENOSPC};
    const std::uint8_t choice = input->take();
    const int error = choice < 200 ? 0 : kErrors[choice % std::size(kErrors)];
    if (error != 0 && given >= 0) {  // with an error a kernel gives none
      ::close(given);
      ::close(writer);
      writer = -1;
    }
    given = -1;
    return error;
  }
  /// From now on every call succeeds, with answers of zeros: for the end of a round.
  void calm_down() {
    static Input nothing{{}};
    input = &nothing;
  }
  void fill(void* memory, std::size_t size) {
    auto* const bytes = static_cast<unsigned char*>(memory);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = input->take();
  }
  void fill_reply(std::uint32_t command, unsigned char* out, std::size_t size) {
    fill(out, size);
    // Descriptors are believed to be ours: they must be, or none.
    if (command == IB_USER_VERBS_CMD_GET_CONTEXT ||
        command == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL) {
      const int fd = descriptor();
      if (size >= sizeof fd) std::memcpy(out, &fd, sizeof fd);
    }
  }

  /// A GID table that is nearly right: rows, or how many there are. Any bytes would hardly ever be.
  void fill_table(const ib_uverbs_attr& attribute) {
    auto* const at = reinterpret_cast<unsigned char*>(attribute.data);
    if (attribute.attr_id == UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES) {
      const std::uint64_t rows = input->flag() ? input->below(8) : input->number();
      std::memcpy(at, &rows, std::min<std::size_t>(attribute.len, sizeof rows));
      return;
    }
    for (std::size_t done = 0; attribute.len - done >= sizeof(ib_uverbs_gid_entry);) {
      ib_uverbs_gid_entry row{};
      row.gid[0] = input->below(4);
      row.gid_index = static_cast<__u32>(input->number());
      row.port_num = input->below(3);
      row.gid_type = input->below(5);
      std::memcpy(at + done, &row, sizeof row);
      done += sizeof row;
    }
  }

  /// A ring that a driver tells of lies in what it lets be mapped, as mmap would see to.
  void place_ring(const ib_uverbs_attr& attribute) const {
    if (mappable == 0 || attribute.len < sizeof(mminfo)) return;
    auto* const at = reinterpret_cast<void*>(attribute.data);
    mminfo place;
    std::memcpy(&place, at, sizeof place);
    place.offset = 0;
    place.size %= static_cast<std::uint32_t>(mappable + 1);
    std::memcpy(at, &place, sizeof place);
  }

  static int ioctl_entry(const uverbs::System& self, int,
                         kernel::IoctlCall::Message& message) noexcept {
    auto& stranger = const_cast<CommandStranger&>(static_cast<const CommandStranger&>(self));
    const bool invoke = message.header.object_id == UVERBS_OBJECT_DEVICE &&
                        message.header.method_id == UVERBS_METHOD_INVOKE_WRITE;
    std::uint32_t command = UINT32_MAX;
    for (unsigned i = 0; i < message.header.num_attrs; ++i) {
      ib_uverbs_attr& attribute = message.attributes[i];
      if (invoke && attribute.attr_id == UVERBS_ATTR_WRITE_CMD) {
        command = static_cast<std::uint32_t>(attribute.data);
      }
    }
    for (unsigned i = 0; i < message.header.num_attrs; ++i) {
      ib_uverbs_attr& attribute = message.attributes[i];
      const bool out = is_output(message.header, attribute.attr_id);
      if (is_table(message.header) && out) {
        stranger.fill_table(attribute);
      } else if (out) {
        stranger.fill_reply(attribute.attr_id == UVERBS_ATTR_CORE_OUT ? command : UINT32_MAX,
                            reinterpret_cast<unsigned char*>(attribute.data), attribute.len);
        if (attribute.attr_id == UVERBS_ATTR_UHW_OUT) stranger.place_ring(attribute);
      }
      if (attribute.len == 0) {  // a handle or a descriptor
        attribute.data = stranger.input->number();
        if (message.header.object_id == UVERBS_OBJECT_ASYNC_EVENT) {
          attribute.data_s64 = stranger.descriptor();
        }
      }
      if (!stranger.input->flag() || stranger.input->flag()) {
        attribute.flags |= UVERBS_ATTR_F_VALID_OUTPUT;
      }
    }
    return stranger.status();
  }
  static int write_entry(const uverbs::System& self, int, const void* bytes,
                         std::size_t size) noexcept {
    auto& stranger = const_cast<CommandStranger&>(static_cast<const CommandStranger&>(self));
    ib_uverbs_cmd_hdr head;
    VBT_HOLDS(size >= sizeof head);
    std::memcpy(&head, bytes, sizeof head);
    const bool extended = (head.command & kernel::kExtended) != 0;
    std::uint64_t response = 0;
    std::size_t room = head.out_words * std::size_t{4};
    if (extended || room != 0) {
      VBT_HOLDS(size >= sizeof head + sizeof response);
      std::memcpy(&response, static_cast<const unsigned char*>(bytes) + sizeof head,
                  sizeof response);
    }
    if (extended) room = head.out_words * std::size_t{8};
    if (response != 0) {
      stranger.fill_reply(head.command, reinterpret_cast<unsigned char*>(response), room);
    }
    return stranger.status();
  }
  static bool is_table(const kernel::IoctlHeader& header) {
    return header.object_id == UVERBS_OBJECT_DEVICE &&
           header.method_id == UVERBS_METHOD_QUERY_GID_TABLE;
  }
  /// Which attributes of the methods that the library uses are memory for an answer.
  static bool is_output(const kernel::IoctlHeader& header, unsigned id) {
    if (id == UVERBS_ATTR_UHW_OUT) return true;
    switch (header.object_id << 16 | header.method_id) {
      case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_INVOKE_WRITE:
        return id == UVERBS_ATTR_CORE_OUT;
      case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_GET_CONTEXT:
        return true;
      case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_QUERY_PORT:
        return id == UVERBS_ATTR_QUERY_PORT_RESP;
      case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_QUERY_GID_ENTRY:
        return id == UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY;
      case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_QUERY_GID_TABLE:
        return id == UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES ||
               id == UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES;
      case UVERBS_OBJECT_CQ << 16 | UVERBS_METHOD_CQ_CREATE:
        return id == UVERBS_ATTR_CREATE_CQ_RESP_CQE;
      case UVERBS_OBJECT_QP << 16 | UVERBS_METHOD_QP_CREATE:
        return id >= UVERBS_ATTR_CREATE_QP_RESP_CAP;
      case UVERBS_OBJECT_SRQ << 16 | UVERBS_METHOD_SRQ_CREATE:
        return id >= UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR;
      case UVERBS_OBJECT_CQ << 16 | UVERBS_METHOD_CQ_DESTROY:
        return id == UVERBS_ATTR_DESTROY_CQ_RESP;
      case UVERBS_OBJECT_QP << 16 | UVERBS_METHOD_QP_DESTROY:
        return id == UVERBS_ATTR_DESTROY_QP_RESP;
      case UVERBS_OBJECT_SRQ << 16 | UVERBS_METHOD_SRQ_DESTROY:
        return id == UVERBS_ATTR_DESTROY_SRQ_RESP;
      default:
        return false;
    }
  }

  Input* input;
  std::size_t mappable = 0;  ///< bytes of the file that a driver's rings lie in
  int writer = -1;
  int given = -1;  ///< by the call that is being answered
};

}  // namespace verbatim::fuzz
