// SPDX-License-Identifier: BSD-2-Clause
//
// A machine as flat bytes: what processes of a host hand to each other, so that one of them reads
// the machine and the others read a file. Fixed widths, no pointers, no offsets: where a table lies
// follows from the counts.
//
//   MachineHead | Node[] | Group[] | Core[] | Pu[] | pu_of_cpu u32[] | distances u32[] | cpus u64[]
//                                                    padded to 8 bytes each
//
// Bytes are believed after check_machine() only. A new layout has a new kLayoutVersion.
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbatim::topo {

/// "There is none", "nobody knows": for every index and number here.
inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

inline constexpr std::uint64_t kMachineMagic = 0x56'42'54'6d'61'63'68'31;  // "VBTmach1"
inline constexpr std::uint32_t kLayoutVersion = 1;

// More than any machine has; a file that says more is not read on.
inline constexpr std::uint32_t kMaxNodes = 1024;
inline constexpr std::uint32_t kMaxPus = 16384;
inline constexpr std::uint32_t kMaxCpuNumber = 65535;

/// What the machine was read from.
enum class Origin : std::uint32_t { kThisHost, kSynthetic, kXml };

enum class NodeKind : std::uint32_t {
  kMain,           // what the kernel gives by default
  kHighBandwidth,  // beside main memory: given to those who ask
};

/// One NUMA node; nodes stand in the order of the kernel's numbers.
struct Node {
  std::uint32_t number;   // the kernel's
  std::uint32_t package;  // kNone: belongs to none, or to several
  std::uint64_t memory_bytes;
  std::uint32_t cpu_count;  // processors near it; 0 is memory alone
  NodeKind kind;
};

/// Processors that share one L3 cache.
struct Group {
  std::uint64_t cache_bytes;
  std::uint32_t package;
  std::uint32_t node;
  std::uint32_t first_pu;
  std::uint32_t pu_count;
};

struct Core {
  std::uint32_t number;  // the kernel's, unique within a package at best
  std::uint32_t package;
  std::uint32_t group;
  std::uint32_t node;
  std::uint32_t first_pu;
  std::uint32_t pu_count;
  std::uint32_t efficiency;  // 0 is the slowest kind; kNone when all are alike
  std::uint32_t reserved;
};

/// A processing unit (a hardware thread), in the machine's order: neighbours are near.
struct Pu {
  std::uint32_t cpu;  // the kernel's number
  std::uint32_t core;
  std::uint32_t group;
  std::uint32_t node;  // the index in Node[] of its own main memory
};

struct MachineHead {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t bytes;
  std::uint64_t checksum;  // of all that follows this member
  std::uint64_t key;       // what the machine was read from, and when it was started
  Origin origin;
  std::uint32_t distances_told;  // 0: they are guesses (10 within a node, else 20)
  std::uint32_t package_count;
  std::uint32_t node_count;
  std::uint32_t group_count;
  std::uint32_t core_count;
  std::uint32_t pu_count;
  std::uint32_t cpu_end;  // the highest number of a cpu, and one
};

static_assert(sizeof(Node) == 24 && sizeof(Group) == 24 && sizeof(Core) == 32 && sizeof(Pu) == 16);
static_assert(sizeof(MachineHead) == 64);

/// Bytes from the beginning to each table.
struct MachineTables {
  constexpr explicit MachineTables(const MachineHead& head) noexcept {
    const std::uint64_t node_count = head.node_count;
    nodes = sizeof(MachineHead);
    groups = nodes + node_count * sizeof(Node);
    cores = groups + std::uint64_t{head.group_count} * sizeof(Group);
    pus = cores + std::uint64_t{head.core_count} * sizeof(Core);
    pu_of_cpu = pus + std::uint64_t{head.pu_count} * sizeof(Pu);
    distances = pu_of_cpu + padded(std::uint64_t{head.cpu_end} * 4);
    cpus = distances + padded(node_count * node_count * 4);
    cpu_words = (head.cpu_end + 63u) / 64;
    end = cpus + node_count * cpu_words * 8;
  }
  static constexpr std::uint64_t padded(std::uint64_t bytes) noexcept {
    return (bytes + 7) / 8 * 8;
  }

  std::uint64_t nodes, groups, cores, pus, pu_of_cpu, distances, cpus, end;
  std::uint32_t cpu_words;
};

}  // namespace verbatim::topo
