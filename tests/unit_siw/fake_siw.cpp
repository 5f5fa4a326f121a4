// SPDX-License-Identifier: BSD-2-Clause
#include "tests/unit_siw/fake_siw.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "providers/siw/hot.hpp"

namespace verbatim::siw_test {
namespace {

FakeSystem& fake_of(const uverbs::System& self) {
  return const_cast<FakeSystem&>(static_cast<const FakeSystem&>(self));
}

int answer_write(const uverbs::System& self, int fd, const void* bytes, std::size_t size) noexcept {
  FakeSystem& fake = fake_of(self);
  kernel::Doorbell bell;
  if (size != sizeof bell) return fake.rest().write(fake.rest(), fd, bytes, size);
  std::memcpy(&bell, bytes, size);
  if (bell.header.command != IB_USER_VERBS_CMD_POST_SEND || bell.wr_count != 0) return EINVAL;
  fake.rung.fetch_add(1);
  if (fake.bells.empty()) return fake.bell.load();
  const int answer = fake.bells.front();
  fake.bells.erase(fake.bells.begin());
  return answer;
}

template <class T>
T read_from(const ib_uverbs_attr& attribute) {
  T value{};
  const void* const at = attribute.len <= 8 ? static_cast<const void*>(&attribute.data)
                                            : reinterpret_cast<const void*>(attribute.data);
  std::memcpy(&value, at, std::min<std::size_t>(attribute.len, sizeof value));
  return value;
}

int answer_ioctl(const uverbs::System& self, int fd, kernel::IoctlCall::Message& message) noexcept {
  FakeSystem& fake = fake_of(self);
  const bool invokes = message.header.object_id == UVERBS_OBJECT_DEVICE &&
                       message.header.method_id == UVERBS_METHOD_INVOKE_WRITE;
  std::uint64_t number = UINT64_MAX;
  ib_uverbs_attr* in = nullptr;
  ib_uverbs_attr* out = nullptr;
  ib_uverbs_attr* driver = nullptr;
  for (int i = 0; invokes && i < message.header.num_attrs; ++i) {
    ib_uverbs_attr& attribute = message.attributes[i];
    if (attribute.attr_id == UVERBS_ATTR_WRITE_CMD) number = attribute.data;
    if (attribute.attr_id == UVERBS_ATTR_CORE_IN) in = &attribute;
    if (attribute.attr_id == UVERBS_ATTR_CORE_OUT) out = &attribute;
    if (attribute.attr_id == UVERBS_ATTR_UHW_IN) driver = &attribute;
  }
  if (number == IB_USER_VERBS_CMD_QUERY_QP && fake.inner.refusal == 0) {
    ++fake.asked;
    ib_uverbs_query_qp_resp told{};
    told.max_dest_rd_atomic = fake.reads;
    told.max_rd_atomic = 2;
    std::memcpy(reinterpret_cast<void*>(out->data), &told, sizeof told);
    out->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return 0;
  }
  if (number == IB_USER_VERBS_CMD_POST_SEND) {
    std::uint32_t bell_of;
    std::memcpy(&bell_of,
                reinterpret_cast<const char*>(in->data) + offsetof(ib_uverbs_post_send, qp_handle),
                sizeof bell_of);
    fake.rung_by_ioctl.push_back(bell_of);
    out->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return 0;
  }
  if (number == IB_USER_VERBS_CMD_MODIFY_QP)
    fake.led.push_back(read_from<ib_uverbs_modify_qp>(*in));
  if (number == IB_USER_VERBS_CMD_REG_MR && driver != nullptr)
    fake.regions.push_back(read_from<siw_ureq_reg_mr>(*driver));
  return fake.rest().ioctl(fake.rest(), fd, message);
}

template <class T>
std::vector<unsigned char> bytes_of(const T& value) {
  const auto* const at = reinterpret_cast<const unsigned char*>(&value);
  return {at, at + sizeof value};
}

}  // namespace

FakeSystem::FakeSystem() : uverbs::System{answer_ioctl, answer_write} {}

FakeSiw::FakeSiw() : context(device, 18u, system) {
  constexpr std::size_t kBytes = 4 * kPage;
  UniqueFd file(::memfd_create("siw queues", MFD_CLOEXEC));
  if (!file.valid() || ::ftruncate(file.get(), kBytes) != 0) std::abort();
  void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) std::abort();
  memory_ = static_cast<unsigned char*>(memory);
  context.command_channel.adopt(static_cast<UniqueFd&&>(file));
  context.port_count = 1;
  if (verbs_provider_siw.alloc_pd(context, &pd) != 0) std::abort();
  pd->plain.context = context.handle();
}

FakeSiw::~FakeSiw() {
  if (qp != nullptr && verbs_provider_siw.destroy_qp(*qp) != 0) std::abort();
  if (srq != nullptr && verbs_provider_siw.destroy_srq(*srq) != 0) std::abort();
  if (cq != nullptr && verbs_provider_siw.destroy_cq(*cq) != 0) std::abort();
  if (verbs_provider_siw.dealloc_pd(*pd) != 0) std::abort();
  ::munmap(memory_, 4 * kPage);
}

int FakeSiw::make_cq(siw_uresp_create_cq reply, std::uint32_t cqe) {
  cq_attr.cqe = cqe;
  system.inner.set_driver_reply(bytes_of(reply));
  verbatim::Cq* made = nullptr;
  const int error = verbs_provider_siw.create_cq(context, cq_attr, nullptr, &made);
  if (error == 0) cq = static_cast<siw::Cq*>(made);
  return error;
}

int FakeSiw::make_qp(siw_uresp_create_qp reply, std::uint64_t send_ops) {
  if (cq == nullptr && make_cq() != 0) std::abort();
  qp_attr.pd = &pd->plain;
  qp_attr.send_cq = qp_attr.recv_cq = &cq->plain;
  qp_attr.qp_type = IBV_QPT_RC;
  qp_attr.cap = {6, 3, 4, 2, 0};
  qp_attr.send_ops_flags = send_ops;
  if (srq != nullptr) qp_attr.srq = &srq->plain;
  system.inner.set_driver_reply(bytes_of(reply));
  verbatim::Qp* made = nullptr;
  if (const int error = verbs_provider_siw.create_qp(context, qp_attr, &made)) return error;
  qp = static_cast<siw::Qp*>(made);
  qp->plain.send_cq = qp->plain.recv_cq = &cq->plain;
  qp->plain.qp_type = IBV_QPT_RC;
  qp->plain.state = IBV_QPS_INIT;
  return 0;
}

int FakeSiw::make_srq(siw_uresp_create_srq reply) {
  ibv_srq_init_attr_ex attr{};
  attr.attr = {3, 2, 0};
  attr.srq_type = IBV_SRQT_BASIC;
  attr.pd = &pd->plain;
  system.inner.set_driver_reply(bytes_of(reply));
  verbatim::Srq* made = nullptr;
  const int error = verbs_provider_siw.create_srq(context, attr, &made);
  if (error == 0) srq = static_cast<siw::Srq*>(made);
  return error;
}

void FakeSiw::connect() { qp->plain.state = IBV_QPS_RTS; }

int FakeSiw::poll(int entries) { return siw::poll_cq(&cq->plain, entries, wc); }

bool FakeSiw::complete(std::uint64_t id, unsigned opcode, unsigned status,
                       std::uint64_t qp_number) {
  siw_cqe& at = completion(completed_ % 8);
  const std::atomic_ref flags(at.flags);
  if (flags.load(std::memory_order_acquire) != 0) return false;
  at.id = id;
  at.opcode = static_cast<__u8>(opcode);
  at.status = static_cast<__u16>(status);
  at.bytes = 100;
  at.imm_data = 0;
  at.qp_id = qp_number;
  flags.store(SIW_WQE_VALID, std::memory_order_release);
  ++completed_;
  return true;
}

Request::Request(ibv_wr_opcode opcode, std::uint32_t length) {
  sge = {0x10000, length, 0x77};
  wr.wr_id = 42;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.wr.rdma = {0xabcdef0123456789, 0x99};
}

Posted post(FakeSiw& fake, ibv_send_wr& wr) {
  Posted posted{0, nullptr};
  posted.error = siw::post_send(&fake.qp->plain, &wr, &posted.bad);
  return posted;
}

}  // namespace verbatim::siw_test
