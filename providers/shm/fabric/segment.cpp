// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "runtime/base/log.hpp"
#include "runtime/memory/memory_file.hpp"
#include "runtime/memory/sparse_map.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// How much a segment can hold. Virtual and sparse: only what is used costs memory.
struct Plan {
  std::uint32_t regions;
  std::uint32_t qps;
  std::uint32_t cqs;
  std::uint64_t heap;
};
constexpr std::uint64_t kMiB = 1u << 20;
constexpr Plan kPlans[] = {
    {kMaxRegions, kMaxQps, kMaxCqs, 1280 * kMiB},
    {kMaxRegions, kMaxQps, kMaxCqs, 512 * kMiB},
    {kMaxRegions, kMaxQps, kMaxCqs, 256 * kMiB},
    {kMaxRegions, kMaxQps, kMaxCqs, 128 * kMiB},
    {1u << 16, 16384, kMaxCqs, 64 * kMiB},
    {1u << 16, 8192, 2048, 16 * kMiB},
    {1u << 14, 4096, 1024, 8 * kMiB},
    {1u << 12, 4096, 512, 2 * kMiB},
};

struct Layout {
  std::uint64_t cq_table, mr_table, qp_table, heap, bytes;
};

constexpr Layout layout_of(const Plan& plan, std::uint64_t step) {
  Layout at{};
  at.cq_table = 4096;
  at.mr_table = at.cq_table + kMaxCqs * sizeof(CqRecord);
  const std::uint64_t mr_end = at.mr_table + std::uint64_t{plan.regions} * sizeof(RegionRecord);
  at.qp_table = (mr_end + step - 1) / step * step;
  const std::uint64_t qp_end = at.qp_table + std::uint64_t{plan.qps} * sizeof(QpRecord);
  at.heap = (qp_end + step - 1) / step * step;
  at.bytes = at.heap + plan.heap;
  return at;
}

std::uint64_t random_identity() noexcept {
  std::uint64_t identity = 0;
  if (::getrandom(&identity, sizeof identity, GRND_NONBLOCK) != sizeof identity || identity == 0) {
    // Early boot: time and pid are enough to tell processes of one host apart.
    identity = now_ns() * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(::getpid()) + 1;
  }
  return identity == 0 ? 1 : identity;
}

void* map_shared(int fd, std::uint64_t bytes) noexcept {
  return map_sparse(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd);
}

/// The sign of life for peers that cannot see our pid: the lock goes when the process does.
void hold_life_lock(int fd) noexcept {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  if (::fcntl(fd, F_SETLK, &lock) != 0) {
    log_info(
        "no record lock on the segment: %s; peers in other pid namespaces will see our end late",
        std::strerror(errno));
  }
}

void make_private(void* base, std::uint64_t bytes, int fd) noexcept {
  if (base == nullptr) return;
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  constexpr int kFlags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
  if (::mmap(base, bytes, kAccess, kFlags, fd, 0) == MAP_FAILED) {
    (void)::mmap(base, bytes, kAccess, kFlags | MAP_ANONYMOUS, -1, 0);
  }
}

}  // namespace

int OwnSegment::make_files(std::uint64_t mapped_limit) noexcept {
  static_assert(layout_of(kPlans[0], kStep).bytes <= kLargestSegment);
  static_assert(kLargestSegment <= kMostSegmentBytes);
  const Plan* chosen = nullptr;
  for (const Plan& plan : kPlans) {
    const std::uint64_t bytes = layout_of(plan, kStep).bytes;
    if (bytes > file_size_limit() || bytes + Doorbells::bytes_for(plan.cqs) > mapped_limit)
      continue;
    UniqueFd file;
    const int error = make_memory_file("verbatim-segment", bytes, file);
    if (error != 0) return error;
    fd_ = static_cast<UniqueFd&&>(file);
    void* const base = map_shared(fd_.get(), bytes);
    if (base == MAP_FAILED) {
      fd_.reset();
      continue;
    }
    base_ = static_cast<unsigned char*>(base);
    size_ = bytes;
    chosen = &plan;
    break;
  }
  if (chosen == nullptr) {
    log_error(
        "no room for a control segment: the file size limit is %llu KiB ('ulimit -f'), %llu KiB of "
        "address space are left ('ulimit -v'), at least %llu KiB are needed",
        static_cast<unsigned long long>(file_size_limit() >> 10),
        static_cast<unsigned long long>(address_space_left() >> 10),
        static_cast<unsigned long long>(layout_of(kPlans[std::size(kPlans) - 1], kStep).bytes >>
                                        10));
    return ENOMEM;
  }
  if (chosen != &kPlans[0]) {
    log_info(
        "limits on file size or address space leave a segment of %llu MiB: %u queue pairs, %u "
        "completion queues, %u regions",
        static_cast<unsigned long long>(size_ >> 20), chosen->qps, chosen->cqs, chosen->regions);
  }
  UniqueFd file;
  const std::uint64_t doorbell_bytes = Doorbells::bytes_for(chosen->cqs);
  int error = make_memory_file("verbatim-doorbells", doorbell_bytes, file);
  if (error != 0) return error;
  doorbell_fd_ = static_cast<UniqueFd&&>(file);
  void* const doorbells = map_shared(doorbell_fd_.get(), doorbell_bytes);
  if (doorbells == MAP_FAILED) {
    error = errno;
    log_error("mapping the doorbells: %s", std::strerror(error));
    return error;
  }
  doorbells_ = static_cast<Doorbells*>(doorbells);
  doorbell_bytes_ = doorbell_bytes;

  const Layout at = layout_of(*chosen, kStep);
  error = back_range(fd_, backed_, kStep, size_, 0, at.mr_table);
  if (error == 0) error = back(&doorbells_->service, 3 * sizeof(DoorbellBlock));
  // The owner's writable mapping exists: from here on nobody can make another one.
  if (error == 0) {
    error = seal_memory_file(fd_.get(),
                             F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
  }
  if (error == 0) {
    error = seal_memory_file(doorbell_fd_.get(), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  }
  if (error != 0) return error;

  SegmentHeader& header = *::new (base_) SegmentHeader{};
  header.layout_version = kLayoutVersion;
  header.header_bytes = sizeof(SegmentHeader);
  header.segment_bytes = size_;
  header.identity = random_identity();
  header.pid = ::getpid();
  static_assert(sizeof header.program == 16);
  for (std::size_t i = 0; i < sizeof header.program && program_invocation_short_name[i] != 0; ++i)
    header.program[i] = program_invocation_short_name[i];
  header.mr_table = at.mr_table;
  header.mr_capacity = chosen->regions;
  header.qp_capacity = chosen->qps;
  header.cq_capacity = chosen->cqs;
  header.qp_table = at.qp_table;
  header.cq_table = at.cq_table;
  header.heap = at.heap;
  header.magic = kSegmentMagic;
  regions_ = reinterpret_cast<RegionRecord*>(base_ + at.mr_table);
  qps_ = reinterpret_cast<QpRecord*>(base_ + at.qp_table);
  cqs_ = reinterpret_cast<CqRecord*>(base_ + at.cq_table);
  heap_.open(at.heap, size_);
  hold_life_lock(fd_.get());
  return 0;
}

int OwnSegment::create() noexcept {
  std::uint64_t limit = address_space_left();
  // Peers' files are mapped too, and are as large as ours: leave room for some.
  constexpr std::uint64_t kProcessesToFit = 16;
  if (limit != ~std::uint64_t{0}) limit /= kProcessesToFit;
  const int error = make_files(limit);
  if (error != 0) destroy();
  return error;
}

void OwnSegment::destroy() noexcept {
  if (base_ != nullptr) ::munmap(base_, size_);
  if (doorbells_ != nullptr) ::munmap(static_cast<void*>(doorbells_), doorbell_bytes_);
  base_ = nullptr;
  size_ = 0;
  regions_ = nullptr;
  qps_ = nullptr;
  cqs_ = nullptr;
  doorbells_ = nullptr;
  doorbell_bytes_ = 0;
  fd_.reset();
  doorbell_fd_.reset();
  heap_.close();
  unchecked_ = 0;
  for (auto& word : backed_) word.store(0, std::memory_order_relaxed);
  for (auto& word : doorbells_backed_) word.store(0, std::memory_order_relaxed);
}

void OwnSegment::say_full(std::size_t bytes) noexcept {
  static constinit LogOnce once;
  if (once.first()) {
    log_error(
        "shm: no %llu KiB are left of %llu MiB of shared memory for connections: use fewer or "
        "shorter receive queues, here and at the peers, or raise 'ulimit -f' or 'ulimit -v' when "
        "one is set",
        static_cast<unsigned long long>((bytes + 1023) >> 10),
        static_cast<unsigned long long>((size_ - head().heap) >> 20));
  }
}

std::uint64_t OwnSegment::allocate(std::size_t bytes, bool is_reserved) noexcept {
  bool recycled = false;
  std::uint64_t offset = 0;
  {
    const LockGuard guard(heap_mutex_);
    if (is_reserved) heap_.take_back(bytes);
    offset = heap_.take(bytes, recycled);
    if (offset == 0 && is_reserved) (void)heap_.promise(bytes);
  }
  if (offset == 0) {
    say_full(bytes);
    return 0;
  }
  const std::uint64_t whole = SegmentHeap::piece_bytes(bytes);
  if (back_range(fd_, backed_, kStep, size_, offset, whole) != 0) {
    release(offset, bytes, is_reserved);
    return 0;
  }
  if (recycled) std::memset(base_ + offset, 0, whole);
  return offset;
}

void OwnSegment::release(std::uint64_t offset, std::size_t bytes, bool stays_reserved) noexcept {
  if (offset == 0) return;
  const LockGuard guard(heap_mutex_);
  heap_.give(offset, bytes);
  if (stays_reserved) (void)heap_.promise(bytes);
}

bool OwnSegment::reserve(std::size_t bytes) noexcept {
  bool is_promised;
  {
    const LockGuard guard(heap_mutex_);
    is_promised = heap_.promise(bytes);
  }
  if (!is_promised) say_full(bytes);
  return is_promised;
}

void OwnSegment::give_up(std::size_t bytes) noexcept {
  const LockGuard guard(heap_mutex_);
  heap_.take_back(bytes);
}

int OwnSegment::back(const void* where, std::size_t bytes) noexcept {
  if (holds(where)) return back_range(fd_, backed_, kStep, size_, offset_of(where), bytes);
  const auto* const p = static_cast<const unsigned char*>(where);
  const auto* const bells = reinterpret_cast<const unsigned char*>(doorbells_);
  if (p >= bells && p < bells + doorbell_bytes_) {
    return back_range(doorbell_fd_, doorbells_backed_, kDoorbellStep, doorbell_bytes_,
                      static_cast<std::uint64_t>(p - bells), bytes);
  }
  return EFAULT;
}

int OwnSegment::back_range(const KeptFd& file, std::atomic<std::uint64_t>* done, std::uint64_t step,
                           std::uint64_t file_bytes, std::uint64_t offset,
                           std::uint64_t bytes) noexcept {
  if (bytes == 0) return 0;
  if (bytes > file_bytes || offset > file_bytes - bytes) return EFAULT;
  const std::uint64_t last = (offset + bytes - 1) / step;
  const auto is_done = [done](std::uint64_t n) {
    // Pairs with the release below: whoever sees the bit sees the pages.
    return (done[n / 64].load(std::memory_order_acquire) >> (n % 64) & 1) != 0;
  };
  std::uint64_t first = offset / step;
  while (first <= last && is_done(first)) ++first;
  if (first > last) return 0;

  const LockGuard guard(back_mutex_);
  if (!file.is_ours()) return EIO;
  constexpr std::uint64_t kCheckEvery = 1u << 20;
  for (; first <= last; ++first) {
    if (is_done(first)) continue;
    std::uint64_t end = first + 1;
    while (end <= last && !is_done(end)) ++end;
    const std::uint64_t from = first * step;
    const std::uint64_t to = end * step < file_bytes ? end * step : file_bytes;
    unchecked_ += to - from;
    const bool check = unchecked_ > kCheckEvery;
    const int error = back_memory_file(file.get(), from, to - from, "the control segment", check);
    if (error != 0) return error;
    if (check) unchecked_ = 0;
    for (; first < end; ++first) {
      done[first / 64].fetch_or(std::uint64_t{1} << (first % 64), std::memory_order_release);
    }
    --first;
  }
  return 0;
}

void OwnSegment::lock_for_fork() noexcept {
  heap_mutex_.lock();
  back_mutex_.lock();
}

void OwnSegment::unlock_after_fork() noexcept {
  back_mutex_.unlock();
  heap_mutex_.unlock();
}

void OwnSegment::become_private() noexcept {
  make_private(base_, size_, fd_.is_ours() ? fd_.get() : -1);
  make_private(doorbells_, doorbell_bytes_, doorbell_fd_.is_ours() ? doorbell_fd_.get() : -1);
}

}  // namespace verbatim::shm
