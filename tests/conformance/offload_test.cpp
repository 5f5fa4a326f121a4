// SPDX-License-Identifier: BSD-2-Clause
//
// What belongs to network adapters: raw packets, flows, work queues, receive side scaling,
// counters, buffers and handles for DMA (man ibv_create_flow, ibv_create_wq,
// ibv_create_rwq_ind_table, ibv_create_counters, ibv_create_flow_action). A device has it whole, or
// says EOPNOTSUPP.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/support/device.hpp"

namespace verbatim::harness {
namespace {

class Offload : public OnDevice {
 protected:
  void SetUp() override { expect_complaints(); }
  /// A null result, and the errno that says why. Ours is one (what it says: shm/lacking_test.cpp);
  /// the kernel's drivers have several.
  void expect_unsupported(const void* made, int also = EPERM) {
    const int error = errno;
    ASSERT_EQ(made, nullptr);
    const bool drivers = std::strncmp(GetParam(), "shm", 3) != 0;
    EXPECT_TRUE(error == EOPNOTSUPP ||
                (drivers && (error == ENOSYS || error == EPERM || error == also)))
        << std::strerror(error);
  }
};
RUN_ON_EVERY_DEVICE(Offload);

TEST_P(Offload, RawPackets) {
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RAW_PACKET;
  init.send_cq = init.recv_cq = cq();
  init.cap = {1, 1, 1, 1, 0};
  errno = 0;
  const QpHandle made(ibv_create_qp(pd(), &init));
  if (!made) return expect_unsupported(nullptr);
  EXPECT_EQ(made->qp_type, IBV_QPT_RAW_PACKET);
}

TEST_P(Offload, Flows) {
  ibv_qp* const made = qp(IBV_QPT_RC, cq());
  ibv_flow_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.port = 1;
  errno = 0;
  ibv_flow* const flow = ibv_create_flow(made, &wanted);
  if (flow == nullptr) return expect_unsupported(nullptr, EINVAL);
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
}

TEST_P(Offload, FlowActions) {
  ibv_flow_action_esp_attr wanted{};
  errno = 0;
  ibv_flow_action* const action = ibv_create_flow_action_esp(context(), &wanted);
  if (action == nullptr) return expect_unsupported(nullptr);
  EXPECT_EQ(ibv_modify_flow_action_esp(action, &wanted), 0);
  EXPECT_EQ(ibv_destroy_flow_action(action), 0);
}

TEST_P(Offload, WorkQueuesAndTheirTables) {
  ibv_wq_init_attr wanted{};
  wanted.wq_type = IBV_WQT_RQ;
  wanted.max_wr = wanted.max_sge = 1;
  wanted.pd = pd();
  wanted.cq = cq();
  errno = 0;
  ibv_wq* const queue = ibv_create_wq(context(), &wanted);
  if (queue == nullptr) {
    expect_unsupported(nullptr);
    ibv_wq unmade{};  // there is none to be had, and only whose it is, is looked at
    unmade.context = context();
    ibv_wq* const one[] = {&unmade};
    ibv_rwq_ind_table_init_attr of_one{};
    of_one.ind_tbl = const_cast<ibv_wq**>(one);
    errno = 0;
    return expect_unsupported(ibv_create_rwq_ind_table(context(), &of_one));
  }
  ibv_wq_attr ready{};
  ready.attr_mask = IBV_WQ_ATTR_STATE;
  ready.wq_state = IBV_WQS_RDY;
  EXPECT_EQ(ibv_modify_wq(queue, &ready), 0);
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_wq_recv(queue, &wr, &bad), 0);
  ibv_rwq_ind_table_init_attr table{};
  table.ind_tbl = const_cast<ibv_wq**>(&queue);
  ibv_rwq_ind_table* const made = ibv_create_rwq_ind_table(context(), &table);
  if (made != nullptr) {
    EXPECT_EQ(ibv_destroy_rwq_ind_table(made), 0);
  }
  EXPECT_EQ(ibv_destroy_wq(queue), 0);
}

TEST_P(Offload, Counters) {
  ibv_counters_init_attr wanted{};
  errno = 0;
  ibv_counters* const made = ibv_create_counters(context(), &wanted);
  if (made == nullptr) return expect_unsupported(nullptr);
  ibv_counter_attach_attr point{};
  EXPECT_NE(ibv_attach_counters_point_flow(made, &point, nullptr), 0);
  std::uint64_t values[1] = {};
  (void)ibv_read_counters(made, values, 1, 0);
  EXPECT_EQ(ibv_destroy_counters(made), 0);
}

TEST_P(Offload, HandlesForDma) {
  ibv_dmah_init_attr wanted{};
  errno = 0;
  ibv_dmah* const made = ibv_alloc_dmah(context(), &wanted);
  if (made == nullptr) return expect_unsupported(nullptr);
  EXPECT_EQ(ibv_dealloc_dmah(made), 0);
}

TEST_P(Offload, RegionsByAttributes) {
  // Not of adapters alone: memory that is given by its address is what ibv_reg_mr takes, at another
  // one for peers what ibv_reg_mr_iova does. They are sent from and written to.
  alignas(64) char bytes[256] = {};
  std::memcpy(bytes, "some words", 10);
  ibv_mr_init_attr wanted{};
  wanted.length = sizeof bytes;
  wanted.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  wanted.comp_mask = IBV_REG_MR_MASK_ADDR;
  wanted.addr = bytes;
  errno = 0;
  const MrHandle here(ibv_reg_mr_ex(pd(), &wanted));
  if (!here) SKIP_IF(unless_unsupported("regions by attributes", errno));
  // The kernel's devices keep a byte's place within its page.
  const std::uint64_t elsewhere_at =
      std::uint64_t{1} << 40 | (reinterpret_cast<std::uintptr_t>(bytes) & 4095);
  wanted.comp_mask |= IBV_REG_MR_MASK_IOVA;
  wanted.iova = elsewhere_at;
  const MrHandle elsewhere(ibv_reg_mr_ex(pd(), &wanted));
  ASSERT_NE(elsewhere, nullptr) << std::strerror(errno);
  ibv_cq* const both = cq();
  const auto [a, b] = connected(IBV_QPT_RC, both);
  const auto writes = [&, by = a](const ibv_mr& to, std::uint64_t address) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(bytes), 10, here->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {address, to.rkey};
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(by, &wr, &bad), 0);
    EXPECT_EQ(poll(both, 1)[0].status, IBV_WC_SUCCESS);
  };
  writes(*here, reinterpret_cast<std::uintptr_t>(bytes) + 64);
  writes(*elsewhere, elsewhere_at + 128);
  EXPECT_EQ(std::memcmp(bytes + 64, bytes, 10), 0);
  EXPECT_EQ(std::memcmp(bytes + 128, bytes, 10), 0);
  for (const MrHandle* made : {&here, &elsewhere}) {
    EXPECT_EQ((*made)->addr, bytes);
    EXPECT_EQ((*made)->length, sizeof bytes);
    EXPECT_EQ((*made)->pd, pd());
  }
}

TEST_P(Offload, BuffersOfTheDevicesChoice) {
  // man ibv_alloc_buf. A device that likes no memory better than other gives ordinary memory
  // (rdma-core 65, libibverbs/dummy_ops.c), so programs need no other way.
  ibv_buf* buffer = nullptr;
  auto* const memory = static_cast<char*>(ibv_alloc_buf(pd(), 10'000, &buffer));
  ASSERT_NE(memory, nullptr) << std::strerror(errno);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
  std::memset(memory, 'a', 5'000);
  std::memset(memory + 5'000, 'b', 5'000);
  {
    ibv_mr_init_attr half{};
    half.length = 5'000;
    half.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    half.comp_mask = IBV_REG_MR_MASK_BUF | IBV_REG_MR_MASK_ADDR;
    half.addr = memory + 5'000;
    half.buf = buffer;
    const MrHandle whole(ibv_reg_buf_mr(pd(), buffer, memory, 10'000, IBV_ACCESS_LOCAL_WRITE));
    ASSERT_NE(whole, nullptr) << std::strerror(errno);
    const MrHandle target(ibv_reg_mr_ex(pd(), &half));
    ASSERT_NE(target, nullptr) << std::strerror(errno);
    const auto [a, b] = connected(IBV_QPT_RC, cq());
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory), 5'000, whole->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {reinterpret_cast<std::uintptr_t>(memory) + 5'000, target->rkey};
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(a, &wr, &bad), 0);
    EXPECT_EQ(poll(a->send_cq, 1)[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(memory[9'999], 'a');

    const auto refused = [&](ibv_mr* made) { return made == nullptr ? errno : 0; };
    const PdHandle other(ibv_alloc_pd(context()));
    EXPECT_EQ(refused(ibv_reg_buf_mr(other.get(), buffer, memory, 64, 0)), EINVAL);
    EXPECT_EQ(refused(ibv_reg_buf_mr(pd(), buffer, memory + 9'999, 2, 0)), EINVAL);
    half.comp_mask |= IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET;
    EXPECT_EQ(refused(ibv_reg_mr_ex(pd(), &half)), EINVAL);
  }
  const int descriptor = ibv_export_buf_dmabuf_fd(buffer);
  EXPECT_TRUE(descriptor >= 0 || errno == ENODATA) << std::strerror(errno);
  if (descriptor >= 0) ::close(descriptor);
  ibv_free_buf(buffer);
}

TEST_P(Offload, BuffersOfTheProgramsChoice) {
  // man ibv_alloc_user_buf: for devices that take queues in memory of the program's.
  alignas(4096) static char memory[4096];
  errno = 0;
  ibv_buf* const buffer = ibv_alloc_user_buf(pd(), memory, sizeof memory, -1);
  if (buffer == nullptr) return expect_unsupported(nullptr);
  ibv_free_user_buf(buffer);
}

TEST_P(Offload, MemoryOfOtherDevices) {
  // man ibv_reg_dmabuf_mr; -1 is no such memory.
  errno = 0;
  ibv_mr* const made = ibv_reg_dmabuf_mr(pd(), 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_EQ(made, nullptr);
  EXPECT_TRUE(errno == EOPNOTSUPP || errno == EBADF || errno == EINVAL) << errno;
}

TEST_P(Offload, ExportedDeviceMemory) {
  ibv_alloc_dm_attr wanted{};
  wanted.length = 4096;
  ibv_dm* const memory = ibv_alloc_dm(context(), &wanted);
  if (memory == nullptr) SKIP_IF(unless_unsupported("device memory", errno));
  errno = 0;
  const int descriptor = ibv_dm_export_dmabuf_fd(memory);
  if (descriptor < 0) {
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  EXPECT_EQ(ibv_free_dm(memory), 0);
}

}  // namespace
}  // namespace verbatim::harness
