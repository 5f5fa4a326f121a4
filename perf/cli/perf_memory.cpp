// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "perf/cli/failure.hpp"
#include "perf/cli/tcp_exchange.hpp"

namespace verbatim::cli {
namespace {

constexpr std::uint64_t kHugePage = 2u << 20;
constexpr int kAnyByte = 0x5a;

unsigned long long long_long(std::uint64_t value) { return value; }

/// Of a message's byte at `offset`; its period is prime, so that no shifted message looks right.
std::uint8_t pattern(std::uint64_t offset) { return static_cast<std::uint8_t>(offset % 251 + 1); }

}  // namespace

std::uint32_t remote_access(PerfVerb verb) {
  switch (verb) {
    case PerfVerb::kWrite:
      return IBV_ACCESS_REMOTE_WRITE;
    case PerfVerb::kRead:
      return IBV_ACCESS_REMOTE_READ;
    case PerfVerb::kAtomic:
      return IBV_ACCESS_REMOTE_ATOMIC;
    case PerfVerb::kSend:
      break;
  }
  return 0;
}

void PerfMemory::Release::operator()(std::byte* memory) const {
  if (mapped != 0)
    (void)munmap(memory, mapped);
  else
    std::free(memory);
}

PerfMemory::PerfMemory(const Device& device, ibv_pd* pd, const PerfOptions& options,
                       const PerfTerms& terms)
    : options_{options}, terms_{terms}, pairs_{options.all_queue_pairs()} {
  const std::uint64_t header = options.datagrams() ? kRoutingHeader : 0;
  stride_ = round_up(std::max<std::uint64_t>(options.size + header, terms.walk),
                     std::max(terms.cache_line, 64u));
  bytes_ = round_up(2 * pairs_ * stride_, terms.walk);
  allocate(bytes_);
  fill();
  register_all(device, pd);
}

void PerfMemory::allocate(std::uint64_t bytes) {
  if (options_.memory_file) return map_file(bytes);
  if (options_.huge_pages) {
    const std::uint64_t whole = round_up(bytes, kHugePage);
    void* const memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (memory == MAP_FAILED) {
      fail(
          "Couldn't get %llu huge pages: %s; write as many into /proc/sys/vm/nr_hugepages, or "
          "leave "
          "out --use_hugepages",
          long_long(whole / kHugePage), std::strerror(errno));
    }
    memory_ = {static_cast<std::byte*>(memory), Release{whole}};
    return;
  }
  memory_ = {static_cast<std::byte*>(std::aligned_alloc(terms_.walk, bytes)), Release{}};
  if (!memory_) {
    fail("Couldn't allocate %llu bytes for %u queue pairs: a smaller -s or -q", long_long(bytes),
         pairs_);
  }
}

void PerfMemory::map_file(std::uint64_t bytes) {
  const char* const name = options_.memory_file->c_str();
  const std::uint64_t from = options_.memory_offset;
  const Socket file(open(name, O_RDWR | O_CLOEXEC));
  struct stat about = {};
  if (file.fd() < 0 || fstat(file.fd(), &about) != 0) {
    fail("Couldn't open '%s': %s (--mmap)", name, std::strerror(errno));
  }
  // Past a file's end there is memory that kills who touches it.
  const std::uint64_t size = static_cast<std::uint64_t>(std::max<off_t>(0, about.st_size));
  if (S_ISREG(about.st_mode) && (from > size || size - from < bytes)) {
    fail("'%s' has %llu bytes, and the test takes %llu from %llu on (--mmap, --mmap-offset)", name,
         long_long(size), long_long(bytes), long_long(from));
  }
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), static_cast<off_t>(from));
  if (memory == MAP_FAILED) {
    fail("Couldn't map %llu bytes of '%s' from %llu on: %s (--mmap, --mmap-offset)",
         long_long(bytes), name, long_long(from), std::strerror(errno));
  }
  memory_ = {static_cast<std::byte*>(memory), Release{bytes}};
}

void PerfMemory::fill() {
  // Of a latency by WRITE the byte that is waited for must not be there before.
  const bool zero =
      options_.validates || (options_.test.verb == PerfVerb::kWrite && options_.test.latency());
  std::memset(memory_.get(), zero ? 0 : kAnyByte, bytes_);
  std::vector<std::uint8_t> payload;
  if (options_.payload_file) payload = read_payload(*options_.payload_file);
  if (payload.empty() && !options_.validates) return;
  for (std::uint32_t pair = 0; pair < pairs_; ++pair) {
    // What is fetched is the other end's, from where that end's messages would come.
    const PerfWalk places =
        walk(options_.test.fetches() ? incoming(pair) : outgoing(pair), options_.size);
    for (std::uint32_t place = 0; place < places.places; ++place) {
      auto* const to =
          reinterpret_cast<std::uint8_t*>(places.base + std::uint64_t{place} * places.step);
      for (std::uint64_t byte = 0; byte < options_.size; ++byte) {
        to[byte] = payload.empty() ? pattern(byte) : payload[byte % payload.size()];
      }
    }
  }
}

void PerfMemory::register_all(const Device& device, ibv_pd* pd) {
  if (options_.null_region) {
    null_.reset(ibv_alloc_null_mr(pd));
    if (!null_) {
      fail("%s has no region that keeps nothing (%s): leave out --use-null-mr", device.name(),
           std::strerror(errno));
    }
  }
  unsigned access = IBV_ACCESS_LOCAL_WRITE | remote_access(options_.test.verb);
  if (options_.on_demand) {
    if ((device.attr.odp_caps.general_caps & IBV_ODP_SUPPORT) == 0) {
      fail("%s has no memory on demand: leave out --odp", device.name());
    }
    access |= IBV_ACCESS_ON_DEMAND;
  }
  const std::uint32_t regions = options_.region_per_pair ? pairs_ : 1;
  const std::uint64_t each = options_.region_per_pair ? 2 * stride_ : bytes_;
  for (std::uint32_t region = 0; region < regions; ++region) {
    regions_.emplace_back(ibv_reg_mr(pd, memory_.get() + region * each, each, access));
    if (!regions_.back()) {
      fail("Couldn't register %llu bytes: %s", long_long(each), std::strerror(errno));
    }
  }
}

std::uint64_t PerfMemory::buffer(std::uint32_t pair, std::uint32_t side) const {
  // Of a region for each pair the two buffers are neighbours; else all of a side are, as perftest's.
  const std::uint64_t number = options_.region_per_pair ? 2 * std::uint64_t{pair} + side
                                                        : std::uint64_t{side} * pairs_ + pair;
  return reinterpret_cast<std::uintptr_t>(memory_.get()) + number * stride_;
}

PerfWalk PerfMemory::walk(std::uint64_t base, std::uint32_t size) const {
  PerfWalk walk{base, 0, 1, 0};
  const std::uint64_t step = round_up(std::max(size, terms_.cache_line), terms_.cache_line);
  if (options_.test.latency() || size > terms_.walk / 2) return walk;
  walk.step = static_cast<std::uint32_t>(step);
  walk.places = std::max(1u, terms_.walk / walk.step);
  return walk;
}

void PerfMemory::validate(std::uint64_t base, std::uint32_t size, std::uint32_t skip,
                          std::uint64_t messages) const {
  const PerfWalk places = walk(base, size + skip);
  const std::uint64_t used = std::min<std::uint64_t>(places.places, messages);
  for (std::uint64_t place = 0; place < used; ++place) {
    const auto* const came =
        reinterpret_cast<const std::uint8_t*>(base + place * places.step) + skip;
    for (std::uint32_t byte = 0; byte < size; ++byte) {
      if (came[byte] == pattern(byte)) continue;
      fail("byte %u of message %llu is 0x%02x where 0x%02x was sent (--data_validation)", byte,
           long_long(place), came[byte], pattern(byte));
    }
  }
}

std::vector<std::uint8_t> read_payload(const std::string& file) {
  constexpr std::size_t kMostText = 64u << 20, kDword = 10;
  const Socket text(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (text.fd() < 0) {
    fail("Couldn't open '%s': %s (--payload_file_path)", file.c_str(), std::strerror(errno));
  }
  std::string words;
  char part[4096];
  ssize_t got = 0;
  while (words.size() < kMostText && (got = read(text.fd(), part, sizeof part)) > 0) {
    words.append(part, static_cast<std::size_t>(got));
  }
  if (got < 0) {
    fail("Couldn't read '%s': %s (--payload_file_path)", file.c_str(), std::strerror(errno));
  }
  std::vector<std::uint8_t> bytes;
  std::size_t number = 0;
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find_first_of(",\n", at), words.size());
    const std::string word = words.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    char* rest = nullptr;
    const unsigned long value = std::strtoul(word.c_str(), &rest, 16);
    if (word.size() != kDword || word.compare(0, 2, "0x") != 0 || *rest != '\0') {
      fail("number %zu of '%s' is not as 0xaabbccdd (--payload_file_path)", number, file.c_str());
    }
    ++number;
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::uint8_t>(value >> shift));
    }
  }
  if (bytes.empty()) fail("'%s' has no numbers as 0xaabbccdd (--payload_file_path)", file.c_str());
  return bytes;
}

}  // namespace verbatim::cli
