// SPDX-License-Identifier: BSD-2-Clause
#include "perf/floors/cma.hpp"

#include <sys/uio.h>

#include <cerrno>
#include <system_error>

namespace verbatim::perf {
namespace {

void check(ssize_t moved, std::size_t size, const char* what) {
  if (moved == static_cast<ssize_t>(size)) return;
  throw std::system_error(moved < 0 ? errno : EIO, std::generic_category(), what);
}

}  // namespace

int cma_refusal(pid_t peer, void* peer_address) {
  char byte = 0;
  const iovec local = {&byte, 1};
  const iovec remote = {peer_address, 1};
  return process_vm_readv(peer, &local, 1, &remote, 1, 0) == 1 ? 0 : errno;
}

void cma_write(pid_t peer, void* to, const void* from, std::size_t size) {
  const iovec local = {const_cast<void*>(from), size};
  const iovec remote = {to, size};
  check(process_vm_writev(peer, &local, 1, &remote, 1, 0), size, "process_vm_writev");
}

void cma_read(pid_t peer, void* to, const void* from, std::size_t size) {
  const iovec local = {to, size};
  const iovec remote = {const_cast<void*>(from), size};
  check(process_vm_readv(peer, &local, 1, &remote, 1, 0), size, "process_vm_readv");
}

}  // namespace verbatim::perf
