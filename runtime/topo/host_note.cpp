// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/host_note.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/base/private_folder.hpp"
#include "runtime/base/proc_text.hpp"
#include "runtime/topo/hash.hpp"

namespace verbatim::topo {

bool HostNote::open(const char* name) noexcept {
  char boot[64];
  if (!read_proc_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot)) {
    log_info("the host's boot id cannot be read: nothing of %s is kept for other processes", name);
    return false;
  }
  FolderRefusal refusal;
  if (open_user_folder(folder_, path_, sizeof path_, refusal) != 0) {
    log_info("nothing of %s is kept for other processes, since %s cannot be used: %s", name, path_,
             refusal.why);
    path_[0] = '\0';
    return false;
  }
  folder_length_ = std::strlen(path_);
  const auto start = static_cast<std::uint32_t>(hash_bytes(boot, std::strlen(boot)));
  const int more = std::snprintf(path_ + folder_length_, sizeof path_ - folder_length_,
                                 "/.%.20s-%08x", name, static_cast<unsigned>(start));
  if (static_cast<std::size_t>(more) < sizeof path_ - folder_length_) return true;
  path_[0] = '\0';
  return false;
}

bool HostNote::read(std::span<char> text) const noexcept {
  const UniqueFd fd(
      ::openat(folder_.get(), file(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno != ENOENT) log_info("%s: %s", path_, std::strerror(errno));
    return false;
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & 022) != 0) {
    log_info("%s is not used: it is not a file of ours alone", path_);
    return false;
  }
  std::size_t have = 0;
  for (;;) {
    const ssize_t got = ::read(fd.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 && have < text.size()) break;
    have += got > 0 ? static_cast<std::size_t>(got) : 0;
    if (got > 0 && have < text.size()) continue;
    log_info("%s is not used: %s", path_, got < 0 ? std::strerror(errno) : "it is too long");
    return false;
  }
  text[have] = '\0';
  return true;
}

bool HostNote::write(const char* text) const noexcept {
  char temporary[64];
  std::snprintf(temporary, sizeof temporary, "%.40s.%d", file(), static_cast<int>(::getpid()));
  const std::size_t length = std::strlen(text);
  // What a process of this number has left is as good as not there.
  (void)::unlinkat(folder_.get(), temporary, 0);
  const UniqueFd fd(::openat(folder_.get(), temporary,
                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  ssize_t put = -1;
  if (fd.valid()) do
      put = ::write(fd.get(), text, length);
    while (put < 0 && errno == EINTR);
  if (put == static_cast<ssize_t>(length) &&
      ::renameat(folder_.get(), temporary, folder_.get(), file()) == 0)
    return true;
  log_info("%s cannot be written: %s", path_, std::strerror(errno));
  if (fd.valid()) (void)::unlinkat(folder_.get(), temporary, 0);
  return false;
}

}  // namespace verbatim::topo
