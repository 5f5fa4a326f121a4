// SPDX-License-Identifier: BSD-2-Clause
// `verbatim pingpong rc`, `uc`, `ud`, `srq`, and their classic names: two programs throw a message
// to and fro over one queue pair, or one over each of several.
//
// Main thread. The words and the order of what is printed, and the bytes on TCP, are those of the
// classic tools, which may be the other side. Every wait but the server's for its client is
// bounded.
#include <infiniband/verbs.h>
#include <sys/random.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "perf/cli/commands.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/message_memory.hpp"
#include "perf/cli/pingpong_connection.hpp"
#include "perf/cli/pingpong_device.hpp"
#include "perf/cli/pingpong_game.hpp"
#include "perf/cli/pingpong_options.hpp"
#include "perf/cli/stoppable.hpp"
#include "perf/cli/tcp_exchange.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::cli {
namespace {

using perf::PdHandle;

constexpr long kFarewellMs = 2'000;  // for the other side to finish its last message

// What the classic tool with shared receives says of its queue pairs, however many it has.
constexpr std::size_t kAddressesOfSrq = 256;

std::size_t addresses_on_wire(const PingpongOptions& options) {
  return options.transport == Transport::kSrq ? kAddressesOfSrq : 1;
}

/// Of all our queue pairs.
std::vector<QpAddress> local_addresses(const Device& device, const PingpongOptions& options,
                                       const PingpongConnection& connection) {
  QpAddress local;
  local.lid = device.port.lid;
  if (device.port.link_layer != IBV_LINK_LAYER_ETHERNET && local.lid == 0) {
    fail("Couldn't get local LID: port %d of %s has none yet", options.ib_port, device.name());
  }
  if (options.gid_index >= 0 &&
      ibv_query_gid(device.context.get(), options.ib_port, options.gid_index, &local.gid) != 0) {
    fail("can't read sgid of index %d: port %d of %s has %d (-g)", options.gid_index,
         options.ib_port, device.name(), device.port.gid_tbl_len);
  }
  std::vector<QpAddress> all(options.queue_pairs, local);
  for (std::uint32_t pair = 0; pair < options.queue_pairs; ++pair) {
    QpAddress& one = all[pair];
    one.qpn = connection.qpn(pair);
    // An old connection's late packets carry old PSNs: a new one starts anywhere.
    if (getrandom(&one.psn, sizeof(one.psn), 0) != sizeof(one.psn)) one.psn = 0x1d872b;
    one.psn &= 0xffffff;
  }
  return all;
}

void show(const char* whose, const std::vector<QpAddress>& addresses, const char* before_gid) {
  for (const QpAddress& address : addresses) {
    std::printf("  %s %s\n", whose, text(address, before_gid).c_str());
  }
}

/// The exchange; returns with all queue pairs connected.
class Meeting {
 public:
  Meeting(const PingpongOptions& options, const std::vector<QpAddress>& local,
          PingpongConnection* connection)
      : options_{options}, local_{local}, connection_{*connection} {}

  Conversation as_server(Listener listener, const StopSignals& stop) {
    Conversation client = Conversation::accept(std::move(listener), stop);
    const std::vector<QpAddress> remote = receive(client);
    // Before the client knows us, so that its first message finds us ready.
    connect(remote);
    send(client);
    client.receive_done();
    show("remote address:", remote, ", ");
    return client;
  }

  Conversation as_client(const StopSignals& stop) {
    Conversation server = Conversation::connect(options_.server, options_.tcp_port, stop);
    send(server);
    const std::vector<QpAddress> remote = receive(server);
    server.send_done();
    show("remote address:", remote, ", ");
    connect(remote);
    return server;
  }

 private:
  void send(Conversation& peer) const {
    std::vector<QpAddress> all = local_;
    all.resize(addresses_on_wire(options_));
    peer.send_addresses(all);
  }

  std::vector<QpAddress> receive(Conversation& peer) const {
    std::vector<QpAddress> all = peer.receive_addresses(addresses_on_wire(options_));
    if (options_.transport == Transport::kSrq) {
      std::size_t theirs = 0;
      while (theirs < all.size() && all[theirs].qpn != 0) ++theirs;
      if (theirs != local_.size()) {
        fail(
            "Couldn't connect to remote QP: the other side has %zu QPs and this one %zu; give both "
            "the same -q",
            theirs, local_.size());
      }
    }
    all.resize(local_.size());
    return all;
  }

  void connect(const std::vector<QpAddress>& remote) {
    for (std::uint32_t pair = 0; pair < remote.size(); ++pair) {
      connection_.connect(pair, local_[pair], remote[pair]);
    }
  }

  const PingpongOptions& options_;
  const std::vector<QpAddress>& local_;
  PingpongConnection& connection_;
};

void run(const PingpongOptions& options, const StopSignals& stop) {
  using Clock = std::chrono::steady_clock;
  const bool server = options.server.empty();
  Device device = open_device(options.device, options.ib_port);
  check_limits(device, options);
  PdHandle pd(ibv_alloc_pd(device.context.get()));
  if (!pd) fail("Couldn't allocate PD: %s", std::strerror(errno));
  MessageMemory memory(pd.get(), options, device.attr);
  const std::unique_ptr<PingpongConnection> connection = make_connection(pd.get(), options);
  PingpongGame game(options, connection.get(), memory, device.attr.completion_timestamp_mask, stop);
  game.post_receives();
  const std::vector<QpAddress> local = local_addresses(device, options, *connection);
  // The classic datagram tool writes a colon here, and only here; scripts know it so.
  show("local address: ", local, options.transport == Transport::kUd ? ": " : ", ");

  std::optional<Listener> listener;
  if (server) {
    listener.emplace(options.tcp_port);
    if (options.tcp_port == 0) std::fprintf(stderr, "listening on port %d\n", listener->port());
  }
  Meeting meeting(options, local, connection.get());
  Conversation peer =
      listener ? meeting.as_server(std::move(*listener), stop) : meeting.as_client(stop);

  if (!server && options.check) memory.fill_for_check();
  const auto start = Clock::now();
  game.play(!server, peer);
  const std::chrono::duration<double, std::micro> taken = Clock::now() - start;
  game.report(taken.count());
  if (server && options.check) memory.check();

  peer.finish(kFarewellMs);
  connection->close();
  memory.close();
  if (const int error = destroy(pd)) fail("Couldn't deallocate PD: %s", std::strerror(error));
  if (destroy(device.context) != 0) fail("Couldn't release context");
}

int pingpong(Transport transport, Calling calling, int argc, char** argv) {
  PingpongOptions options(transport);
  return run_stoppable([&] { return parse_pingpong(calling, argc, argv, &options); },
                       [&](const StopSignals& stop) { run(options, stop); });
}

}  // namespace

int pingpong_rc(Calling calling, int argc, char** argv) {
  return pingpong(Transport::kRc, calling, argc, argv);
}
int pingpong_uc(Calling calling, int argc, char** argv) {
  return pingpong(Transport::kUc, calling, argc, argv);
}
int pingpong_ud(Calling calling, int argc, char** argv) {
  return pingpong(Transport::kUd, calling, argc, argv);
}
int pingpong_srq(Calling calling, int argc, char** argv) {
  return pingpong(Transport::kSrq, calling, argc, argv);
}

}  // namespace verbatim::cli
