// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/machine_check.hpp"

#include "runtime/topo/hash.hpp"

namespace verbatim::topo {
namespace {

constexpr std::size_t kSummedFrom = offsetof(MachineHead, checksum) + sizeof(MachineHead::checksum);

bool is_index(std::uint32_t index, std::uint32_t count) noexcept { return index < count; }
bool is_index_or_none(std::uint32_t index, std::uint32_t count) noexcept {
  return index < count || index == kNone;
}
bool is_range(std::uint32_t first, std::uint32_t length, std::uint32_t count) noexcept {
  return length != 0 && first < count && length <= count - first;
}

const char* check_counts(const MachineHead& head) noexcept {
  if (head.origin > Origin::kXml) return "it comes from nowhere known";
  if (head.node_count == 0 || head.node_count > kMaxNodes) return "no sane number of nodes";
  if (head.pu_count == 0 || head.pu_count > kMaxPus) return "no sane number of processors";
  if (head.core_count == 0 || head.core_count > head.pu_count) return "no sane number of cores";
  if (head.group_count > head.pu_count) return "no sane number of L3 caches";
  if (head.package_count > head.pu_count + head.node_count) return "no sane number of packages";
  if (head.cpu_end < head.pu_count || head.cpu_end > kMaxCpuNumber + 1)
    return "no sane highest processor";
  return nullptr;
}

}  // namespace

std::uint64_t machine_checksum(const unsigned char* bytes, std::size_t size) noexcept {
  return size < kSummedFrom ? 0 : hash_bytes(bytes + kSummedFrom, size - kSummedFrom);
}

const char* check_machine(const unsigned char* bytes, std::size_t size) noexcept {
  if (size < sizeof(MachineHead)) return "it is too short";
  const auto& head = *reinterpret_cast<const MachineHead*>(bytes);
  if (head.magic != kMachineMagic) return "it is something else";
  if (head.version != kLayoutVersion) return "it has another version";
  const char* const wrong = check_counts(head);
  if (wrong != nullptr) return wrong;
  const MachineTables at(head);
  if (head.bytes != size || at.end != size) return "its size is wrong";
  if (machine_checksum(bytes, size) != head.checksum) return "its checksum is wrong";

  const auto* const nodes = reinterpret_cast<const Node*>(bytes + at.nodes);
  const auto* const groups = reinterpret_cast<const Group*>(bytes + at.groups);
  const auto* const cores = reinterpret_cast<const Core*>(bytes + at.cores);
  const auto* const pus = reinterpret_cast<const Pu*>(bytes + at.pus);
  const auto* const pu_of_cpu = reinterpret_cast<const std::uint32_t*>(bytes + at.pu_of_cpu);
  const auto* const distances = reinterpret_cast<const std::uint32_t*>(bytes + at.distances);
  const auto* const cpus = reinterpret_cast<const std::uint64_t*>(bytes + at.cpus);

  for (std::uint32_t i = 0; i < head.node_count; ++i) {
    const Node& node = nodes[i];
    if (!is_index_or_none(node.package, head.package_count) ||
        node.kind > NodeKind::kHighBandwidth || (i != 0 && nodes[i - 1].number >= node.number))
      return "a node is wrong";
    std::uint32_t count = 0;
    for (std::uint32_t word = 0; word < at.cpu_words; ++word) {
      for (std::uint64_t bits = cpus[std::uint64_t{i} * at.cpu_words + word]; bits != 0;
           bits &= bits - 1) {
        const std::uint32_t cpu = word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits));
        if (cpu >= head.cpu_end || pu_of_cpu[cpu] == kNone) return "a node has a strange processor";
        ++count;
      }
    }
    if (count != node.cpu_count) return "a node has another number of processors";
  }
  for (std::uint32_t i = 0; i < head.group_count; ++i) {
    const Group& group = groups[i];
    if (!is_index_or_none(group.package, head.package_count) ||
        !is_index_or_none(group.node, head.node_count) ||
        !is_range(group.first_pu, group.pu_count, head.pu_count))
      return "an L3 cache is wrong";
  }
  for (std::uint32_t i = 0; i < head.core_count; ++i) {
    const Core& core = cores[i];
    if (!is_index_or_none(core.package, head.package_count) ||
        !is_index_or_none(core.group, head.group_count) ||
        !is_index_or_none(core.node, head.node_count) ||
        !is_range(core.first_pu, core.pu_count, head.pu_count))
      return "a core is wrong";
  }
  for (std::uint32_t i = 0; i < head.pu_count; ++i) {
    const Pu& pu = pus[i];
    if (!is_index(pu.cpu, head.cpu_end) || !is_index(pu.core, head.core_count) ||
        !is_index_or_none(pu.group, head.group_count) ||
        !is_index_or_none(pu.node, head.node_count) || pu_of_cpu[pu.cpu] != i)
      return "a processor is wrong";
  }
  for (std::uint32_t cpu = 0; cpu < head.cpu_end; ++cpu) {
    if (pu_of_cpu[cpu] == kNone) continue;
    if (!is_index(pu_of_cpu[cpu], head.pu_count) || pus[pu_of_cpu[cpu]].cpu != cpu)
      return "a processor's number is wrong";
  }
  for (std::uint32_t i = 0; i < head.node_count * head.node_count; ++i) {
    if (distances[i] == 0) return "a distance is wrong";
  }
  return nullptr;
}

}  // namespace verbatim::topo
