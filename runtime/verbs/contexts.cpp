// SPDX-License-Identifier: BSD-2-Clause
// An open context keeps its Device alive, and has the provider's data path in its ops. Port numbers
// are checked here, so that a provider's query slots see valid ones only.
#include "runtime/verbs/contexts.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/verbs/context_objects.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/device_list.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/strict_events.hpp"

namespace verbatim {
namespace {

/// cmd_fd of a device that has no file of the kernel's: programs duplicate it, pass it on, and import
/// the device by it; nothing ever comes to be read. A socket, since it has an inode of its own.
int make_command_fd(Context& context) noexcept {
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    const int error = errno;
    log_error("ibv_open_device: %s: no descriptor for cmd_fd: %s%s", context.device.plain.name,
              std::strerror(error), error == EMFILE ? " (raise 'ulimit -n')" : "");
    return error;
  }
  context.command_fd = UniqueFd(fd);
  context.handle()->cmd_fd = fd;
  return 0;
}

/// What the runtime adds to a context that a provider has opened.
Status complete(Context& context) noexcept {
  const HotOps& hot = table_of(context).hot;
  ibv_context_ops& ops = context.handle()->ops;
  ops.post_send = hot.post_send;
  ops.post_recv = hot.post_recv;
  ops.post_srq_recv = hot.post_srq_recv;
  ops.poll_cq = hot.poll_cq;
  ops.req_notify_cq = hot.req_notify_cq;

  ibv_device_attr_ex attributes{};
  if (const int error = table_of(context).query_device(context, attributes)) {
    return Error{error, "query_device"};
  }
  context.port_count =
      std::max<std::uint32_t>(attributes.phys_port_cnt_ex, attributes.orig_attr.phys_port_cnt);
  context.opener = ::getpid();
  if (context.handle()->cmd_fd >= 0) return {};
  return Status::from_errno(make_command_fd(context), "cmd_fd");
}

Status check_port(const Context& context, const char* verb, std::uint32_t port) noexcept {
  if (port >= 1 && port <= context.port_count) return {};
  log_refusal("%s: %s has ports 1 to %u, not %u", verb, context.device.plain.name,
              context.port_count, port);
  return Error{EINVAL, "no such port"};
}

}  // namespace

Result<Context*> open_device(Device& device) noexcept {
  retain_device(device);
  Context* context = nullptr;
  if (const int error = device.provider->open(device, &context)) {
    release_device(device);
    return Error{error, "open"};
  }
  if (const Status status = complete(*context); !status.ok()) {
    device.provider->close(*context);
    release_device(device);
    return status.error();
  }
  note_open(*context);
  return context;
}

Status close_device(Context& context) noexcept {
  if (end_import(context)) return {};
  check_acks(context);
  tell_left(context);
  if (const int error = end_objects(context)) return Error{error, "end_objects"};
  forget_open(context);
  Device& device = context.device;
  device.provider->close(context);
  release_device(device);
  return {};
}

Status query_device(Context& context, ibv_device_attr_ex& out) noexcept {
  ibv_device_attr_ex attributes{};
  if (const int error = table_of(context).query_device(context, attributes)) {
    return Error{error, "query_device"};
  }
  out = attributes;
  return {};
}

Status query_port(Context& context, std::uint32_t port, ibv_port_attr& out) noexcept {
  if (const Status status = check_port(context, "ibv_query_port", port); !status.ok()) {
    return status;
  }
  ibv_port_attr attributes{};
  if (const int error =
          table_of(context).query_port(context, static_cast<std::uint8_t>(port), attributes)) {
    return Error{error, "query_port"};
  }
  out = attributes;
  return {};
}

// Callers walk tables until the first refusal, so an index past the end is no line in the log.
Status query_pkey(Context& context, std::uint32_t port, int index, __be16& out) noexcept {
  if (const Status status = check_port(context, "ibv_query_pkey", port); !status.ok()) {
    return status;
  }
  if (index < 0) return Error{EINVAL, "negative P_Key index"};
  __be16 pkey = 0;
  if (const int error =
          table_of(context).query_pkey(context, static_cast<std::uint8_t>(port), index, pkey)) {
    return Error{error, "query_pkey"};
  }
  out = pkey;
  return {};
}

Result<int> find_pkey(Context& context, std::uint32_t port, __be16 pkey) noexcept {
  ibv_port_attr attributes;
  if (const Status status = query_port(context, port, attributes); !status.ok()) {
    return status.error();
  }
  for (int index = 0; index < attributes.pkey_tbl_len; ++index) {
    __be16 entry = 0;
    if (const Status status = query_pkey(context, port, index, entry); !status.ok()) {
      return status.error();
    }
    if (entry == pkey) return index;
  }
  return Error{ENOENT, "P_Key not in the port's table"};
}

Status query_gid(Context& context, std::uint32_t port, std::uint32_t index,
                 ibv_gid_entry& out) noexcept {
  if (const Status status = check_port(context, "ibv_query_gid", port); !status.ok()) {
    return status;
  }
  constexpr std::uint32_t kLargestIndex = 0x7fffffff;
  if (index > kLargestIndex) return Error{EINVAL, "GID index out of range"};
  ibv_gid_entry entry{};
  entry.gid_index = index;
  entry.port_num = port;
  if (const int error = table_of(context).query_gid(context, static_cast<std::uint8_t>(port),
                                                    static_cast<int>(index), entry)) {
    return Error{error, "query_gid"};
  }
  out = entry;
  return {};
}

Result<ssize_t> query_gid_table(Context& context, void* entries, std::size_t max,
                                std::size_t entry_size) noexcept {
  std::size_t count = 0;
  // Programs of another version have entries of another size: those go row by row.
  if (entry_size == sizeof(ibv_gid_entry)) {
    const int error = table_of(context).query_gid_table(
        context, static_cast<ibv_gid_entry*>(entries), max, count);
    if (error == 0) return static_cast<ssize_t>(count);
    if (error != EOPNOTSUPP) return Error{error, "query_gid_table"};
  }
  auto* at = static_cast<unsigned char*>(entries);
  count = 0;
  for (std::uint32_t port = 1; port <= context.port_count; ++port) {
    ibv_port_attr attributes;
    if (const Status status = query_port(context, port, attributes); !status.ok()) {
      return status.error();
    }
    for (int index = 0; index < attributes.gid_tbl_len; ++index) {
      ibv_gid_entry entry{};
      const Status status = query_gid(context, port, static_cast<std::uint32_t>(index), entry);
      constexpr ibv_gid kEmpty{};
      if (!status.ok()) {
        if (status.error().code == ENODATA) continue;
        return status.error();
      }
      if (std::memcmp(&entry.gid, &kEmpty, sizeof kEmpty) == 0) continue;
      if (count == max) return Error{EINVAL, "more GIDs than the caller has room for"};
      const std::size_t known = std::min(entry_size, sizeof entry);
      std::memcpy(at, &entry, known);
      std::memset(at + known, 0, entry_size - known);
      at += entry_size;
      ++count;
    }
  }
  return static_cast<ssize_t>(count);
}

Status query_rt_values(Context& context, ibv_values_ex& values) noexcept {
  return Status::from_errno(table_of(context).query_rt_values(context, values), "query_rt_values");
}

Status get_async_event(Context& context, ibv_async_event& out) noexcept {
  const int error = table_of(context).get_async_event(context, out);
  if (error == 0) note_event(out);
  return Status::from_errno(error, "get_async_event");
}

}  // namespace verbatim
