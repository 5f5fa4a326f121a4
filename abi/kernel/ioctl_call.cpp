// SPDX-License-Identifier: BSD-2-Clause
#include "abi/kernel/ioctl_call.hpp"

#include <cerrno>
#include <climits>
#include <cstring>

namespace verbatim::kernel {
namespace {

static_assert(IoctlCall::kMostAttributes <= 32, "outputs_ has a bit for each");

/// Up to this many bytes travel in the attribute itself.
constexpr std::size_t kInline = sizeof(std::uint64_t);

std::uint64_t address_of(const void* memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory);
}

}  // namespace

IoctlCall::IoctlCall(unsigned object, unsigned method, std::uint32_t driver) noexcept {
  message_.header = {};
  message_.header.length = sizeof(IoctlHeader);
  message_.header.object_id = static_cast<std::uint16_t>(object);
  message_.header.method_id = static_cast<std::uint16_t>(method);
  message_.header.driver_id = driver;
}

ib_uverbs_attr* IoctlCall::append(unsigned id, std::size_t length) noexcept {
  IoctlHeader& header = message_.header;
  if (header.num_attrs == kMostAttributes || length > UINT16_MAX) {
    overflown_ = true;
    return nullptr;
  }
  ib_uverbs_attr& attribute = message_.attributes[header.num_attrs++];
  attribute = {};
  attribute.attr_id = static_cast<std::uint16_t>(id);
  attribute.len = static_cast<std::uint16_t>(length);
  // A kernel that does not know an attribute is to say so, not to act without it.
  attribute.flags = UVERBS_ATTR_F_MANDATORY;
  header.length = static_cast<std::uint16_t>(header.length + sizeof attribute);
  return &attribute;
}

const ib_uverbs_attr* IoctlCall::find(unsigned id) const noexcept {
  for (unsigned i = 0; i < message_.header.num_attrs && i < kMostAttributes; ++i) {
    if (message_.attributes[i].attr_id == id) return &message_.attributes[i];
  }
  return nullptr;
}

void IoctlCall::in(unsigned id, const void* bytes, std::size_t size) noexcept {
  ib_uverbs_attr* const attribute = append(id, size);
  if (attribute == nullptr) return;
  if (size > kInline) {
    attribute->data = address_of(bytes);
    return;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, size);
  attribute->data = value;
}

void IoctlCall::handle(unsigned id, std::uint32_t handle) noexcept {
  ib_uverbs_attr* const attribute = append(id, 0);
  if (attribute != nullptr) attribute->data = handle;
}

void IoctlCall::fd(unsigned id, int fd) noexcept {
  ib_uverbs_attr* const attribute = append(id, 0);
  if (attribute != nullptr) attribute->data_s64 = fd;
}

void IoctlCall::out(unsigned id, void* bytes, std::size_t size) noexcept {
  ib_uverbs_attr* const attribute = append(id, size);
  if (attribute == nullptr) return;
  attribute->data = address_of(bytes);
  outputs_ |= std::uint32_t{1} << (message_.header.num_attrs - 1);
}

void IoctlCall::driver(const DriverData& data) noexcept {
  if (data.in_size != 0) in(UVERBS_ATTR_UHW_IN, data.in, data.in_size);
  if (data.out_size != 0) out(UVERBS_ATTR_UHW_OUT, data.out, data.out_size);
}

bool IoctlCall::answered(unsigned id) const noexcept {
  const ib_uverbs_attr* const attribute = find(id);
  return attribute != nullptr && (attribute->flags & UVERBS_ATTR_F_VALID_OUTPUT) != 0;
}

bool IoctlCall::all_answered() const noexcept {
  for (unsigned i = 0; i < message_.header.num_attrs && i < kMostAttributes; ++i) {
    if ((outputs_ >> i & 1) == 0) continue;
    if ((message_.attributes[i].flags & UVERBS_ATTR_F_VALID_OUTPUT) == 0) return false;
  }
  return true;
}

int IoctlCall::take_handle(unsigned id, std::uint32_t& handle) const noexcept {
  const ib_uverbs_attr* const attribute = find(id);
  if (attribute == nullptr || attribute->data > UINT32_MAX) return EPROTO;
  handle = static_cast<std::uint32_t>(attribute->data);
  return 0;
}

int IoctlCall::take_fd(unsigned id, int& fd) const noexcept {
  const ib_uverbs_attr* const attribute = find(id);
  if (attribute == nullptr || attribute->data_s64 < 0 || attribute->data_s64 > INT_MAX) {
    return EPROTO;
  }
  fd = static_cast<int>(attribute->data_s64);
  return 0;
}

}  // namespace verbatim::kernel
