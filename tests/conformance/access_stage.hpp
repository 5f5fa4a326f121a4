// SPDX-License-Identifier: BSD-2-Clause
//
// What the tables of rights have in common: operations on memory, and two ends that have some.
#pragma once

#include <string>

#include "tests/support/expect.hpp"

namespace verbatim::harness {

enum class Operation { kWrite, kRead, kFetchAdd, kCompareSwap, kSend, kReceive };
inline constexpr const char* kOperationNames[] = {"Write",       "Read", "FetchAdd",
                                                  "CompareSwap", "Send", "Receive"};

inline std::string rights_name(int rights) {
  std::string name;
  if (rights & IBV_ACCESS_LOCAL_WRITE) name += "L";
  if (rights & IBV_ACCESS_REMOTE_WRITE) name += "W";
  if (rights & IBV_ACCESS_REMOTE_READ) name += "R";
  if (rights & IBV_ACCESS_REMOTE_ATOMIC) name += "A";
  return name.empty() ? "None" : name;
}

inline constexpr std::uint64_t kPage = 4096;
inline constexpr std::uint32_t kLocalSeed = 3, kRemoteSeed = 4;

/// Two ends with memory; the region under test is the second of its three pages, or the third.
struct Stage {
  explicit Stage(const Setting& setting) : pair(setting), name(name_of(setting)) {
    local = pair.a.allocate(setting.memory, 4 * kPage);
    remote = pair.b.allocate(setting.memory, 4 * kPage);
  }
  Pair pair;
  std::string name;
  RegionInfo local;
  RegionInfo remote;
};

/// The request of the cell, between `local` and `remote`.
inline Request request_of(Operation operation, const Slice& local, const RegionInfo& remote,
                          std::uint64_t offset) {
  switch (operation) {
    case Operation::kWrite:
      return write(1, local, remote, offset);
    case Operation::kRead:
      return read(1, local, remote, offset);
    case Operation::kFetchAdd:
      return fetch_add(1, local, remote, offset, 0x0101);
    case Operation::kCompareSwap:
      return compare_swap(1, local, remote, offset, 1, 2);
    default:
      return send(1, local);
  }
}

}  // namespace verbatim::harness
