// SPDX-License-Identifier: BSD-2-Clause
// Memory of MPI_Alloc_mem: peers of this host map it, and it stays registered from its first long
// message until it is freed.
#include <infiniband/verbs.h>
#include <verbatim/memory.h>

#include <cstdint>

#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/fabric.hpp"
#include "mpi_shim/core/transfer.hpp"

namespace vmpi {
namespace {

struct Block {
  unsigned char* memory;
  std::uint64_t bytes;
  ibv_mr* mr;
};

LastingArray<Block> blocks;
std::size_t last_found = 0;

Block* block_around(const void* memory, std::uint64_t bytes) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  for (std::size_t tried = 0; tried < blocks.size(); ++tried) {
    const std::size_t index = (last_found + tried) % blocks.size();
    Block& block = blocks[index];
    const auto begin = reinterpret_cast<std::uintptr_t>(block.memory);
    if (at < begin || at - begin > block.bytes || bytes > block.bytes - (at - begin)) continue;
    last_found = index;
    return &block;
  }
  return nullptr;
}

}  // namespace

ibv_mr* mr_of_mapped(void* memory, std::uint64_t bytes) noexcept {
  Block* const block = block_around(memory, bytes);
  if (block == nullptr) return nullptr;
  if (block->mr == nullptr)
    block->mr =
        ibv_reg_mr(fabric.pd, block->memory, block->bytes,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  return block->mr;
}

void release_mapped() noexcept {
  for (Block& block : blocks) {
    if (block.mr != nullptr) (void)ibv_dereg_mr(block.mr);
    (void)vbt_free_shared(block.memory);
  }
  blocks = {};
}

void* alloc_mapped(std::uint64_t bytes) noexcept {
  if (bytes == 0) bytes = 1;
  void* const memory = vbt_alloc_shared(bytes);
  if (memory == nullptr) return nullptr;
  if (blocks.push_back({static_cast<unsigned char*>(memory), bytes, nullptr})) return memory;
  (void)vbt_free_shared(memory);
  return nullptr;
}

bool free_mapped(void* memory) noexcept {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].memory != memory) continue;
    if (blocks[i].mr != nullptr) (void)ibv_dereg_mr(blocks[i].mr);
    (void)vbt_free_shared(memory);
    blocks[i] = blocks[blocks.size() - 1];
    blocks.pop_back();
    return true;
  }
  return false;
}

}  // namespace vmpi
