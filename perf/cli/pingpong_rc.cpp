// SPDX-License-Identifier: BSD-2-Clause
// `verbatim pingpong rc`, `ibv_rc_pingpong`: two programs throw one message to and fro over RC.
//
// Main thread. The words and the order of what is printed, and the bytes on TCP, are those of the
// classic tool, which may be the other side. Every wait but the server's for its client is bounded.
#include <infiniband/verbs.h>
#include <sys/random.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>

#include "perf/cli/commands.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/message_memory.hpp"
#include "perf/cli/pingpong_device.hpp"
#include "perf/cli/pingpong_game.hpp"
#include "perf/cli/pingpong_options.hpp"
#include "perf/cli/rc_connection.hpp"
#include "perf/cli/stop_signals.hpp"
#include "perf/cli/tcp_exchange.hpp"
#include "perf/cli/verbs_handles.hpp"

namespace verbatim::cli {
namespace {

constexpr long kFarewellMs = 2'000;  // for the other side to finish its last message

QpAddress local_address(const Device& device, const PingpongOptions& options,
                        const RcConnection& connection) {
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
  local.qpn = connection.qpn();
  // An old connection's late packets carry old PSNs: a new one starts anywhere.
  if (getrandom(&local.psn, sizeof(local.psn), 0) != sizeof(local.psn)) local.psn = 0x1d872b;
  local.psn &= 0xffffff;
  return local;
}

/// The exchange; returns with the QP connected.
Conversation meet(const PingpongOptions& options, const QpAddress& local, RcConnection* connection,
                  std::optional<Listener> listener, const StopSignals& stop) {
  const auto show = [](const QpAddress& remote) {
    std::printf("  remote address: %s\n", remote.text().c_str());
  };
  if (listener) {
    Conversation client = Conversation::accept(std::move(*listener), stop);
    const QpAddress remote = client.receive_address();
    // Before the client knows us, so that its first message finds us ready.
    connection->connect(local, remote);
    client.send_address(local);
    client.receive_done();
    show(remote);
    return client;
  }
  Conversation server = Conversation::connect(options.server, options.tcp_port, stop);
  server.send_address(local);
  const QpAddress remote = server.receive_address();
  server.send_done();
  show(remote);
  connection->connect(local, remote);
  return server;
}

void run(const PingpongOptions& options, const StopSignals& stop) {
  using Clock = std::chrono::steady_clock;
  const bool server = options.server.empty();
  Device device = open_device(options);
  check_limits(device, options);
  PdHandle pd(ibv_alloc_pd(device.context.get()));
  if (!pd) fail("Couldn't allocate PD: %s", std::strerror(errno));
  MessageMemory memory(pd.get(), options, device.attr);
  RcConnection connection(pd.get(), options);
  PingpongGame game(options, &connection, memory.sge(), device.attr.completion_timestamp_mask,
                    stop);
  game.post_receives();
  const QpAddress local = local_address(device, options, connection);
  std::printf("  local address:  %s\n", local.text().c_str());

  std::optional<Listener> listener;
  if (server) {
    listener.emplace(options.tcp_port);
    if (options.tcp_port == 0) std::fprintf(stderr, "listening on port %d\n", listener->port());
  }
  Conversation peer = meet(options, local, &connection, std::move(listener), stop);

  if (!server && options.check) memory.fill_for_check();
  const auto start = Clock::now();
  game.play(!server, peer);
  const std::chrono::duration<double, std::micro> taken = Clock::now() - start;
  game.report(taken.count());
  if (server && options.check) memory.check();

  peer.finish(kFarewellMs);
  connection.close();
  memory.close();
  if (const int error = destroy(pd)) fail("Couldn't deallocate PD: %s", std::strerror(error));
  if (destroy(device.context) != 0) fail("Couldn't release context");
}

}  // namespace

int pingpong_rc(Calling calling, int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // who watches through a pipe sees each line in time
  PingpongOptions options;
  try {
    if (const auto status = parse_pingpong(calling, argc, argv, &options)) return *status;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.status;
  }
  const StopSignals stop;
  try {
    run(options, stop);
  } catch (const Failure& failure) {
    if (!failure.line.empty()) std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.status;
  } catch (const Stopped&) {
    return 1;  // unseen: the signal acts as `stop` goes
  }
  return 0;
}

}  // namespace verbatim::cli
