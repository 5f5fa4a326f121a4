// SPDX-License-Identifier: BSD-2-Clause
#include "tests/fuzz/liar.hpp"

#include <infiniband/verbs.h>

#include <bit>

namespace verbatim::fuzz {

using shm::Credit;
using shm::QpRecord;
using shm::Slot;
using shm::SlotKind;

void Liar::be_ready() {
  line_ = credits_ = 0;
  std::memset(stranger_.base() + heap(), 0, 0x2000);  // credits and ring
  QpRecord& own = record();
  own.accepts.store(0);
  own.tx_session.store(0);
  own.qpn = stranger_.qpn(index_);
  own.dest_qpn = target_.qpn;
  own.rq_psn = own.sq_psn = 7;
  own.access = 0xff;
  own.pd = 1;
  own.cq = 0;
  own.cq_bit = index_;
  own.rq_entries = kDepth;
  own.rq_max_sge = kSges;
  own.attention.store(shm::kDoorbell);
  own.active.store(0);
  own.consumed.store(0);
  own.lines_taken.store(0);
  own.stream_consumed.store(0);
  own.stream_produced.store(0);
  own.rq_credits.store(shm::extent::make(heap(), std::countr_zero(kDepth)));
  own.ring.store(shm::extent::make(ring(), shm::kFirstRingLog));
  own.stream_ring.store(shm::extent::make(stream_ring(), 12));
  own.bounce = bounce();
  own.srq = 0;
  own.type = IBV_QPT_RC;
  own.accepts.store(1);
}

void Liar::connect() {
  record().tx_session.store(session() << 32 | 1);
  record().asked.store(session() << 32);
}

bool Liar::act(Input& input) {
  switch (input.below(10)) {
    case 0:
      scribble(input);
      return false;
    case 1:
      lie_in_record(input);
      return false;
    case 2:
    case 3:
      put_message(input);
      return false;
    case 4:
    case 5:
      give_credit(input);
      return false;
    case 6:
      claim_region(input);
      return false;
    case 7:
      ask(input);
      return true;
    case 8:
      answer(input);
      return false;
    default:
      record().stream_consumed.store(target_.record->stream_produced.load());
      return false;
  }
}

/// Any bytes of the part of the segment that connections use.
void Liar::scribble(Input& input) {
  constexpr std::uint64_t kStart = Stranger::kMrTable, kSpan = 0x8000;
  const std::uint64_t at = kStart + input.take<std::uint16_t>() % (kSpan - 8);
  const std::uint64_t value = input.number();
  std::memcpy(stranger_.base() + at, &value, input.flag() ? 8 : 4);
}

/// One word of the record, the others as they were.
void Liar::lie_in_record(Input& input) {
  const std::uint64_t at = input.below(sizeof(QpRecord) / 4) * 4;
  const std::uint64_t value = input.number();
  std::memcpy(reinterpret_cast<unsigned char*>(&record()) + at, &value,
              at + 8 <= sizeof(QpRecord) && input.flag() ? 8 : 4);
}

void Liar::put_message(Input& input) {
  QpRecord& own = record();
  const std::uint8_t how = input.take();
  const std::uint32_t line = (how & 0xc0u) == 0xc0u ? input.take() : line_++;
  auto& slot = stranger_.at<Slot>(ring())[line % kLines];
  const auto kind = static_cast<SlotKind>(how & 7u);
  std::uint32_t inline_length = 0;
  std::uint32_t immediate = 0x1234;
  if (kind == SlotKind::kInline) {
    inline_length = input.below(64);
  } else if (kind == SlotKind::kPack) {
    // Now and then what an honest one sends: two to seven messages that fit the slot.
    inline_length = input.below(16);
    immediate = input.below(12);
  } else if (kind == SlotKind::kLines || kind == SlotKind::kMoved) {
    const bool plausible = input.flag();
    const bool moves = kind == SlotKind::kMoved;
    const std::uint32_t some = input.below(moves ? kLines : shm::kMostInLines);
    slot.large.length = !plausible ? input.number() : moves ? line + 1 + some : some;
    slot.large.offset = plausible ? own.ring.load() : input.number();
    if (plausible && line + 1 == line_) line_ = moves ? line_ + some : line + shm::lines_of(some);
  } else {
    const bool plausible = input.flag();
    slot.large.length = plausible ? input.below(0x4000) : input.number();
    slot.large.offset = plausible ? own.stream_produced.load() : input.number();
    slot.large.placed_from = input.flag() ? ~std::uint64_t{0} : input.number();
    if (input.flag())
      own.stream_produced.store((own.stream_produced.load() + slot.large.length + 63) & ~63ull);
  }
  slot.header.store(
      shm::header::make(line / kLines + 1, kind, input.take(), inline_length, immediate),
      std::memory_order_release);
}

void Liar::give_credit(Input& input) {
  const std::uint32_t index = credits_++;
  const std::uint32_t at = index % kDepth;
  auto* words = stranger_.at<std::atomic<std::uint64_t>>(heap());
  auto* sges = stranger_.at<shm::ReceiveSge>(heap() + kDepth * 8);
  for (std::uint32_t i = 0; i < kSges; ++i)
    sges[at * kSges + i] = {kIova + input.number(), input.below(8192),
                            key_of(input.below(Stranger::kRegions))};
  const std::uint64_t length = input.number();
  words[at].store(Credit::make(index / kDepth + 1,
                               static_cast<std::uint32_t>(length) & Credit::kLengthMask,
                               (length >> 40) != 0));
}

void Liar::claim_region(Input& input) {
  const std::uint32_t i = input.below(Stranger::kRegions);
  shm::RegionRecord& region = stranger_.region(i);
  const bool plausible = input.flag();
  region.iova = kIova;
  region.length = plausible ? target_.arena_bytes : input.number();
  region.address = input.number();
  region.arena_offset = plausible ? input.below(4) : input.number();
  region.key = key_of(i);
  region.access = 0xff;
  region.pd = 1;
  region.arena = input.below(4);
  region.serial.store(input.take() + 1u, std::memory_order_release);
}

void Liar::ask(Input& input) {
  if (input.flag()) return put_request(input);
  QpRecord& own = record();
  const std::uint32_t whose = input.below(4);
  const bool plausible = input.flag();
  own.op = input.below(8);
  own.rkey = target_.keys[whose];
  if (plausible)
    own.address = own.op == static_cast<std::uint32_t>(shm::ServiceOp::kPlace)
                      ? input.below(16)
                      : target_.addresses[whose] + input.below(9000);
  else
    own.address = input.number();
  own.length = plausible ? input.below(9000) : input.number();
  own.compare_add = input.take();
  own.swap = plausible ? input.below(9000) : input.number();
  own.bounce = plausible ? bounce() : input.number();
  own.asked.store(session() << 32 | static_cast<std::uint32_t>(own.asked.load() + 1));
}

/// In the ring of those that the other's process serves.
void Liar::put_request(Input& input) {
  auto& ring = *stranger_.at<shm::RequestRing>(requests());
  const std::uint32_t whose = input.below(4);
  const bool plausible = input.flag();
  const std::uint64_t number = ring.asked.load() + 1;
  shm::ServiceRequest& request = ring.requests[number % shm::RequestRing::kRequests];
  request.op = input.below(8);
  request.rkey = target_.keys[whose];
  request.address = plausible ? target_.addresses[whose] + input.below(9000) : input.number();
  request.length = plausible ? input.below(9000) : input.number();
  request.at = plausible ? ring.produced.load() : input.number();
  request.operand = input.take();
  request.swap = input.take();
  ring.produced.store(plausible ? request.at + input.below(9000) : input.number());
  ring.consumed.store(plausible ? request.at : input.number());
  ring.stream_ring.store(plausible ? Stranger::kRequestStreamAt : input.number());
  record().requests.store(plausible ? requests() : input.number());
  ring.asked.store(plausible ? number : input.number());
}

/// To what the other asked us.
void Liar::answer(Input& input) {
  QpRecord& own = record();
  own.answer_status = input.flag() ? 0 : input.below(32);
  own.answered.store(target_.record->asked.load());
  auto& answers = *stranger_.at<shm::RequestAnswers>(this->answers());
  answers.life.store(input.flag() ? target_.record->tx_session.load() : input.number());
  answers.answered.store(input.flag() ? input.below(8) : input.number());
  answers.refused.store(input.flag() ? 0 : input.number());
  answers.produced.store(input.flag() ? input.below(9000) : input.number());
  answers.consumed.store(input.flag() ? input.below(9000) : input.number());
  answers.stream_ring.store(input.flag() ? Stranger::kRequestStreamAt : input.number());
  answers.attended.store(input.below(2));
  own.answers.store(input.flag() ? this->answers() : input.number());
}

}  // namespace verbatim::fuzz
