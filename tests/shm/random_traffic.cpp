// SPDX-License-Identifier: BSD-2-Clause
#include "tests/shm/random_traffic.hpp"

#include <algorithm>
#include <cstring>

namespace verbatim::harness {

RandomTraffic::End RandomTraffic::make_end(Side& side, const QpInfo& qp, MemoryKind kind,
                                           std::uint32_t seed) {
  End end{side,
          qp,
          side.allocate(kind, 2 * kSlotSize),
          side.allocate(kind, kMostInBatch * kSlotSize),
          side.allocate(kind, kTargetSize),
          side.allocate(kind, kMostInBatch * kSlotSize),
          {},
          std::vector<std::uint8_t>(kTargetSize)};
  side.fill(end.source, 0, 2 * kSlotSize, seed);
  end.source_bytes = side.peek(end.source, 0, 2 * kSlotSize);
  return end;
}

RandomTraffic::RandomTraffic(Pair& pair, std::uint64_t seed)
    : random_(seed),
      ends_{make_end(pair.a, pair.qa, pair.setting.memory, 1),
            make_end(pair.b, pair.qb, pair.setting.memory, 2)},
      only_forward_(pair.setting.placement == Placement::kSelf) {}

void RandomTraffic::run(std::uint64_t requests) {
  std::uint64_t done = 0;
  while (done < requests && !testing::Test::HasFailure()) {
    const bool backward = !only_forward_ && pick(2) == 1;
    one_batch(ends_[backward ? 1 : 0], ends_[backward ? 0 : 1]);
    done += expected_.size();
  }
}

std::uint64_t RandomTraffic::random_length() {
  switch (pick(20)) {
    case 0:
      return pick(kSlotSize);
    case 1:
      return 4000 + pick(200);
    case 2:
    case 3:
    case 4:
      return pick(5000);
    case 5:
      return 0;
    default:
      return pick(130);
  }
}

SliceList RandomTraffic::random_cut(const RegionInfo& region, std::uint64_t offset,
                                    std::uint64_t length) {
  SliceList pieces;
  const std::uint64_t count = pick(3) == 0 ? 1 + pick(16) : 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t size = i + 1 == count ? length : pick(length + 1);
    pieces.add(slice(region, offset, size));
    offset += size;
    length -= size;
  }
  return pieces;
}

void RandomTraffic::add_receive(End& to, const Request& request) {
  const std::uint64_t slot = receives_.size();
  const bool is_write = request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const std::uint64_t length = request.from.bytes();
  // Room for what comes and up to ten bytes more, which must stay free.
  const SliceList cut =
      random_cut(to.inbox, slot * kSlotSize, is_write ? pick(50) : length + pick(11));
  receives_.push_back(receive(slot, cut));
  ExpectedMessage message{is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                          length,
                          request.opcode != IBV_WR_SEND,
                          request.imm,
                          {},
                          cut};
  messages_.push_back(std::move(message));
}

Request RandomTraffic::random_request(End& from, End& to, std::uint32_t slot) {
  const std::uint64_t kind = pick(14);
  Expected expected{{}, {}, IBV_WC_SEND, pick(3) != 0};
  Request request;
  if (kind >= 12) {
    const std::uint64_t at = 8 * pick(kTargetSize / 8);
    std::uint64_t old = 0;
    std::memcpy(&old, &to.target_model[at], 8);
    const Slice result = slice(from.sink, slot * kSlotSize, 8);
    std::uint64_t value = old;
    if (kind == 12) {
      request = fetch_add(slot, result, to.target, at, random_());
      value += request.compare_add;
      expected.opcode = IBV_WC_FETCH_ADD;
    } else {
      request = compare_swap(slot, result, to.target, at, pick(2) == 0 ? old : old + 1, random_());
      if (request.compare_add == old) value = request.swap;
      expected.opcode = IBV_WC_COMP_SWAP;
    }
    expected.sink = result;
    expected.in_sink.resize(8);
    std::memcpy(expected.in_sink.data(), &old, 8);
    std::memcpy(&to.target_model[at], &value, 8);
  } else {
    const std::uint64_t length = random_length();
    const std::uint64_t at = pick(kTargetSize - length);
    if (kind >= 9) {
      expected.sink = random_cut(from.sink, slot * kSlotSize, length);
      expected.in_sink.assign(&to.target_model[at], &to.target_model[at] + length);
      expected.opcode = IBV_WC_RDMA_READ;
      request = read(slot, expected.sink, to.target, at);
    } else {
      const std::uint64_t origin = pick(kSlotSize);
      const SliceList cut = random_cut(from.source, origin, length);
      const std::uint8_t* const data = &from.source_bytes[origin];
      if (kind >= 5) {
        request = write(slot, cut, to.target, at);
        std::copy(data, data + length, &to.target_model[at]);
        expected.opcode = IBV_WC_RDMA_WRITE;
      } else {
        request = send(slot, cut);
      }
      if (pick(4) == 0) request = request.with_imm(static_cast<std::uint32_t>(random_()));
      if (length <= 220 && pick(2) == 0) request = request.with(IBV_SEND_INLINE);
      if (request.opcode != IBV_WR_RDMA_WRITE) {
        add_receive(to, request);
        if (kind < 5) messages_.back().bytes.assign(data, data + length);
      }
    }
  }
  const bool brings_data = kind >= 9;
  if (fence_needed_ && !(brings_data && kind < 12)) {
    request = request.with(IBV_SEND_FENCE);
    fence_needed_ = false;
  }
  fence_needed_ = fence_needed_ || brings_data;
  expected_.push_back(std::move(expected));
  return request;
}

void RandomTraffic::one_batch(End& from, End& to) {
  expected_.clear();
  messages_.clear();
  receives_.clear();
  fence_needed_ = false;
  std::vector<Request> requests;
  const auto count = static_cast<std::uint32_t>(1 + pick(kMostInBatch));
  for (std::uint32_t i = 0; i < count; ++i) {
    Request request = random_request(from, to, i);
    expected_[i].signaled = expected_[i].signaled || i + 1 == count;
    if (!expected_[i].signaled) request = request.unsignaled();
    requests.push_back(request);
  }
  // One list or several; receives before or, when the sender may wait, after.
  const bool receives_first = pick(4) != 0;
  if (receives_first && !receives_.empty()) expect_posted(to.side.post_receive(to.qp, receives_));
  for (std::size_t at = 0; at < requests.size();) {
    const std::size_t n = pick(2) == 0 ? requests.size() - at : 1 + pick(requests.size() - at);
    expect_posted(
        from.side.post_send(from.qp, {requests.begin() + static_cast<std::ptrdiff_t>(at),
                                      requests.begin() + static_cast<std::ptrdiff_t>(at + n)}));
    at += n;
  }
  if (!receives_first && !receives_.empty()) expect_posted(to.side.post_receive(to.qp, receives_));
  check_batch(from, to, requests);
}

void RandomTraffic::check_batch(End& from, End& to, const std::vector<Request>& requests) {
  const auto signaled = static_cast<std::uint32_t>(std::count_if(
      expected_.begin(), expected_.end(), [](const Expected& each) { return each.signaled; }));
  const auto done = from.side.poll_sends(from.qp, signaled);
  std::size_t next = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (expected_[i].signaled) expect_wc(done[next++], i, expected_[i].opcode, from.qp);
    if (expected_[i].in_sink.empty()) continue;
    ASSERT_EQ(gathered(from.side, from.sink, expected_[i].sink), expected_[i].in_sink)
        << "request " << i << " of " << requests.size() << ", opcode " << requests[i].opcode;
  }
  const auto got = to.side.poll_receives(to.qp, static_cast<std::uint32_t>(messages_.size()));
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const ExpectedMessage& message = messages_[i];
    expect_wc(got[i], i, message.opcode, to.qp);
    ASSERT_EQ(got[i].byte_len, message.length);
    ASSERT_EQ((got[i].wc_flags & IBV_WC_WITH_IMM) != 0, message.has_imm);
    ASSERT_EQ(message.has_imm ? ntohl(got[i].imm_data) : 0, message.has_imm ? message.imm : 0);
    if (message.bytes.empty()) continue;
    auto found = gathered(to.side, to.inbox, message.cut);
    found.resize(message.length);
    ASSERT_EQ(found, message.bytes) << "message " << i;
  }
  ASSERT_EQ(to.side.peek(to.target, 0, kTargetSize), to.target_model);
}

}  // namespace verbatim::harness
