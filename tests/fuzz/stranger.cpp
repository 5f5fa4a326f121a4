// SPDX-License-Identifier: BSD-2-Clause
#include "tests/fuzz/stranger.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "providers/shm/fabric/fabric_folder.hpp"
#include "tests/fuzz/input.hpp"

namespace verbatim::fuzz {
namespace {

UniqueFd sealed_file(const char* name, std::uint64_t bytes) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  VBT_HOLDS(fd.valid());
  VBT_HOLDS(ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0);
  VBT_HOLDS(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  return fd;
}

}  // namespace

Stranger::Stranger(std::uint64_t identity, std::uint32_t block, std::uint64_t bytes)
    : identity_(identity),
      block_(block),
      bytes_(bytes),
      segment_(sealed_file("stranger", bytes)),
      doorbells_(sealed_file("stranger-bells", sizeof(shm::Doorbells))) {
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment_.get(), 0);
  VBT_HOLDS(base != MAP_FAILED);
  base_ = static_cast<unsigned char*>(base);
  restore();
}

void Stranger::have_place() const {
  if (place_.valid()) return;
  shm::FabricFolder folder;
  VBT_HOLDS(folder.open() == 0 && folder.bind_apart(woken_, place_) == 0);
}

Stranger::~Stranger() { munmap(base_, bytes_); }

void Stranger::restore() {
  // What targets write to lies below; the rest of the file stays as sparse as it is.
  std::memset(base_ + kMrTable, 0, 0x40000 - kMrTable);
  shm::SegmentHeader& header = head();
  header.layout_version = shm::kLayoutVersion;
  header.header_bytes = sizeof(shm::SegmentHeader);
  header.segment_bytes = bytes_;
  header.identity = identity_;
  header.pid = getpid();
  header.sender_fence = 0;
  header.mr_table = kMrTable;
  header.mr_capacity = kRegions;
  header.qp_table = kQpTable;
  header.qp_capacity = kQps;
  header.cq_capacity = shm::kMaxCqs;
  header.cq_table = kCqTable;
  header.heap = kHeap;
  header.blocks[0].store(block_);
  header.block_count.store(1);
  header.magic = shm::kSegmentMagic;
}

shm::HelloMessage Stranger::hello(bool cma) const {
  shm::HelloMessage hello;
  hello.identity = identity_;
  hello.header_address = cma ? reinterpret_cast<std::uintptr_t>(base_) : 0;
  hello.layout_version = shm::kLayoutVersion;
  return hello;
}

int Stranger::introduce(int socket, bool cma) const {
  const shm::HelloMessage message = hello(cma);
  const int fds[] = {segment_fd(), doorbell_fd(), place_fd()};
  return shm::send_message(socket, &message, sizeof message, fds);
}

int Stranger::say_met(int socket) {
  const shm::ArenaMessage met{.head = {.type = shm::MessageType::kMet}};
  return shm::send_message(socket, &met, sizeof met, {});
}

}  // namespace verbatim::fuzz
