// SPDX-License-Identifier: BSD-2-Clause
// `verbatim doctor`: providers, kernel modules, and the way from a kernel device to its file. Reads
// what tells more than the library's own discovery, which leaves out what it cannot use.
//   /sys/class/infiniband/<device>                     made by the driver (rdma_rxe, mlx5_ib ...)
//   /sys/class/infiniband_verbs/uverbsN/{ibdev,dev}    made by ib_uverbs
//   /dev/infiniband/uverbsN                            made by udev, or passed into the container
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "perf/cli/device_list.hpp"
#include "perf/cli/doctor_findings.hpp"
#include "runtime/base/unique_fd.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/provider_registry.hpp"

namespace verbatim::cli {
namespace {

constexpr const char* kDriverModules[] = {
    "rdma_rxe", "siw",  "mlx4_ib", "mlx5_ib", "bnxt_re", "irdma",    "efa",       "hns_roce",
    "iw_cxgb4", "qedr", "erdma",   "mana_ib", "hfi1",    "ib_mthca", "vmw_pvrdma"};

/// Loaded, or part of the kernel and at work.
bool has_module(const HostFiles& files, const std::string& modules, const std::string& name) {
  struct stat status {};
  return modules.find('\n' + name + ' ') != std::string::npos ||
         stat(files.path("/sys/module/" + name).c_str(), &status) == 0;
}

void examine_modules(const HostFiles& files, std::size_t devices, Findings& findings) {
  const std::string modules = '\n' + HostFiles::text(files.path("/proc/modules")).value_or("");
  std::string loaded;
  for (const char* const name : kDriverModules)
    if (has_module(files, modules, name)) loaded.append(loaded.empty() ? "" : " ").append(name);
  const bool uverbs = has_module(files, modules, "ib_uverbs");
  const Findings::Facts facts = {{"ib_core", has_module(files, modules, "ib_core")},
                                 {"ib_uverbs", uverbs},
                                 {"drivers", loaded}};
  if (uverbs && !loaded.empty()) {
    findings.ok("modules", "ib_uverbs and " + loaded + " are loaded", facts);
  } else if (uverbs) {
    findings.ok("modules", "ib_uverbs is loaded, and no driver that this program knows of", facts);
  } else if (!loaded.empty() || devices != 0) {
    findings.fail("modules",
                  (loaded.empty() ? "there are RDMA devices" : loaded + ": loaded") +
                      ", but ib_uverbs is not: programs cannot reach the kernel's devices",
                  "'modprobe ib_uverbs' on the host (a container has the host's modules)", facts);
  } else {
    findings.ok("modules",
                "no RDMA module is loaded, and shm needs none (for Soft-RoCE between hosts: "
                "'modprobe rdma_rxe', then 'rdma link add rxe0 type rxe netdev <netdev>'; \"Module "
                "rdma_rxe not found\": install the distribution's linux-modules-extra)",
                facts);
  }
}

struct Trouble {
  std::string cause;
  std::string fix;
};

/// What keeps the file of a device from being opened; nothing when it can be. `number`: "231:192".
Trouble examine_node(const std::string& path, const std::string& number) {
  const auto because = [&](const char* call) {
    return "cannot " + std::string(call) + ' ' + path + ": " + std::strerror(errno);
  };
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    if (errno == EACCES)
      return {because("reach"), "'chmod 755' its folder, as udev makes it, or run as another user"};
    return {because("open"), "pass the device into the container ('--device " + path +
                                 "', Kubernetes: a device plugin); on a host: is udev running?"};
  }
  if (faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) != 0) {
    char mode[128];
    std::snprintf(mode, sizeof mode, " (mode %04o, owner %u, group %u; we are user %u)",
                  static_cast<unsigned>(status.st_mode & 07777), status.st_uid, status.st_gid,
                  geteuid());
    return {because("open") + mode,
            "'chmod 0666 " + path +
                "' as the rules of rdma-core for udev do, or give it to your "
                "user's group"};
  }
  unsigned wanted_major = 0, wanted_minor = 0;
  const bool known = std::sscanf(number.c_str(), "%u:%u", &wanted_major, &wanted_minor) == 2;
  if (!S_ISCHR(status.st_mode) ||
      (known && (major(status.st_rdev) != wanted_major || minor(status.st_rdev) != wanted_minor))) {
    return {path + " is not the node of this device (it would be character device " + number + ')',
            "it was made for another one: remove it and let udev make it anew"};
  }
  // Only now: opening some other device may do things to it.
  const UniqueFd node(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (node.valid()) return {};
  if (errno == EPERM)
    return {because("open"),
            "the device is not of this container or network namespace: pass it in ('--device " +
                path + "'), or see 'rdma system'"};
  return {because("open"), "the device was removed, or its driver is not at work: see 'dmesg'"};
}

/// ABI versions that the library speaks; see providers/uverbs.
void examine_abi(const HostFiles& files, Findings& findings) {
  const std::string path = files.sysfs("/class/infiniband_verbs/abi_version");
  const std::optional<std::uint64_t> version = HostFiles::number(path);
  if (!version) {
    findings.fail("kernel ABI", "couldn't read uverbs ABI version from " + path,
                  "mount /sys into the container, or load ib_uverbs");
  } else if (*version < 3 || *version > 6) {
    findings.fail(
        "kernel ABI",
        "kernel ABI version " + std::to_string(*version) + " doesn't match library version 6",
        "build with a newer version of this library, or run another kernel");
  }
}

}  // namespace

void examine_providers(Findings& findings) {
  std::string names;
  Findings::Facts facts = Findings::Facts::array();
  for (const ProviderTable* const provider : provider_table()) {
    names.append(names.empty() ? "" : " ").append(provider->name);
    facts.push_back(provider->name);
  }
  if (names.empty()) {
    findings.fail("providers",
                  "none is compiled in: ibv_get_device_list always answers an empty list",
                  "link without RDMA_STATIC_PROVIDERS=none");
  } else {
    findings.ok("providers", names + " (compiled into this program)", facts);
  }
}

void examine_kernel_devices(const HostFiles& files, Findings& findings) {
  const std::vector<std::string> devices = HostFiles::names(files.sysfs("/class/infiniband"));
  examine_modules(files, devices.size(), findings);

  const std::string verbs = files.sysfs("/class/infiniband_verbs");
  struct stat status {};
  if (stat(verbs.c_str(), &status) == 0) examine_abi(files, findings);
  std::vector<std::string> with_verbs;
  const DeviceList list;
  for (const std::string& uverbs : HostFiles::names(verbs)) {
    if (uverbs.rfind("uverbs", 0) != 0) continue;
    const std::string folder = verbs + '/' + uverbs;
    const std::optional<std::string> name = HostFiles::line(folder + "/ibdev");
    if (!name) {
      findings.warn("kernel device", uverbs + ": " + folder + "/ibdev cannot be read",
                    "mount all of /sys into the container, or list again: it may be leaving");
      continue;
    }
    with_verbs.push_back(*name);
    const std::string node = files.path("/dev/infiniband/" + uverbs);
    const Trouble trouble =
        examine_node(node, HostFiles::line(folder + "/dev").value_or("unknown"));
    const std::string who = *name + " (" + uverbs + "): ";
    if (!trouble.cause.empty()) {
      findings.fail("kernel device", who + trouble.cause, trouble.fix);
    } else if (list && list.find(*name) == nullptr) {
      // The words that programs over rdma-core print.
      findings.warn("kernel device",
                    who + "no userspace device-specific driver found for " + folder +
                        ": no provider of this program drives it",
                    "use its network interface through Soft-RoCE ('rdma link add rxe0 type rxe "
                    "netdev <netdev>'), or shm within this host");
    } else {
      findings.ok("kernel device", who + node + " can be opened");
    }
  }
  for (const std::string& device : devices) {
    if (std::find(with_verbs.begin(), with_verbs.end(), device) != with_verbs.end()) continue;
    findings.fail("kernel device", device + " has no uverbs device in " + verbs,
                  "'modprobe ib_uverbs' on the host; in a container: mount /sys, and see 'rdma "
                  "system' for the network namespace");
  }
  if (devices.empty() && with_verbs.empty())
    findings.ok("kernel device", "the kernel has none; shm needs none");
}

}  // namespace verbatim::cli
