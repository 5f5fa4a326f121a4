// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/memory/device_memory.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "providers/shm/memory/context.hpp"
#include "providers/shm/memory/region.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/memory/arena.hpp"

namespace verbatim::shm {
namespace {

constexpr std::uint32_t kPageLog = 12;
constexpr std::uint32_t kMaxAlignLog = 21;

constinit std::atomic<std::uint64_t> in_use{0};
constinit std::atomic<std::uint32_t> handles{0};  ///< given so far

bool inside(const Dm& dm, std::uint64_t offset, std::uint64_t length) noexcept {
  return offset <= dm.length && length <= dm.length - offset;
}

/// Adapters copy words of so many bytes, and refuse what is not made of them.
constexpr std::uint64_t kWord = 4;

/// 0 or EINVAL. What a forked child has allocated itself is its own, whoever opened the context.
int check_copy(const Dm& dm, std::uint64_t offset, std::uint64_t length,
               const char* verb) noexcept {
  if (!inside(dm, offset, length) || offset % kWord != 0 || length % kWord != 0) {
    log_refusal("%s: %llu bytes at %llu: copies are of whole words of %llu within its %llu bytes",
                verb, static_cast<unsigned long long>(length),
                static_cast<unsigned long long>(offset), static_cast<unsigned long long>(kWord),
                static_cast<unsigned long long>(dm.length));
    return EINVAL;
  }
  const bool is_ours = dm.maker != 0 && dm.maker == ::getpid();
  return !is_ours && is_inherited(*dm.plain.context, verb) ? EINVAL : 0;
}

int copy_in(ibv_dm* handle, std::uint64_t offset, const void* from, std::size_t length) {
  Dm& dm = static_cast<Dm&>(verbatim::Dm::from(handle));
  if (const int error = check_copy(dm, offset, length, "memcpy_to_dm"); error != 0) return error;
  if (length != 0) std::memcpy(dm.base + offset, from, length);
  return 0;
}

int copy_out(void* to, ibv_dm* handle, std::uint64_t offset, std::size_t length) {
  const Dm& dm = static_cast<Dm&>(verbatim::Dm::from(handle));
  if (const int error = check_copy(dm, offset, length, "memcpy_from_dm"); error != 0) return error;
  if (length != 0) std::memcpy(to, dm.base + offset, length);
  return 0;
}

/// Counts `length` bytes, unless they are too many.
bool take(std::uint64_t length) noexcept {
  std::uint64_t used = in_use.load(std::memory_order_relaxed);
  do {
    if (length > kMaxDeviceMemory - used) return false;
  } while (!in_use.compare_exchange_weak(used, used + length, std::memory_order_relaxed));
  return true;
}

void give_back(std::uint64_t length) noexcept {
  in_use.fetch_sub(length, std::memory_order_relaxed);
}

}  // namespace

int alloc_dm(verbatim::Context&, const ibv_alloc_dm_attr& attr, verbatim::Dm** out) noexcept {
  if (attr.length == 0 || attr.log_align_req > kMaxAlignLog) {
    log_refusal("alloc_dm: %zu bytes, aligned to 2^%u: shm takes 1 byte or more and 2^%u at most",
                attr.length, attr.log_align_req, kMaxAlignLog);
    return EINVAL;
  }
  if (!take(attr.length)) {
    log_error("alloc_dm: %zu bytes, but of max_dm_size %llu only %llu are left", attr.length,
              static_cast<unsigned long long>(kMaxDeviceMemory),
              static_cast<unsigned long long>(kMaxDeviceMemory - in_use.load()));
    return ENOMEM;
  }
  int error = ENOMEM;
  Dm* dm = make_nothrow<Dm>();
  if (dm != nullptr) {
    const std::uint64_t alignment = std::uint64_t{1} << attr.log_align_req;
    const std::uint64_t slack = attr.log_align_req > kPageLog ? alignment : 0;
    dm->allocation = alloc_shared(attr.length + slack, error);
    const auto at = reinterpret_cast<std::uintptr_t>(dm->allocation);
    dm->base = reinterpret_cast<unsigned char*>((at + alignment - 1) & ~(alignment - 1));
  }
  if (dm == nullptr || dm->allocation == nullptr) {
    destroy_nothrow(dm);
    give_back(attr.length);
    return error;
  }
  dm->length = attr.length;
  dm->plain.handle = handles.fetch_add(1, std::memory_order_relaxed) + 1;
  dm->plain.memcpy_to_dm = copy_in;
  dm->plain.memcpy_from_dm = copy_out;
  *out = dm;
  return 0;
}

int alloc_dm_of_child(verbatim::Context& context, const ibv_alloc_dm_attr& attr,
                      verbatim::Dm** out) noexcept {
  const int error = alloc_dm(context, attr, out);
  if (error == 0) static_cast<Dm*>(*out)->maker = ::getpid();
  return error;
}

int free_dm(verbatim::Dm& handle) noexcept {
  Dm& dm = static_cast<Dm&>(handle);
  if (const int error = free_shared(dm.allocation); error != 0) return error;
  give_back(dm.length);
  destroy_nothrow(&dm);
  return 0;
}

int reg_dm_mr(verbatim::Pd& pd, ibv_dm& handle, std::uint64_t offset, std::size_t length,
              unsigned access, verbatim::Mr** out) noexcept {
  const Dm& dm = static_cast<Dm&>(verbatim::Dm::from(&handle));
  if ((access & IBV_ACCESS_ZERO_BASED) == 0) {
    log_refusal("reg_dm_mr: device memory has no addresses: IBV_ACCESS_ZERO_BASED is needed");
    return EINVAL;
  }
  if (!inside(dm, offset, length)) {
    log_refusal("reg_dm_mr: [%llu, + %zu) is not within the %llu bytes of this device memory",
                static_cast<unsigned long long>(offset), length,
                static_cast<unsigned long long>(dm.length));
    return EINVAL;
  }
  return reg_fixed_mr(pd, dm.base + offset, length, access, out);
}

}  // namespace verbatim::shm
