// SPDX-License-Identifier: BSD-2-Clause
// `verbatim pingpong rc`, `ibv_rc_pingpong`: two programs throw one message to and fro over RC.
//
// Main thread. The words and the order of what is printed, and the bytes on TCP, are those of the
// classic tool, which may be the other side. Every wait but the server's for its client is bounded.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>

#include "perf/cli/commands.hpp"
#include "perf/cli/deadline.hpp"
#include "perf/cli/device_list.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/message_memory.hpp"
#include "perf/cli/pingpong_options.hpp"
#include "perf/cli/rc_connection.hpp"
#include "perf/cli/stop_signals.hpp"
#include "perf/cli/tcp_exchange.hpp"
#include "perf/cli/verbs_handles.hpp"

namespace verbatim::cli {
namespace {

constexpr long kSilenceMs = 30'000;  // no completion for so long: the other side is lost
constexpr long kFarewellMs = 2'000;  // for the other side to finish its last message
// Both sides may share a core, and then the one that spins keeps the other from answering.
constexpr unsigned kPollsBeforeYield = 2048;

struct Device {
  ContextHandle context;
  ibv_device_attr_ex attr = {};
  ibv_port_attr port = {};
  const char* name() const { return context->device->name; }
};

ibv_device* choose_device(const DeviceList& list, const PingpongOptions& options) {
  if (options.device == nullptr) {
    if (list.size() == 0) fail("No IB devices found");
    return list.at(0);
  }
  ibv_device* device = list.find(options.device);
  if (device == nullptr) {
    fail("IB device %s not found (there is: %s)", options.device, list.names().c_str());
  }
  return device;
}

Device open_device(const PingpongOptions& options) {
  const DeviceList list;
  if (!list) throw Failure{};  // the list has said why
  ibv_device* chosen = choose_device(list, options);
  Device device;
  device.context.reset(ibv_open_device(chosen));
  if (!device.context) {
    fail("Couldn't get context for %s: %s", chosen->name, std::strerror(errno));
  }
  ibv_context* context = device.context.get();
  if (ibv_query_device_ex(context, nullptr, &device.attr) != 0) {
    fail("Couldn't query device for its features");
  }
  const int ports = device.attr.orig_attr.phys_port_cnt;
  if (options.ib_port > ports) {
    fail("Couldn't get port info: %s has %d port%s, not %d (-i)", device.name(), ports,
         ports == 1 ? "" : "s", options.ib_port);
  }
  if (ibv_query_port(context, options.ib_port, &device.port) != 0) {
    fail("Couldn't get port info of port %d of %s", options.ib_port, device.name());
  }
  return device;
}

/// What would fail later, in words that name the option.
void check_limits(const Device& device, const PingpongOptions& options) {
  const ibv_device_attr& attr = device.attr.orig_attr;
  if (options.size > device.port.max_msg_sz) {
    fail("size %u is more than %s sends in one message (%u bytes); choose a smaller -s",
         options.size, device.name(), device.port.max_msg_sz);
  }
  const int deepest = std::min(attr.max_qp_wr, attr.max_cqe - 1);  // a CQ entry for the send
  if (static_cast<long long>(options.rx_depth) > deepest) {
    fail("rx depth %u is more than %s takes (%d); choose a smaller -r", options.rx_depth,
         device.name(), deepest);
  }
  if (options.mtu > device.port.active_mtu) {
    fail("path MTU %d is more than the port's %d; choose a smaller -m", 128 << options.mtu,
         128 << device.port.active_mtu);
  }
  if (device.port.link_layer == IBV_LINK_LAYER_ETHERNET && options.gid_index < 0) {
    fail("port %d of %s is Ethernet, which addresses by GID: choose one with -g", options.ib_port,
         device.name());
  }
  if (options.on_demand) {
    constexpr std::uint32_t kNeeded = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
    const ibv_odp_caps& odp = device.attr.odp_caps;
    if ((odp.general_caps & IBV_ODP_SUPPORT) == 0 ||
        (odp.per_transport_caps.rc_odp_caps & kNeeded) != kNeeded) {
      fail(
          "The device isn't ODP capable or does not support RC send and receive with ODP: leave "
          "out -o and -O");
    }
    if (options.implicit_on_demand && (odp.general_caps & IBV_ODP_SUPPORT_IMPLICIT) == 0) {
      fail("The device doesn't support implicit ODP: use -o");
    }
  }
  if (options.timestamps && device.attr.completion_timestamp_mask == 0) {
    fail("The device isn't completion timestamp capable: leave out -t");
  }
}

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

/// Ticks of the device's clock between one receive completion and the next.
struct ReceiveGaps {
  std::uint64_t mask;  // the clock's width
  std::uint64_t last = 0;
  std::uint64_t longest = 0;
  std::uint64_t shortest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t total = 0;
  std::uint64_t count = 0;
  bool started = false;

  void add(std::uint64_t now) {
    if (started) {
      const std::uint64_t gap = (now - last) & mask;
      longest = std::max(longest, gap);
      shortest = std::min(shortest, gap);
      total += gap;
      ++count;
    }
    last = now;
    started = true;
  }
};

class Game {
 public:
  Game(const PingpongOptions& options, const Device& device, RcConnection* connection, ibv_sge sge,
       const StopSignals& stop)
      : options_{options},
        connection_{*connection},
        sge_{sge},
        stop_{stop},
        gaps_{device.attr.completion_timestamp_mask} {}

  void post_receives() {
    receives_ += connection_.post_receives(sge_, options_.rx_depth - receives_);
    if (receives_ < options_.rx_depth) fail("Couldn't post receive (%u)", receives_);
  }

  void play(bool first) {
    awaited_ = RcConnection::kReceiveId;
    if (first) send();
    while (received_ < options_.iters || sent_ < options_.iters) {
      options_.events ? wait_by_event() : wait_by_polling();
    }
  }

  void report(double microseconds) const {
    const long long bytes = 2LL * options_.size * options_.iters;
    std::printf("%lld bytes in %.2f seconds = %.2f Mbit/sec\n", bytes, microseconds / 1e6,
                static_cast<double>(bytes) * 8 / microseconds);
    std::printf("%u iters in %.2f seconds = %.2f usec/iter\n", options_.iters, microseconds / 1e6,
                microseconds / options_.iters);
    if (options_.timestamps && gaps_.count != 0) {
      std::printf("Max receive completion clock cycles = %" PRIu64 "\n", gaps_.longest);
      std::printf("Min receive completion clock cycles = %" PRIu64 "\n", gaps_.shortest);
      std::printf("Average receive completion clock cycles = %f\n",
                  static_cast<double>(gaps_.total) / static_cast<double>(gaps_.count));
    }
  }

 private:
  void send() {
    awaited_ = RcConnection::kReceiveId | RcConnection::kSendId;
    connection_.post_send(sge_);
  }

  void wait_by_event() {
    if (!connection_.sleep(kSilenceMs, stop_)) lost();
    while (take_completions()) {
    }
  }

  void wait_by_polling() {
    std::optional<Deadline> silence;
    for (unsigned polls = 0; !take_completions(); ++polls) {
      if (polls < kPollsBeforeYield) continue;
      polls = 0;
      if (stop_.pending()) throw Stopped{};
      if (!silence) silence.emplace(kSilenceMs);
      if (silence->over()) lost();
      sched_yield();
    }
    if ((received_ & 0xfff) == 0 && stop_.pending()) throw Stopped{};
  }

  bool take_completions() {
    Completion done[2];
    const int count = connection_.poll(done);
    for (int i = 0; i < count; ++i) take(done[i]);
    return count > 0;
  }

  void take(const Completion& done) {
    const int id = static_cast<int>(done.wr_id);
    if (done.status != IBV_WC_SUCCESS) {
      fail("Failed status %s (%d) for wr_id %d", ibv_wc_status_str(done.status),
           static_cast<int>(done.status), id);
    }
    if (done.wr_id == RcConnection::kSendId) {
      ++sent_;
    } else if (done.wr_id == RcConnection::kReceiveId) {
      ++received_;
      if (options_.timestamps) gaps_.add(done.timestamp);
      if (--receives_ <= 1) post_receives();
    } else {
      fail("Completion for unknown wr_id %d", id);
    }
    // The buffer is ours again when it has been sent from and received into.
    awaited_ &= ~done.wr_id;
    if (awaited_ == 0 && sent_ < options_.iters) send();
  }

  [[noreturn]] void lost() const {
    fail(
        "no message for %ld s after %u of %u: the other side is stuck or gone, or runs with "
        "another -n",
        kSilenceMs / 1000, received_, options_.iters);
  }

  const PingpongOptions& options_;
  RcConnection& connection_;
  const ibv_sge sge_;
  const StopSignals& stop_;
  ReceiveGaps gaps_;
  std::uint32_t receives_ = 0;  // posted and not yet consumed
  std::uint32_t sent_ = 0;
  std::uint32_t received_ = 0;
  std::uint64_t awaited_ = 0;  // the wr_ids whose completion the next send waits for
};

void run(const PingpongOptions& options, const StopSignals& stop) {
  using Clock = std::chrono::steady_clock;
  const bool server = options.server.empty();
  Device device = open_device(options);
  check_limits(device, options);
  PdHandle pd(ibv_alloc_pd(device.context.get()));
  if (!pd) fail("Couldn't allocate PD: %s", std::strerror(errno));
  MessageMemory memory(pd.get(), options, device.attr);
  RcConnection connection(pd.get(), options);
  Game game(options, device, &connection, memory.sge(), stop);
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
  game.play(!server);
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
