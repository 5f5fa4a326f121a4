// SPDX-License-Identifier: BSD-2-Clause
//
// machine_read.hpp by hwloc: the whole machine, also what this process may not use, since others
// that may take the same reading. Frames between run_guarded() and hwloc own nothing that a
// destructor would have to release (hwloc_shims.hpp).
#include <time.h>

#include <algorithm>

#include "runtime/base/log.hpp"
#include "runtime/topo/hwloc_shims.hpp"
#include "runtime/topo/machine_read.hpp"
#include "runtime/topo/private_hwloc.hpp"

namespace verbatim::topo {
namespace {

/// One reading. What hwloc made is given back by destroy() on every way but hwloc's own way out.
struct Reading {
  const MachineSource* source;
  Snapshot* snapshot;
  hwloc_topology_t topology;
  const char* failed;  // null when all went well
};

std::uint32_t count_of(hwloc_topology_t topology, hwloc_obj_type_t type) noexcept {
  const int depth = hwloc_get_type_depth(topology, type);
  // A type at several depths (groups) has no count; none of those is asked for here.
  if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE) return 0;
  const auto count = hwloc_get_nbobjs_by_depth(topology, depth);
  return static_cast<std::uint32_t>(count);
}

hwloc_obj_t object(hwloc_topology_t topology, hwloc_obj_type_t type, std::uint32_t index) noexcept {
  return hwloc_get_obj_by_depth(topology, hwloc_get_type_depth(topology, type), index);
}

/// What of this type the object is part of.
hwloc_obj_t above(hwloc_obj_t at, hwloc_obj_type_t type) noexcept {
  while (at != nullptr && at->type != type) at = at->parent;
  return at;
}

std::uint32_t index_above(hwloc_obj_t at, hwloc_obj_type_t type) noexcept {
  const hwloc_obj_t found = above(at, type);
  return found != nullptr ? found->logical_index : kNone;
}

bool is_high_bandwidth(hwloc_obj_t node) noexcept {
  return node->subtype != nullptr &&
         (strcmp(node->subtype, "MCDRAM") == 0 || strcmp(node->subtype, "HBM") == 0);
}

const char* load(hwloc_topology_t topology, const MachineSource& source) noexcept {
  unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
#if HWLOC_API_VERSION >= 0x00020500
  flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
#if HWLOC_API_VERSION >= 0x00020800
  flags |= HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS;
#endif
  if (hwloc_topology_set_flags(topology, flags) != 0) return "hwloc refuses our flags";
  // It asks each processor itself, moving the calling thread over all of them: a quarter of a
  // second in a virtual machine, and nothing that the kernel has not told.
  (void)hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  (void)hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_CORE})
    (void)hwloc_topology_set_type_filter(topology, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  // Nodes that are less than a package hang on groups; without those they would get everything.
  (void)hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  if (source.origin() == Origin::kXml &&
      hwloc_topology_set_xmlbuffer(topology, source.text(),
                                   static_cast<int>(source.length() + 1)) != 0)
    return "it is no topology in XML";
  if (source.origin() == Origin::kSynthetic &&
      hwloc_topology_set_synthetic(topology, source.text()) != 0)
    return "it describes no machine";
  if (hwloc_topology_load(topology) != 0) return "hwloc cannot load it";
  return nullptr;
}

/// The sizes of all tables.
const char* count(hwloc_topology_t topology, MachineHead& head) noexcept {
  head.node_count = count_of(topology, HWLOC_OBJ_NUMANODE);
  head.pu_count = count_of(topology, HWLOC_OBJ_PU);
  head.group_count = count_of(topology, HWLOC_OBJ_L3CACHE);
  head.package_count = count_of(topology, HWLOC_OBJ_PACKAGE);
  if (head.node_count == 0 || head.pu_count == 0) return "it has no memory or no processor";
  if (head.node_count > kMaxNodes || head.pu_count > kMaxPus || head.group_count > head.pu_count ||
      head.package_count > head.pu_count)
    return "it is larger than any machine";
  // A description may leave out cores: then each processor is one.
  hwloc_obj_t last = nullptr;
  for (std::uint32_t i = 0; i < head.pu_count; ++i) {
    const hwloc_obj_t pu = object(topology, HWLOC_OBJ_PU, i);
    if (pu->os_index > kMaxCpuNumber) return "a processor has no number";
    head.cpu_end = std::max(head.cpu_end, pu->os_index + 1);
    const hwloc_obj_t core = above(pu, HWLOC_OBJ_CORE);
    head.core_count += core == nullptr || core != last ? 1 : 0;
    last = core;
  }
  return nullptr;
}

/// Nodes in the order of their numbers; `order[i]` is the object of node i.
void sort_nodes(hwloc_topology_t topology, hwloc_obj_t* order, std::uint32_t node_count) noexcept {
  for (std::uint32_t i = 0; i < node_count; ++i) {
    const hwloc_obj_t node = object(topology, HWLOC_OBJ_NUMANODE, i);
    std::uint32_t at = i;
    for (; at > 0 && order[at - 1]->os_index > node->os_index; --at) order[at] = order[at - 1];
    order[at] = node;
  }
}

const char* fill_nodes(const Snapshot& snapshot, const MachineTables& at,
                       hwloc_obj_t* order) noexcept {
  const MachineHead& head = snapshot.head();
  auto* const nodes = snapshot.table<Node>(at.nodes);
  for (std::uint32_t i = 0; i < head.node_count; ++i) {
    const hwloc_obj_t from = order[i];
    if (from->os_index == HWLOC_UNKNOWN_INDEX) return "a node has no number";
    if (i != 0 && order[i - 1]->os_index == from->os_index) return "two nodes have one number";
    Node& node = nodes[i];
    node = {.number = from->os_index,
            .package = index_above(from, HWLOC_OBJ_PACKAGE),
            .memory_bytes = from->attr->numanode.local_memory,
            .cpu_count = 0,
            .kind = is_high_bandwidth(from) ? NodeKind::kHighBandwidth : NodeKind::kMain};
    auto* const bits = snapshot.table<std::uint64_t>(at.cpus) + std::uint64_t{i} * at.cpu_words;
    for (std::uint32_t p = 0; p < head.pu_count; ++p) {
      const std::uint32_t cpu = snapshot.table<Pu>(at.pus)[p].cpu;
      if (hwloc_bitmap_isset(from->cpuset, cpu) == 0) continue;
      bits[cpu / 64] |= std::uint64_t{1} << (cpu % 64);
      ++node.cpu_count;
    }
  }
  return nullptr;
}

/// The node that a processor's memory comes from: main memory before other kinds, and of several
/// the one with the fewest processors, so that memory for everybody is not taken for its own.
std::uint32_t own_node(const Snapshot& snapshot, const MachineTables& at,
                       std::uint32_t cpu) noexcept {
  const auto* const nodes = snapshot.table<Node>(at.nodes);
  std::uint32_t best = kNone;
  for (std::uint32_t i = 0; i < snapshot.head().node_count; ++i) {
    const std::uint64_t word =
        snapshot.table<std::uint64_t>(at.cpus)[std::uint64_t{i} * at.cpu_words + cpu / 64];
    if ((word >> (cpu % 64) & 1) == 0) continue;
    if (best == kNone || nodes[i].kind < nodes[best].kind ||
        (nodes[i].kind == nodes[best].kind && nodes[i].cpu_count < nodes[best].cpu_count))
      best = i;
  }
  return best;
}

void fill_processors(hwloc_topology_t topology, const Snapshot& snapshot,
                     const MachineTables& at) noexcept {
  const MachineHead& head = snapshot.head();
  auto* const pus = snapshot.table<Pu>(at.pus);
  auto* const pu_of_cpu = snapshot.table<std::uint32_t>(at.pu_of_cpu);
  std::fill_n(pu_of_cpu, head.cpu_end, kNone);
  std::uint32_t core = kNone;
  hwloc_obj_t last = nullptr;
  for (std::uint32_t i = 0; i < head.pu_count; ++i) {
    const hwloc_obj_t from = object(topology, HWLOC_OBJ_PU, i);
    const hwloc_obj_t its_core = above(from, HWLOC_OBJ_CORE);
    if (its_core == nullptr || its_core != last) ++core;  // (kNone + 1 is 0)
    last = its_core;
    pus[i] = {.cpu = from->os_index,
              .core = core,
              .group = index_above(from, HWLOC_OBJ_L3CACHE),
              .node = kNone};
    pu_of_cpu[from->os_index] = i;
    Core& made = snapshot.table<Core>(at.cores)[core];
    if (made.pu_count++ == 0) {
      made.number = its_core != nullptr ? its_core->os_index : from->os_index;
      made.package = index_above(from, HWLOC_OBJ_PACKAGE);
      made.group = pus[i].group;
      made.first_pu = i;
      made.efficiency = kNone;
    }
  }
}

void fill_groups(hwloc_topology_t topology, const Snapshot& snapshot,
                 const MachineTables& at) noexcept {
  const MachineHead& head = snapshot.head();
  auto* const groups = snapshot.table<Group>(at.groups);
  for (std::uint32_t i = 0; i < head.group_count; ++i) {
    const hwloc_obj_t from = object(topology, HWLOC_OBJ_L3CACHE, i);
    groups[i].cache_bytes = from->attr->cache.size;
    groups[i].package = index_above(from, HWLOC_OBJ_PACKAGE);
    groups[i].node = kNone;
  }
  for (std::uint32_t i = 0; i < head.pu_count; ++i) {
    const Pu& pu = snapshot.table<Pu>(at.pus)[i];
    if (pu.group == kNone) continue;
    Group& group = groups[pu.group];
    if (group.pu_count++ == 0) {
      group.first_pu = i;
      group.node = pu.node;
    } else if (group.node != pu.node) {
      group.node = kNone;  // a cache above several nodes
    }
  }
}

void fill_efficiency(hwloc_topology_t topology, const Snapshot& snapshot,
                     const MachineTables& at) noexcept {
  const int kinds = hwloc_cpukinds_get_nr(topology, 0);
  if (kinds < 2) return;
  const hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
  if (cpus == nullptr) return;
  for (int kind = 0; kind < kinds; ++kind) {
    int efficiency = -1;
    if (hwloc_cpukinds_get_info(topology, static_cast<unsigned>(kind), cpus, &efficiency, nullptr,
                                nullptr, 0) != 0 ||
        efficiency < 0)
      continue;
    for (std::uint32_t i = 0; i < snapshot.head().core_count; ++i) {
      Core& core = snapshot.table<Core>(at.cores)[i];
      if (hwloc_bitmap_isset(cpus, snapshot.table<Pu>(at.pus)[core.first_pu].cpu) != 0)
        core.efficiency = static_cast<std::uint32_t>(efficiency);
    }
  }
  hwloc_bitmap_free(cpus);
}

void fill_distances(hwloc_topology_t topology, const Snapshot& snapshot, const MachineTables& at,
                    const hwloc_obj_t* order) noexcept {
  MachineHead& head = snapshot.head();
  const std::uint32_t n = head.node_count;
  auto* const distances = snapshot.table<std::uint32_t>(at.distances);
  for (std::uint32_t i = 0; i < n * n; ++i) distances[i] = i % (n + 1) == 0 ? 10 : 20;
  hwloc_distances_s* told = nullptr;
  unsigned have = 1;
  if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &have, &told,
                                  HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 ||
      have == 0 || told == nullptr)
    return;
  if (told->nbobjs == n) {
    head.distances_told = 1;
    const auto place = [&](hwloc_obj_t node) {
      const hwloc_obj_t* const found = std::lower_bound(
          order, order + n, node, [](auto x, auto y) { return x->os_index < y->os_index; });
      return static_cast<std::size_t>(found - order);
    };
    for (std::uint32_t a = 0; a < n; ++a) {
      const std::size_t row = place(told->objs[a]);
      for (std::uint32_t b = 0; b < n; ++b) {
        distances[row * n + place(told->objs[b])] = static_cast<std::uint32_t>(
            std::clamp<std::uint64_t>(told->values[std::size_t{a} * n + b], 1, 1u << 30));
      }
    }
  }
  hwloc_distances_release(topology, told);
}

const char* fill(hwloc_topology_t topology, const MachineSource& source,
                 Snapshot& snapshot) noexcept {
  MachineHead head{};
  const char* failed = count(topology, head);
  if (failed != nullptr) return failed;
  const MachineTables at(head);
  auto* const order = static_cast<hwloc_obj_t*>(calloc(head.node_count, sizeof(hwloc_obj_t)));
  if (order == nullptr || !snapshot.allocate(at.end)) {
    free(order);
    return "memory is out";
  }
  head.magic = kMachineMagic;
  head.version = kLayoutVersion;
  head.bytes = static_cast<std::uint32_t>(at.end);
  head.origin = source.origin();
  snapshot.head() = head;
  sort_nodes(topology, order, head.node_count);
  fill_processors(topology, snapshot, at);
  failed = fill_nodes(snapshot, at, order);
  if (failed == nullptr) {
    for (std::uint32_t i = 0; i < head.pu_count; ++i) {
      Pu& pu = snapshot.table<Pu>(at.pus)[i];
      pu.node = own_node(snapshot, at, pu.cpu);
      snapshot.table<Core>(at.cores)[pu.core].node = pu.node;
    }
    fill_groups(topology, snapshot, at);
    fill_efficiency(topology, snapshot, at);
    fill_distances(topology, snapshot, at, order);
  }
  free(order);
  return failed;
}

void read(void* argument) {
  auto& reading = *static_cast<Reading*>(argument);
  if (hwloc_topology_init(&reading.topology) != 0) {
    reading.failed = "hwloc cannot start";
    return;
  }
  reading.failed = load(reading.topology, *reading.source);
  if (reading.failed == nullptr)
    reading.failed = fill(reading.topology, *reading.source, *reading.snapshot);
  hwloc_topology_destroy(reading.topology);
}

long long microseconds() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000ll + now.tv_nsec / 1000;
}

}  // namespace

std::uint32_t reader_version() noexcept { return hwloc_get_api_version(); }

bool read_machine(const MachineSource& source, Snapshot& snapshot) noexcept {
  const long long start = microseconds();
  Reading reading{&source, &snapshot, nullptr, nullptr};
  if (!run_guarded(read, &reading)) reading.failed = "hwloc gave up";
  if (reading.failed != nullptr) {
    log_error("%s: %s; where memory and processors are stays unknown", source.name(),
              reading.failed);
    return false;
  }
  const MachineHead& head = snapshot.head();
  log_debug("%s read by hwloc %u.%u in %lld us: %u nodes, %u cores, %u processors", source.name(),
            reader_version() >> 16, reader_version() >> 8 & 0xff, microseconds() - start,
            head.node_count, head.core_count, head.pu_count);
  return true;
}

}  // namespace verbatim::topo
