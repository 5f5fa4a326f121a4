// SPDX-License-Identifier: BSD-2-Clause
//
// What a hostile process shows of XRC: a target and a queue for the victim's initiator, an
// initiator for the victim's target and endpoints of it to the victim's queue, and the other halves
// of the endpoints that the victim makes to its own queue. First all of it as an honest process
// would have it, so that the victim comes; then it lies: in the links of the lists, the numbers,
// the types, the domains, the shared receives, and on each endpoint as on any connection.
#pragma once

#include <memory>

#include "tests/fuzz/liar.hpp"
#include "tests/hostile/orders.hpp"
#include "tests/hostile/victim_view.hpp"

namespace verbatim::hostile {

class XrcLiar {
 public:
  XrcLiar(fuzz::Stranger& stranger, const VictimFacts& victim, const VictimView& view);

  /// As an honest process would have it now.
  void be_honest();
  /// The next lie. True: with a request for the victim's service thread.
  bool act(fuzz::Input& input);

  /// In the victim's table, for its service thread's doorbell.
  std::uint32_t queue_to_connect_to() const { return victim_.xrc_queue % shm::kQpnsPerBlock; }

 private:
  /// Where each thing lies in our table.
  enum Place : std::uint32_t {
    kTarget = kXrcTargetAt,
    kQueue = kXrcQueueAt,
    kInitiator = kXrcInitiatorAt,
    kOutgoing,                  ///< two endpoints to the victim's queue
    kIncoming = kOutgoing + 2,  ///< two halves of endpoints of the victim's
    kOpened = kIncoming + 2,
    kEnd
  };
  static_assert(kEnd <= fuzz::Stranger::kQps);
  static constexpr std::uint32_t kLiars = kEnd - kXrcTargetAt;

  shm::QpRecord& at(std::uint32_t place) { return stranger_.qp(place); }
  std::uint64_t srq() const { return fuzz::Stranger::kHeap + kQueue * 0x6000ull; }
  /// The liar about this place, ready to lie to `record`, whose number is `qpn`.
  void face(std::uint32_t place, std::uint32_t qpn, const shm::QpRecord* record,
            std::uint32_t type);
  void show_queue();
  void answer_endpoints();
  void ask_to_connect();
  /// A message as it should be, on an endpoint of ours that the victim has made its half for.
  void deliver(std::uint32_t place, const shm::QpRecord& half);
  void lie_about_links(fuzz::Input& input);
  void lie_about_numbers(fuzz::Input& input);
  void lie_about_receives(fuzz::Input& input);

  fuzz::Stranger& stranger_;
  VictimFacts victim_;
  VictimView view_;
  fuzz::Target faced_[kLiars];
  std::unique_ptr<fuzz::Liar> liars_[kLiars];
};

}  // namespace verbatim::hostile
