// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/ud/addresses.hpp"

#include <endian.h>

namespace verbatim::shm {
namespace {

constexpr std::uint64_t kLinkLocal = 0xfe80000000000000;

/// The link-local interface without the device's number: on Ethernet an EUI-64, whose middle says
/// that it was made from a MAC.
std::uint64_t interface_of_host(const Context& context) noexcept {
  constexpr std::uint64_t kMiddle = 0xffff000000, kFiller = 0xfffe000000;
  const std::uint64_t host = be64toh(context.device.guid) & ~kDeviceBits;
  return context.ethernet ? (host & ~kMiddle) | kFiller : host;
}

/// ::ffff:198.18.0.0/15, the addresses of no network but for measuring (RFC 2544), likewise.
std::uint64_t ipv4_of_host(const Context& context) noexcept {
  constexpr std::uint64_t kNet = 0xffffc6120000, kHosts = 0x1ff00;
  return kNet | (be64toh(context.device.guid) & kHosts);
}

}  // namespace

ibv_gid gid_of_device(const Context& context, std::uint32_t number, std::uint8_t index) noexcept {
  const bool is_mapped = context.ethernet && index >= kGids / 2;
  const std::uint64_t host = is_mapped ? ipv4_of_host(context) : interface_of_host(context);
  ibv_gid gid{};
  gid.global.subnet_prefix = is_mapped ? 0 : htobe64(kLinkLocal);
  gid.global.interface_id = htobe64(host | (number + 1));
  return gid;
}

bool leads_to_this_host(const Context& context, const ibv_ah_attr& path) noexcept {
  if (path.is_global == 0) return path.dlid >= 1 && path.dlid <= kMaxDevices && !context.ethernet;
  const std::uint64_t to = be64toh(path.grh.dgid.global.interface_id) & ~kDeviceBits;
  if (path.grh.dgid.global.subnet_prefix == htobe64(kLinkLocal))
    return to == interface_of_host(context);
  return path.grh.dgid.global.subnet_prefix == 0 && context.ethernet && to == ipv4_of_host(context);
}

}  // namespace verbatim::shm
