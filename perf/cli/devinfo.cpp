// SPDX-License-Identifier: BSD-2-Clause
// `verbatim devinfo`, `ibv_devinfo`: what the devices and their ports say of themselves.
//
// Main thread. Options, stdout and exit statuses are those of the classic tool; stderr begins with
// its words and goes on with the way out.
#include <fcntl.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "perf/cli/commands.hpp"
#include "perf/cli/device_list.hpp"
#include "perf/cli/devinfo_lines.hpp"
#include "perf/cli/numbers.hpp"

namespace verbatim::cli {
namespace {

// The classic exit statuses; those of several devices are or-ed.
enum Status { kDone = 0, kOpen = 1, kQueryDevice = 2, kClose = 3, kBadPort = 4, kQueryPort = 5 };
constexpr int kUsageOrNone = 255;

struct DevinfoOptions {
  const char* device = nullptr;
  int port = 0;  // 0: all
  bool list_only = false;
  bool verbose = false;
  bool classic = false;  // not a byte more than the classic tool
};

void devinfo_usage(const char* name) {
  std::printf(
      "Usage: %s             print the ca attributes\n"
      "\n"
      "Options:\n"
      "  -d, --ib-dev=<dev>     use IB device <dev> (default first device found)\n"
      "  -i, --ib-port=<port>   use port <port> of IB device (default all ports)\n"
      "  -l, --list             print only the IB devices names\n"
      "  -v, --verbose          print all the attributes of the IB device(s)\n",
      name);
}

/// The options, or the exit status when there is nothing more to do.
std::optional<int> parse(Calling calling, int argc, char** argv, DevinfoOptions* options) {
  constexpr int kHelp = 'h';
  static const option kLong[] = {
      {"ib-dev", required_argument, nullptr, 'd'}, {"ib-port", required_argument, nullptr, 'i'},
      {"list", no_argument, nullptr, 'l'},         {"verbose", no_argument, nullptr, 'v'},
      {"help", no_argument, nullptr, kHelp},       {}};
  static const option kClassic[] = {kLong[0], kLong[1], kLong[2], kLong[3], {}};
  const bool classic = calling == Calling::kClassicName;
  for (;;) {
    const int c = getopt_long(argc, argv, classic ? "d:i:lv" : "d:i:lvh",
                              classic ? kClassic : kLong, nullptr);
    if (c == -1) return {};
    switch (c) {
      case 'd':
        options->device = optarg;
        break;
      case 'i': {
        const auto port = number_in(optarg, 1, 255);
        if (!port) {
          std::fprintf(stderr, "%s: port '%s' is not a number from 1 to 255 (-i)\n", argv[0],
                       optarg);
          return 1;
        }
        options->port = static_cast<int>(*port);
        break;
      }
      case 'l':
        options->list_only = true;
        break;
      case 'v':
        options->verbose = true;
        break;
      case kHelp:
        devinfo_usage(argv[0]);
        return 0;
      default:
        devinfo_usage(argv[0]);
        return kUsageOrNone;
    }
  }
}

/// What the device's folder in sysfs says; a device without one, or without the file, has none.
std::string read_board_id(const ibv_device& device) {
  char text[256] = "";
  const int folder = open(device.ibdev_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return {};
  const int file = openat(folder, "board_id", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  close(folder);
  if (file < 0) return {};
  const ssize_t got = read(file, text, sizeof(text) - 1);
  close(file);
  std::string id(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

int print_gids(ibv_context* context, int port, const ibv_port_attr& attr) {
  static const union ibv_gid kEmpty = {};
  for (int i = 0; i < attr.gid_tbl_len; ++i) {
    union ibv_gid gid;
    if (ibv_query_gid(context, static_cast<std::uint8_t>(port), i, &gid) != 0) {
      std::fprintf(stderr, "Failed to query gid to port %d, index %d\n", port, i);
      return kUsageOrNone;
    }
    if (std::memcmp(&gid, &kEmpty, sizeof(gid)) == 0) continue;
    // A provider that cannot tell the type has plain InfiniBand GIDs.
    ibv_gid_entry entry = {};
    const bool typed = ibv_query_gid_ex(context, static_cast<std::uint32_t>(port),
                                        static_cast<std::uint32_t>(i), &entry, 0) == 0;
    print_gid(i, gid, typed ? static_cast<ibv_gid_type>(entry.gid_type) : IBV_GID_TYPE_IB, attr);
  }
  return kDone;
}

int print_open_device(ibv_context* context, const DevinfoOptions& options) {
  const ibv_device& device = *context->device;
  ibv_device_attr_ex attr = {};
  if (ibv_query_device_ex(context, nullptr, &attr) != 0) {
    std::fprintf(stderr, "Failed to query device props of %s\n", device.name);
    return kQueryDevice;
  }
  const int ports = attr.orig_attr.phys_port_cnt;
  if (options.port > ports) {
    std::fprintf(stderr, "Invalid port requested for device %s: it has %d, not %d (-i)\n",
                 device.name, ports, options.port);
    return kBadPort;
  }
  print_device_identity(device, attr.orig_attr, read_board_id(device));
  if (options.verbose) {
    print_device_limits(attr.orig_attr);
    print_device_extended_caps(attr);
    if (!options.classic) print_pci_atomics(attr.pci_atomic_caps);
    std::printf("\tnum_comp_vectors:\t\t%d\n", context->num_comp_vectors);
  }
  const int first = options.port != 0 ? options.port : 1;
  const int last = options.port != 0 ? options.port : ports;
  for (int port = first; port <= last; ++port) {
    ibv_port_attr port_attr = {};
    if (ibv_query_port(context, static_cast<std::uint8_t>(port), &port_attr) != 0) {
      std::fprintf(stderr, "Failed to query port %d props\n", port);
      return kQueryPort;
    }
    std::printf("\t\tport:\t%d\n", port);
    print_port(port_attr);
    if (options.verbose) {
      print_port_details(device, port_attr);
      if (const int status = print_gids(context, port, port_attr); status != kDone) return status;
    }
    std::printf("\n");
  }
  return kDone;
}

int print_device(ibv_device* device, const DevinfoOptions& options) {
  ibv_context* context = ibv_open_device(device);
  if (context == nullptr) {
    std::fprintf(stderr, "Failed to open device %s: %s\n", device->name, std::strerror(errno));
    return kOpen;
  }
  const int status = print_open_device(context, options);
  if (ibv_close_device(context) != 0) {
    std::fprintf(stderr, "Failed to close device %s\n", device->name);
    return kClose;
  }
  return status;
}

}  // namespace

int devinfo(Calling calling, int argc, char** argv) {
  DevinfoOptions options;
  if (const auto status = parse(calling, argc, argv, &options)) return *status;
  options.classic = calling == Calling::kClassicName;
  // The classic tool looks at none of these.
  if (calling == Calling::kSubcommand && optind < argc) {
    std::fprintf(stderr, "%s: '%s' is too much: a device is named with -d\n", argv[0],
                 argv[optind]);
    return kUsageOrNone;
  }
  const DeviceList list;
  if (!list) return kUsageOrNone;
  if (options.list_only) {
    std::printf("%d HCA%s found:\n", list.size(), list.size() == 1 ? "" : "s");
    for (int i = 0; i < list.size(); ++i) std::printf("\t%s\n", ibv_get_device_name(list.at(i)));
    std::printf("\n");
    return kDone;
  }
  if (options.device != nullptr) {
    ibv_device* device = list.find(options.device);
    if (device == nullptr) {
      std::fprintf(stderr, "IB device '%s' wasn't found (there is: %s)\n", options.device,
                   list.names().c_str());
      return kUsageOrNone;
    }
    return print_device(device, options);
  }
  if (list.size() == 0) {
    std::fprintf(stderr, "No IB devices found\n");
    return kUsageOrNone;
  }
  int status = kDone;
  for (int i = 0; i < list.size(); ++i) status |= print_device(list.at(i), options);
  return status;
}

}  // namespace verbatim::cli
