// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/xrc/xrc_domain.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::shm {
namespace {

/// No device number, and no inode number, has it.
constexpr std::uint64_t kPrivate = std::uint64_t{1} << 63;
constexpr std::uint32_t kDeviceShift = 56;  // 16 devices at most

/// Of a domain that no file stands for.
XrcDomainId private_id() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  return {Process::get().segment().head().identity,
          kPrivate | (last.fetch_add(1, std::memory_order_relaxed) + 1)};
}

/// The domain of the file behind `fd`. What the kernel answers: EBADF; EAGAIN when it does not
/// exist and O_CREAT is not given, EINVAL when it exists and O_EXCL is.
int join_file(Xrcd& xrcd, std::uint32_t device, int fd, int oflags) noexcept {
  xrcd.file.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  struct stat status {};
  if (!xrcd.file.valid() || ::fstat(xrcd.file.get(), &status) != 0) {
    log_refusal("ibv_open_xrcd: %d is no open file; fd -1 asks for a domain of this process alone",
                fd);
    return EBADF;
  }
  xrcd.id = {std::uint64_t{device} << kDeviceShift | status.st_dev, status.st_ino};
  std::snprintf(xrcd.held.text, sizeof xrcd.held.text, "x%llx-%llx",
                static_cast<unsigned long long>(xrcd.id.high),
                static_cast<unsigned long long>(xrcd.id.low));
  const int error =
      Process::get().hold_name(xrcd.held, (oflags & O_CREAT) != 0, (oflags & O_EXCL) != 0);
  if (error == EEXIST) {
    log_refusal("ibv_open_xrcd: the file's domain exists, and O_EXCL is given");
    return EINVAL;
  }
  if (error == ENOENT) {
    log_refusal("ibv_open_xrcd: the file has no domain yet, and O_CREAT is not given");
    return EAGAIN;
  }
  return error;
}

}  // namespace

bool shares_domain(const QpRecord& a, const QpRecord& b) noexcept {
  const std::uint64_t high = load_relaxed(a.domain.high), low = load_relaxed(a.domain.low);
  return (high | low) != 0 && high == load_relaxed(b.domain.high) &&
         low == load_relaxed(b.domain.low);
}

void show_domain(QpRecord& record, const XrcDomainId& id) noexcept {
  store_relaxed(record.domain.high, id.high);
  store_relaxed(record.domain.low, id.low);
}

int open_xrcd(verbatim::Context& context, const ibv_xrcd_init_attr& attr,
              verbatim::Xrcd** out) noexcept {
  if ((attr.oflags & ~(O_CREAT | O_EXCL)) != 0) {
    log_refusal("ibv_open_xrcd: oflags 0x%x: only O_CREAT and O_EXCL mean something",
                static_cast<unsigned>(attr.oflags));
    return EINVAL;
  }
  Xrcd* xrcd = make_nothrow<Xrcd>();
  if (xrcd == nullptr) return ENOMEM;
  if (attr.fd == -1) {
    xrcd->id = private_id();
  } else if (const int error = join_file(*xrcd, context.device.index, attr.fd, attr.oflags);
             error != 0) {
    destroy_nothrow(xrcd);
    return error;
  }
  *out = xrcd;
  return 0;
}

int close_xrcd(verbatim::Xrcd& handle) noexcept {
  Xrcd& xrcd = static_cast<Xrcd&>(handle);
  if (xrcd.held.file.valid()) Process::get().let_name_go(xrcd.held);
  destroy_nothrow(&xrcd);
  return 0;
}

}  // namespace verbatim::shm
