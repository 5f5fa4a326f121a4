// SPDX-License-Identifier: BSD-2-Clause
#include "perf/peers/kernel_device.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace verbatim::perf {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Of an IPv4 address by RoCE v2, which both ends reach by the address of the interface.
std::string gid_index(const std::string& port) {
  constexpr int kMostGids = 256;
  for (int i = 0; i < kMostGids; ++i) {
    const std::string index = std::to_string(i);
    const std::string gid = first_line(port + "/gids/" + index);
    if (gid.empty()) break;
    if (gid.starts_with("0000:0000:0000:0000:0000:ffff:") &&
        first_line(port + "/gid_attrs/types/" + index) == "RoCE v2")
      return index;
  }
  return "";
}

}  // namespace

KernelDevice find_kernel_device(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored))
    names.push_back(at->path().filename().string());
  std::ranges::sort(names);
  KernelDevice found;
  found.missing = "no kernel RDMA device";
  for (const std::string& name : names) {
    const std::string device = folder + "/" + name, port = device + "/ports/1";
    // "4: RNIC"
    if (first_line(device + "/node_type").starts_with("4")) {
      found.missing = name + " is iWARP: it connects by rdma_cm alone, which ours do not speak";
      continue;
    }
    // "4: ACTIVE"
    if (!first_line(port + "/state").starts_with("4")) {
      found.missing = "port 1 of " + name + " is not active";
      continue;
    }
    const bool is_ethernet = first_line(port + "/link_layer") == "Ethernet";
    std::string gid = is_ethernet ? gid_index(port) : "";
    if (is_ethernet && gid.empty()) {
      found.missing = name + " has no GID of an IPv4 address";
      continue;
    }
    return {name, gid, ""};
  }
  return found;
}

}  // namespace verbatim::perf
