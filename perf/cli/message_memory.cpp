// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/message_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "perf/cli/failure.hpp"

#ifdef VBT_UNDER_THREAD_SANITIZER
extern "C" void AnnotateBenignRaceSized(const char* file, int line, void* memory, std::size_t bytes,
                                        const char* why);
#endif

namespace verbatim::cli {
namespace {

// What the classic programs leave in their buffers: the pattern of a checked client is all 0x7b,
// but for a zero at each start of a page, and all zero where receives are shared; a server begins
// with something else.
constexpr unsigned char kClientFill = 0x7b;
constexpr unsigned char kServerFill = 0x7c;
constexpr unsigned char kNoFill = 0;

constexpr std::size_t kGlobalRoutingHeader = 40;

/// Messages of several peers land in the same bytes, in no order, while others are sent from them:
/// which of the equal messages lies there is of no interest, and a race detector is told so.
void expect_races([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  AnnotateBenignRaceSized(__FILE__, __LINE__, memory, bytes, "one buffer for every message");
#endif
}

}  // namespace

MessageMemory::MessageMemory(ibv_pd* pd, const PingpongOptions& options,
                             const ibv_device_attr_ex& device)
    : size_{options.size},
      header_{options.transport == Transport::kUd ? kGlobalRoutingHeader : 0},
      pattern_{options.transport == Transport::kSrq ? kNoFill : kClientFill},
      page_{static_cast<std::size_t>(sysconf(_SC_PAGESIZE))} {
  void* memory = nullptr;
  if (posix_memalign(&memory, page_, header_ + size_) != 0) {
    fail("Couldn't allocate work buf.: no %zu bytes of memory; choose a smaller -s", size_);
  }
  host_.reset(static_cast<unsigned char*>(memory));
  std::memset(host_.get(), options.server.empty() ? kServerFill : kClientFill, header_ + size_);
  if (shares_receives(options.transport)) expect_races(host_.get(), header_ + size_);
  if (options.device_memory) {
    register_device_memory(pd, device, IBV_ACCESS_LOCAL_WRITE);
  } else {
    register_host_memory(pd, options, IBV_ACCESS_LOCAL_WRITE);
  }
  whole_.length = static_cast<std::uint32_t>(header_ + size_);
  whole_.lkey = mr_->lkey;
  if (options.prefetch) {
    const int error = ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                                    IBV_ADVISE_MR_FLAG_FLUSH, &whole_, 1);
    if (error != 0) std::fprintf(stderr, "Couldn't prefetch MR(%d). Continue anyway\n", error);
  }
}

ibv_sge MessageMemory::send_from() const {
  ibv_sge message = whole_;
  message.addr += header_;
  message.length -= static_cast<std::uint32_t>(header_);
  return message;
}

void MessageMemory::register_host_memory(ibv_pd* pd, const PingpongOptions& options, int access) {
  void* from = host_.get();
  std::size_t length = header_ + size_;
  if (options.on_demand) access |= IBV_ACCESS_ON_DEMAND;
  if (options.implicit_on_demand) {  // the whole address space is one region
    from = nullptr;
    length = SIZE_MAX;
  }
  mr_.reset(ibv_reg_mr(pd, from, length, access));
  if (!mr_) fail("Couldn't register MR: %s", std::strerror(errno));
  whole_.addr = reinterpret_cast<std::uintptr_t>(host_.get());
}

void MessageMemory::register_device_memory(ibv_pd* pd, const ibv_device_attr_ex& device,
                                           int access) {
  if (device.max_dm_size == 0) fail("Device doesn't support dm allocation: leave out -j");
  if (device.max_dm_size < size_) {
    fail("Device memory is insufficient: it has %llu bytes; choose a smaller -s",
         static_cast<unsigned long long>(device.max_dm_size));
  }
  ibv_alloc_dm_attr attr = {};
  attr.length = size_;
  dm_.reset(ibv_alloc_dm(pd->context, &attr));
  if (!dm_) fail("Dev mem allocation failed: %s", std::strerror(errno));
  mr_.reset(ibv_reg_dm_mr(pd, dm_.get(), 0, size_,
                          static_cast<unsigned>(access) | IBV_ACCESS_ZERO_BASED));
  if (!mr_) fail("Couldn't register MR: %s", std::strerror(errno));
  whole_.addr = 0;  // zero-based: addresses count from the start of the device's memory
}

void MessageMemory::fill_for_check() {
  std::memset(message(), pattern_, size_);
  for (std::size_t i = 0; i < size_; i += page_) message()[i] = 0;
  if (dm_ && ibv_memcpy_to_dm(dm_.get(), 0, message(), size_) != 0) {
    fail("Copy to dm buffer failed");
  }
}

void MessageMemory::check() {
  if (dm_ && ibv_memcpy_from_dm(message(), dm_.get(), 0, size_) != 0) {
    fail("Copy from DM buffer failed");
  }
  std::size_t bad = 0;
  const std::size_t pages = (size_ + page_ - 1) / page_;
  for (std::size_t page = 0; page < pages; ++page) {
    const unsigned char* begin = message() + page * page_;
    const unsigned char* end = message() + std::min(size_, (page + 1) * page_);
    const bool good = *begin == 0 && std::all_of(begin + 1, end, [this](unsigned char byte) {
      return byte == pattern_;
    });
    if (good) continue;
    std::printf("invalid data in page %zu\n", page);
    ++bad;
  }
  if (bad != 0) {
    fail("%zu of %zu pages arrived wrong: is the client run with -c too, and the same -s?", bad,
         pages);
  }
}

void MessageMemory::close() {
  if (const int error = destroy(mr_)) fail("Couldn't deregister MR: %s", std::strerror(error));
  if (const int error = destroy(dm_)) fail("Couldn't free DM: %s", std::strerror(error));
}

}  // namespace verbatim::cli
