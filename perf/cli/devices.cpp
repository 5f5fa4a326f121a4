// SPDX-License-Identifier: BSD-2-Clause
// `verbatim devices`, `ibv_devices`: one line per device, name and node GUID.
//
// Format of the classic tool, which takes no options and looks at none.
#include <endian.h>
#include <infiniband/verbs.h>

#include <cstdio>
#include <cstring>

#include "perf/cli/commands.hpp"
#include "perf/cli/device_list.hpp"

namespace verbatim::cli {

int devices(Calling calling, int argc, char** argv) {
  if (calling == Calling::kSubcommand && argc > 1) {
    const bool help = std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0;
    if (!help) {
      std::fprintf(stderr, "%s: '%s' is too much: it takes no options\n", argv[0], argv[1]);
      return 1;
    }
    std::printf("Usage: %s             list the RDMA devices\n", argv[0]);
    return 0;
  }
  const DeviceList list;
  if (!list) return 1;
  std::printf("    %-16s\t   node GUID\n", "device");
  std::printf("    %-16s\t----------------\n", "------");
  for (int i = 0; i < list.size(); ++i) {
    ibv_device* device = list.at(i);
    std::printf("    %-16s\t%016llx\n", ibv_get_device_name(device),
                static_cast<unsigned long long>(be64toh(ibv_get_device_guid(device))));
  }
  return 0;
}

}  // namespace verbatim::cli
