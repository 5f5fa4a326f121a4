// SPDX-License-Identifier: BSD-2-Clause
// `verbatim doctor`: what limits memory that is registered: locked, grouped, huge, forked. Spec:
// getrlimit(2), capabilities(7), cgroups(7), the kernel's admin-guide/mm/hugetlbpage.
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "perf/cli/device_list.hpp"
#include "perf/cli/doctor_findings.hpp"
#include "perf/cli/topo_facts.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::cli {
namespace {

using perf::ContextHandle;

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

std::string limit_text(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : bytes_text(limit);
}

Findings::Facts limit_json(rlim_t limit) {
  return limit == RLIM_INFINITY ? Findings::Facts() : Findings::Facts(limit);
}

/// Whether the kernel lets us lock beyond the limit: it asks for the capability in the first user
/// namespace, so that the root of a rootless container does not have it.
bool may_lock_anything(const HostFiles& files) {
  constexpr unsigned kIpcLock = 14;
  const std::string status = HostFiles::text(files.path("/proc/self/status")).value_or("");
  const std::string effective = field(status, "CapEff").value_or("0");
  const bool capable = (std::strtoull(effective.c_str(), nullptr, 16) >> kIpcLock & 1) != 0;
  const std::optional<std::string> space = HostFiles::link(files.path("/proc/self/ns/user"));
  return capable && space == "user:[4026531837]";
}

/// Whether there is a device that pins what is registered.
bool has_kernel_device(const HostFiles& files) {
  return !HostFiles::names(files.sysfs("/class/infiniband_verbs")).empty();
}

/// The first device whose driver counts what is pinned without asking for the capability, as siw's
/// does (drivers/infiniband/sw/siw/siw_mem.c); empty: there is none.
std::string device_without_exceptions() {
  constexpr std::uint32_t kSiwVendor = 0x626d74;
  const DeviceList list;
  for (int i = 0; list && i < list.size(); ++i) {
    if (list.at(i)->transport_type != IBV_TRANSPORT_IWARP) continue;
    const ContextHandle context(ibv_open_device(list.at(i)));
    ibv_device_attr attributes{};
    if (context && ibv_query_device(context.get(), &attributes) == 0 &&
        attributes.vendor_id == kSiwVendor)
      return ibv_get_device_name(list.at(i));
  }
  return "";
}

void examine_memlock(const HostFiles& files, Findings& findings) {
  constexpr rlim_t kPlenty = 1024 * kMib;  // what a rank of usual programs registers
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  const bool lifted = may_lock_anything(files);
  const std::string both = "RLIMIT_MEMLOCK: memlock limit (ulimit -l) " +
                           limit_text(limit.rlim_cur) + ", hard " + limit_text(limit.rlim_max);
  const Findings::Facts facts = {{"soft_bytes", limit_json(limit.rlim_cur)},
                                 {"hard_bytes", limit_json(limit.rlim_max)},
                                 {"lifted", lifted}};
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kPlenty) {
    findings.ok("memlock", both, facts);
    return;
  }
  const std::string strict = lifted ? device_without_exceptions() : "";
  if (lifted && strict.empty()) {
    findings.ok("memlock", both + "; CAP_IPC_LOCK lifts it for this process", facts);
    return;
  }
  const std::string fix =
      std::string(limit.rlim_max > limit.rlim_cur
                      ? "'ulimit -l " +
                            (limit.rlim_max == RLIM_INFINITY
                                 ? std::string("unlimited")
                                 : std::to_string(limit.rlim_max / 1024)) +
                            "' is allowed; for more: "
                      : "") +
      "'* - memlock unlimited' in /etc/security/limits.conf and a new login; systemd: "
      "LimitMEMLOCK=infinity (slurmd, sshd too); containers: --ulimit memlock=-1; rootless ones "
      "cannot exceed their host's limit";
  const std::string effect =
      ": ibv_reg_mr and ibv_create_qp answer ENOMEM (Cannot allocate memory) beyond it on " +
      (lifted ? strict + ", whose driver does not heed CAP_IPC_LOCK" : "kernel devices") +
      "; shm locks nothing";
  if (has_kernel_device(files) && limit.rlim_cur < 8 * kMib) {
    findings.fail("memlock", both + effect, fix, facts);
  } else {
    findings.warn("memlock", both + effect, fix, facts);
  }
}

void examine_groups(const HostFiles& files, Findings& findings) {
  const std::optional<GroupLimit> memory = tightest_limit(
      files,
      {"memory", "memory.max", "memory.current", "memory.limit_in_bytes", "memory.usage_in_bytes"});
  if (!memory) {
    findings.ok("cgroup memory", "no control group limits memory");
  } else {
    const std::uint64_t left = memory->limit > memory->used ? memory->limit - memory->used : 0;
    const std::string cause = memory->file + ": " + bytes_text(memory->limit) + ", of which " +
                              bytes_text(memory->used) +
                              " are used; shared, registered and huge page cache memory counts";
    const Findings::Facts facts = {{"limit_bytes", memory->limit}, {"used_bytes", memory->used}};
    if (left < 256 * kMib) {
      findings.warn("cgroup memory", cause + ": beyond it processes are killed (OOM, exit 137)",
                    "raise it: 'docker run --memory', Kubernetes resources.limits.memory, systemd "
                    "MemoryMax=, Slurm --mem",
                    facts);
    } else {
      findings.ok("cgroup memory", cause, facts);
    }
  }
  const std::optional<GroupLimit> tasks =
      tightest_limit(files, {"pids", "pids.max", "pids.current", "pids.max", "pids.current"});
  if (tasks && tasks->limit < tasks->used + 32) {
    findings.warn("cgroup tasks",
                  tasks->file + ": " + std::to_string(tasks->limit) + ", of which " +
                      std::to_string(tasks->used) +
                      " are there: a process that opens a device needs one thread more",
                  "raise it: 'docker run --pids-limit', systemd TasksMax=",
                  {{"limit", tasks->limit}, {"used", tasks->used}});
  }
  // "mlx5_0 hca_handle=2 hca_object=2000"
  for (const std::string& folder : group_folders(files, "rdma", true)) {
    const std::string limits = HostFiles::text(folder + "/rdma.max").value_or("");
    for (std::size_t at = 0; at < limits.size();) {
      const std::size_t end = std::min(limits.find('\n', at), limits.size());
      const std::string line = limits.substr(at, end - at);
      at = end + 1;
      if (line.find("hca_handle=max hca_object=max") != std::string::npos || line.empty()) continue;
      findings.warn("cgroup rdma",
                    folder + "/rdma.max: " + line +
                        ": opening devices and creating objects beyond it answers EAGAIN (Resource "
                        "temporarily unavailable)",
                    "write '<device> hca_handle=max hca_object=max' to it");
    }
  }
}

std::string huge_pages_of(const HostFiles& files, Findings::Facts& facts) {
  std::string all;
  const std::string folder = files.path("/sys/kernel/mm/hugepages");
  for (const std::string& name : HostFiles::names(folder)) {
    std::uint64_t kib = 0;
    if (std::sscanf(name.c_str(), "hugepages-%12" SCNu64 "kB", &kib) != 1) continue;
    const auto number = [&](const char* file) {
      return HostFiles::number(folder + '/' + name + '/' + file).value_or(0);
    };
    const std::uint64_t reserved = number("nr_hugepages"), free = number("free_hugepages");
    facts.push_back({{"size_kib", kib}, {"pages", reserved}, {"free", free}});
    if (reserved == 0) continue;
    all += (all.empty() ? "" : ", ") + std::to_string(free) + " of " + std::to_string(reserved) +
           " pages of " + (kib < std::uint64_t{1} << 40 ? bytes_text(kib * 1024) : name) + " free";
  }
  return all;
}

/// "never" of "always madvise [never]".
std::string chosen_word(const std::string& words) {
  const std::size_t from = words.find('['), to = words.find(']', from);
  if (from == std::string::npos || to == std::string::npos) return "unknown";
  return words.substr(from + 1, to - from - 1);
}

void examine_huge_pages(const HostFiles& files, Findings& findings) {
  Findings::Facts sizes = Findings::Facts::array();
  const std::string reserved = huge_pages_of(files, sizes);
  const std::string transparent =
      chosen_word(HostFiles::line(files.path("/sys/kernel/mm/transparent_hugepage/enabled"))
                      .value_or("[unknown]"));
  const Findings::Facts facts = {{"sizes", sizes}, {"transparent", transparent}};
  const std::string cause =
      (reserved.empty() ? "none is reserved" : reserved) + "; transparent ones: " + transparent;
  if (reserved.empty() && transparent == "never") {
    findings.warn("huge pages", cause + ": large buffers cost more translations",
                  "'sysctl vm.nr_hugepages=<pages>', or 'echo madvise > "
                  "/sys/kernel/mm/transparent_hugepage/enabled'",
                  facts);
  } else {
    findings.ok("huge pages", cause, facts);
  }
}

/// Which choice the kernel follows when files in memory ask for 2 MiB pages: that of the size
/// (Linux 6.11), unless it is to inherit, or unless one for all sizes is meant to overrule it.
std::string shared_choice(const HostFiles& files, std::string& file) {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  const auto chosen = [&](const std::string& name) {
    file = folder + name;
    return chosen_word(HostFiles::line(files.path(file)).value_or(""));
  };
  const std::string of_the_size = chosen("hugepages-2048kB/shmem_enabled");
  const std::string of_all = chosen("shmem_enabled");
  if (of_the_size == "unknown" || of_the_size == "inherit" || of_all == "deny" || of_all == "force")
    return of_all;
  file = folder + "hugepages-2048kB/shmem_enabled";
  return of_the_size;
}

void examine_shared_huge_pages(const HostFiles& files, Findings& findings) {
  std::string file;
  const std::string choice = shared_choice(files, file);
  const Findings::Facts facts = {{"file", file}, {"choice", choice}};
  if (choice == "unknown") {
    findings.ok("shm huge pages", "the kernel does not tell of any (" + file + ")", facts);
  } else if (choice == "never" || choice == "deny") {
    findings.warn("shm huge pages",
                  file + ": " + choice +
                      ": memory that peers map has no 2 MiB pages: it is slower to allocate, and "
                      "large messages are slower to copy",
                  "'echo advise > " + file + "' as root ('within_size' and 'always' do too)",
                  facts);
  } else {
    findings.ok("shm huge pages", file + ": " + choice + ": memory that peers map gets 2 MiB pages",
                facts);
  }
}

void examine_forks(const HostFiles& files, Findings& findings) {
  utsname system{};
  int major = 0, minor = 0;
  const bool known =
      uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2;
  const char* const classic = std::getenv("RDMAV_FORK_SAFE");
  const char* const other = std::getenv("IBV_FORK_SAFE");
  const bool asked = classic != nullptr || other != nullptr;
  if (known && (major > 5 || (major == 5 && minor >= 12))) {
    findings.ok("fork", std::string("fork safety: Linux ") + system.release +
                            " copies pinned pages when a process forks, shm is safe by itself" +
                            (asked ? "; RDMAV_FORK_SAFE and IBV_FORK_SAFE are not needed" : ""));
  } else if (has_kernel_device(files)) {
    findings.warn("fork",
                  std::string("fork safety: Linux ") + (known ? system.release : "of unknown age") +
                      " may take registered pages from a parent that forks (copy-on-write)",
                  "run Linux 5.12 or later, or fork (system, popen) before registering memory");
  } else {
    findings.ok("fork", "fork safety: shm is safe by itself; no device here pins pages");
  }
}

}  // namespace

void examine_memory(const HostFiles& files, Findings& findings) {
  examine_memlock(files, findings);
  examine_groups(files, findings);
  examine_huge_pages(files, findings);
  examine_shared_huge_pages(files, findings);
  examine_forks(files, findings);
}

}  // namespace verbatim::cli
