// SPDX-License-Identifier: BSD-2-Clause
#include "perf/ends/pair.hpp"

#include <sys/mman.h>

#include "perf/ends/asking.hpp"
#include "perf/ends/start_end.hpp"
#include "perf/ends/wire.hpp"

namespace verbatim::perf {

Pair::Pair(const CorePair& cores, const std::string& fabric)
    : memory_(create_shared_page()), shared_(map_shared_page(memory_.get())) {
  auto [near_here, near_there] = socket_pair();
  auto [far_here, far_there] = socket_pair();
  auto [peer_near, peer_far] = socket_pair();
  const int memory = memory_.get();
  near_ = start_end(
      "near", cores.near, fabric,
      {{near_there.get(), kSupervisorFd}, {peer_near.get(), kPeerFd}, {memory, kSharedFd}});
  far_ =
      start_end("far", cores.far, fabric,
                {{far_there.get(), kSupervisorFd}, {peer_far.get(), kPeerFd}, {memory, kSharedFd}});
  near_socket_ = std::move(near_here);
  far_socket_ = std::move(far_here);
}

Pair::~Pair() { munmap(shared_, sizeof *shared_); }

Reply Pair::run(const Request& request, const std::string& what) {
  const Asked both[] = {{near_socket_.get(), "near"}, {far_socket_.get(), "far"}};
  return ask_all(both, request, what);
}

}  // namespace verbatim::perf
