// SPDX-License-Identifier: BSD-2-Clause
// The memory that the messages of a `verbatim perf` test come from and go to: two buffers for each
// queue pair, registered as the options say.
//
// Main thread. What is sent is whatever was there, what --payload_file_path says, or a pattern that
// --data_validation looks for where messages have come. Failures name the option.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "perf/cli/perf_exchange.hpp"
#include "perf/cli/perf_options.hpp"
#include "perf/cli/pingpong_device.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::cli {

constexpr std::uint64_t round_up(std::uint64_t size, std::uint64_t step) {
  return (size + step - 1) / step * step;
}

/// Places of one buffer that messages use in turn, so that they are not always the same line.
struct PerfWalk {
  std::uint64_t base = 0;
  std::uint32_t step = 0;
  std::uint32_t places = 1;
  std::uint32_t at = 0;

  std::uint64_t next() {
    const std::uint64_t address = base + std::uint64_t{at} * step;
    if (++at == places) at = 0;
    return address;
  }
};

class PerfMemory {
 public:
  PerfMemory(const Device& device, ibv_pd* pd, const PerfOptions& options, const PerfTerms& terms);

  /// Where messages of a queue pair are sent from, or come to when they are fetched.
  std::uint64_t outgoing(std::uint32_t pair) const { return buffer(pair, 0); }
  /// Where the peer's messages go; what it fetches.
  std::uint64_t incoming(std::uint32_t pair) const { return buffer(pair, 1); }
  std::uint32_t lkey(std::uint32_t pair) const { return null_ ? null_->lkey : region(pair).lkey; }
  std::uint32_t rkey(std::uint32_t pair) const { return region(pair).rkey; }
  /// How messages of `size` bytes go through one buffer.
  PerfWalk walk(std::uint64_t base, std::uint32_t size) const;

  /// Throws Failure when the first `messages` of `size` bytes, `skip` bytes behind where they came
  /// to in `base`, are not what validating ends send.
  void validate(std::uint64_t base, std::uint32_t size, std::uint32_t skip,
                std::uint64_t messages) const;

 private:
  struct Release {
    std::size_t mapped;  // 0: from the allocator
    void operator()(std::byte* memory) const;
  };

  void allocate(std::uint64_t bytes);
  void map_file(std::uint64_t bytes);
  void fill();
  void register_all(const Device& device, ibv_pd* pd);
  std::uint64_t buffer(std::uint32_t pair, std::uint32_t side) const;
  const ibv_mr& region(std::uint32_t pair) const { return *regions_[pair % regions_.size()]; }

  const PerfOptions& options_;
  const PerfTerms& terms_;
  std::uint32_t pairs_;
  std::uint64_t stride_;  // from one buffer to the next
  std::uint64_t bytes_ = 0;
  std::unique_ptr<std::byte, Release> memory_;
  std::vector<perf::MrHandle> regions_;
  perf::MrHandle null_;  // of one's own end: it is not there for the peer
};

/// The bytes of a file of --payload_file_path; throws Failure.
std::vector<std::uint8_t> read_payload(const std::string& file);

/// What the operations of a test may do to the memory of its other end.
std::uint32_t remote_access(PerfVerb verb);

}  // namespace verbatim::cli
