// SPDX-License-Identifier: BSD-2-Clause
//
// The questions that placement asks of a machine. All answers are indices into its tables (the
// kernel's numbers are members there), and kNone when nobody knows: without hwloc, for a processor
// that the machine does not have, for a made-up machine that has less than this one. Every function
// is any thread's, never allocates, and takes O(1) unless it says otherwise.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/topo/machine_layout.hpp"

namespace verbatim::topo {

class Machine {
 public:
  /// A machine of which nothing is known: every answer is kNone.
  constexpr Machine() noexcept = default;
  /// REQUIRES: check_machine() found nothing wrong; the bytes outlive this.
  explicit Machine(const unsigned char* bytes) noexcept : bytes_(bytes), at_(head()) {}

  [[nodiscard]] bool known() const noexcept { return bytes_ != nullptr; }
  /// False: it is made up (HWLOC_XMLFILE, HWLOC_SYNTHETIC), or unknown.
  [[nodiscard]] bool is_this_host() const noexcept {
    return known() && head().origin == Origin::kThisHost;
  }
  /// REQUIRES: known().
  [[nodiscard]] const MachineHead& head() const noexcept {
    return *reinterpret_cast<const MachineHead*>(bytes_);
  }
  [[nodiscard]] std::span<const Node> nodes() const noexcept {
    return known() ? table<Node>(at_.nodes, head().node_count) : std::span<const Node>();
  }
  [[nodiscard]] std::span<const Group> groups() const noexcept {
    return known() ? table<Group>(at_.groups, head().group_count) : std::span<const Group>();
  }
  [[nodiscard]] std::span<const Core> cores() const noexcept {
    return known() ? table<Core>(at_.cores, head().core_count) : std::span<const Core>();
  }
  [[nodiscard]] std::span<const Pu> pus() const noexcept {
    return known() ? table<Pu>(at_.pus, head().pu_count) : std::span<const Pu>();
  }

  /// What belongs to the processor with the kernel's number `cpu`.
  [[nodiscard]] std::uint32_t pu_of_cpu(std::uint32_t cpu) const noexcept;
  [[nodiscard]] std::uint32_t node_of_cpu(std::uint32_t cpu) const noexcept;
  [[nodiscard]] std::uint32_t group_of_cpu(std::uint32_t cpu) const noexcept;
  /// Where the calling thread runs at this moment.
  [[nodiscard]] std::uint32_t node_of_this_thread() const noexcept;
  /// The index of the node with the kernel's number `number`. O(log nodes).
  [[nodiscard]] std::uint32_t node_by_number(std::uint32_t number) const noexcept;

  /// The distance that the firmware tells: 10 is local; kNone for a node that is not there.
  [[nodiscard]] std::uint32_t distance(std::uint32_t from, std::uint32_t to) const noexcept;
  /// The processors near a node, a bit for each of the kernel's numbers.
  [[nodiscard]] std::span<const std::uint64_t> cpus_of_node(std::uint32_t node) const noexcept;

  /// Nodes of main memory first, then by their distance from `from`, those of its package before
  /// others, then by number; `from` itself is the first of its kind. Writes as many as fit and says
  /// how many. O(nodes^2).
  [[nodiscard]] std::uint32_t nodes_by_distance(std::uint32_t from,
                                                std::span<std::uint32_t> order) const noexcept;

 private:
  template <class T>
  [[nodiscard]] std::span<const T> table(std::uint64_t offset, std::size_t count) const noexcept {
    return {reinterpret_cast<const T*>(bytes_ + offset), count};
  }

  const unsigned char* bytes_ = nullptr;
  MachineTables at_{MachineHead{}};
};

}  // namespace verbatim::topo
