// SPDX-License-Identifier: BSD-2-Clause
// The memory that holds a pingpong's one message: ordinary, on demand, or on the device.
//
// Main thread. The message is sent from, and received into, the same bytes, so that the server's
// answer is what it got; of UD a global routing header's room lies before them (IBTA 11.4.1.2).
// Invariant: both are registered while the object lives. Failures name the
// option that asked for what the device lacks.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "perf/cli/pingpong_options.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::cli {

using perf::DmHandle;
using perf::MrHandle;

class MessageMemory {
 public:
  MessageMemory(ibv_pd* pd, const PingpongOptions& options, const ibv_device_attr_ex& device);

  /// The message.
  ibv_sge send_from() const;
  /// The message and what comes before it.
  ibv_sge receive_into() const { return whole_; }

  /// What a client that was asked to check (-c) sends: the classic pattern, whose first byte of
  /// each page tells it from what the server had there before.
  void fill_for_check();
  /// On the server: names each page in which the pattern has not arrived in whole, as the classic
  /// program does, and throws Failure then, which the classic program does not.
  void check();

  /// Deregisters and frees; throws Failure when a verb refuses.
  void close();

 private:
  void register_host_memory(ibv_pd* pd, const PingpongOptions& options, int access);
  void register_device_memory(ibv_pd* pd, const ibv_device_attr_ex& device, int access);

  struct Free {
    void operator()(unsigned char* memory) const { std::free(memory); }
  };
  unsigned char* message() const { return host_.get() + header_; }

  std::size_t size_;
  std::size_t header_;     // bytes of routing header before the message
  unsigned char pattern_;  // of a checked message, but for the starts of its pages
  std::size_t page_;
  std::unique_ptr<unsigned char, Free> host_;
  DmHandle dm_;
  MrHandle mr_;
  ibv_sge whole_ = {};
};

}  // namespace verbatim::cli
