// SPDX-License-Identifier: BSD-2-Clause
//
// Mapping a stranger's files: what is checked here is all that the rest relies on. The seals keep
// the files from shrinking under us, fstat tells their size, and every table of the header lies
// inside.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "providers/shm/fabric/segment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/memory/memory_file.hpp"
#include "runtime/memory/sparse_map.hpp"

namespace verbatim::shm {
namespace {

/// A file that cannot shrink, at least `least` bytes long.
int check_file(int fd, std::uint64_t least, std::uint64_t& size) noexcept {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return errno;
  if (!S_ISREG(status.st_mode) || status.st_size < 0) return EPROTO;
  if ((memory_file_seals(fd) & F_SEAL_SHRINK) == 0) return EPROTO;
  size = static_cast<std::uint64_t>(status.st_size);
  return size < least || size > kMostSegmentBytes ? EPROTO : 0;
}

bool table_fits(std::uint64_t size, std::uint64_t offset, std::uint64_t entries,
                std::uint64_t entry_bytes, std::uint64_t alignment) noexcept {
  const std::uint64_t bytes = entries * entry_bytes;  // both are small: bounded by the callers
  return offset % alignment == 0 && bytes <= size && offset <= size - bytes;
}

}  // namespace

int PeerSegment::adopt_header() noexcept {
  // A copy, then checks, then use of the copy: the owner may write at any moment.
  const SegmentHeader& live = live_head();
  const std::uint64_t magic = __atomic_load_n(&live.magic, __ATOMIC_ACQUIRE);
  const std::uint32_t version = __atomic_load_n(&live.layout_version, __ATOMIC_RELAXED);
  const std::uint32_t header_bytes = __atomic_load_n(&live.header_bytes, __ATOMIC_RELAXED);
  const std::uint64_t mr_table = __atomic_load_n(&live.mr_table, __ATOMIC_RELAXED);
  const std::uint64_t qp_table = __atomic_load_n(&live.qp_table, __ATOMIC_RELAXED);
  const std::uint64_t cq_table = __atomic_load_n(&live.cq_table, __ATOMIC_RELAXED);
  const std::uint32_t mr_capacity = __atomic_load_n(&live.mr_capacity, __ATOMIC_RELAXED);
  const std::uint32_t qp_capacity = __atomic_load_n(&live.qp_capacity, __ATOMIC_RELAXED);
  const std::uint32_t cq_capacity = __atomic_load_n(&live.cq_capacity, __ATOMIC_RELAXED);
  identity_ = __atomic_load_n(&live.identity, __ATOMIC_RELAXED);

  if (magic != kSegmentMagic) return EPROTO;
  if (version != kLayoutVersion || header_bytes != sizeof(SegmentHeader)) {
    static constinit LogOnce once;
    if (once.first()) {
      log_warn(
          "a peer speaks version %u of the shared memory layout, we speak %u: both must use the "
          "same "
          "version of the library",
          version, kLayoutVersion);
    }
    return EPROTO;
  }
  if (identity_ == 0 || mr_capacity > kMaxRegions || qp_capacity > kMaxQps ||
      cq_capacity > kMaxCqs || Doorbells::bytes_for(cq_capacity) > doorbell_bytes_ ||
      !table_fits(size_, mr_table, mr_capacity, sizeof(RegionRecord), alignof(RegionRecord)) ||
      !table_fits(size_, qp_table, qp_capacity, sizeof(QpRecord), alignof(QpRecord)) ||
      !table_fits(size_, cq_table, kMaxCqs, sizeof(CqRecord), alignof(CqRecord))) {
    return EPROTO;
  }
  regions_ = reinterpret_cast<const RegionRecord*>(base_ + mr_table);
  region_capacity_ = mr_capacity;
  qps_ = reinterpret_cast<const QpRecord*>(base_ + qp_table);
  qp_capacity_ = qp_capacity;
  cqs_ = reinterpret_cast<const CqRecord*>(base_ + cq_table);
  cq_capacity_ = cq_capacity;
  return 0;
}

int PeerSegment::map(int fd, int doorbell_fd) noexcept {
  int error = check_file(fd, sizeof(SegmentHeader), size_);
  if (error == 0) error = check_file(doorbell_fd, Doorbells::bytes_for(0), doorbell_bytes_);
  if (error != 0) return error;
  if (reserved_bytes_ < size_) unmap_reserved();
  void* const base = map_sparse(reserved_, size_, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd);
  if (base == MAP_FAILED) {
    error = errno;
    static constinit LogOnce once;  // both sides try again and again
    // EBADF: the application has closed it.
    if (error != EBADF && once.first())
      log_error("mapping a peer's segment of %llu MiB: %s%s",
                static_cast<unsigned long long>(size_ >> 20), std::strerror(error),
                error == EAGAIN ? " (all memory is to be locked: raise 'ulimit -l')"
                : address_space_left() != ~std::uint64_t{0} ? " (raise 'ulimit -v')"
                                                            : "");
    return error;
  }
  base_ = static_cast<const unsigned char*>(base);
  if (reserved_ == nullptr) {
    reserved_ = base;
    reserved_bytes_ = size_;
  }
  doorbell_bytes_ = std::min(doorbell_bytes_, Doorbells::bytes_for(kMaxCqs));
  void* const bells = map_sparse(nullptr, doorbell_bytes_, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_NORESERVE, doorbell_fd);
  if (bells == MAP_FAILED) {
    error = errno;
    unmap();
    return error;
  }
  doorbells_ = static_cast<Doorbells*>(bells);
  error = adopt_header();
  if (error != 0) unmap();
  return error;
}

void PeerSegment::view(OwnSegment& own) noexcept {
  const SegmentHeader& header = own.head();
  base_ = own.base();
  size_ = own.size();
  regions_ = own.regions();
  region_capacity_ = header.mr_capacity;
  qps_ = own.qps();
  qp_capacity_ = header.qp_capacity;
  cqs_ = own.cqs();
  cq_capacity_ = header.cq_capacity;
  doorbells_ = &own.doorbells();
  identity_ = header.identity;
  borrowed_ = true;
}

void PeerSegment::rest() noexcept {
  if (doorbells_ != nullptr && !borrowed_)
    ::munmap(static_cast<void*>(doorbells_), doorbell_bytes_);
  if (base_ != nullptr && !borrowed_) {
    // Should it fail, the file stays mapped until the next one takes its place.
    (void)map_sparse(reserved_, size_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  }
  forget();
}

void PeerSegment::unmap() noexcept {
  if (doorbells_ != nullptr && !borrowed_)
    ::munmap(static_cast<void*>(doorbells_), doorbell_bytes_);
  unmap_reserved();
  forget();
}

void PeerSegment::unmap_reserved() noexcept {
  if (reserved_ != nullptr) ::munmap(reserved_, reserved_bytes_);
  reserved_ = nullptr;
  reserved_bytes_ = 0;
}

void PeerSegment::forget() noexcept {
  base_ = nullptr;
  size_ = 0;
  regions_ = nullptr;
  region_capacity_ = 0;
  qps_ = nullptr;
  qp_capacity_ = 0;
  cqs_ = nullptr;
  cq_capacity_ = 0;
  doorbells_ = nullptr;
  doorbell_bytes_ = 0;
  identity_ = 0;
  borrowed_ = false;
}

}  // namespace verbatim::shm
