// SPDX-License-Identifier: BSD-2-Clause
// `verbatim doctor`: cores, nodes and the processes that are to share them.
#include <cstdio>

#include "perf/cli/doctor_findings.hpp"
#include "perf/cli/topo_facts.hpp"
#include "runtime/topo/machine_read.hpp"

namespace verbatim::cli {
namespace {

void examine_machine(const TopoFacts& facts, Findings& findings) {
  const topo::Machine& machine = *facts.machine;
  if (!machine.known()) {
    const bool built = topo::reader_version() != 0;
    findings.warn("NUMA",
                  std::string("unknown: ") + (built ? "" : "built without hwloc: ") +
                      "buffers and threads are placed by chance",
                  built ? "mend or unset HWLOC_XMLFILE and HWLOC_SYNTHETIC"
                        : "build with hwloc (Debian: libhwloc-dev)");
    return;
  }
  const std::size_t nodes = machine.nodes().size();
  std::vector<std::uint32_t> allowed;
  for (std::uint32_t i = 0; i < nodes; ++i)
    if (topo::node_is_allowed(machine, facts.limits, i))
      allowed.push_back(machine.nodes()[i].number);
  const std::string cause = std::to_string(nodes) + (nodes == 1 ? " node" : " nodes") +
                            ", memory of " + ranges(allowed) + " allowed (hwloc, " +
                            facts.origin() + "); 'verbatim topo' tells more";
  if (!machine.is_this_host()) {
    findings.warn("NUMA", cause + ": the machine is made up",
                  "unset HWLOC_XMLFILE and HWLOC_SYNTHETIC");
  } else if (allowed.empty()) {
    findings.warn("NUMA", cause, "see cpuset.mems of the control group");
  } else {
    findings.ok("NUMA", cause, {{"nodes", nodes}, {"allowed", allowed}});
  }
}

void examine_ranks(const TopoFacts& facts, Findings& findings) {
  const std::uint32_t cores = facts.allowed.cores;
  const std::string here =
      std::to_string(cores) + (cores == 1 ? " core" : " cores") + " (" +
      std::to_string(facts.allowed.processors) + " processors) in the affinity of this process: " +
      (facts.limits.affinity_known ? ranges(facts.limits.affinity) : "unknown");
  Findings::Facts numbers = {{"cores", cores}, {"processors", facts.allowed.processors}};
  if (facts.ranks.count == topo::kNone) {
    if (facts.allowed.processors > 1) {
      findings.ok("cores", here + "; no launcher says how many ranks there are", numbers);
    } else {
      findings.warn(
          "cores", here + ": two processes that poll take turns, a time slice each",
          "allow more (taskset, --cpuset-cpus, srun --cpus-per-task, mpirun --bind-to), or "
          "wait for events (ibv_req_notify_cq) instead of polling",
          numbers);
    }
    return;
  }
  numbers["ranks"] = facts.ranks.count;
  const std::string both = std::to_string(facts.ranks.count) + " ranks on this host, " + here;
  // A rank that is bound sees its own cores only; the others have theirs.
  const bool bound = facts.limits.cpus.count() > facts.limits.affinity.count();
  if (facts.ranks.count > (bound ? facts.limits.cpus.count() : cores)) {
    findings.warn("cores", both + ": oversubscribed: ranks that poll take each other's time",
                  "start fewer ranks, allow more cores, or wait for events instead of polling",
                  numbers);
  } else {
    findings.ok("cores", both, numbers);
  }
}

/// Version 2 writes "quota period" into one file, version 1 a number into each of two.
void examine_quota(const HostFiles& files, std::uint32_t processors, Findings& findings) {
  constexpr std::uint64_t kUsualPeriod = 100'000;
  double tightest = 0;
  std::string file;
  const auto consider = [&](const std::string& path, std::uint64_t quota, std::uint64_t period) {
    if (quota == 0 || period == 0) return;
    const double share = static_cast<double>(quota) / static_cast<double>(period);
    if (!file.empty() && share >= tightest) return;
    tightest = share;
    file = path;
  };
  for (const std::string& folder : group_folders(files, "cpu", true)) {
    const std::string path = folder + "/cpu.max";
    unsigned long long quota = 0, period = kUsualPeriod;
    const std::string text = HostFiles::line(path).value_or("");
    if (std::sscanf(text.c_str(), "%19llu %19llu", &quota, &period) >= 1)
      consider(path, quota, period);
  }
  for (const std::string& folder : group_folders(files, "cpu", false)) {
    const std::string path = folder + "/cpu.cfs_quota_us";
    consider(path, HostFiles::number(path).value_or(0),
             HostFiles::number(folder + "/cpu.cfs_period_us").value_or(kUsualPeriod));
  }
  if (file.empty()) {
    findings.ok("cpu quota", "no control group limits processor time");
    return;
  }
  char text[64];
  std::snprintf(text, sizeof text, ": %.2f processors", tightest);
  if (tightest < processors) {
    findings.warn(
        "cpu quota",
        file + text + " of time for " + std::to_string(processors) +
            " that we may run on: who polls uses it up and is stopped for the rest of the "
            "period",
        "raise it ('docker run --cpus', Kubernetes limits.cpu, CPUQuota=), or wait for "
        "events instead of polling",
        {{"processors", tightest}});
  } else {
    findings.ok("cpu quota", file + text, {{"processors", tightest}});
  }
}

}  // namespace

void examine_cores(const HostFiles& files, Findings& findings) {
  TopoFacts facts{};
  facts.machine = &topo::host_machine();
  topo::read_process_limits(facts.limits);
  facts.allowed = topo::allowed_processors(*facts.machine, facts.limits);
  facts.ranks = topo::local_ranks();
  examine_machine(facts, findings);
  examine_ranks(facts, findings);
  examine_quota(files, facts.allowed.processors, findings);
}

}  // namespace verbatim::cli
