// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/imports.hpp"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "runtime/base/container_of.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/context_objects.hpp"
#include "runtime/verbs/dependency.hpp"

namespace verbatim {
namespace {

/// Whether `fd` and the context's own are one open file. The inode says so of a software device;
/// the kernel's devices share one, and the kernel is asked.
bool is_command_fd_of(const Context& context, int fd) noexcept {
  const int own = context.extended.context.cmd_fd;
  if (context.command_fd.valid() && !context.command_fd.is_ours()) return false;
  struct stat ours {};
  struct stat theirs {};
  if (::fstat(own, &ours) != 0 || ::fstat(fd, &theirs) != 0 || ours.st_ino != theirs.st_ino ||
      ours.st_dev != theirs.st_dev)
    return false;
  if (context.command_fd.valid()) return true;
  const pid_t self = ::getpid();
  return ::syscall(SYS_kcmp, self, self, KCMP_FILE, own, fd) == 0;
}

/// A parent domain has its domain's handle.
bool is_named(const Pd& pd, std::uint32_t handle) noexcept {
  return pd.plain.handle == handle && pd.original == nullptr;
}
template <class Handle>
bool is_named(const Handle& object, std::uint32_t handle) noexcept {
  return object.plain.handle == handle;
}

template <class Handle>
Result<Handle*> share(Context& context, std::uint32_t handle, const char* verb) noexcept {
  {
    const LockGuard guard(objects_lock);
    for (Owned* at = context.objects[static_cast<std::size_t>(Handle::kKind)]; at != nullptr;
         at = at->next) {
      Handle& object = *container_of<Handle>(at, offsetof(Handle, owned));
      if (!is_named(object, handle)) continue;
      ++at->imports;
      return &object;
    }
  }
  log_refusal("%s: %s has none with handle %u", verb, context.device.plain.name, handle);
  return Error{ENOENT, "no such object"};
}

template <class Handle>
void give_back(Handle& object, const char* verb) noexcept {
  if (was_left(object)) return;
  const LockGuard guard(objects_lock);
  if (object.owned.imports != 0)
    --object.owned.imports;
  else
    log_refusal("%s: it was not imported; nothing is done", verb);
}

}  // namespace

Result<Context*> import_device(int cmd_fd) noexcept {
  if (::fcntl(cmd_fd, F_GETFD) < 0) {
    log_refusal("ibv_import_device: no descriptor is %d", cmd_fd);
    return Error{EBADF, "no descriptor"};
  }
  auto* const import = make_nothrow<ContextImport>();
  if (import == nullptr) return Error{ENOMEM, "no memory for an import"};
  {
    const LockGuard guard(objects_lock);
    for (Context* at = first_open_context; at != nullptr; at = at->next_open) {
      if (!is_command_fd_of(*at, cmd_fd)) continue;
      import->fd = UniqueFd(cmd_fd);
      import->next = at->imports;
      at->imports = import;
      return at;
    }
  }
  destroy_nothrow(import);
  log_refusal(
      "ibv_import_device: descriptor %d is cmd_fd of no device that this process has open; what "
      "another process opened cannot be shared: its queues are in its memory",
      cmd_fd);
  return Error{EOPNOTSUPP, "of no device of this process"};
}

Result<Pd*> import_pd(Context& context, std::uint32_t handle) noexcept {
  return share<Pd>(context, handle, "ibv_import_pd");
}
Result<Mr*> import_mr(Pd& pd, std::uint32_t handle) noexcept {
  return share<Mr>(context_of(pd), handle, "ibv_import_mr");
}
Result<Dm*> import_dm(Context& context, std::uint32_t handle) noexcept {
  return share<Dm>(context, handle, "ibv_import_dm");
}

void unimport_pd(Pd& pd) noexcept { give_back(pd, "ibv_unimport_pd"); }
void unimport_mr(Mr& mr) noexcept { give_back(mr, "ibv_unimport_mr"); }
void unimport_dm(Dm& dm) noexcept { give_back(dm, "ibv_unimport_dm"); }

}  // namespace verbatim
