// SPDX-License-Identifier: BSD-2-Clause
// query_gid of kernel devices: a method of newer kernels (5.10), else the files of sysfs; and all
// of the table at once, which those kernels have a method for too.
#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "providers/uverbs/context.hpp"
#include "runtime/base/memcheck.hpp"
#include "runtime/base/proc_text.hpp"

namespace verbatim::uverbs {
namespace {

constexpr std::size_t kPathSize = sizeof(ibv_device::ibdev_path) + 64;
constexpr std::size_t kTextSize = 64;

bool read_port_file(const Device& device, unsigned port, const char* folder, int index,
                    char (&text)[kTextSize]) noexcept {
  char path[kPathSize];
  std::snprintf(path, sizeof path, "%s/ports/%u/%s/%d", device.plain.ibdev_path, port, folder,
                index);
  if (!read_proc_text(path, text, sizeof text)) return false;
  text[std::strcspn(text, "\n")] = '\0';
  return true;
}

/// "RoCE v2"; "IB/RoCE v1" is one word for two kinds, told apart by the link.
std::uint32_t type_from(const char* text, bool ethernet) noexcept {
  if (std::strcmp(text, "RoCE v2") == 0) return IBV_GID_TYPE_ROCE_V2;
  return ethernet ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_IB;
}

int query_gid_by_files(verbatim::Context& context, std::uint8_t port, int index,
                       ibv_gid_entry& entry) noexcept {
  char text[kTextSize];
  if (!read_port_file(context.device, port, "gids", index, text)) return EINVAL;
  in6_addr address;
  if (::inet_pton(AF_INET6, text, &address) != 1) return EPROTO;
  std::memcpy(entry.gid.raw, &address, sizeof entry.gid.raw);
  constexpr ibv_gid kEmpty{};
  // An empty row has no attributes, and reading them says EINVAL.
  if (std::memcmp(&entry.gid, &kEmpty, sizeof kEmpty) == 0) return ENODATA;
  ibv_port_attr attributes{};
  if (const int error = query_port(context, port, attributes)) return error;
  const bool ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  const bool typed = read_port_file(context.device, port, "gid_attrs/types", index, text);
  entry.gid_type = type_from(typed ? text : "", ethernet);
  const bool named = read_port_file(context.device, port, "gid_attrs/ndevs", index, text);
  entry.ndev_ifindex = named ? ::if_nametoindex(text) : 0;
  return 0;
}

}  // namespace

int query_gid(verbatim::Context& plain, std::uint8_t port, int index,
              ibv_gid_entry& entry) noexcept {
  CommandChannel& channel = static_cast<Context&>(plain).command_channel;
  ib_uverbs_gid_entry reply{};
  kernel::IoctlCall query = channel.method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);
  query.constant(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port);
  query.constant(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, static_cast<std::uint32_t>(index));
  query.in_value(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, std::uint32_t{0});
  query.out_value(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, reply);
  const int error = channel.call(query);
  if (CommandChannel::has_no_method(error)) return query_gid_by_files(plain, port, index, entry);
  if (error != 0) return error;
  static_assert(sizeof reply.gid == sizeof entry.gid);
  if (reply.gid_type > IBV_GID_TYPE_ROCE_V2) return EPROTO;
  std::memcpy(&entry.gid, reply.gid, sizeof entry.gid);
  entry.gid_type = reply.gid_type;
  entry.ndev_ifindex = reply.netdev_ifindex;
  return 0;
}

int query_gid_table(verbatim::Context& plain, ibv_gid_entry* rows, std::size_t room,
                    std::size_t& count) noexcept {
  // The kernel writes what the API has, so it may write it where the program wants it.
  static_assert(sizeof(ib_uverbs_gid_entry) == sizeof(ibv_gid_entry) &&
                offsetof(ib_uverbs_gid_entry, gid_index) == offsetof(ibv_gid_entry, gid_index) &&
                offsetof(ib_uverbs_gid_entry, port_num) == offsetof(ibv_gid_entry, port_num) &&
                offsetof(ib_uverbs_gid_entry, gid_type) == offsetof(ibv_gid_entry, gid_type) &&
                offsetof(ib_uverbs_gid_entry, netdev_ifindex) ==
                    offsetof(ibv_gid_entry, ndev_ifindex));
  // An attribute's length has 16 bits.
  constexpr std::size_t kMostRows = UINT16_MAX / sizeof(ibv_gid_entry);
  const std::size_t asked = std::min(room, kMostRows);
  if (asked == 0) return EOPNOTSUPP;
  CommandChannel& channel = static_cast<Context&>(plain).command_channel;
  std::uint64_t found = 0;
  kernel::IoctlCall query = channel.method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);
  query.constant(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, sizeof(ibv_gid_entry));
  query.in_value(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, std::uint32_t{0});
  query.out(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, rows, asked * sizeof(ibv_gid_entry));
  query.out_value(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, found);
  const int error = channel.call(query);
  // Refused for want of room that could not be named: one by one they may fit.
  if (CommandChannel::has_no_method(error) || (error == EINVAL && room > kMostRows))
    return EOPNOTSUPP;
  if (error != 0) return error;
  if (found > asked) return EPROTO;
  expect_written_by_others(rows, found * sizeof(ibv_gid_entry));
  constexpr std::uint32_t kLargestIndex = INT32_MAX;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < found; ++i) {
    const ibv_gid_entry& row = rows[i];
    if (row.gid_type > IBV_GID_TYPE_ROCE_V2 || row.gid_index > kLargestIndex || row.port_num < 1 ||
        row.port_num > plain.port_count)
      return EPROTO;
    constexpr ibv_gid kEmpty{};
    if (std::memcmp(&row.gid, &kEmpty, sizeof kEmpty) != 0) rows[kept++] = row;
  }
  count = kept;
  return 0;
}

}  // namespace verbatim::uverbs
