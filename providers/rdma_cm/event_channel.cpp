// SPDX-License-Identifier: BSD-2-Clause
#include "providers/rdma_cm/event_channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "providers/rdma_cm/identifier.hpp"
#include "providers/uverbs/node.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/proc_text.hpp"

namespace verbatim::rdma_cm {
namespace {

int linux_write(const System&, int fd, const void* bytes, std::size_t size) noexcept {
  const ssize_t written = ::write(fd, bytes, size);
  if (written < 0) return errno;
  return static_cast<std::size_t>(written) == size ? 0 : EIO;
}

int linux_wait(const System&, int fd, int timeout_ms) noexcept {
  pollfd polled{fd, POLLIN, 0};
  const int ready = ::poll(&polled, 1, timeout_ms);
  if (ready < 0) return errno;
  if (ready == 0) return ETIMEDOUT;
  return (polled.revents & POLLIN) != 0 ? 0 : EIO;
}

/// A reply that the kernel never wrote still has this in every byte; every reply begins with a
/// number that cannot be that.
constexpr unsigned char kUnwritten = 0xff;

bool read_misc(const NodePlaces& places, const char* file, char (&text)[32]) noexcept {
  char path[PATH_MAX];
  const int length =
      std::snprintf(path, sizeof path, "%s/class/misc/rdma_cm/%s", places.sysfs, file);
  return length > 0 && static_cast<std::size_t>(length) < sizeof path &&
         read_proc_text(path, text, sizeof text);
}

}  // namespace

constinit const System linux_system{linux_write, linux_wait};

void EventChannel::fill_unwritten(void* reply, std::size_t size) noexcept {
  std::memset(reply, kUnwritten, size);
}
bool EventChannel::is_unwritten(const void* reply, std::size_t size) noexcept {
  const auto* const bytes = static_cast<const unsigned char*>(reply);
  return std::all_of(bytes, bytes + size, [](unsigned char byte) { return byte == kUnwritten; });
}

int EventChannel::open(const NodePlaces& places) noexcept {
  char text[32];
  unsigned node_major = 0;
  unsigned node_minor = 0;
  if (!read_misc(places, "dev", text) ||
      std::sscanf(text, "%u:%u", &node_major, &node_minor) != 2) {
    log_error("rdma_cm: the kernel has no connection manager for programs: 'modprobe rdma_ucm'");
    return ENODEV;
  }
  unsigned abi = 0;
  if (!read_misc(places, "abi_version", text) || std::sscanf(text, "%u", &abi) != 1 ||
      abi != RDMA_USER_CM_ABI_VERSION) {
    log_error("rdma_cm: the kernel's connection manager speaks ABI version %u, this library %u",
              abi, unsigned{RDMA_USER_CM_ABI_VERSION});
    return EPROTONOSUPPORT;
  }
  UniqueFd fd;
  if (const int error = uverbs::open_node_at(places.node, "rdma_cm",
                                             uverbs::node_number(node_major, node_minor), fd)) {
    return error;
  }
  // get_event() waits for as long as it was told to, and the command that reads does not.
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) return errno;
  adopt(static_cast<UniqueFd&&>(fd));
  return 0;
}

void EventChannel::drop_request(std::uint32_t id) noexcept {
  rdma_ucm_destroy_id body{};
  body.id = id;
  rdma_ucm_destroy_id_resp reply{};
  static_cast<void>(command(RDMA_USER_CM_CMD_DESTROY_ID, body, reply));
}

bool EventChannel::read_event(const rdma_ucm_event_resp& from, Event& to) noexcept {
  const bool requests = from.event == static_cast<std::uint32_t>(EventType::kConnectRequest);
  to = {};
  if (!kernel::is_known_cm_event(from.event)) return false;
  to.type = static_cast<EventType>(from.event);
  to.status = static_cast<std::int32_t>(from.status);
  to.about = static_cast<Identifier*>(
      identifiers_.deliver(uverbs::Kind::kCmId, from.uid, &uverbs::Delivered::asynchronous));
  if (to.about == nullptr) {
    if (requests) drop_request(from.id);
    return false;
  }
  if (requests) {
    // The kernel's number of the new connection: not that of one which lives.
    if (const int error = identifiers_.claim(from.id)) {
      if (error == ENOMEM) drop_request(from.id);
      return false;
    }
    to.request = from.id;
  } else if (from.id != to.about->id()) {
    return false;
  }
  to.parameters = from.param.conn;
  static_assert(UINT8_MAX < RDMA_MAX_PRIVATE_DATA, "the length that is told is never too long");
  return true;
}

int EventChannel::get_event(Event& event, int timeout_ms) noexcept {
  // What is left out does not make anybody wait longer than a few times as long as was said.
  constexpr int kMostLeftOut = 64;
  for (int left_out = 0; left_out < kMostLeftOut; ++left_out) {
    rdma_ucm_event_resp record;
    int error = command(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, record);
    if (error == EAGAIN) {
      if (const int silent = system_.wait(system_, fd_.get(), timeout_ms)) return silent;
      // Another thread may have been faster.
      error = command(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, record);
      if (error == EAGAIN) return ETIMEDOUT;
    }
    if (error != 0) return error;
    if (read_event(record, event)) return 0;
    log_warn("rdma_cm: an event of type %u about nothing that is known here was left out",
             record.event);
  }
  return EPROTO;
}

}  // namespace verbatim::rdma_cm
