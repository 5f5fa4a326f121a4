// SPDX-License-Identifier: BSD-2-Clause
//
// A program that uses verbs and has a stranger for a peer: a context, a queue pair connected to the
// stranger's record, and memory of which every byte that the stranger may not reach is watched.
//
// Copies by CMA are off: the stranger lives in our own process, where no copy would hurt it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>

#include "providers/shm/fabric/process.hpp"
#include "tests/fuzz/guarded_memory.hpp"
#include "tests/fuzz/liar.hpp"

namespace verbatim::fuzz {

class Victim {
 public:
  static constexpr std::uint32_t kDepth = Liar::kDepth;
  static constexpr std::uint32_t kSges = Liar::kSges;
  static constexpr std::uint64_t kPiece = 4096;
  /// Memory in pieces: receives and answers land in the first kLanding of them, one work request in
  /// each at a time; between all the regions lies what nobody may touch.
  static constexpr std::uint32_t kLanding = 24;
  static constexpr std::uint64_t kRemote = (kLanding + 1) * kPiece;   // peers may do anything here
  static constexpr std::uint64_t kSource = (kLanding + 4) * kPiece;   // registered without rights
  static constexpr std::uint64_t kForeign = (kLanding + 7) * kPiece;  // another protection domain
  static constexpr std::uint64_t kRegionBytes = 2 * kPiece;

  explicit Victim(Stranger& stranger);

  /// A new connection to the stranger's record 0: accepts from it, then sends to it.
  void begin();
  void go();
  Target target();
  /// What the application may do.
  void post_receive(Input& input);
  void post_send(Input& input);
  void poll();
  void arm(bool solicited);
  /// What the service thread does when the doorbell rings.
  void serve();
  /// The end of the round: everything completes, once, and nothing was touched that must not be.
  void end();

 private:
  struct Outstanding {
    bool receive;
    std::uint64_t bytes;
  };
  void meet();
  std::uint64_t address(std::uint32_t i);
  void modify(ibv_qp_state state);
  ibv_sge land(std::uint64_t bytes);

  Stranger& stranger_;
  GuardedMemory memory_{(kLanding + 10) * kPiece};
  GuardedMemory arena_{4 * kPiece};
  UniqueFd socket_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_mr* mrs_[4] = {};
  const shm::QpRecord* record_ = nullptr;
  shm::Peer* peer_ = nullptr;
  std::uint32_t bit_ = 0;
  std::uint32_t landings_ = 0;
  std::uint64_t landed_[kLanding] = {};  ///< bytes of each piece that may have changed
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Outstanding> outstanding_;
};

}  // namespace verbatim::fuzz
