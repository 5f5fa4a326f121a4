// SPDX-License-Identifier: BSD-2-Clause
// One call of the uverbs ioctl ABI: a header that names object and method, and attributes that
// carry bytes, handles and descriptors in both directions. One thread; lives on the stack.
//
//   IoctlCall call(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, driver_id);
//   call.new_handle(UVERBS_ATTR_CREATE_CQ_HANDLE);
//   call.in_value(UVERBS_ATTR_CREATE_CQ_CQE, cqe);
//   ... ioctl(fd, RDMA_VERBS_IOCTL, call.message()) ...
//   call.take_handle(UVERBS_ATTR_CREATE_CQ_HANDLE, handle);
//
// Invariant: what is in the reply is believed only through answered(), take_handle(), take_fd().
// Layout: <rdma/rdma_user_ioctl_cmds.h>, ids: <rdma/ib_user_ioctl_cmds.h>.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <cstddef>
#include <cstdint>

#include "abi/kernel/driver_data.hpp"

namespace verbatim::kernel {

/// ib_uverbs_ioctl_hdr without its flexible array, so that attributes may follow it here.
struct IoctlHeader {
  std::uint16_t length;
  std::uint16_t object_id;
  std::uint16_t method_id;
  std::uint16_t num_attrs;
  std::uint64_t reserved1;
  std::uint32_t driver_id;
  std::uint32_t reserved2;
};
static_assert(sizeof(IoctlHeader) == sizeof(ib_uverbs_ioctl_hdr));
static_assert(offsetof(IoctlHeader, num_attrs) == offsetof(ib_uverbs_ioctl_hdr, num_attrs));
static_assert(offsetof(IoctlHeader, driver_id) == offsetof(ib_uverbs_ioctl_hdr, driver_id));

class IoctlCall {
 public:
  static constexpr std::size_t kMostAttributes = 24;

  struct Message {
    IoctlHeader header;
    ib_uverbs_attr attributes[kMostAttributes];
  };

  IoctlCall(unsigned object, unsigned method, std::uint32_t driver) noexcept;

  // The request. Memory that is named must live until the reply has been read.
  void in(unsigned id, const void* bytes, std::size_t size) noexcept;
  template <class T>
  void in_value(unsigned id, const T& value) noexcept {
    in(id, &value, sizeof value);
  }
  /// Numbers of commands and types, and flags: always 8 bytes.
  void constant(unsigned id, std::uint64_t value) noexcept { in_value(id, value); }
  void handle(unsigned id, std::uint32_t handle) noexcept;
  void fd(unsigned id, int fd) noexcept;
  void out(unsigned id, void* bytes, std::size_t size) noexcept;
  template <class T>
  void out_value(unsigned id, T& value) noexcept {
    out(id, &value, sizeof value);
  }
  void new_handle(unsigned id) noexcept { handle(id, 0); }
  void new_fd(unsigned id) noexcept { fd(id, -1); }
  void driver(const DriverData& data) noexcept;

  // The reply.
  [[nodiscard]] bool answered(unsigned id) const noexcept;
  /// Whether every memory that was given for a reply has been filled, the driver's included.
  [[nodiscard]] bool all_answered() const noexcept;
  /// 0 or EPROTO.
  [[nodiscard]] int take_handle(unsigned id, std::uint32_t& handle) const noexcept;
  [[nodiscard]] int take_fd(unsigned id, int& fd) const noexcept;

  /// More was asked for than a message holds: a defect of the caller, answered by EINVAL.
  [[nodiscard]] bool overflown() const noexcept { return overflown_; }
  [[nodiscard]] Message& message() noexcept { return message_; }

 private:
  ib_uverbs_attr* append(unsigned id, std::size_t length) noexcept;
  [[nodiscard]] const ib_uverbs_attr* find(unsigned id) const noexcept;

  Message message_;
  std::uint32_t outputs_ = 0;  ///< bit i: attribute i is memory for a reply
  bool overflown_ = false;
};

}  // namespace verbatim::kernel
