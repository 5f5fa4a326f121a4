// SPDX-License-Identifier: BSD-2-Clause
//
// Our own control segment and doorbell page, and the views of those of our peers.
//
// OwnSegment: one per process, made by Process. allocate/release/back may be called from any
// control path (they lock); memory is backed by fallocate before it is handed out, so a full tmpfs
// is ENOMEM here and never SIGBUS later. PeerSegment: a read-only view; nothing in it is trusted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "providers/shm/fabric/segment_heap.hpp"
#include "providers/shm/wire/layout.hpp"
#include "runtime/base/kept_fd.hpp"
#include "runtime/base/result.hpp"
#include "runtime/sync/mutex.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim::shm {

class OwnSegment {
 public:
  /// Makes, sizes, seals (SHRINK|GROW|FUTURE_WRITE|SEAL) and maps both files. A lower RLIMIT_FSIZE
  /// or RLIMIT_AS gives a smaller heap; too low for any is ENOMEM with the limit in the log.
  int create() noexcept;
  void destroy() noexcept;

  SegmentHeader& head() noexcept { return *reinterpret_cast<SegmentHeader*>(base_); }
  RegionRecord* regions() noexcept { return regions_; }
  QpRecord* qps() noexcept { return qps_; }
  CqRecord* cqs() noexcept { return cqs_; }
  Doorbells& doorbells() noexcept { return *doorbells_; }
  unsigned char* base() noexcept { return base_; }
  std::uint64_t size() const noexcept { return size_; }
  /// Its files are still open under their numbers.
  bool has_its_files() const noexcept { return fd_.is_ours() && doorbell_fd_.is_ours(); }
  int fd() const noexcept { return fd_.get(); }
  int doorbell_fd() const noexcept { return doorbell_fd_.get(); }

  /// Zeroed heap memory, 64-byte aligned, as its offset; 0 when there is none left (reason logged
  /// once). Never returned to the system, reused by size class. O(1).
  /// `is_reserved`: what reserve() was asked for; 0 when the system has no memory, then it stays
  /// reserved.
  std::uint64_t allocate(std::size_t bytes, bool is_reserved = false) noexcept;
  /// `stays_reserved`: as by reserve(), which cannot fail here.
  void release(std::uint64_t offset, std::size_t bytes, bool stays_reserved = false) noexcept;
  /// Sees that allocate() will have room. Backs nothing, and chooses no place. False: there is none
  /// left (reason logged once).
  bool reserve(std::size_t bytes) noexcept;
  /// REQUIRES: reserve(bytes) was true, and nothing was allocated of it.
  void give_up(std::size_t bytes) noexcept;
  /// Backs a piece of a table, or of the doorbells, with memory before first use (idempotent, cheap
  /// when already backed). 0, ENOMEM, or EFAULT for what is in neither file.
  int back(const void* where, std::size_t bytes) noexcept;

  template <class T>
  T* at(std::uint64_t offset) noexcept {
    return reinterpret_cast<T*>(base_ + offset);
  }
  /// Whether that is ours. What a forked child inherits lies in its parent's segment, which stays
  /// where it is when the child opens one of its own: nothing of the one is given to the other.
  bool holds(const void* p) const noexcept {
    const auto* const at = static_cast<const unsigned char*>(p);
    return at >= base_ && at < base_ + size_;
  }
  std::uint64_t offset_of(const void* p) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const unsigned char*>(p) - base_);
  }

  /// Around fork(): the locks, so that the child finds them free.
  void lock_for_fork() noexcept;
  void unlock_after_fork() noexcept;
  /// In a forked child: from now on the mappings are a private copy, so that nothing the child does
  /// to its inherited objects reaches the parent or its peers.
  void become_private() noexcept;

 private:
  // Granules of backing: a step of the segment is worth a system call, one of the doorbells is a
  // page.
  static constexpr std::uint64_t kStep = 64u << 10;
  static constexpr std::uint64_t kDoorbellStep = 4096;
  static constexpr std::uint64_t kLargestSegment = std::uint64_t{1408} << 20;
  static constexpr std::size_t kStepWords = kLargestSegment / kStep / 64;
  static constexpr std::size_t kDoorbellWords = (sizeof(Doorbells) / kDoorbellStep + 1 + 63) / 64;

  int make_files(std::uint64_t mapped_limit) noexcept;
  void say_full(std::size_t bytes) noexcept;
  int back_range(const KeptFd& file, std::atomic<std::uint64_t>* done, std::uint64_t step,
                 std::uint64_t file_bytes, std::uint64_t offset, std::uint64_t bytes) noexcept;

  unsigned char* base_ = nullptr;
  std::uint64_t size_ = 0;
  RegionRecord* regions_ = nullptr;
  QpRecord* qps_ = nullptr;
  CqRecord* cqs_ = nullptr;
  Doorbells* doorbells_ = nullptr;
  std::uint64_t doorbell_bytes_ = 0;
  KeptFd fd_;
  KeptFd doorbell_fd_;

  Mutex heap_mutex_;
  SegmentHeap heap_;
  Mutex back_mutex_;
  std::uint64_t unchecked_ =
      0;  ///< bytes backed since the cgroup was last asked, under back_mutex_
  std::atomic<std::uint64_t> backed_[kStepWords] = {};
  std::atomic<std::uint64_t> doorbells_backed_[kDoorbellWords] = {};
};

/// A peer's segment, mapped read-only, with its header copied and checked.
class PeerSegment {
 public:
  /// The files' sizes are what fstat says, never what the peer says. EPROTO for nonsense.
  int map(int fd, int doorbell_fd) noexcept;
  /// A view of our own segment (loopback); unmap then only forgets it.
  void view(OwnSegment& own) noexcept;
  /// Gives the peer's memory back. The addresses of its segment stay ours, and read as zeros until
  /// the next map() uses them again.
  void rest() noexcept;
  void unmap() noexcept;

  const RegionRecord* regions() const noexcept { return regions_; }
  std::uint32_t region_capacity() const noexcept { return region_capacity_; }
  const QpRecord* qps() const noexcept { return qps_; }
  std::uint32_t qp_capacity() const noexcept { return qp_capacity_; }
  const CqRecord* cqs() const noexcept { return cqs_; }
  /// Completion queues that there are doorbells for.
  std::uint32_t cq_capacity() const noexcept { return cq_capacity_; }
  Doorbells& doorbells() const noexcept { return *doorbells_; }
  const SegmentHeader& live_head() const noexcept {
    return *reinterpret_cast<const SegmentHeader*>(base_);
  }
  /// As the header said when we mapped it.
  std::uint64_t identity() const noexcept { return identity_; }
  bool mapped() const noexcept { return base_ != nullptr; }

  /// A pointer into the segment, or nullptr when [offset, offset + bytes) is not inside it or
  /// `offset` is not aligned for T.
  template <class T>
  const T* at(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    if (bytes > size_ || offset > size_ - bytes || offset % alignof(T) != 0) return nullptr;
    return reinterpret_cast<const T*>(base_ + offset);
  }

 private:
  int adopt_header() noexcept;
  void unmap_reserved() noexcept;
  void forget() noexcept;

  const unsigned char* base_ = nullptr;
  std::uint64_t size_ = 0;
  void* reserved_ = nullptr;  ///< addresses of ours: base_ while mapped
  std::uint64_t reserved_bytes_ = 0;
  const RegionRecord* regions_ = nullptr;
  std::uint32_t region_capacity_ = 0;
  const QpRecord* qps_ = nullptr;
  std::uint32_t qp_capacity_ = 0;
  const CqRecord* cqs_ = nullptr;
  std::uint32_t cq_capacity_ = 0;
  Doorbells* doorbells_ = nullptr;
  std::uint64_t doorbell_bytes_ = 0;
  std::uint64_t identity_ = 0;
  bool borrowed_ = false;
};

}  // namespace verbatim::shm
