// SPDX-License-Identifier: BSD-2-Clause
// Floor: a verb that does nothing, called as programs call the extended verbs, through a pointer in
// the object. ibv_wr_* make two such calls for each request of a list, ibv_start_poll one for each
// completion; a list of requests, or an array of completions, makes none.
#include "perf/ends/end.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::perf {
namespace {

struct Object {
  int (*verb)(Object* object);
};

[[gnu::noinline]] int do_nothing(Object*) {
  asm volatile("");
  return 0;
}

}  // namespace

void run_empty_calls(End& end, const Request& request, Reply& reply) {
  if (!end.is_near()) return;
  Object object{do_nothing};
  int failed = 0;
  const std::uint64_t start = now_ns();
  for (std::uint64_t i = 0; i < request.iterations; ++i) {
    asm volatile("" : : "r"(&object) : "memory");  // it may be another by now
    failed |= object.verb(&object);
  }
  reply.elapsed_ns = static_cast<double>(now_ns() - start);
  reply.operations = failed == 0 ? static_cast<double>(request.iterations) : 0;
}

}  // namespace verbatim::perf
