// SPDX-License-Identifier: BSD-2-Clause
// `verbatim asyncwatch`, `ibv_asyncwatch`: prints the asynchronous events of a device as they come.
//
// Main thread. Options and output are those of the classic tool. It ends by a signal, or when the
// device has no more to say. A context hears of its own objects, of which this one has none, and of
// its device and ports. A port without a wire (shm) is asked now and then: that of a process that
// does nothing else is not looked at otherwise.
#include <fcntl.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "perf/cli/commands.hpp"
#include "perf/cli/device_list.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/stoppable.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::cli {
namespace {

using perf::ContextHandle;

/// The classic tool's words: those of the events that come without an object of the watcher's.
const char* event_name(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
      return "IBV_EVENT_DEVICE_FATAL";
    case IBV_EVENT_PORT_ACTIVE:
      return "IBV_EVENT_PORT_ACTIVE";
    case IBV_EVENT_PORT_ERR:
      return "IBV_EVENT_PORT_ERR";
    case IBV_EVENT_LID_CHANGE:
      return "IBV_EVENT_LID_CHANGE";
    case IBV_EVENT_PKEY_CHANGE:
      return "IBV_EVENT_PKEY_CHANGE";
    case IBV_EVENT_SM_CHANGE:
      return "IBV_EVENT_SM_CHANGE";
    case IBV_EVENT_CLIENT_REREGISTER:
      return "IBV_EVENT_CLIENT_REREGISTER";
    case IBV_EVENT_GID_CHANGE:
      return "IBV_EVENT_GID_CHANGE";
    default:
      return "unexpected";
  }
}

void asyncwatch_usage(const char* name) {
  std::printf(
      "Usage:\n"
      "  %s            start an asyncwatch process\n"
      "\n"
      "Options:\n"
      "  -d, --ib-dev=<dev>     use IB device <dev> (default first device found)\n"
      "  -h, --help             print a help text and exit\n",
      name);
}

/// The device asked for, null for the first; or the exit status when there is nothing to watch.
std::optional<int> parse(int argc, char** argv, const char** device) {
  static const option kLong[] = {
      {"ib-dev", required_argument, nullptr, 'd'}, {"help", no_argument, nullptr, 'h'}, {}};
  for (;;) {
    switch (getopt_long(argc, argv, "d:h", kLong, nullptr)) {
      case -1:
        if (optind == argc) return {};
        fail("'%s' is too much: a device is named with -d", argv[optind]);
      case 'd':
        *device = optarg;
        break;
      case 'h':
        asyncwatch_usage(argv[0]);
        return 0;
      default:
        asyncwatch_usage(argv[0]);
        return 1;
    }
  }
}

ContextHandle open_device(const char* name) {
  const DeviceList list;
  if (!list) throw Failure{};  // the list has said why
  ibv_device* device = name != nullptr ? list.find(name) : list.size() > 0 ? list.at(0) : nullptr;
  if (device == nullptr && name == nullptr) fail("No IB devices found");
  if (device == nullptr) {
    fail("IB device %s not found (there is: %s)", name, list.names().c_str());
  }
  ContextHandle context(ibv_open_device(device));
  if (!context) fail("Couldn't get context for %s: %s", device->name, std::strerror(errno));
  return context;
}

void watch(ibv_context* context, const StopSignals& stop) {
  // Never blocked in the verb, so that a signal ends us in order.
  const int flags = fcntl(context->async_fd, F_GETFL);
  if (flags < 0 || fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    fail("Couldn't watch the events of %s: %s", context->device->name, std::strerror(errno));
  }
  std::printf("%s: async event FD %d\n", ibv_get_device_name(context->device), context->async_fd);
  std::fflush(stdout);
  constexpr long kLookMs = 1000;
  for (;;) {
    if (!wait_for(context->async_fd, POLLIN, kLookMs, stop)) {
      ibv_port_attr port;
      (void)ibv_query_port(context, 1, &port);  // what it finds comes as an event
      continue;
    }
    ibv_async_event event;
    if (ibv_get_async_event(context, &event) != 0) {
      if (errno == EAGAIN || errno == EINTR) continue;
      fail("Couldn't read the events of %s: %s", context->device->name, std::strerror(errno));
    }
    std::printf("  event_type %s (%d), port %d\n", event_name(event.event_type),
                static_cast<int>(event.event_type), event.element.port_num);
    std::fflush(stdout);  // who reads a pipe or a file wants it as it comes
    ibv_ack_async_event(&event);
  }
}

}  // namespace

int asyncwatch(Calling, int argc, char** argv) {
  const char* device = nullptr;
  return run_stoppable([&] { return parse(argc, argv, &device); },
                       [&](const StopSignals& stop) { watch(open_device(device).get(), stop); });
}

}  // namespace verbatim::cli
