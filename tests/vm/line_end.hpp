// SPDX-License-Identifier: BSD-2-Clause
// One end of a line between two RoCE devices: a queue pair with memory, addressed by what
// vbt_pick_gid picks. Both ends are one process's and one thread's. Every wait has an end; what
// goes wrong ends the process with a line.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace verbatim::vm {

[[noreturn]] void fail(const std::string& what);
inline void need(bool good, const std::string& what) {
  if (!good) fail(what);
}

/// An open device.
class LineDevice {
 public:
  explicit LineDevice(const char* name);
  LineDevice(const LineDevice&) = delete;
  LineDevice& operator=(const LineDevice&) = delete;
  ~LineDevice();

  ibv_context* context() const { return context_; }
  ibv_gid_entry pick(const ibv_gid* remote) const;

 private:
  ibv_context* context_ = nullptr;
};

class LineEnd {
 public:
  static constexpr std::uint32_t kQkey = 0x1ee7;

  /// `depth` requests and as many receives.
  LineEnd(const LineDevice& device, ibv_qp_type type, std::uint32_t depth, std::size_t bytes);
  LineEnd(const LineEnd&) = delete;
  LineEnd& operator=(const LineEnd&) = delete;
  ~LineEnd();

  /// To RTS; of datagrams, with a way to the other end.
  void connect(const LineEnd& to, const ibv_gid_entry& own, const ibv_gid& remote);
  void receive(std::uint64_t wr_id, std::size_t offset, std::size_t length);
  /// `wr` has what the operation needs beside the bytes at `offset`; it is signaled.
  void send(ibv_send_wr wr, std::size_t offset, std::size_t length);
  /// What has completed, all of it well.
  std::vector<ibv_wc> poll();

  unsigned char* memory() { return memory_.data(); }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory_.data()); }
  std::uint32_t rkey() const { return mr_->rkey; }

 private:
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_ah* way_ = nullptr;
  std::uint32_t other_ = 0;
  std::vector<unsigned char> memory_;
};

/// Each picks for itself: the first with nothing known, the second with what the first tells.
void connect(LineEnd& a, const LineDevice& on_a, LineEnd& b, const LineDevice& on_b);

}  // namespace verbatim::vm
