// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/machine_share.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "runtime/base/log.hpp"
#include "runtime/base/private_folder.hpp"
#include "runtime/topo/machine_check.hpp"

namespace verbatim::topo {
namespace {

constexpr const char* kLockName = ".machine-lock";
constexpr const char* kNewPrefix = ".machine-new-";
constexpr const char* kPrefix = ".machine-";
/// A name on its way that is older than this has lost its process.
constexpr long kStaleSeconds = 60;

std::uint64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

bool begins(const char* text, const char* with) noexcept {
  return std::strncmp(text, with, std::strlen(with)) == 0;
}

bool read_all(int fd, unsigned char* to, std::size_t size) noexcept {
  std::size_t have = 0;
  while (have < size) {
    const ssize_t got = ::read(fd, to + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    have += static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int fd, const unsigned char* from, std::size_t size) noexcept {
  std::size_t have = 0;
  while (have < size) {
    const ssize_t put = ::write(fd, from + have, size - have);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    have += static_cast<std::size_t>(put);
  }
  return true;
}

/// The largest file that can be a machine.
constexpr std::uint64_t max_bytes() noexcept {
  MachineHead head{};
  head.node_count = kMaxNodes;
  head.group_count = head.core_count = head.pu_count = kMaxPus;
  head.cpu_end = kMaxCpuNumber + 1;
  return MachineTables(head).end;
}

}  // namespace

bool MachineShare::open(std::uint32_t boot, std::uint64_t key) noexcept {
  if (boot == 0) {
    log_info("the host's boot id cannot be read: each process reads the machine for itself");
    return false;
  }
  boot_ = boot;
  key_ = key;
  std::snprintf(name_, sizeof name_, "%s%08x-%016llx", kPrefix, static_cast<unsigned>(boot),
                static_cast<unsigned long long>(key));
  FolderRefusal refusal;
  if (open_user_folder(folder_, path_, sizeof path_, refusal) == 0) return true;
  log_info("each process reads the machine for itself, since %s cannot be used: %s", path_,
           refusal.why);
  return false;
}

bool MachineShare::fetch(Snapshot& snapshot) const noexcept {
  const UniqueFd fd(::openat(folder_.get(), name_, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno != ENOENT) log_info("%s/%s: %s", path_, name_, std::strerror(errno));
    return false;
  }
  struct stat status {};
  const char* wrong = nullptr;
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & 022) != 0) {
    wrong = "it is not a file of ours alone";
  } else if (status.st_size < static_cast<off_t>(sizeof(MachineHead)) ||
             static_cast<std::uint64_t>(status.st_size) > max_bytes()) {
    wrong = "no machine has its size";
  } else if (!snapshot.allocate(static_cast<std::size_t>(status.st_size)) ||
             !read_all(fd.get(), snapshot.bytes(), snapshot.size())) {
    wrong = "it cannot be read";
  } else {
    wrong = check_machine(snapshot.bytes(), snapshot.size());
    if (wrong == nullptr && snapshot.head().key != key_) wrong = "it is of another machine";
  }
  if (wrong == nullptr) {
    log_debug("the machine is taken from %s/%s", path_, name_);
    return true;
  }
  log_info("%s/%s is not used: %s", path_, name_, wrong);
  return false;
}

bool MachineShare::begin_reading() noexcept {
  const std::uint64_t deadline = now_ns() + kPatienceNs;
  lock_.reset(::openat(folder_.get(), kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_.valid()) return true;
  bool waited = false;
  while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return true;
    if (now_ns() >= deadline) {
      log_info("%s/%s is held for too long: the machine is read here too", path_, kLockName);
      lock_.reset();
      return true;
    }
    waited = true;
    const timespec pause{.tv_sec = 0, .tv_nsec = 500'000};
    ::nanosleep(&pause, nullptr);
  }
  return !waited;
}

void MachineShare::end_reading() noexcept {
  // In words: a child that was forked meanwhile has the descriptor too.
  if (lock_.valid()) (void)::flock(lock_.get(), LOCK_UN);
  lock_.reset();
}

void MachineShare::publish(const Snapshot& snapshot) const noexcept {
  remove_leftovers();
  char temporary[48];
  std::snprintf(temporary, sizeof temporary, "%s%d", kNewPrefix, static_cast<int>(::getpid()));
  (void)::unlinkat(folder_.get(), temporary, 0);
  const UniqueFd fd(::openat(folder_.get(), temporary,
                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const bool made = fd.valid() && ::fchmod(fd.get(), 0600) == 0 &&
                    write_all(fd.get(), snapshot.bytes(), snapshot.size()) &&
                    ::renameat(folder_.get(), temporary, folder_.get(), name_) == 0;
  if (made) return;
  log_info("%s/%s cannot be written (%s): other processes read the machine too", path_, name_,
           std::strerror(errno));
  if (fd.valid()) (void)::unlinkat(folder_.get(), temporary, 0);
}

void MachineShare::remove_leftovers() const noexcept {
  char ours[32];
  std::snprintf(ours, sizeof ours, "%s%08x-", kPrefix, static_cast<unsigned>(boot_));
  UniqueFd again(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const entries = again.valid() ? ::fdopendir(again.get()) : nullptr;
  if (entries == nullptr) return;
  (void)again.release();
  const std::time_t now = ::time(nullptr);
  while (const dirent* entry = ::readdir(entries)) {
    const char* const name = entry->d_name;
    if (!begins(name, kPrefix) || std::strcmp(name, kLockName) == 0 || begins(name, ours)) continue;
    struct stat status {};
    if (begins(name, kNewPrefix) &&
        (::fstatat(folder_.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
         now - status.st_mtime < kStaleSeconds))
      continue;
    (void)::unlinkat(folder_.get(), name, 0);
  }
  ::closedir(entries);
}

}  // namespace verbatim::topo
