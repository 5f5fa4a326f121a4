// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/fabric_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>

#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/private_folder.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

constexpr const char* kDefaultFabric = "default";
constexpr int kBacklog = 256;
constexpr const char* kLockName = "lock";
/// Names that a claim looks at besides its own: some microseconds each.
constexpr std::uint32_t kLooks = 32;

struct BlockName {
  explicit BlockName(std::uint32_t block) noexcept {
    std::snprintf(text, sizeof text, "q%03x", block & 0xfff);
  }
  char text[8];
};

struct ApartName {
  explicit ApartName(std::uint32_t number) noexcept {
    std::snprintf(text, sizeof text, "w%08x", number);
  }
  char text[16];
};

std::uint32_t random_number() noexcept {
  std::uint32_t value = 0;
  if (::getrandom(&value, sizeof value, GRND_NONBLOCK) != sizeof value) {
    value = static_cast<std::uint32_t>(now_ns() >> 10) * 0x9e3779b1u;
  }
  return value;
}

int make_socket(UniqueFd& out, int type = SOCK_SEQPACKET) noexcept {
  out.reset(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return out.valid() ? 0 : errno;
}

}  // namespace

int FabricFolder::open() noexcept {
  const char* fabric = environment_text("VERBATIM_FABRIC", PATH_MAX - 64);
  if (fabric == nullptr) fabric = kDefaultFabric;
  const char* const runtime_dir = environment_text("XDG_RUNTIME_DIR", PATH_MAX - 512);
  std::snprintf(fabric_, sizeof fabric_, "%s", fabric);
  std::snprintf(runtime_dir_, sizeof runtime_dir_, "%s", runtime_dir == nullptr ? "" : runtime_dir);
  if (fabric_[0] == '/') {
    std::memcpy(paths_[0], fabric_, sizeof fabric_);
  } else if (std::strchr(fabric_, '/') != nullptr || fabric_[0] == '.' ||
             std::strlen(fabric_) > NAME_MAX) {
    log_error("VERBATIM_FABRIC=%s is neither a plain name nor an absolute path", fabric_);
    return EINVAL;
  } else {
    const char* const bases[] = {runtime_dir_, "/tmp"};
    for (unsigned i = 0; i < std::size(bases); ++i) {
      const int length = std::snprintf(paths_[i], sizeof paths_[i], "%s/verbatim-%u/%s", bases[i],
                                       static_cast<unsigned>(::geteuid()), fabric_);
      if (length < 0 || static_cast<std::size_t>(length) >= sizeof paths_[i]) return ENAMETOOLONG;
    }
    if (way() != 0 && runtime_dir != nullptr)
      log_info("XDG_RUNTIME_DIR=%s cannot be written: what we share is under /tmp", runtime_dir);
  }
  Place place;
  FolderRefusal refusal;
  if (find_place(place, refusal) != 0) {
    log_error(
        "cannot use the folder %s: %s; %s", place.path, refusal.why,
        refusal.error == EMFILE ? "raise 'ulimit -n'" : "or let VERBATIM_FABRIC name another one");
    return refusal.error;
  }
  folder_ = static_cast<UniqueFd&&>(place.folder);
  path_.store(paths_[place.way], std::memory_order_release);
  // systemd-tmpfiles leaves locked folders alone; nobody else looks at this lock.
  (void)::flock(folder_.get(), LOCK_SH | LOCK_NB);

  char probe[64];
  std::snprintf(probe, sizeof probe, "/proc/self/fd/%d", folder_.get());
  struct stat status {};
  through_proc_ = ::stat(probe, &status) == 0 && S_ISDIR(status.st_mode);
  sockaddr_un address{};
  if (!address_of(ApartName(0).text, address)) {
    log_error(
        "without /proc the path of the fabric folder %s is too long for a socket: mount /proc, "
        "or set "
        "VERBATIM_FABRIC to a shorter one",
        path());
    close();
    return ENAMETOOLONG;
  }
  log_debug("fabric folder %s", path());
  return 0;
}

void FabricFolder::close() noexcept {
  folder_.reset();
  path_.store("", std::memory_order_release);
}

bool FabricFolder::address_of(const char* name, sockaddr_un& address) const noexcept {
  address.sun_family = AF_UNIX;
  const int length = through_proc_
                         ? std::snprintf(address.sun_path, sizeof address.sun_path,
                                         "/proc/self/fd/%d/%s", folder_.get(), name)
                         : std::snprintf(address.sun_path, sizeof address.sun_path, "%.*s/%s",
                                         static_cast<int>(sizeof address.sun_path), path(), name);
  return length > 0 && static_cast<std::size_t>(length) < sizeof address.sun_path;
}

FabricFolder::Lock::~Lock() {
  if (file.valid()) (void)::flock(file.get(), LOCK_UN);
}

int FabricFolder::lock_silently(std::uint64_t patience_ns, Lock& held) const noexcept {
  if (!is_open()) return EBADF;
  const std::uint64_t deadline = now_ns() + patience_ns;
  for (;;) {
    UniqueFd fd(
        ::openat(folder_.get(), kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid()) return errno;
    while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      if (error != EWOULDBLOCK && error != EINTR) return error;
      if (now_ns() >= deadline) return EBUSY;
      const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
      ::nanosleep(&pause, nullptr);
    }
    // Its last holder may have been the last to leave: then it is nobody's lock any more.
    struct stat status {};
    if (::fstat(fd.get(), &status) == 0 && status.st_nlink == 0 &&
        now_ns() < deadline + kLockPatienceNs)
      continue;
    held.file = static_cast<UniqueFd&&>(fd);
    return 0;
  }
}

int FabricFolder::lock(std::uint64_t patience_ns, Lock& held) noexcept {
  const int error = lock_silently(patience_ns, held);
  if (error == 0 || error == EBUSY) return error;
  log_error("the fabric folder %s cannot be used: %s%s", path(), std::strerror(error),
            error == ENOENT ? " (somebody removed it while we were using it)" : "");
  return EIO;
}

bool FabricFolder::list(Names& names) const noexcept {
  UniqueFd again(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const entries = again.valid() ? ::fdopendir(again.get()) : nullptr;
  if (entries == nullptr) return false;
  (void)again.release();
  const dirent* entry;
  while (errno = 0, (entry = ::readdir(entries)) != nullptr) {
    char* end = nullptr;
    const unsigned long long block = std::strtoull(entry->d_name + 1, &end, 16);
    if (entry->d_name[0] == 'q' && end == entry->d_name + 4 && *end == '\0' && block < kQpnBlocks)
      names.words[block / 64] |= std::uint64_t{1} << (block % 64);
    if (entry->d_name[0] == 'w' && end == entry->d_name + 9 && *end == '\0' &&
        names.apart_count < std::size(names.apart))
      names.apart[names.apart_count++] = static_cast<std::uint32_t>(block);
  }
  // Half a list would have living processes missed, and the lock taken from under them.
  const bool whole = errno == 0;
  ::closedir(entries);
  return whole;
}

bool FabricFolder::list_blocks(std::uint64_t (&words)[kQpnBlocks / 64]) const noexcept {
  Names names;
  if (!list(names)) return false;
  std::memcpy(words, names.words, sizeof words);
  return true;
}

std::uint64_t FabricFolder::number() const noexcept {
  struct stat status {};
  return ::fstat(folder_.get(), &status) == 0 ? status.st_ino : 0;
}

std::uint64_t FabricFolder::changed_at() const noexcept {
  struct stat status {};
  if (::fstat(folder_.get(), &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
}

bool FabricFolder::is_dead(const char* name) const noexcept {
  // A living owner is not disturbed: his socket is of another kind, which is told (EPROTOTYPE)
  // before he hears of it; and one of this kind hears nothing of it.
  // Nothing but a socket is a name of ours: a folder that VERBATIM_FABRIC names may have more in it.
  struct stat status {};
  if (::fstatat(folder_.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISSOCK(status.st_mode))
    return false;
  UniqueFd probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  return probe.valid() && address_of(name, address) &&
         ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

void FabricFolder::remove_some_locked(std::uint32_t start) noexcept {
  Names names;
  if (!list(names)) return;
  std::uint32_t looks = 0;
  std::uint32_t removed = 0;
  for (std::uint32_t i = 0; i < kQpnBlocks && looks < kLooks; ++i) {
    const std::uint32_t block = (start + i) % kQpnBlocks;
    if (!names.has(block)) continue;
    ++looks;
    if (!is_dead(BlockName(block).text)) continue;
    remove(block);
    ++removed;
  }
  for (std::uint32_t i = 0; i < names.apart_count; ++i) {
    const ApartName name(names.apart[i]);
    if (is_dead(name.text)) (void)::unlinkat(folder_.get(), name.text, 0);
  }
  remove_unheld_locked();
  if (removed != 0) log_info("removed %u names of dead processes from %s", removed, path());
}

int FabricFolder::try_claim_locked(std::uint32_t block, UniqueFd& listener) noexcept {
  const BlockName name(block);
  sockaddr_un address{};
  (void)address_of(name.text, address);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EADDRINUSE) return errno;
    if (!is_dead(name.text)) return EADDRINUSE;
    if (::unlinkat(folder_.get(), name.text, 0) != 0 && errno != ENOENT) return EADDRINUSE;
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return errno;
  }
  int error = 0;
  // A umask may have taken the right to connect.
  if (::fchmodat(folder_.get(), name.text, 0600, 0) != 0 || ::listen(listener.get(), kBacklog) != 0)
    error = errno;
  if (error != 0) (void)::unlinkat(folder_.get(), name.text, 0);
  return error;
}

int FabricFolder::claim(std::uint32_t& block, UniqueFd& listener) noexcept {
  Lock held;
  int error = lock(kLockPatienceNs, held);
  if (error != 0) {
    if (error == EBUSY) {
      log_error("%s/%s is held by another process for too long: 'fuser %s/%s' tells which", path(),
                kLockName, path(), kLockName);
    }
    return EIO;
  }
  // Never used are block 0, which holds the special numbers 0 and 1, and the last one, which holds
  // that of all multicast groups: a process has every number of its blocks. A random start lets
  // numbers rest between uses.
  const std::uint32_t start = random_number() % kQpnBlocks;
  remove_some_locked(start);
  for (std::uint32_t i = 0; i < kQpnBlocks; ++i) {
    const std::uint32_t candidate = (start + i) % kQpnBlocks;
    if (candidate == 0 || candidate == kQpnBlocks - 1) continue;
    error = listener.valid() ? 0 : make_socket(listener);
    if (error == 0) error = try_claim_locked(candidate, listener);
    if (error == 0) {
      block = candidate;
      return 0;
    }
    if (error == EADDRINUSE) continue;
    listener.reset();
    log_error("claiming a name in %s: %s%s", path(), std::strerror(error),
              error == EMFILE ? " (raise 'ulimit -n')" : "");
    return EIO;
  }
  listener.reset();
  log_error(
      "all %u blocks of queue pair numbers are taken in %s: set VERBATIM_FABRIC to another fabric",
      kQpnBlocks - 2, path());
  return ENOSPC;
}

int FabricFolder::claim_again(std::uint32_t block, UniqueFd& listener) noexcept {
  Lock held;
  int error = lock_silently(0, held);
  if (error == 0) error = make_socket(listener);
  if (error == 0) error = try_claim_locked(block, listener);
  if (error != 0) listener.reset();
  return error;
}

std::uint64_t FabricFolder::inode_of(std::uint32_t block) const noexcept {
  struct stat status {};
  const BlockName name(block);
  const bool is_there = ::fstatat(folder_.get(), name.text, &status, AT_SYMLINK_NOFOLLOW) == 0;
  return is_there ? status.st_ino : 0;
}

bool FabricFolder::lacks(std::uint32_t block, std::uint64_t inode) const noexcept {
  errno = 0;
  const std::uint64_t now = inode_of(block);
  // No number is given twice: our socket keeps its place, also when that has no name.
  return now == 0 ? errno == ENOENT : inode != 0 && now != inode;
}

void FabricFolder::release(std::uint32_t block, std::uint64_t inode) noexcept {
  if (!lacks(block, inode)) remove(block);
}

void FabricFolder::remove(std::uint32_t block) noexcept {
  const BlockName name(block);
  if (::unlinkat(folder_.get(), name.text, 0) != 0 && errno != ENOENT) {
    log_info("removing %s/%s: %s", path(), name.text, std::strerror(errno));
  }
}

int FabricFolder::bind_apart(UniqueFd& socket, UniqueFd& place) noexcept {
  constexpr int kTries = 16;
  int error = EADDRINUSE;
  // A name may be in use; and one that is bound at this moment looks dead to whoever removes those.
  for (int tries = 0; tries < kTries && (error == EADDRINUSE || error == ENOENT); ++tries) {
    const ApartName name(random_number());
    sockaddr_un address{};
    (void)address_of(name.text, address);
    error = make_socket(socket, SOCK_DGRAM);
    if (error != 0) break;
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      error = errno;
      continue;
    }
    // A umask may have taken the right to connect.
    if (::fchmodat(folder_.get(), name.text, 0600, 0) != 0) error = errno;
    if (error == 0) {
      place.reset(::openat(folder_.get(), name.text, O_PATH | O_NOFOLLOW | O_CLOEXEC));
      if (!place.valid()) error = errno;
    }
    (void)::unlinkat(folder_.get(), name.text, 0);
  }
  if (error != 0) socket.reset();
  return error;
}

int FabricFolder::connect(std::uint32_t block, UniqueFd& socket) noexcept {
  int error = make_socket(socket);
  if (error != 0) return error;
  sockaddr_un address{};
  (void)address_of(BlockName(block).text, address);
  do {
    error =
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0
            ? 0
            : errno;
  } while (error == EINTR);
  if (error != 0) socket.reset();
  return error;
}

void FabricFolder::remove_stale(std::uint32_t block) noexcept {
  const BlockName name(block);
  Lock held;
  if (!is_dead(name.text) || lock(0, held) != 0 || !is_dead(name.text)) return;
  log_info("removing %s/%s: its process died", path(), name.text);
  remove(block);
}

void FabricFolder::leave(std::uint64_t patience_ns) noexcept {
  // Who has a name there will leave after us. Of several who leave at once each has taken his name
  // away, and waits for the others' looks: the last one finds nobody.
  Lock held;
  if (!is_open() || !is_deserted() || ::faccessat(folder_.get(), kLockName, F_OK, 0) != 0 ||
      lock(patience_ns, held) != 0 || !is_deserted())
    return;
  (void)::unlinkat(folder_.get(), kLockName, 0);
}

bool FabricFolder::is_deserted() const noexcept {
  Names names;
  return list(names) && std::all_of(std::begin(names.words), std::end(names.words),
                                    [](std::uint64_t word) { return word == 0; });
}

}  // namespace verbatim::shm
