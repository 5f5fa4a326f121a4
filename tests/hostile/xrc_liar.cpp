// SPDX-License-Identifier: BSD-2-Clause
#include "tests/hostile/xrc_liar.hpp"

#include <infiniband/verbs.h>

namespace verbatim::hostile {

using namespace verbatim::shm;
using fuzz::Input;
using fuzz::Liar;
using fuzz::Stranger;

XrcLiar::XrcLiar(Stranger& stranger, const VictimFacts& victim, const VictimView& view)
    : stranger_(stranger), victim_(victim), view_(view) {
  for (std::uint32_t i = 0; i < kLiars; ++i) {
    for (std::uint32_t k = 0; k < 4; ++k) {
      faced_[i].keys[k] = victim.keys[k];
      faced_[i].addresses[k] = victim.addresses[k];
    }
    faced_[i].arena_bytes = 1u << 16;
    // Until it is known better.
    faced_[i].record = view_.record(victim.xrc_target % kQpnsPerBlock);
    liars_[i] = std::make_unique<Liar>(stranger_, kXrcTargetAt + i, faced_[i]);
  }
}

void XrcLiar::face(std::uint32_t place, std::uint32_t qpn, const QpRecord* record,
                   std::uint32_t type) {
  fuzz::Target& target = faced_[place - kXrcTargetAt];
  target.qpn = qpn;
  if (record != nullptr) target.record = record;
  Liar& liar = *liars_[place - kXrcTargetAt];
  liar.be_ready();
  QpRecord& own = at(place);
  own.type = type;
  own.speaks_for = own.endpoint_link = 0;
  own.domain = view_.record(victim_.xrc_queue % kQpnsPerBlock)->domain;
  if (record != nullptr) liar.connect();
}

void XrcLiar::be_honest() {
  const auto record_of = [this](std::uint32_t qpn) { return view_.record(qpn % kQpnsPerBlock); };
  face(kTarget, victim_.xrc_initiator, record_of(victim_.xrc_initiator), IBV_QPT_XRC_RECV);
  face(kInitiator, victim_.xrc_target, record_of(victim_.xrc_target), IBV_QPT_XRC_SEND);
  face(kOpened, victim_.xrc_target, nullptr, QpRecord::kXrcOpened);
  show_queue();
  answer_endpoints();
  ask_to_connect();
}

void XrcLiar::show_queue() {
  QpRecord& own = at(kQueue);
  own.qpn = stranger_.qpn(kQueue);
  own.dest_qpn = own.speaks_for = 0;
  own.type = QpRecord::kXrcQueue;
  own.pd = 1;
  own.domain = view_.record(victim_.xrc_queue % kQpnsPerBlock)->domain;
  auto& record = *stranger_.at<SrqRecord>(srq());
  auto* credits = stranger_.at<std::atomic<std::uint64_t>>(srq() + sizeof(SrqRecord));
  for (std::uint32_t i = 0; i < Liar::kDepth; ++i) credits[i].store(Credit::make(1, 4096, false));
  record.taken.store(0);
  record.store.store(extent::make(srq() + sizeof(SrqRecord), 3));
  own.accepts.store(1);
}

/// The victim's endpoints to our queue get their other halves.
void XrcLiar::answer_endpoints() {
  std::uint32_t place = kIncoming;
  std::uint32_t link = view_.head().endpoint_link.load();
  at(kQueue).endpoint_link = 0;
  for (std::uint32_t steps = 0; link != 0 && steps < 64 && place != kOpened; ++steps) {
    const QpRecord* const endpoint = view_.record(link - 1);
    if (endpoint == nullptr) break;
    const std::uint32_t leads_to = endpoint->dest_qpn;
    if (endpoint->speaks_for == victim_.xrc_initiator &&
        leads_to >> kQpnBlockBits == stranger_.qpn(0) >> kQpnBlockBits) {
      face(place, endpoint->qpn, endpoint, IBV_QPT_XRC_RECV);
      QpRecord& half = at(place);
      half.rq_psn = half.sq_psn = 0;
      half.speaks_for = stranger_.qpn(kQueue);
      half.srq = srq();
      half.endpoint_link = at(kQueue).endpoint_link;
      at(kQueue).endpoint_link = place + 1;
      ++place;
    }
    link = endpoint->endpoint_link;
  }
}

/// Our endpoints to the victim's queue, led to what it has made for them.
void XrcLiar::ask_to_connect() {
  const QpRecord* const queue = view_.record(victim_.xrc_queue % kQpnsPerBlock);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::uint32_t own_qpn = stranger_.qpn(kOutgoing + i);
    const QpRecord* half = nullptr;
    std::uint32_t link = queue->endpoint_link;
    for (std::uint32_t steps = 0; link != 0 && steps < 64 && half == nullptr; ++steps) {
      const QpRecord* const record = view_.record(link - 1);
      if (record == nullptr) break;
      if (record->dest_qpn == own_qpn && record->accepts.load() != 0) half = record;
      link = record->endpoint_link;
    }
    const bool is_led = half != nullptr && at(kOutgoing + i).dest_qpn == half->qpn &&
                        at(kOutgoing + i).tx_session.load() >> 32 == half->accepts.load();
    if (is_led) {
      deliver(kOutgoing + i, *half);
      continue;
    }
    face(kOutgoing + i, half == nullptr ? victim_.xrc_queue : half->qpn, half, IBV_QPT_XRC_SEND);
    QpRecord& endpoint = at(kOutgoing + i);
    endpoint.rq_psn = endpoint.sq_psn = 0;
    endpoint.speaks_for = stranger_.qpn(kInitiator);
    endpoint.endpoint_link = i == 0 ? kOutgoing + 2 : kOpened + 1;
  }
  stranger_.head().endpoint_link.store(kOutgoing + 1);
}

void XrcLiar::deliver(std::uint32_t place, const QpRecord& half) {
  constexpr std::uint32_t kBytes = 40;
  const std::uint64_t line = half.lines_taken.load();
  Slot& slot =
      stranger_.at<Slot>(Stranger::kHeap + place * 0x6000ull + 0x1000)[line % Liar::kLines];
  slot.header.store(header::make(static_cast<std::uint32_t>(line / Liar::kLines) + 1,
                                 SlotKind::kInline, header::kSolicited, kBytes, 0),
                    std::memory_order_release);
}

bool XrcLiar::act(Input& input) {
  switch (input.below(16)) {
    case 0:
    case 1:
      be_honest();
      return true;
    case 2:
      lie_about_links(input);
      return true;
    case 3:
      lie_about_numbers(input);
      return true;
    case 4:
      lie_about_receives(input);
      return false;
    case 5:
    case 6:
      answer_endpoints();
      return false;
    case 7:
      ask_to_connect();
      return true;
    default:
      return liars_[input.below(kLiars)]->act(input);
  }
}

/// Circles, ends behind the table, lists that run into each other.
void XrcLiar::lie_about_links(Input& input) {
  const auto link =
      static_cast<std::uint32_t>(input.flag() ? input.below(kEnd + 2) : input.number());
  if (input.flag())
    stranger_.head().endpoint_link.store(link);
  else
    at(kTarget + input.below(kLiars)).endpoint_link = link;
}

void XrcLiar::lie_about_numbers(Input& input) {
  QpRecord& record = at(kTarget + input.below(kLiars));
  const std::uint32_t numbers[] = {victim_.xrc_queue,
                                   victim_.xrc_target,
                                   victim_.xrc_initiator,
                                   victim_.honest_qpn,
                                   stranger_.qpn(input.below(Stranger::kQps)),
                                   static_cast<std::uint32_t>(input.number())};
  const std::uint32_t types[] = {IBV_QPT_XRC_SEND,
                                 IBV_QPT_XRC_RECV,
                                 IBV_QPT_RC,
                                 IBV_QPT_UD,
                                 QpRecord::kXrcQueue,
                                 QpRecord::kXrcOpened,
                                 static_cast<std::uint32_t>(input.number())};
  const std::uint32_t number = numbers[input.below(6)];
  switch (input.below(6)) {
    case 0:
      record.dest_qpn = number;
      return;
    case 1:
      record.speaks_for = number;
      return;
    case 2:
      record.qpn = number;
      return;
    case 3:
      record.type = types[input.below(7)];
      return;
    case 4:
      record.domain.low = input.number();
      return;
    default:
      record.told = static_cast<std::uint32_t>(input.number());
      record.state = static_cast<std::uint32_t>(input.number());
      return;
  }
}

void XrcLiar::lie_about_receives(Input& input) {
  auto& record = *stranger_.at<SrqRecord>(srq());
  auto* credits = stranger_.at<std::atomic<std::uint64_t>>(srq() + sizeof(SrqRecord));
  switch (input.below(4)) {
    case 0:
      record.store.store(input.flag() ? extent::make(srq() + input.below(0x1000), input.below(32))
                                      : input.number());
      return;
    case 1:
      record.taken.store(input.number());
      return;
    case 2:
      at(kIncoming + input.below(2)).served.store(input.number());
      return;
    default:
      credits[input.below(Liar::kDepth)].store(
          Credit::make(input.below(8), input.below(8192), input.below(8) == 0));
      return;
  }
}

}  // namespace verbatim::hostile
