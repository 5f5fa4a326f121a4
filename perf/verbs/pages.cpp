// SPDX-License-Identifier: BSD-2-Clause
// Other pages under the same registered memory: what is there is given back, and comes again in the
// size that is asked for. shm pins nothing, so regions and what peers have mapped stay as they are.
#include <sys/mman.h>
#include <verbatim/query.h>

#include <stdexcept>

#include "perf/ends/end.hpp"
#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {
namespace {

constexpr std::uint64_t kSystemPage = 4096;
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

void advise(std::byte* memory, std::uint64_t bytes, int advice, const char* what) {
  if (madvise(memory, bytes, advice) != 0) throw_verbs(errno, what);
}

/// Into huge pages, also where small ones have left their tables behind, ours or the peer's: those
/// would keep them apart. Linux 6.1; before, and where it is refused, what is there stays.
void collapse(std::byte* memory, std::uint64_t bytes) {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE
  const auto from = reinterpret_cast<std::uintptr_t>(memory);
  for (std::uintptr_t at = (from + kHugePage - 1) / kHugePage * kHugePage;
       at + kHugePage <= from + bytes; at += kHugePage)
    (void)madvise(reinterpret_cast<void*>(at), kHugePage, kCollapse);
}

}  // namespace

void run_pages(End& end, const Request& request, Reply& reply) {
  const Endpoint& endpoint = end.endpoint();
  constexpr std::uint64_t kBytes = 2 * kAreaBytes;
  std::byte* const memory = endpoint.region(request.memory).area.out;
  const bool huge = request.size > kSystemPage;
  advise(memory, kBytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE, "madvise of the page size");
  // Of both ends, before either has new ones.
  end.meet();
  advise(memory, kBytes, request.memory == Memory::kShared ? MADV_REMOVE : MADV_DONTNEED,
         "madvise that gives pages back");
  end.meet();
  auto* const bytes = reinterpret_cast<volatile std::byte*>(memory);
  for (std::uint64_t at = 0; at < kBytes; at += kSystemPage) bytes[at] = std::byte{1};
  if (huge) collapse(memory, kBytes);
  end.meet();
  vbt_mr_attr seen{};
  if (const int error = vbt_query_mr(endpoint.mr(request.memory), &seen, sizeof seen))
    throw_verbs(error, "vbt_query_mr");
  reply.extra[0] = static_cast<double>(seen.huge_bytes) / static_cast<double>(kBytes);
  reply.operations = 1;
}

}  // namespace verbatim::perf
