// SPDX-License-Identifier: BSD-2-Clause
// `verbatim pingpong xsrq`, and its classic name: a server and several clients throw messages to
// and fro, each side with one shared receive queue that XRC connections reach by its number.
//
//   client -> server  its address         server -> client  its own, once it can receive
//   (then both talk verbs: the server begins, each message is answered)
//   client -> server  "END" and NUL       server -> all  the same, when all have said it
//
// Main thread. The words and the order of what is printed, and the bytes on TCP, are those of the
// classic tool, which may be the other side. Every wait but the server's for its clients is
// bounded.
#include <infiniband/verbs.h>
#include <sched.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "perf/cli/commands.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/message_memory.hpp"
#include "perf/cli/pingpong_device.hpp"
#include "perf/cli/pingpong_options.hpp"
#include "perf/cli/stoppable.hpp"
#include "perf/cli/tcp_exchange.hpp"
#include "perf/cli/xsrq_address.hpp"
#include "perf/cli/xsrq_connection.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::cli {
namespace {

using perf::PdHandle;

using Clock = std::chrono::steady_clock;

constexpr std::string_view kEnd{"END", 4};
constexpr long kSilenceMs = 30'000;
constexpr long kDepartedMs = 5'000;
// Both sides may share a core, and then the one that spins keeps the other from answering.
constexpr unsigned kPollsBeforeYield = 2048;

void show(const char* whose, const XsrqAddress& address) {
  std::printf("%8s: %s\n", whose, address.text().c_str());
}

XsrqAddress receive_address(Conversation& from) {
  XsrqAddressBytes bytes;
  from.receive_bytes(bytes, "Couldn't read remote address");
  const auto address = decode_xsrq(bytes);
  if (!address) {
    fail(
        "Couldn't read remote address: what came is no lid:qpn:qpn:psn:srqn:gid; is that an xsrq "
        "pingpong program?");
  }
  show("remote", *address);
  return *address;
}

void send_address(Conversation& to, const XsrqAddress& address) {
  const XsrqAddressBytes bytes = encode(address);
  to.send_bytes({bytes.data(), bytes.size()});
}

std::vector<Conversation> meet_clients(const PingpongOptions& options, XsrqConnection& connection,
                                       const StopSignals& stop) {
  const Listener listener(options.tcp_port, static_cast<int>(options.queue_pairs));
  if (options.tcp_port == 0) std::fprintf(stderr, "listening on port %d\n", listener.port());
  std::vector<Conversation> clients;
  for (std::uint32_t pair = 0; pair < options.queue_pairs; ++pair) {
    clients.push_back(Conversation::accept_next(listener, stop));
    // Connected before the client knows us, so that its first message finds us ready.
    connection.connect(pair, receive_address(clients.back()));
    send_address(clients.back(), connection.local(pair));
    show("local", connection.local(pair));
  }
  return clients;
}

std::vector<Conversation> meet_server(const PingpongOptions& options, XsrqConnection& connection,
                                      const StopSignals& stop) {
  std::vector<Conversation> server;
  server.push_back(Conversation::connect(options.server, options.tcp_port, stop));
  send_address(server[0], connection.local(0));
  show("local", connection.local(0));
  connection.connect(0, receive_address(server[0]));
  return server;
}

/// The throwing to and fro: `iters` messages each way with each other side.
class XsrqGame {
 public:
  XsrqGame(const PingpongOptions& options, XsrqConnection& connection,
           const std::vector<Conversation>& others, const StopSignals& stop)
      : options_{options},
        connection_{connection},
        others_{others},
        stop_{stop},
        pairs_(options.queue_pairs),
        left_{2ull * options.iters * options.queue_pairs} {}

  void play(bool first) {
    for (std::uint32_t pair = 0; first && pair < pairs_.size(); ++pair) {
      pairs_[pair].turns = 1;
      throw_back(pair);
    }
    auto heard = Clock::now();
    for (unsigned polls = 0; left_ != 0;) {
      if (take()) {
        polls = 0;
        heard = Clock::now();
      } else if (options_.events) {
        (void)connection_.sleep(kDepartedMs, stop_);
        judge(heard);
      } else if (++polls >= kPollsBeforeYield) {
        polls = 0;
        judge(heard);
        sched_yield();
      }
    }
  }

 private:
  struct Pair {
    std::uint32_t sent = 0, received = 0;
    std::uint32_t turns = 0;  // messages that are ours to throw
    bool flying = false;      // one has not completed yet: the send queue holds no more
  };

  void throw_back(std::uint32_t number) {
    Pair& pair = pairs_[number];
    if (pair.flying || pair.turns == 0 || pair.sent == options_.iters) return;
    --pair.turns;
    ++pair.sent;
    pair.flying = true;
    connection_.send(number);
  }

  /// False: nothing was there.
  bool take() {
    XsrqCompletion done[16];
    const int count = connection_.poll(done);
    for (int i = 0; i < count; ++i) take(done[i]);
    return count != 0;
  }

  void take(const XsrqCompletion& done) {
    if (done.status != IBV_WC_SUCCESS) {
      fail("Work completion error %d: %s of %s %u", static_cast<int>(done.status),
           ibv_wc_status_str(done.status), done.is_receive ? "a message of" : "a message to",
           done.pair);
    }
    Pair& pair = pairs_[done.pair];
    --left_;
    if (done.is_receive) {
      if (++pair.received > options_.iters) {
        fail("more than %u messages came from %u: give both sides the same -n", options_.iters,
             done.pair);
      }
      ++pair.turns;
      connection_.post_receive();
    } else {
      pair.flying = false;
    }
    throw_back(done.pair);
  }

  void judge(Clock::time_point heard) const {
    if (stop_.pending()) throw Stopped{};
    const auto silent =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - heard).count();
    if (silent < kDepartedMs) return;
    for (const Conversation& other : others_) {
      if (other.hung_up()) {
        fail("the other side left with %llu messages to come; look at its own message, and its -n",
             left_);
      }
    }
    if (silent >= kSilenceMs) {
      fail("no message for %lld s with %llu to come: the other side is stuck",
           static_cast<long long>(silent) / 1000, left_);
    }
  }

  const PingpongOptions& options_;
  XsrqConnection& connection_;
  const std::vector<Conversation>& others_;
  const StopSignals& stop_;
  std::vector<Pair> pairs_;
  unsigned long long left_;  // completions to come
};

void say_end(Conversation& to) { to.send_bytes(kEnd); }

void hear_end(Conversation& from) {
  char bytes[kEnd.size()];
  from.receive_bytes(bytes, "Couldn't read remote termination ack");
  if (std::string_view(bytes, sizeof(bytes)) != kEnd) {
    fail("Couldn't read remote termination ack: something else than 'END' came");
  }
}

void run_xsrq(const PingpongOptions& options, const StopSignals& stop) {
  const bool server = options.server.empty();
  Device device = open_device(options.device, options.ib_port);
  check_limits(device, options);
  if ((device.attr.orig_attr.device_cap_flags & IBV_DEVICE_XRC) == 0) {
    fail("Couldn't Open the XRC Domain: %s has no XRC", device.name());
  }
  PdHandle pd(ibv_alloc_pd(device.context.get()));
  if (!pd) fail("Couldn't allocate PD: %s", std::strerror(errno));
  MessageMemory memory(pd.get(), options, device.attr);
  XsrqConnection connection(device, pd.get(), options, memory.receive_into());
  std::vector<Conversation> others =
      server ? meet_clients(options, connection, stop) : meet_server(options, connection, stop);
  XsrqGame(options, connection, others, stop).play(server);
  if (!server) say_end(others[0]);
  for (Conversation& other : others) hear_end(other);
  if (server) {
    for (Conversation& other : others) say_end(other);
  }
  connection.close();
  memory.close();
  if (const int error = destroy(pd)) fail("Couldn't deallocate PD: %s", std::strerror(error));
  if (destroy(device.context) != 0) fail("Couldn't release context");
  std::printf("success\n");
}

}  // namespace

int pingpong_xsrq(Calling calling, int argc, char** argv) {
  PingpongOptions options(Transport::kXsrq);
  return run_stoppable([&] { return parse_pingpong(calling, argc, argv, &options); },
                       [&](const StopSignals& stop) { run_xsrq(options, stop); });
}

}  // namespace verbatim::cli
