// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_reg_dmabuf_mr: the memory of a dma-buf, where its exporter lets processors map it (udmabuf
// does; buffers in a device's own memory often do not). Peers reach it through our service thread:
// the kernel's cross-process copies refuse mappings without ordinary pages.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "providers/shm/memory/context.hpp"
#include "providers/shm/memory/region.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::shm {
namespace {

/// statfs(2) of every dma-buf: linux/magic.h, DMA_BUF_MAGIC.
constexpr long kDmaBufMagic = 0x444d4142;

}  // namespace

int reg_dmabuf_mr(verbatim::Pd& pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                  int fd, unsigned access, verbatim::Mr** out) noexcept {
  if (const int error = check_rights(access); error != 0) return error;
  struct statfs about {};
  if (::fstatfs(fd, &about) != 0) {
    const int error = errno;
    log_refusal("reg_dmabuf_mr: descriptor %d: %s", fd, std::strerror(error));
    return error;
  }
  if (about.f_type != kDmaBufMagic) {
    log_refusal("reg_dmabuf_mr: descriptor %d is not a dma-buf", fd);
    return EINVAL;
  }
  const off_t end = ::lseek(fd, 0, SEEK_END);
  if (end < 0 || offset > static_cast<std::uint64_t>(end) ||
      length > static_cast<std::uint64_t>(end) - offset) {
    log_refusal("reg_dmabuf_mr: [%llu, + %zu) is not within the %lld bytes of the dma-buf",
                static_cast<unsigned long long>(offset), length, static_cast<long long>(end));
    return EINVAL;
  }
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t first = offset & ~(page - 1);
  const int protection = PROT_READ | ((access & IBV_ACCESS_LOCAL_WRITE) != 0 ? PROT_WRITE : 0);
  const std::size_t bytes = length + (offset - first);
  void* const mapping =
      ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, static_cast<off_t>(first));
  if (mapping == MAP_FAILED) {
    log_refusal("reg_dmabuf_mr: the exporter of this dma-buf lets no processor map it (%s)",
                std::strerror(errno));
    return EOPNOTSUPP;
  }
  Mr* mr = make_nothrow<Mr>();
  int error = ENOMEM;
  if (mr != nullptr) {
    mr->may_change = false;
    mr->mapping = mapping;
    mr->mapping_bytes = bytes;
    mr->shown.iova = iova;
    mr->shown.length = length;
    mr->shown.address = reinterpret_cast<std::uint64_t>(mapping) + (offset - first);
    mr->shown.access = access;
    mr->shown.pd = pd.plain.handle;
    mr->shown.arena = mr->arena = RegionRecord::kOwnerOnly;
    error = publish_mr(*mr);
  }
  if (error != 0) {
    destroy_nothrow(mr);
    ::munmap(mapping, bytes);
    return error;
  }
  *out = mr;
  return 0;
}

}  // namespace verbatim::shm
