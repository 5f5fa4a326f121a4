// SPDX-License-Identifier: BSD-2-Clause
// One end of an iWARP connection: a queue pair over siw0 with memory, made and connected through
// rdma_cm as a connection-manager library would. Every wait has an end; what goes wrong ends the
// process with a line.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "providers/rdma_cm/identifier.hpp"

namespace verbatim::vm {

constexpr int kPatience = 60000;  ///< milliseconds

[[noreturn]] void fail(const char* file, int line, const char* what);
#define VM_REQUIRE(condition) \
  ((condition) ? static_cast<void>(0) : ::verbatim::vm::fail(__FILE__, __LINE__, #condition))

// What lies where in an end's memory.
constexpr std::size_t kMegabyte = std::size_t{1} << 20;
constexpr std::size_t kSource = 0;               // what the other side READs
constexpr std::size_t kTarget = kMegabyte;       // where it WRITEs
constexpr std::size_t kLent = 4096;              // of it, by a key of its own
constexpr std::size_t kRead = 2 * kMegabyte;     // where our READs bring it
constexpr std::size_t kMessage = 3 * kMegabyte;  // what we SEND

/// Where the other side may write and read; exchanged as private data.
struct Remote {
  std::uint64_t address;
  std::uint32_t rkey;
  std::uint32_t lent;  ///< of some of the same memory, to be taken away: SEND_WITH_INV
};

/// siw0, by its name. Not null.
ibv_context* open_siw();

class End {
 public:
  static constexpr std::size_t kBytes = std::size_t{4} << 20;
  static constexpr std::size_t kSlot = 8192;  ///< receives lie in the last eighth
  static constexpr int kReceives = 16;
  static constexpr std::size_t kSlots = kBytes - kSlot * kReceives;

  explicit End(rdma_cm::EventChannel& channel) : channel_(channel) {}
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  ~End();

  /// The active side, up to the route; the passive one, from a request.
  void resolve(const char* address, std::uint16_t port);
  void adopt(const rdma_cm::Event& request);
  struct Shape {
    bool srq = false;
    bool cursor = false;  ///< completions are read by ibv_start_poll and its companions
  };
  /// Queue pair, memory, receives; led to INIT with what the connection manager says.
  void make_queues(Shape shape);
  void make_queues() { make_queues(Shape{}); }
  [[nodiscard]] rdma_cm::Parameters parameters();
  void take_remote(const rdma_cm::Event& event);

  /// The device; the rest goes afterwards, by its verbs, as always.
  void close();

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
  /// Waits for an asynchronous event of that type, past others that are no error; acknowledges it.
  ibv_async_event next_async(ibv_event_type type);
  /// vbt_explain's words about `wc`, or about what there was first.
  [[nodiscard]] std::string explained(const ibv_wc* wc);
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
  ibv_srq* srq = nullptr;

 private:
  [[nodiscard]] ibv_wc poll();
  /// Whether there is one.
  [[nodiscard]] bool look(ibv_wc& wc);
  [[nodiscard]] bool look_by_cursor(ibv_wc& wc);
  void make_completion_queue(bool with_cursor);

  rdma_cm::EventChannel& channel_;
  Remote own_{};
  std::vector<unsigned char> memory_ = std::vector<unsigned char>(kBytes);
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_mr* lent_ = nullptr;
  ibv_comp_channel* events_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_cq_ex* cursor_ = nullptr;
  std::deque<ibv_wc> gathered_;      ///< by the cursor's last turn
  std::vector<ibv_wc> passed_over_;  ///< while one of the other side was waited for
};

/// The next event, which must be of this type.
rdma_cm::Event next_event(rdma_cm::EventChannel& channel, rdma_cm::EventType type);

// What one end says and the other one hears (siw_ends.cpp).
void fill(unsigned char* at, std::size_t length, unsigned seed);
[[nodiscard]] bool holds(const unsigned char* at, std::size_t length, unsigned seed);
/// A receive completed with that message; its slot is posted again.
void check_message(End& end, const ibv_wc& wc, std::size_t length, unsigned seed);
void hear(End& end, std::size_t length, unsigned seed);
void say(End& end, std::size_t length, unsigned seed, unsigned flags = 0);

}  // namespace verbatim::vm
