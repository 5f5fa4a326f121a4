// SPDX-License-Identifier: BSD-2-Clause
// What memory costs one process: large blocks of vbt_alloc against the kernel's own, until each
// page has been written; buffers of a vbt_pool against malloc's. The far end sleeps meanwhile.
#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "perf/ends/end.hpp"
#include "perf/support/clock.hpp"
#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kMostAtOnce = 128;

void touch(void* memory, std::uint64_t size) {
  auto* const bytes = static_cast<volatile std::byte*>(memory);
  for (std::uint64_t at = 0; at < size; at += kPage) bytes[at] = std::byte{1};
}

void use_block(const Request& request) {
  vbt_alloc_attr attr{};
  attr.size = request.size;
  attr.flags = request.memory == Memory::kShared ? unsigned{VBT_ALLOC_SHARED} : 0u;
  void* const memory = vbt_alloc(&attr, sizeof attr, nullptr, 0);
  if (memory == nullptr) throw_verbs(errno, "vbt_alloc");
  touch(memory, request.size);
  if (const int error = vbt_free(memory)) throw_verbs(error, "vbt_free");
}

void use_mapping(const Request& request) {
  const int kind = request.memory == Memory::kShared ? MAP_SHARED : MAP_PRIVATE;
  void* const memory =
      mmap(nullptr, request.size, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_verbs(errno, "mmap");
  touch(memory, request.size);
  munmap(memory, request.size);
}

/// All taken, then all returned, `iterations` times.
template <class Take, class Return>
void pass_around(const Request& request, Take take, Return give_back) {
  if (request.batch > kMostAtOnce) throw std::invalid_argument("buffers at once");
  std::array<void*, kMostAtOnce> taken;
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    for (std::uint32_t j = 0; j < request.batch; ++j) {
      taken[j] = take();
      asm volatile("" : : "r"(taken[j]) : "memory");
    }
    for (std::uint32_t j = 0; j < request.batch; ++j) give_back(taken[j]);
  }
}

vbt_pool* make_pool(const Request& request) {
  vbt_pool_attr attr{};
  attr.buffer_size = request.size;
  attr.count = 4096;
  vbt_pool* const pool = vbt_create_pool(&attr, sizeof attr, nullptr, 0);
  if (pool == nullptr) throw_verbs(errno, "vbt_create_pool");
  return pool;
}

}  // namespace

void run_allocate(End& end, const Request& request, Reply& reply) {
  if (!end.is_near()) return;
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    if (request.mover == Mover::kVerbs) {
      use_block(request);
    } else {
      use_mapping(request);
    }
  }
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = static_cast<double>(request.iterations);
}

void run_buffers(End& end, const Request& request, Reply& reply) {
  if (!end.is_near()) return;
  vbt_pool* const pool = request.mover == Mover::kVerbs ? make_pool(request) : nullptr;
  const std::uint64_t start = now_ns();
  if (pool != nullptr) {
    pass_around(
        request, [pool] { return vbt_pool_alloc(pool); },
        [pool](void* buffer) { vbt_pool_free(pool, buffer); });
  } else {
    pass_around(
        request, [&] { return std::malloc(request.size); }, std::free);
  }
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = static_cast<double>(request.iterations * request.batch);
  if (const int error = vbt_destroy_pool(pool)) throw_verbs(error, "vbt_destroy_pool");
}

}  // namespace verbatim::perf
