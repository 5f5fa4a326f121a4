// SPDX-License-Identifier: BSD-2-Clause
// The other side of rxe's rings, for tests: memory that a file descriptor maps, a kernel's end that
// moves its index as the driver does, and a command channel that counts doorbells. Written from
// the driver's behaviour, not from ours: it uses plain offsets and a private index.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "providers/rxe/objects.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::rxe_test {

/// A ring as the driver makes it: 2^slots_log2 slots of 2^element_log2 bytes.
class FakeRing {
 public:
  FakeRing(unsigned slots_log2, unsigned element_log2);
  FakeRing(const FakeRing&) = delete;
  FakeRing& operator=(const FakeRing&) = delete;
  ~FakeRing();

  int fd() const { return fd_; }
  mminfo place() const { return {0, static_cast<__u32>(bytes_), 0}; }
  std::uint32_t mask() const { return mask_; }
  std::uint32_t& word(std::size_t offset) {
    return *reinterpret_cast<std::uint32_t*>(memory_ + offset);
  }
  std::uint32_t& shift_word() { return word(0); }
  std::uint32_t& mask_word() { return word(4); }
  std::uint32_t& producer_word() { return word(128); }
  std::uint32_t& consumer_word() { return word(256); }
  unsigned char* slot(std::uint32_t index) {
    return memory_ + 384 + (std::size_t{index & mask_} << shift_);
  }

  /// The kernel as consumer: the oldest element, or null.
  unsigned char* head();
  void consume();
  /// The kernel as producer: false when the ring is full.
  bool produce(const void* element, std::size_t size);
  /// Puts both indices somewhere, so that a test crosses the end of the ring.
  void start_at(std::uint32_t index);
  /// From here on the kernel's end uses the queue's own mapping: ThreadSanitizer knows memory by
  /// its address, and sees no race between two mappings.
  void use_mapping_of(const rxe::Queue& queue);

 private:
  unsigned shift_;
  std::uint32_t mask_;
  std::size_t bytes_;
  int fd_;
  unsigned char* memory_;
  bool mapped_here_ = true;
  std::uint32_t index_ = 0;  ///< the kernel's own: the shared copy is for us to read
};

/// What came through write(2) and as a command in an ioctl, and what both answer.
struct FakeSystem : uverbs::System {
  FakeSystem();
  mutable std::atomic<int> error{0};
  std::atomic<int> bell{0};  ///< what the doorbell answers, when it is not 0
  mutable std::atomic<int> rung{0};
  mutable kernel::Doorbell last{};
  mutable std::vector<std::uint32_t> rung_by_ioctl;  ///< of which queue pairs
  mutable std::vector<ib_uverbs_modify_qp> led;      ///< what MODIFY_QP was asked for
  mutable int resets_refused = 0;                    ///< so many more are: it drains
  mutable bool fails_late = false;                   ///< the next RESET is followed by ERR
  mutable int asked = 0;                             ///< how often QUERY_QP was
  mutable ibv_qp_state state = IBV_QPS_RTS;          ///< what it answers
  ibv_qp_attr told{};                                ///< ... beside that, of a connection
  std::uint64_t device_flags = 0;                    ///< device_cap_flags_ex
};

/// A context whose kernel is this test.
struct FakeHost {
  FakeSystem system;
  Device device;
  rxe::Context context{device, 14, system};
};

/// A queue pair with rings. What rxe::destroy_qp is given is no longer this one's: release().
struct FakeQueues {
  explicit FakeQueues(rxe::Context& context, ibv_qp_type type = IBV_QPT_RC, unsigned slots_log2 = 3,
                      std::uint64_t send_ops = 0);
  struct End {
    void operator()(rxe::Qp* ended) const { destroy_nothrow(ended); }
  };
  FakeRing send;
  FakeRing receive;
  std::unique_ptr<rxe::Qp, End> qp;
  ibv_qp* plain() { return &qp->plain; }
  ibv_qp_ex* extended() { return &qp->extended; }
};

/// One with a context of its own.
struct FakeQp : FakeHost, FakeQueues {
  explicit FakeQp(ibv_qp_type type = IBV_QPT_RC, unsigned slots_log2 = 3,
                  std::uint64_t send_ops = 0)
      : FakeQueues(context, type, slots_log2, send_ops) {}
};

/// Fields of a send element, by the header's offsets.
struct SentView {
  explicit SentView(const unsigned char* at) : at_(at) {}
  std::uint64_t u64(std::size_t offset) const;
  std::uint32_t u32(std::size_t offset) const;
  std::uint64_t wr_id() const { return u64(0); }
  std::uint32_t opcode() const { return u32(12); }
  std::uint32_t flags() const { return u32(16); }
  std::uint32_t imm() const { return u32(20); }
  std::uint64_t iova() const { return u64(152); }
  std::uint32_t length() const { return u32(184); }
  std::uint32_t resid() const { return u32(188); }
  std::uint32_t sges() const { return u32(196); }
  std::uint8_t u8(std::size_t offset) const { return at_[offset]; }
  const unsigned char* tail() const { return at_ + 208; }

 private:
  const unsigned char* at_;
};

}  // namespace verbatim::rxe_test
