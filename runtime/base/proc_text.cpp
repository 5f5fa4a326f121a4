// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/base/proc_text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/unique_fd.hpp"

namespace verbatim {

bool read_proc_text(const char* path, char* text, std::size_t capacity) noexcept {
  // (Not blocking: where the user moves these trees, a name may be a pipe's.)
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return false;
  std::size_t have = 0;
  while (have < capacity - 1) {
    const ssize_t got = ::read(fd.get(), text + have, capacity - 1 - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text[have] = '\0';
  return have != 0;
}

}  // namespace verbatim
