// SPDX-License-Identifier: BSD-2-Clause
// One measuring process. It is pinned, answers requests one after another, and meets its peer in
// shared memory before each timed part. Anything that fails throws; the loop turns it into a Reply
// with the reason, and the supervisor then ends both.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "perf/ends/request.hpp"
#include "perf/ends/shared_page.hpp"

namespace verbatim::perf {

class Endpoint;
class ManyQps;
class ManyRegions;

enum class Side { kNear, kFar };

/// One end's buffers of one memory kind: what it sends from and what it receives into, kAreaBytes
/// each.
struct Area {
  std::byte* out = nullptr;
  std::byte* in = nullptr;
};

class End {
 public:
  /// `view`: the same page, mapped to be read.
  End(Side side, int supervisor_fd, int peer_fd, SharedPage* shared, const SharedPage* view);
  ~End();
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  /// Serves requests until the supervisor closes its socket.
  void serve();

  bool is_near() const { return side_ == Side::kNear; }
  SharedPage& shared() { return *shared_; }
  int peer_fd() const { return peer_fd_; }
  pid_t peer_pid() const { return peer_pid_; }

  /// Both ends have come here: the start line of every timed part. Spins; gives the core away where
  /// the two share one.
  void meet();

  /// Lines of the measurement that this end writes, and that it polls.
  std::atomic<std::uint64_t>& own_line() {
    return is_near() ? shared_->near_line : shared_->far_line;
  }
  const std::atomic<std::uint64_t>& peer_line(bool read_only = false) const {
    const SharedPage& page = read_only ? *view_ : *shared_;
    return is_near() ? page.far_line : page.near_line;
  }

  /// In the measurement's memfd; the peer's, mapped here.
  Area mapped() const;
  Area peer_mapped() const;
  /// In this process's malloc memory; the peer's addresses, for process_vm_* only.
  Area local() const { return local_; }
  Area peer_local() const { return peer_local_; }

  /// The RC endpoint; throws std::logic_error before kConnect.
  Endpoint& endpoint();
  std::unique_ptr<Endpoint>& endpoint_slot() { return endpoint_; }
  std::unique_ptr<ManyQps>& many_qps_slot() { return many_qps_; }
  std::unique_ptr<ManyRegions>& many_regions_slot() { return many_regions_; }

 private:
  Reply answer(const Request& request);
  void perform(const Request& request, Reply& reply);
  void introduce();

  Side side_;
  int supervisor_fd_;
  int peer_fd_;
  SharedPage* shared_;
  const SharedPage* view_;
  std::uint64_t meetings_ = 0;
  pid_t peer_pid_ = 0;
  Area local_;
  Area peer_local_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<ManyQps> many_qps_;
  std::unique_ptr<ManyRegions> many_regions_;  // of the endpoint's domain
};

/// What a request of this kind does; one function per Kind, called at both ends.
void run_handover(End& end, const Request& request, Reply& reply);
void run_event_ping_pong(End& end, const Request& request, Reply& reply);
void run_copy_ping_pong(End& end, const Request& request, Reply& reply);
void run_empty_calls(End& end, const Request& request, Reply& reply);
void run_local_copy(End& end, const Request& request, Reply& reply);
void run_single_copy(End& end, const Request& request, Reply& reply);
void run_train(End& end, const Request& request, Reply& reply);
void run_connect(End& end, const Request& request, Reply& reply);
void run_ping_pong(End& end, const Request& request, Reply& reply);
void run_completion(End& end, const Request& request, Reply& reply);
void run_stream(End& end, const Request& request, Reply& reply);
void run_sleeping(End& end, const Request& request, Reply& reply);
void run_connect_many(End& end, const Request& request, Reply& reply);
void run_use_many(End& end, const Request& request, Reply& reply);
void run_in_turn(End& end, const Request& request, Reply& reply);
void run_empty_poll(End& end, const Request& request, Reply& reply);
void run_threads(End& end, const Request& request, Reply& reply);
void run_floor(End& end, const Request& request, Reply& reply);
void run_register(End& end, const Request& request, Reply& reply);
void run_register_many(End& end, const Request& request, Reply& reply);
void run_write_many(End& end, const Request& request, Reply& reply);
void run_allocate(End& end, const Request& request, Reply& reply);
void run_pages(End& end, const Request& request, Reply& reply);
void run_buffers(End& end, const Request& request, Reply& reply);

/// If this program was started as an end (by Pair), runs it and returns its exit status; otherwise
/// returns -1.
int run_if_end(int argc, char** argv);

}  // namespace verbatim::perf
