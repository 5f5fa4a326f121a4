// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/memory/buffers.hpp"

#include <cerrno>

#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/memory/arena.hpp"

namespace verbatim::shm {

int alloc_buf(verbatim::Pd&, std::size_t size, ibv_buf** out) noexcept {
  ibv_buf* const buf = make_nothrow<ibv_buf>();
  if (buf == nullptr) return ENOMEM;
  int error = 0;
  void* const memory = alloc_shared(size, error);
  if (memory == nullptr) {
    destroy_nothrow(buf);
    return error;
  }
  *buf = {nullptr, memory, size, false};
  *out = buf;
  return 0;
}

void free_buf(ibv_buf& buf) noexcept {
  if (free_shared(buf.memory) != 0)
    log_error("ibv_free_buf: a memory region still covers it, so the memory stays");
  destroy_nothrow(&buf);
}

void free_inherited_buf(ibv_buf& buf) noexcept { destroy_nothrow(&buf); }

}  // namespace verbatim::shm
