// SPDX-License-Identifier: BSD-2-Clause
#include "perf/ends/crowd.hpp"

#include <algorithm>
#include <csignal>

#include "perf/ends/asking.hpp"
#include "perf/ends/start_end.hpp"
#include "perf/ends/wire.hpp"
#include "perf/footprint/memory_use.hpp"

namespace verbatim::perf {
namespace {

void add(Reply& sum, const Reply& part) {
  sum.elapsed_ns += part.elapsed_ns;
  sum.operations += part.operations;
  sum.waited_ns += part.waited_ns;
  sum.cpu_ns += part.cpu_ns;
  sum.switches += part.switches;
}

}  // namespace

Crowd::Crowd(const CorePair& cores, const std::string& fabric, std::uint32_t peers) {
  auto [hub_here, hub_there] = socket_pair();
  std::vector<Fd> of_hub, of_peers;
  std::vector<std::pair<int, int>> fds = {{hub_there.get(), kSupervisorFd}};
  for (std::uint32_t peer = 0; peer < peers; ++peer) {
    auto [there, other] = socket_pair();
    fds.emplace_back(there.get(), kFirstOfHubFd + static_cast<int>(peer));
    of_hub.push_back(std::move(there));
    of_peers.push_back(std::move(other));
  }
  hub_ = {std::move(hub_here), start_end("hub", cores.near, fabric, fds), "hub"};
  of_hub.clear();
  for (std::uint32_t peer = 0; peer < peers; ++peer) {
    auto [here, there] = socket_pair();
    Child process = start_end("peer", cores.far, fabric,
                              {{there.get(), kSupervisorFd}, {of_peers[peer].get(), kPeerFd}});
    of_peers[peer].reset();
    peers_.push_back({std::move(here), std::move(process), "peer " + std::to_string(peer + 1)});
  }
}

Crowd::~Crowd() {
  // All at once: who outlived another would say that its connection is broken.
  for (const pid_t pid : pids()) {
    if (pid > 0) kill(pid, SIGKILL);
  }
}

std::uint64_t Crowd::hub_memory() const {
  const pid_t hub = hub_.process.pid();
  return memory_use({&hub, 1}).total();
}

Reply Crowd::join() {
  const auto count = static_cast<std::uint32_t>(peers_.size());
  const std::string what = "connect with " + std::to_string(count) + " processes";
  std::vector<Asked> all = {{hub_.socket.get(), hub_.name}};
  for (const Member& peer : peers_) all.push_back({peer.socket.get(), peer.name});
  Request request;
  request.kind = Kind::kPrepareCrowd;
  ask_all(all, request, what);
  const std::uint64_t before = hub_memory();
  request.kind = Kind::kJoinCrowd;
  request.batch = count;
  Reply reply = ask_all(all, request, what);
  // Nothing of a peer is touched before it has spoken.
  request.kind = Kind::kTalk;
  request.iterations = count;
  talk(request, count);
  const std::uint64_t after = hub_memory();
  reply.extra[0] = static_cast<double>(std::max(before, after) - before) / count;
  return reply;
}

Reply Crowd::talk(const Request& request, std::uint32_t turns) {
  const auto count = static_cast<std::uint32_t>(peers_.size());
  const std::uint64_t iterations = std::max<std::uint64_t>(1, request.iterations);
  const auto parts = static_cast<std::uint32_t>(std::min<std::uint64_t>(turns, iterations));
  Request turn = request;
  turn.iterations = iterations / parts;
  Reply sum;
  for (std::uint32_t part = 0; part < parts; ++part) {
    turn.batch = part % count;
    const Member& peer = peers_[turn.batch];
    const Asked both[] = {{hub_.socket.get(), hub_.name}, {peer.socket.get(), peer.name}};
    add(sum, ask_all(both, turn, "messages with one of " + std::to_string(count) + " processes"));
  }
  return sum;
}

Reply Crowd::ask_hub(const Request& request, const std::string& what) {
  const Asked hub[] = {{hub_.socket.get(), hub_.name}};
  return ask_all(hub, request, what);
}

std::vector<pid_t> Crowd::pids() const {
  std::vector<pid_t> all = {hub_.process.pid()};
  for (const Member& peer : peers_) all.push_back(peer.process.pid());
  return all;
}

}  // namespace verbatim::perf
