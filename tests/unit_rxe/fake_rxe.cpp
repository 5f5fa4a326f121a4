// SPDX-License-Identifier: BSD-2-Clause
#include "tests/unit_rxe/fake_rxe.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace verbatim::rxe_test {
namespace {

std::uint32_t seen(std::uint32_t& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}
void show(std::uint32_t& word, std::uint32_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

int answer_write(const uverbs::System& self, int, const void* bytes, std::size_t size) noexcept {
  const auto& fake = static_cast<const FakeSystem&>(self);
  if (size != sizeof(kernel::Doorbell)) return EINVAL;
  std::memcpy(&fake.last, bytes, size);
  fake.rung.fetch_add(1, std::memory_order_release);
  return fake.bell.load() != 0 ? fake.bell.load() : fake.error.load();
}

/// Commands travel in one ioctl method: a number, and the command's structure. Methods beside it:
/// the ends of a region and of a queue pair.
int answer_ioctl(const uverbs::System& self, int, kernel::IoctlCall::Message& message) noexcept {
  const auto& fake = static_cast<const FakeSystem&>(self);
  if (message.header.object_id == UVERBS_OBJECT_MR) return fake.error.load();
  if (message.header.object_id == UVERBS_OBJECT_QP) {
    for (int i = 0; i < message.header.num_attrs; ++i)
      message.attributes[i].flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return fake.error.load();
  }
  std::uint64_t number = 0;
  std::uint32_t bell_of = 0;
  ib_uverbs_modify_qp request{};
  ib_uverbs_attr* reply = nullptr;
  for (int i = 0; i < message.header.num_attrs; ++i) {
    ib_uverbs_attr& attribute = message.attributes[i];
    if (attribute.attr_id == UVERBS_ATTR_CORE_OUT) reply = &attribute;
    if (attribute.attr_id == UVERBS_ATTR_WRITE_CMD) number = attribute.data;
    if (attribute.attr_id == UVERBS_ATTR_CORE_IN && attribute.len == sizeof(ib_uverbs_post_send))
      std::memcpy(
          &bell_of,
          reinterpret_cast<const char*>(attribute.data) + offsetof(ib_uverbs_post_send, qp_handle),
          sizeof bell_of);
    if (attribute.attr_id != UVERBS_ATTR_CORE_IN || attribute.len < sizeof request) continue;
    std::memcpy(&request, reinterpret_cast<const void*>(attribute.data), sizeof request);
  }
  if (number == IB_USER_VERBS_CMD_QUERY_QP && reply != nullptr) {
    ++fake.asked;
    ib_uverbs_query_qp_resp told{};
    told.dest_qp_num = fake.told.dest_qp_num;
    told.dest.is_global = fake.told.ah_attr.is_global;
    std::memcpy(told.dest.dgid, fake.told.ah_attr.grh.dgid.raw, sizeof told.dest.dgid);
    told.timeout = fake.told.timeout;
    told.retry_cnt = fake.told.retry_cnt;
    told.rnr_retry = fake.told.rnr_retry;
    told.qp_state = static_cast<__u8>(fake.state);
    std::memcpy(reinterpret_cast<void*>(reply->data), &told,
                std::min<std::size_t>(reply->len, sizeof told));
    reply->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return fake.error.load();
  }
  if (number == (IB_USER_VERBS_EX_CMD_QUERY_DEVICE | kernel::kExtended) && reply != nullptr) {
    ib_uverbs_ex_query_device_resp told{};
    told.response_length = sizeof told;
    told.device_cap_flags_ex = fake.device_flags;
    std::memcpy(reinterpret_cast<void*>(reply->data), &told,
                std::min<std::size_t>(reply->len, sizeof told));
    reply->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return fake.error.load();
  }
  if (number == IB_USER_VERBS_CMD_POST_SEND && reply != nullptr) {
    fake.rung_by_ioctl.push_back(bell_of);
    reply->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return fake.error.load();
  }
  if (number != IB_USER_VERBS_CMD_MODIFY_QP) return EOPNOTSUPP;
  fake.led.push_back(request);
  if (request.qp_state == IBV_QPS_ERR) fake.resets_refused = 0;
  if (request.qp_state == IBV_QPS_RESET && fake.resets_refused > 0) {
    --fake.resets_refused;
    return EINVAL;
  }
  if (request.qp_state == IBV_QPS_INIT && fake.state == IBV_QPS_ERR) return EINVAL;
  if (request.qp_state == IBV_QPS_RESET)
    fake.state = std::exchange(fake.fails_late, false) ? IBV_QPS_ERR : IBV_QPS_RESET;
  return fake.error.load();
}

}  // namespace

FakeRing::FakeRing(unsigned slots_log2, unsigned element_log2)
    : shift_(element_log2),
      mask_((1u << slots_log2) - 1),
      bytes_((384 + (std::size_t{1} << (slots_log2 + element_log2)) + 4095) & ~std::size_t{4095}),
      fd_(::memfd_create("rxe ring", MFD_CLOEXEC)) {
  if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) std::abort();
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) std::abort();
  memory_ = static_cast<unsigned char*>(memory);
  // What slots held before must not matter.
  std::memset(memory_ + 384, 0xa5, bytes_ - 384);
  shift_word() = shift_;
  mask_word() = mask_;
}

FakeRing::~FakeRing() {
  if (mapped_here_) ::munmap(memory_, bytes_);
  ::close(fd_);
}

void FakeRing::use_mapping_of(const rxe::Queue& queue) {
  if (mapped_here_) ::munmap(memory_, bytes_);
  mapped_here_ = false;
  memory_ = reinterpret_cast<unsigned char*>(queue.ring());
}

unsigned char* FakeRing::head() {
  return ((seen(producer_word()) - index_) & mask_) == 0 ? nullptr : slot(index_);
}

void FakeRing::consume() {
  index_ = (index_ + 1) & mask_;
  show(consumer_word(), index_);
}

bool FakeRing::produce(const void* element, std::size_t size) {
  if (((index_ + 1 - seen(consumer_word())) & mask_) == 0) return false;
  std::memcpy(slot(index_), element, size);
  index_ = (index_ + 1) & mask_;
  show(producer_word(), index_);
  return true;
}

void FakeRing::start_at(std::uint32_t index) {
  index_ = index & mask_;
  producer_word() = consumer_word() = index_;
}

FakeSystem::FakeSystem() : uverbs::System{answer_ioctl, answer_write} {}

FakeQueues::FakeQueues(rxe::Context& context, ibv_qp_type type, unsigned slots_log2,
                       std::uint64_t send_ops)
    : send(slots_log2, 9), receive(slots_log2, 7), qp(make_nothrow<rxe::Qp>()) {
  qp->plain.context = context.handle();
  qp->plain.qp_type = type;
  qp->plain.state = IBV_QPS_RTS;
  qp->plain.handle = 77;
  qp->max_send_sge = 4;
  qp->max_recv_sge = 4;
  qp->max_inline = 128;
  if (qp->send_ring.map(send.fd(), send.place(), sizeof(rxe::SendElement)) != 0) std::abort();
  if (qp->receive_ring.map(receive.fd(), receive.place(), sizeof(rxe::ReceiveElement)) != 0)
    std::abort();
  qp->doorbell = kernel::make_doorbell(qp->plain.handle, qp->doorbell_reply);
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = type;
  attr.send_ops_flags = send_ops;
  rxe::wire_work_calls(*qp, attr);
}

std::uint64_t SentView::u64(std::size_t offset) const {
  std::uint64_t value;
  std::memcpy(&value, at_ + offset, sizeof value);
  return value;
}

std::uint32_t SentView::u32(std::size_t offset) const {
  std::uint32_t value;
  std::memcpy(&value, at_ + offset, sizeof value);
  return value;
}

}  // namespace verbatim::rxe_test
