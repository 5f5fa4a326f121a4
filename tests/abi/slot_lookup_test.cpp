// SPDX-License-Identifier: BSD-2-Clause
// How the header's inline verbs find a function in somebody else's context: an older library's, a
// newer one's, one without the verb, one without verbs_context at all; and what they answer when
// there is none. The context is made here and the exported functions are fakes: nothing of the
// library is linked.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace {

constexpr size_t kSlotsSince44 = 48;

struct Calls {
  int reg_mr = 0;
  int reg_mr_iova = 0;
  int reg_mr_iova2 = 0;
  int plain_query_port = 0;
  int plain_query_device = 0;
  int plain_create_qp = 0;
  int plain_create_srq = 0;
  int slot = 0;
  size_t size = 0;
} calls;

int query_port_slot(ibv_context*, uint8_t, ibv_port_attr* attr, size_t size) {
  ++calls.slot;
  calls.size = size;
  attr->lid = 7;
  return 0;
}

int advise_slot(ibv_pd*, ibv_advise_mr_advice, uint32_t, ibv_sge*, uint32_t) {
  ++calls.slot;
  return 0;
}

int query_device_slot_answers;
int query_device_slot(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex* attr,
                      size_t size) {
  ++calls.slot;
  calls.size = size;
  if (query_device_slot_answers == 0) attr->max_dm_size = 3;
  return query_device_slot_answers;
}

ibv_qp* create_qp_slot(ibv_context*, ibv_qp_init_attr_ex*) {
  ++calls.slot;
  return nullptr;
}

ibv_srq* create_srq_slot(ibv_context*, ibv_srq_init_attr_ex*) {
  ++calls.slot;
  return nullptr;
}

ibv_wq wq_object;
ibv_wq* create_wq_slot(ibv_context*, ibv_wq_init_attr*) {
  ++calls.slot;
  std::memset(static_cast<void*>(&wq_object), 0xff, sizeof(wq_object));
  return &wq_object;
}

/// A context as a library of some release lays it out, in memory of its own exact size so that a
/// look in front of it is a sanitizer's find: `missing` bytes of slots at its low end do not exist.
class Library {
 public:
  explicit Library(size_t missing = 0)
      : size_(sizeof(verbs_context) - missing),
        memory_(std::calloc(1, size_), &std::free),
        base_(static_cast<char*>(memory_.get())) {
    auto* context = this->context();
    context->abi_compat = __VERBS_ABI_IS_EXTENDED;
    std::memcpy(base_ + size_ - sizeof(ibv_context) - sizeof(size_t), &size_, sizeof(size_));
    pd_.context = context;
  }

  ibv_context* context() {
    return reinterpret_cast<ibv_context*>(base_ + size_ - sizeof(ibv_context));
  }
  ibv_pd* pd() { return &pd_; }

  template <class Function>
  void set(size_t slot_offset, Function* function) {
    std::memcpy(base_ + size_ - (sizeof(verbs_context) - slot_offset), &function, sizeof(function));
  }

 private:
  size_t size_;
  std::unique_ptr<void, void (*)(void*)> memory_;
  char* volatile base_;  // volatile: a program does not see the size of a library's object either
  ibv_pd pd_{};
};

#define SLOT(name) offsetof(verbs_context, name)

class SlotLookup : public ::testing::Test {
 protected:
  void SetUp() override {
    calls = {};
    errno = 0;
    query_device_slot_answers = 0;
  }
};

TEST_F(SlotLookup, AFilledSlotIsCalled) {
  Library library;
  library.set(SLOT(advise_mr), advise_slot);
  EXPECT_EQ(0, ibv_advise_mr(library.pd(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, nullptr, 0));
  EXPECT_EQ(1, calls.slot);
}

TEST_F(SlotLookup, AnEmptySlotIsNotSupported) {
  Library library;
  EXPECT_EQ(EOPNOTSUPP, ibv_advise_mr(library.pd(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, nullptr, 0));
  EXPECT_EQ(nullptr, ibv_alloc_null_mr(library.pd()));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(SlotLookup, ALibraryOfRelease44KeepsItsSlotsWhereTheyWere) {
  Library library(kSlotsSince44);
  library.set(SLOT(advise_mr), advise_slot);
  library.set(SLOT(query_port), query_port_slot);
  EXPECT_EQ(0, ibv_advise_mr(library.pd(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, nullptr, 0));
  ibv_port_attr attr;
  EXPECT_EQ(0, ibv_query_port(library.context(), 1, &attr));
  EXPECT_EQ(2, calls.slot);
}

TEST_F(SlotLookup, ASlotBeyondTheLibrarysObjectIsNotRead) {
  Library library(kSlotsSince44);
  EXPECT_EQ(nullptr, verbs_get_ctx_op(library.context(), reg_mr_ex));
  EXPECT_EQ(nullptr, verbs_get_ctx_op(library.context(), alloc_dmah));  // the nearest one
  Library older(kSlotsSince44 + 2 * sizeof(void*));                     // has no advise_mr either
  EXPECT_EQ(EOPNOTSUPP, ibv_advise_mr(older.pd(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, nullptr, 0));
  older.set(SLOT(alloc_null_mr), advise_slot);  // the first it has
  EXPECT_NE(nullptr, verbs_get_ctx_op(older.context(), alloc_null_mr));
}

TEST_F(SlotLookup, WithoutVerbsContextNothingInFrontIsTouched) {
  // Only an ibv_context, on memory that ends where it begins.
  const std::unique_ptr<void, void (*)(void*)> memory(std::calloc(1, sizeof(ibv_context)),
                                                      &std::free);
  // Volatile: the compiler sees the size and warns of the branch that is not taken.
  ibv_context* volatile made = static_cast<ibv_context*>(memory.get());
  ibv_context* context = made;
  EXPECT_EQ(nullptr, verbs_get_ctx(context));
  ibv_td_init_attr attr{};
  EXPECT_EQ(nullptr, ibv_alloc_td(context, &attr));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(SlotLookup, QueryPortPassesTheCallersSize) {
  Library library;
  library.set(SLOT(query_port), query_port_slot);
  ibv_port_attr attr;
  ASSERT_EQ(0, ibv_query_port(library.context(), 1, &attr));
  EXPECT_EQ(sizeof(attr), calls.size);
  EXPECT_EQ(7, attr.lid);
}

TEST_F(SlotLookup, QueryPortFallsBackToTheShortAttributesAndClearsTheRest) {
  Library library;
  ibv_port_attr attr;
  std::memset(&attr, 0xff, sizeof(attr));
  ASSERT_EQ(0, ibv_query_port(library.context(), 3, &attr));
  EXPECT_EQ(1, calls.plain_query_port);
  EXPECT_EQ(3, attr.lid);  // what the fake wrote
  EXPECT_EQ(0, attr.port_cap_flags2);
  EXPECT_EQ(0u, attr.active_speed_ex);
}

TEST_F(SlotLookup, QueryDeviceExFallsBackAndClearsWhatItDoesNotKnow) {
  for (const int answer : {-1, EOPNOTSUPP, ENOSYS}) {  // -1: no slot
    Library library;
    calls = {};
    query_device_slot_answers = answer;
    if (answer != -1) library.set(SLOT(query_device_ex), query_device_slot);
    ibv_device_attr_ex attr;
    std::memset(&attr, 0xff, sizeof(attr));
    EXPECT_EQ(0, ibv_query_device_ex(library.context(), nullptr, &attr));
    EXPECT_EQ(1, calls.plain_query_device);
    EXPECT_EQ(5, attr.orig_attr.max_qp);
    EXPECT_EQ(0u, attr.phys_port_cnt_ex);
  }
}

TEST_F(SlotLookup, QueryDeviceExPassesSizeAndOtherErrors) {
  Library library;
  library.set(SLOT(query_device_ex), query_device_slot);
  ibv_device_attr_ex attr{};
  EXPECT_EQ(0, ibv_query_device_ex(library.context(), nullptr, &attr));
  EXPECT_EQ(3u, attr.max_dm_size);
  EXPECT_EQ(sizeof(attr), calls.size);
  query_device_slot_answers = EIO;
  EXPECT_EQ(EIO, ibv_query_device_ex(library.context(), nullptr, &attr));
  EXPECT_EQ(0, calls.plain_query_device);
  const ibv_query_device_ex_input unknown{1};
  calls = {};
  EXPECT_EQ(EINVAL, ibv_query_device_ex(library.context(), &unknown, &attr));
  EXPECT_EQ(0, calls.slot);
}

TEST_F(SlotLookup, AQueuePairWithNothingButADomainIsAPlainOne) {
  Library library;
  library.set(SLOT(create_qp_ex), create_qp_slot);
  ibv_qp_init_attr_ex attr{};
  attr.pd = library.pd();
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  ibv_create_qp_ex(library.context(), &attr);
  EXPECT_EQ(1, calls.plain_create_qp);
  EXPECT_EQ(0, calls.slot);
  attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  ibv_create_qp_ex(library.context(), &attr);
  EXPECT_EQ(1, calls.plain_create_qp);
  EXPECT_EQ(1, calls.slot);
}

TEST_F(SlotLookup, ABasicSharedQueueInADomainIsAPlainOne) {
  struct Case {
    uint32_t mask;
    ibv_srq_type type;
    bool plain;
  };
  const Case cases[] = {
      {IBV_SRQ_INIT_ATTR_PD, IBV_SRQT_XRC, true},  // without TYPE the type is not looked at
      {IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC, true},
      {IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_XRC, false},
      {IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC, false},
      {IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ, IBV_SRQT_BASIC, false},
      {0, IBV_SRQT_BASIC, false},
  };
  for (const Case& one : cases) {
    Library library;
    library.set(SLOT(create_srq_ex), create_srq_slot);
    calls = {};
    ibv_srq_init_attr_ex attr{};
    attr.pd = library.pd();
    attr.comp_mask = one.mask;
    attr.srq_type = one.type;
    ibv_create_srq_ex(library.context(), &attr);
    EXPECT_EQ(one.plain, calls.plain_create_srq == 1) << one.mask;
    EXPECT_EQ(one.plain, calls.slot == 0) << one.mask;
  }
}

TEST_F(SlotLookup, ARefusedTagOperationIsTheBadOne) {
  Library library;
  ibv_srq srq{};
  srq.context = library.context();
  ibv_ops_wr request{};
  ibv_ops_wr* bad = nullptr;
  EXPECT_EQ(EOPNOTSUPP, ibv_post_srq_ops(&srq, &request, &bad));
  EXPECT_EQ(&request, bad);
}

TEST_F(SlotLookup, TheHeaderSetsUpWhatCountsAWorkQueuesEvents) {
  Library library;
  library.set(SLOT(create_wq), create_wq_slot);
  int mark = 0;
  ibv_wq_init_attr attr{};
  attr.wq_context = &mark;
  ibv_wq* wq = ibv_create_wq(library.context(), &attr);
  ASSERT_EQ(&wq_object, wq);
  EXPECT_EQ(&mark, wq->wq_context);
  EXPECT_EQ(0u, wq->events_completed);
  EXPECT_EQ(0, pthread_mutex_trylock(&wq->mutex));
  EXPECT_EQ(0, pthread_mutex_unlock(&wq->mutex));
  // Used before it is set up, a condition variable may hang: look at its bytes instead.
  const auto* bytes = reinterpret_cast<const unsigned char*>(&wq->cond);
  EXPECT_TRUE(std::any_of(bytes, bytes + sizeof(wq->cond), [](int byte) { return byte != 0xff; }));
}

TEST_F(SlotLookup, MemoryWindowsOfADeviceWithoutThem) {
  Library library;
  EXPECT_EQ(nullptr, ibv_alloc_mw(library.pd(), IBV_MW_TYPE_1));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(SlotLookup, ABadBindIsRefusedBeforeTheDeviceSeesIt) {
  Library library;
  library.context()->ops.bind_mw = [](ibv_qp*, ibv_mw*, ibv_mw_bind*) { return ++calls.slot, 0; };
  ibv_pd other{};
  ibv_mw window{library.context(), library.pd(), 0, 0, IBV_MW_TYPE_1};
  ibv_mr region{};
  region.pd = library.pd();
  ibv_mw_bind bind{};
  bind.bind_info = {&region, 0, 16, 0};
  EXPECT_EQ(0, ibv_bind_mw(nullptr, &window, &bind));
  bind.bind_info = {nullptr, 0, 0, 0};  // closes the window
  EXPECT_EQ(0, ibv_bind_mw(nullptr, &window, &bind));
  EXPECT_EQ(2, calls.slot);
  bind.bind_info = {nullptr, 0, 16, 0};
  EXPECT_EQ(EINVAL, ibv_bind_mw(nullptr, &window, &bind));
  bind.bind_info = {nullptr, 16, 0, 0};
  EXPECT_EQ(EINVAL, ibv_bind_mw(nullptr, &window, &bind));
  bind.bind_info = {&region, 0, 16, 0};
  region.pd = &other;
  EXPECT_EQ(EPERM, ibv_bind_mw(nullptr, &window, &bind));
  region.pd = library.pd();
  window.type = IBV_MW_TYPE_2;
  EXPECT_EQ(EINVAL, ibv_bind_mw(nullptr, &window, &bind));
  EXPECT_EQ(2, calls.slot);
}

TEST_F(SlotLookup, RegistrationCallsTheOldestFunctionThatCanDoIt) {
  Library library;
  char memory[8];
  ibv_reg_mr(library.pd(), memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(1, calls.reg_mr);
  ibv_reg_mr_iova(library.pd(), memory, sizeof(memory), 0, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(1, calls.reg_mr_iova);
  EXPECT_EQ(0, calls.reg_mr_iova2);
  ibv_reg_mr(library.pd(), memory, sizeof(memory), IBV_ACCESS_RELAXED_ORDERING);
  ibv_reg_mr_iova(library.pd(), memory, sizeof(memory), 0,
                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
  volatile int unknown = IBV_ACCESS_LOCAL_WRITE;
  const int access = unknown;
  ibv_reg_mr(library.pd(), memory, sizeof(memory), access);
  EXPECT_EQ(3, calls.reg_mr_iova2);
  EXPECT_EQ(1, calls.reg_mr);
  EXPECT_EQ(1, calls.reg_mr_iova);
}

TEST_F(SlotLookup, SizesOfGidEntriesArePassed) {
  ibv_gid_entry entries[2];
  EXPECT_EQ(0, ibv_query_gid_ex(nullptr, 1, 0, entries, 0));
  EXPECT_EQ(sizeof(ibv_gid_entry), calls.size);
  calls = {};
  EXPECT_EQ(2, ibv_query_gid_table(nullptr, entries, 2, 0));
  EXPECT_EQ(sizeof(ibv_gid_entry), calls.size);
}

TEST(InlineArithmetic, OnlyTheLowByteOfAnRkeyMoves) {
  EXPECT_EQ(0x12345601u, ibv_inc_rkey(0x12345600u));
  EXPECT_EQ(0x12345600u, ibv_inc_rkey(0x123456ffu));
}

TEST(InlineArithmetic, FlowLabelsFoldIntoThePortRange) {
  EXPECT_EQ(0xc000, ibv_flow_label_to_udp_sport(0));
  EXPECT_EQ(0xffff, ibv_flow_label_to_udp_sport(0x3fff));
  EXPECT_EQ(0xc000 | 0x3f, ibv_flow_label_to_udp_sport(0xfc000));
  EXPECT_EQ(0xffff ^ 0x3f, ibv_flow_label_to_udp_sport(0xfffff));
}

TEST(InlineArithmetic, QueuePairTypesAreBits) {
  EXPECT_EQ(1, ibv_is_qpt_supported(1u << IBV_QPT_UD, IBV_QPT_UD));
  EXPECT_EQ(0, ibv_is_qpt_supported(~(1u << IBV_QPT_RC), IBV_QPT_RC));
}

}  // namespace

// The exported functions that inline verbs call. Defined here, so that no member of the archive is
// linked, under their own names: the macros of the same name stand in front.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

int ibv_query_port(ibv_context*, uint8_t port_num, _compat_ibv_port_attr* attr) {
  ++calls.plain_query_port;
  const uint16_t lid = port_num;
  std::memcpy(reinterpret_cast<char*>(attr) + offsetof(ibv_port_attr, lid), &lid, sizeof(lid));
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attr) {
  ++calls.plain_query_device;
  attr->max_qp = 5;
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd*, ibv_qp_init_attr*) {
  ++calls.plain_create_qp;
  return nullptr;
}

ibv_srq* ibv_create_srq(ibv_pd*, ibv_srq_init_attr*) {
  ++calls.plain_create_srq;
  return nullptr;
}

ibv_mr* ibv_reg_mr(ibv_pd*, void*, size_t, int) {
  ++calls.reg_mr;
  return nullptr;
}

ibv_mr* ibv_reg_mr_iova(ibv_pd*, void*, size_t, uint64_t, int) {
  ++calls.reg_mr_iova;
  return nullptr;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd*, void*, size_t, uint64_t, unsigned int) {
  ++calls.reg_mr_iova2;
  return nullptr;
}

int _ibv_query_gid_ex(ibv_context*, uint32_t, uint32_t, ibv_gid_entry*, uint32_t, size_t size) {
  calls.size = size;
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry*, size_t max_entries, uint32_t,
                             size_t size) {
  calls.size = size;
  return static_cast<ssize_t>(max_entries);
}
