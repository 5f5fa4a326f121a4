// SPDX-License-Identifier: BSD-2-Clause
// What one end of a `verbatim perf` test works with: memory, completion queues, queue pairs, and
// the requests that are posted again and again.
//
// Main thread. Life: construct (INIT) -> address() told to the peer -> connect() (RTS) -> for each
// size prepare(), then post() and poll. With XRC in both directions the first half of the queue
// pairs sends and the second receives; else each does what its end does. Failures name the option.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "perf/cli/perf_exchange.hpp"
#include "perf/cli/perf_memory.hpp"
#include "perf/cli/perf_options.hpp"
#include "perf/cli/pingpong_device.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::cli {

inline constexpr std::uint32_t kPerfQkey = 0x11111111;  // perftest's

ibv_wr_opcode perf_opcode(const PerfOptions& options);

/// A queue pair that sends: its requests, one posted list of them.
struct PerfSender {
  ibv_qp* qp = nullptr;
  ibv_qp_ex* extended = nullptr;  // null: posted by ibv_post_send
  std::vector<ibv_send_wr> list;
  std::vector<ibv_sge> pieces;
  PerfWalk local;
  PerfWalk remote;
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
};

/// No attribute of a device says how much it sends inline: whether it makes a queue pair for it does.
/// Throws Failure where it does not, and would without.
void check_inline_size(const Device& device, const PerfOptions& options);

class PerfQueues {
 public:
  PerfQueues(const Device& device, const PerfOptions& options, const PerfTerms& terms);
  ~PerfQueues();
  PerfQueues(const PerfQueues&) = delete;
  PerfQueues& operator=(const PerfQueues&) = delete;

  /// What the peer is told of a queue pair.
  const PerftestAddress& address(std::uint32_t pair) const { return addresses_[pair]; }
  void connect(const std::vector<PerftestAddress>& peer);
  /// Requests of `size` bytes to the peer's memory or queue pairs.
  void prepare(std::uint32_t size, const std::vector<PerftestAddress>& peer);

  std::vector<PerfSender>& senders() { return senders_; }
  /// Posts the whole list of `sender`, whose addresses go on. Throws Failure.
  void post(PerfSender& sender);
  /// A list of receives of the prepared size, on the queue pair or the SRQ; `pair` counts the
  /// receiving ones.
  void post_receives(std::uint32_t pair);
  /// Of a test that validates: throws Failure when what has come is not what was sent.
  void validate(std::uint32_t size, std::uint64_t messages_of_a_pair) const;

  ibv_cq* send_cq() const { return send_cq_.get(); }
  ibv_cq* recv_cq() const { return recv_cq_.get(); }
  ibv_comp_channel* channel() const { return channel_.get(); }
  /// The last byte of a message in our memory: what is sent, and where the peer's arrives.
  volatile char* sent_byte(std::uint32_t size) const;
  volatile char* arriving_byte(std::uint32_t size) const;

  std::uint32_t inline_size() const { return inline_size_; }
  bool extended() const { return extended_; }
  std::uint32_t reads() const { return reads_; }

 private:
  void create_domain(const Device& device);
  perf::CqHandle create_cq(const Device& device, int entries);
  ibv_pd* domain() const { return parent_ ? parent_.get() : pd_.get(); }
  void join_group();
  void create_cqs(const Device& device);
  void create_srq(const Device& device);
  perf::QpHandle create_qp(const Device& device, std::uint32_t pair);
  perf::QpHandle create_qp_without_inline(const Device& device, std::uint32_t pair);
  bool receives_only(std::uint32_t pair) const;
  void to_init(ibv_qp* qp) const;
  ibv_ah_attr path_to(const PerftestAddress& peer) const;
  /// Whose address a queue pair is connected to.
  std::uint32_t peer_of(std::uint32_t pair) const;
  std::uint32_t first_receiver() const;

  const PerfOptions& options_;
  const PerfTerms& terms_;
  int gid_index_;
  std::uint32_t inline_size_ = 0;
  std::uint32_t reads_ = 1;
  bool extended_ = false;
  perf::PdHandle pd_;
  perf::TdHandle td_;
  perf::PdHandle parent_;  // of the two, when there is one thread
  std::optional<PerfMemory> memory_;
  perf::ChannelHandle channel_;
  perf::CqHandle send_cq_;
  perf::CqHandle recv_cq_;
  perf::XrcdHandle xrcd_;
  perf::SrqHandle srq_;
  std::vector<perf::QpHandle> qps_;
  std::vector<perf::AhHandle> ahs_;
  std::vector<PerftestAddress> addresses_;
  std::optional<ibv_gid> group_;  // that the first queue pair is in
  std::vector<PerfSender> senders_;
  std::vector<PerfWalk> arriving_;
  std::uint32_t receive_size_ = 0;
  std::vector<ibv_recv_wr> receive_list_;
  std::vector<ibv_sge> receive_pieces_;
};

/// The port's link, or what the options take it for.
std::uint8_t perf_link_layer(const Device& device, const PerfOptions& options);
/// The GID index that a port is spoken to by; -1: by LID.
int perf_gid_index(const Device& device, const PerfOptions& options);

}  // namespace verbatim::cli
