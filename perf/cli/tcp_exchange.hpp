// SPDX-License-Identifier: BSD-2-Clause
// The TCP conversation in which two pingpong programs exchange their addresses.
//
//   client -> server  its address      server -> client  its address, once its QP can receive
//   client -> server  "done" and NUL   (then both talk verbs)
//
// Where several queue pairs are possible, a fixed number of addresses stands for the one, those of
// queue pairs that are not there with all numbers 0.
//
// Main thread. The same bytes as the classic tools, either of which may sit at the other end. The
// other end is a stranger: whatever it sends, or fails to send, ends in a Failure within a bounded
// time. Only waiting for a client has no end, as a server has nothing else to do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perf/cli/qp_address.hpp"
#include "perf/cli/stop_signals.hpp"

namespace verbatim::cli {

constexpr long kConnectMs = 5'000;    // how long a client looks for its server
constexpr long kExchangeMs = 10'000;  // how long either waits for the other's next bytes

class Socket {
 public:
  explicit Socket(int fd = -1) : fd_{fd} {}
  ~Socket();
  Socket(Socket&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// A port on all addresses of this host, IPv6 and IPv4.
class Listener {
 public:
  /// Port 0 takes any free one; of a `source` only that address of this host listens. Throws
  /// Failure.
  explicit Listener(std::uint16_t port, int clients = 1, const std::string& source = {});
  std::uint16_t port() const { return port_; }

 private:
  friend class Conversation;
  Socket socket_;
  std::uint16_t port_;
};

class Conversation {
 public:
  /// Waits for a client, for as long as it takes; the port is free for the next server after that.
  static Conversation accept(Listener listener, const StopSignals& stop);
  /// The same when more clients are to come.
  static Conversation accept_next(const Listener& listener, const StopSignals& stop);
  /// Tries all addresses of `host` until one answers; a refusal is tried again, since a server that
  /// was started a moment ago may not listen yet. `source`: the own address to speak from.
  static Conversation connect(const std::string& host, std::uint16_t port, const StopSignals& stop,
                              long connect_ms = kConnectMs, const std::string& source = {});

  void send_address(const QpAddress& address) { send_addresses({&address, 1}); }
  QpAddress receive_address(long exchange_ms = kExchangeMs) {
    return receive_addresses(1, exchange_ms).front();
  }
  void send_addresses(std::span<const QpAddress> addresses);
  std::vector<QpAddress> receive_addresses(std::size_t count, long exchange_ms = kExchangeMs);
  /// What lines about the other end call a program of this kind, where it is no pingpong.
  void call_peer(const char* program) { program_ = program; }
  /// What other tools say instead. `what` begins the Failure when it does not come.
  void send_bytes(std::string_view bytes) { send_all(bytes.data(), bytes.size()); }
  void receive_bytes(std::span<char> bytes, const char* what, long exchange_ms = kExchangeMs) {
    receive_all(bytes.data(), bytes.size(), exchange_ms, what);
  }
  void send_done();
  void receive_done(long exchange_ms = kExchangeMs);
  /// The other end has closed its side: a program of ours when it is through or ends, a classic one
  /// right after the exchange.
  bool hung_up() const;
  /// It has said what we have not read yet.
  bool has_spoken() const;
  /// It says something before `milliseconds` are over, or has.
  bool speaks_within(long milliseconds) const;
  /// Says that we are through and waits until the other end is too, or `milliseconds` pass.
  void finish(long milliseconds);

 private:
  Conversation(Socket socket, std::string peer, const StopSignals& stop)
      : socket_{std::move(socket)}, peer_{std::move(peer)}, stop_{stop} {}
  void send_all(const char* bytes, std::size_t size);
  void receive_all(char* bytes, std::size_t size, long milliseconds, const char* what);

  Socket socket_;
  std::string peer_;
  const char* program_ = "a pingpong program";
  const StopSignals& stop_;
};

}  // namespace verbatim::cli
