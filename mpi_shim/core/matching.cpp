// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/matching.hpp"

#include <cstdlib>
#include <utility>

namespace vmpi {

Matching matching;

namespace {

constexpr std::size_t kFirstBuckets = 64;
constexpr std::size_t kMostBuckets = std::size_t{1} << 20;

std::size_t hash(const Envelope& envelope) noexcept {
  std::uint64_t value =
      std::uint64_t{envelope.context} << 32 | static_cast<std::uint32_t>(envelope.tag);
  value = (value ^ std::uint64_t{static_cast<std::uint32_t>(envelope.source)} << 20) *
          0x9e3779b97f4a7c15u;
  return value >> 40;
}

void append(Request*& first, Request*& last, Request& receive) noexcept {
  receive.next = nullptr;
  receive.previous = last;
  (last != nullptr ? last->next : first) = &receive;
  last = &receive;
}

void unlink(Request*& first, Request*& last, Request& receive) noexcept {
  (receive.previous != nullptr ? receive.previous->next : first) = receive.next;
  (receive.next != nullptr ? receive.next->previous : last) = receive.previous;
  receive.next = receive.previous = nullptr;
}

}  // namespace

void release_payload(const Unexpected& message) noexcept {
  if (message.is_own == 0 && message.kind <= static_cast<unsigned>(MessageKind::kEagerSync))
    std::free(reinterpret_cast<void*>(message.place));
}

bool Matching::start() noexcept {
  if (!buckets_.resize(kFirstBuckets) || !message_buckets_.resize(kFirstBuckets)) return false;
  for (Messages& bucket : message_buckets_) bucket = {kNone, kNone};
  return true;
}

void Matching::stop() noexcept {
  for (std::uint32_t index = order_.first; index != kNone; index = at(index).order_next)
    release_payload(at(index));
  for (Unexpected* slab : slabs_) std::free(slab);
  buckets_ = {};
  message_buckets_ = {};
  slabs_ = {};
  wild_ = {nullptr, nullptr};
  order_ = {kNone, kNone};
  posted_ = kept_ = 0;
  free_ = kNone;
}

Matching::Receives& Matching::receives_of(const Envelope& envelope) noexcept {
  return buckets_[hash(envelope) & (buckets_.size() - 1)];
}

Matching::Messages& Matching::messages_of(const Envelope& envelope) noexcept {
  return message_buckets_[hash(envelope) & (message_buckets_.size() - 1)];
}

void Matching::post(Request& receive) noexcept {
  receive.sequence = ++sequence_;
  const Envelope envelope = envelope_of(receive);
  if (envelope.is_wild()) {
    append(wild_.first, wild_.last, receive);
    return;
  }
  if (++posted_ > 2 * buckets_.size() && buckets_.size() < kMostBuckets) spread_receives();
  Receives& bucket = receives_of(envelope);
  append(bucket.first, bucket.last, receive);
}

bool Matching::is_certain(const Request& receive) noexcept {
  const Envelope envelope = envelope_of(receive);
  if (wild_.first != nullptr) return false;
  const Request* first = receives_of(envelope).first;
  while (!envelope_of(*first).takes(envelope)) first = first->next;
  return first == &receive;
}

void Matching::withdraw(Request& receive) noexcept {
  const Envelope envelope = envelope_of(receive);
  if (envelope.is_wild()) {
    unlink(wild_.first, wild_.last, receive);
  } else {
    Receives& bucket = receives_of(envelope);
    unlink(bucket.first, bucket.last, receive);
    --posted_;
  }
  receive.sequence = 0;
}

Request* Matching::find_receive(const Envelope& message) noexcept {
  Request* found = receives_of(message).first;
  while (found != nullptr && !envelope_of(*found).takes(message)) found = found->next;
  return found;
}

Request* Matching::take_receive(const Envelope& message) noexcept {
  Request* found = posted_ != 0 ? find_receive(message) : nullptr;
  for (Request* wild = wild_.first;
       wild != nullptr && (found == nullptr || wild->sequence < found->sequence); wild = wild->next)
    if (envelope_of(*wild).takes(message)) {
      found = wild;
      break;
    }
  if (found != nullptr) withdraw(*found);
  return found;
}

/// Without memory the buckets stay as long as they are.
void Matching::spread_receives() noexcept {
  Array<Receives> more;
  if (!more.resize(4 * buckets_.size())) return;
  const Array<Receives> old(std::exchange(buckets_, std::move(more)));
  for (const Receives& bucket : old)
    for (Request* next = bucket.first; next != nullptr;) {
      Request& receive = *next;
      next = receive.next;
      Receives& to = receives_of(envelope_of(receive));
      append(to.first, to.last, receive);
    }
}

void Matching::spread_messages() noexcept {
  Array<Messages> more;
  if (!more.resize(4 * message_buckets_.size())) return;
  message_buckets_ = std::move(more);
  for (Messages& bucket : message_buckets_) bucket = {kNone, kNone};
  for (std::uint32_t index = order_.first; index != kNone; index = at(index).order_next)
    append_to_hash(index);
}

void Matching::append_to_hash(std::uint32_t index) noexcept {
  Unexpected& kept = at(index);
  Messages& bucket = messages_of(kept.envelope);
  kept.hash_next = kNone;
  kept.hash_previous = bucket.last;
  (bucket.last != kNone ? at(bucket.last).hash_next : bucket.first) = index;
  bucket.last = index;
}

bool Matching::keep(const Unexpected& message) noexcept {
  if (free_ == kNone) {
    auto* const slab = static_cast<Unexpected*>(std::malloc(kSlab * sizeof(Unexpected)));
    if (slab == nullptr || !slabs_.push_back(slab)) {
      std::free(slab);
      return false;
    }
    const auto first = static_cast<std::uint32_t>((slabs_.size() - 1) * kSlab);
    for (std::uint32_t i = 0; i < kSlab; ++i)
      slab[i].order_next = i + 1 < kSlab ? first + i + 1 : kNone;
    free_ = first;
  }
  if (++kept_ > 2 * message_buckets_.size() && message_buckets_.size() < kMostBuckets)
    spread_messages();
  const std::uint32_t index = free_;
  free_ = at(index).order_next;
  at(index) = message;
  append_to_hash(index);
  Unexpected& kept = at(index);
  kept.order_next = kNone;
  kept.order_previous = order_.last;
  (order_.last != kNone ? at(order_.last).order_next : order_.first) = index;
  order_.last = index;
  return true;
}

std::uint32_t Matching::find_message(const Envelope& wanted) const noexcept {
  if (kept_ == 0) return kNone;
  if (wanted.is_wild()) {
    std::uint32_t index = order_.first;
    while (index != kNone && !wanted.takes(at(index).envelope)) index = at(index).order_next;
    return index;
  }
  std::uint32_t index = message_buckets_[hash(wanted) & (message_buckets_.size() - 1)].first;
  while (index != kNone && !wanted.takes(at(index).envelope)) index = at(index).hash_next;
  return index;
}

Unexpected Matching::take_message(std::uint32_t index) noexcept {
  Unexpected& taken = at(index);
  Messages& bucket = messages_of(taken.envelope);
  (taken.hash_previous != kNone ? at(taken.hash_previous).hash_next : bucket.first) =
      taken.hash_next;
  (taken.hash_next != kNone ? at(taken.hash_next).hash_previous : bucket.last) =
      taken.hash_previous;
  (taken.order_previous != kNone ? at(taken.order_previous).order_next : order_.first) =
      taken.order_next;
  (taken.order_next != kNone ? at(taken.order_next).order_previous : order_.last) =
      taken.order_previous;
  const Unexpected copy = taken;
  taken.order_next = free_;
  free_ = index;
  --kept_;
  return copy;
}

}  // namespace vmpi
