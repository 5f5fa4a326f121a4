// SPDX-License-Identifier: BSD-2-Clause
// One end of an iWARP connection: a queue pair over siw0 with memory, made and connected through
// rdma_cm as a connection-manager library would. Every wait has an end; what goes wrong ends the
// process with a line.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "providers/rdma_cm/identifier.hpp"

namespace verbatim::vm {

constexpr int kPatience = 60000;  ///< milliseconds

[[noreturn]] void fail(const char* file, int line, const char* what);
#define VM_REQUIRE(condition) \
  ((condition) ? static_cast<void>(0) : ::verbatim::vm::fail(__FILE__, __LINE__, #condition))

/// Where the other side may write and read; exchanged as private data.
struct Remote {
  std::uint64_t address;
  std::uint32_t rkey;
};

class End {
 public:
  static constexpr std::size_t kBytes = std::size_t{4} << 20;
  static constexpr std::size_t kSlot = 8192;  ///< receives lie in the last eighth
  static constexpr int kReceives = 16;
  static constexpr std::size_t kSlots = kBytes - kSlot * kReceives;

  explicit End(rdma_cm::Channel& channel) : channel_(channel) {}
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  ~End();

  /// The active side, up to the route; the passive one, from a request.
  void resolve(const char* address, std::uint16_t port);
  void adopt(const rdma_cm::Event& request);
  /// Queue pair, memory, receives; led to INIT with what the connection manager says.
  void make_queues(bool with_srq = false);
  [[nodiscard]] rdma_cm::Parameters parameters();
  void take_remote(const rdma_cm::Event& event);

  void post_receive(int slot);
  int send(const ibv_send_wr& wr);
  int send(ibv_wr_opcode opcode, std::size_t offset, std::size_t length, std::size_t at = 0,
           unsigned flags = 0);
  /// The next completion.
  [[nodiscard]] ibv_wc next();
  /// The next of sends, or of receives, as the opcode is: it tells of success, and has that opcode.
  ibv_wc next(ibv_wc_opcode opcode);
  [[nodiscard]] bool idle();
  void arm() { VM_REQUIRE(ibv_req_notify_cq(cq_, 0) == 0); }
  /// After arm(): waited for and acknowledged.
  ibv_wc next_by_event();
  [[nodiscard]] ibv_qp_state state();
  [[nodiscard]] unsigned char* received(std::uint64_t slot) {
    return memory() + kSlots + slot * kSlot;
  }

  unsigned char* memory() { return memory_.data(); }
  std::uint32_t lkey() const { return mr_->lkey; }

  rdma_cm::Identifier id;
  Remote remote{};
  ibv_qp* qp = nullptr;
  ibv_qp_ex* extended = nullptr;

 private:
  [[nodiscard]] ibv_wc poll();

  rdma_cm::Channel& channel_;
  Remote own_{};
  std::vector<unsigned char> memory_ = std::vector<unsigned char>(kBytes);
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_comp_channel* events_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  std::vector<ibv_wc> passed_over_;  ///< while one of the other side was waited for
};

/// The next event, which must be of this type.
rdma_cm::Event next_event(rdma_cm::Channel& channel, rdma_cm::EventType type);

}  // namespace verbatim::vm
