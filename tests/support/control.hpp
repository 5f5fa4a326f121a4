// SPDX-License-Identifier: BSD-2-Clause
//
// The control channel between a test and the process it started: a stream socket, inherited by the
// child, that carries frames of a kind and a body. Not part of what is tested: it stands for the
// out-of-band exchange that every verbs program has.
//
// One thread at a time per end. Every wait is bounded; a closed or broken channel throws PeerGone.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "tests/support/archive.hpp"
#include "tests/support/deadline.hpp"

namespace verbatim::harness {

/// The other process closed its end: it exited, crashed or was killed.
struct PeerGone : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Frame {
  std::uint32_t kind = 0;
  Bytes body;
};

class Control {
 public:
  explicit Control(int fd) : fd_(fd) {}
  Control(Control&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Control& operator=(Control&&) = delete;
  ~Control();

  void send(std::uint32_t kind, const Bytes& body = {});
  /// Throws PeerGone, or std::runtime_error when nothing came in time.
  Frame receive(std::int32_t wait_ms = kDefaultWaitMs);

  /// One value each way, for roles with a simple script.
  template <class T>
  void send_value(const T& value) {
    Writer out;
    out.put(value);
    send(0, out.take());
  }
  template <class T>
  T receive_value(std::int32_t wait_ms = kDefaultWaitMs) {
    const Frame frame = receive(wait_ms);
    return Reader(frame.body).get<T>();
  }

  /// Both ends, close-on-exec.
  static std::pair<Control, Control> make_pair();
  int fd() const { return fd_; }

 private:
  void read_exactly(void* to, std::size_t size, const Deadline& deadline);
  int fd_;
};

}  // namespace verbatim::harness
