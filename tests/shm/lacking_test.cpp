// SPDX-License-Identifier: BSD-2-Clause
//
// What shm lacks, the verbs of network adapters: each is refused with EOPNOTSUPP, and the log says
// which one in a line, the first time alone. In a program of its own, in which nothing else asks.
//
// Verbs on objects that cannot be had are called with a handle that the test makes: of what stands
// in it, they look at the context and the parents before they ask the provider.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/handles.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

struct Verb {
  const char* name;             ///< as the log says it
  std::function<int()> answer;  ///< calls it; the errno
  const char* reason = "";      ///< with which the line ends; the verb says it alone
  std::string said =
      "shm: " + std::string(name) + " is not supported by this provider (EOPNOTSUPP)" + reason;
};

constexpr const char* kNoSteering = ": it steers no packets";
constexpr const char* kNoWorkQueues = ": it has no work queues to spread packets over";
constexpr const char* kNoCounters = ": it keeps no counters for programs";
constexpr const char* kNoHints = ": it takes no hints about caches";
constexpr const char* kNoRate = ": it sends at no rate that could be set";
constexpr const char* kNoTags = ": it matches no tags";

int errno_of(const void* made) { return made == nullptr ? errno : 0; }

/// What fstatfs(2) takes for a dma-buf.
int passed_for_dma_buffer = -1;

/// A public handle, with zeros behind it where the library's own objects have more.
template <class Handle>
struct HandMade {
  alignas(64) Handle handle{};
  char behind[448] = {};
};

class Lacking : public ::testing::Test {
 protected:
  void SetUp() override {
    if (LogWatch::instance() == nullptr) {
      GTEST_SKIP() << "the log is not watched (VERBATIM_LOG is set)";
    }
    AllowedLog("not supported");
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.send_cq = init.recv_cq = cq_.get();
    init.cap = {1, 1, 1, 1, 0};
    qp_.reset(ibv_create_qp(pd(), &init));
    ASSERT_NE(qp_, nullptr);
  }
  ibv_context* context() const { return session_.context.get(); }
  ibv_pd* pd() const { return session_.pd.get(); }

  /// The lines of the library that `call` brings about.
  std::vector<std::string> said_by(const std::function<void()>& call) {
    const std::size_t before = LogWatch::instance()->complaints().size();
    call();
    std::vector<std::string> said = LogWatch::instance()->complaints();
    return {said.begin() + static_cast<std::ptrdiff_t>(before), said.end()};
  }
  /// Said once, or each time where it is the log that tells a kind once (conformance:ProbeLog).
  void expect_refused_and_said(const Verb& verb) {
    for (const bool first : {true, false}) {
      SCOPED_TRACE(std::string(verb.name) + (first ? ", first" : ", again"));
      errno = 0;
      int answer = 0;
      const std::vector<std::string> said = said_by([&] { answer = verb.answer(); });
      EXPECT_EQ(answer, EOPNOTSUPP) << std::strerror(answer);
      if (first || !said.empty()) {
        EXPECT_EQ(said, std::vector{"verbatim: " + verb.said});
      }
    }
  }

  const Session session_;
  const CqHandle cq_{ibv_create_cq(context(), 4, nullptr, nullptr, 0)};
  QpHandle qp_;
};

TEST_F(Lacking, IsRefusedAndSaidForEachVerb) {
  const Verb verbs[] = {
      {"create_flow",
       [&] {
         ibv_flow_attr wanted{};
         wanted.size = sizeof wanted;
         wanted.port = 1;
         return errno_of(ibv_create_flow(qp_.get(), &wanted));
       },
       kNoSteering},
      {"create_flow_action_esp",
       [&] {
         ibv_flow_action_esp_attr wanted{};
         return errno_of(ibv_create_flow_action_esp(context(), &wanted));
       },
       kNoSteering},
      {"create_wq",
       [&] {
         ibv_wq_init_attr wanted{};
         wanted.wq_type = IBV_WQT_RQ;
         wanted.max_wr = wanted.max_sge = 1;
         wanted.pd = pd();
         wanted.cq = cq_.get();
         return errno_of(ibv_create_wq(context(), &wanted));
       },
       kNoWorkQueues},
      {"create_counters",
       [&] {
         ibv_counters_init_attr wanted{};
         return errno_of(ibv_create_counters(context(), &wanted));
       },
       kNoCounters},
      {"alloc_dmah",
       [&] {
         ibv_dmah_init_attr wanted{};
         return errno_of(ibv_alloc_dmah(context(), &wanted));
       },
       kNoHints},
      {"modify_qp_rate_limit",
       [&] {
         ibv_qp_rate_limit_attr slow{};
         slow.rate_limit = 1000;
         return ibv_modify_qp_rate_limit(qp_.get(), &slow);
       },
       kNoRate},
      {"post_srq_ops",
       [&] {
         ibv_srq_init_attr wanted{nullptr, {1, 1, 0}};
         const SrqHandle srq(ibv_create_srq(pd(), &wanted));
         ibv_ops_wr sync{};
         sync.opcode = IBV_WR_TAG_SYNC;
         ibv_ops_wr* bad = nullptr;
         const int answer = ibv_post_srq_ops(srq.get(), &sync, &bad);
         EXPECT_EQ(bad, &sync);
         return answer;
       },
       kNoTags},
  };
  for (const Verb& verb : verbs) expect_refused_and_said(verb);
}

// As an attribute of ibv_modify_qp it is one that RC does not take, as on every device.
TEST_F(Lacking, TakesNoRateInModifyQp) {
  ibv_qp_attr slow{};
  slow.qp_state = IBV_QPS_INIT;
  slow.port_num = 1;
  slow.rate_limit = 1000;
  const AllowedLog as_it_should("IBV_QP_RATE_LIMIT");
  const auto said = said_by([&] {
    EXPECT_EQ(ibv_modify_qp(qp_.get(), &slow,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS |
                                IBV_QP_RATE_LIMIT),
              EINVAL);
  });
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(said[0].ends_with(": RESET to INIT does not take IBV_QP_RATE_LIMIT")) << said[0];
}

TEST_F(Lacking, MapsNoDmaBufferThatIsNoneOrThatItsExporterKeeps) {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  const int pages = memfd_create("pages", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(pages, 8192), 0);
  ASSERT_EQ(fcntl(pages, F_ADD_SEALS, F_SEAL_WRITE), 0);
  const auto refused = [&](int fd, std::uint64_t offset, int error, const std::string& line) {
    const auto said = said_by([&] {
      errno = 0;
      EXPECT_EQ(ibv_reg_dmabuf_mr(pd(), offset, 4096, 0, fd, IBV_ACCESS_LOCAL_WRITE), nullptr);
      EXPECT_EQ(errno, error);
    });
    EXPECT_EQ(said, std::vector{"verbatim: reg_dmabuf_mr: " + line});
  };
  const AllowedLog as_it_should("reg_dmabuf_mr");
  refused(10'000, 0, EBADF, "descriptor 10000: Bad file descriptor");
  for (const int fd : {nothing, pages})
    refused(fd, 0, EINVAL, "descriptor " + std::to_string(fd) + " is not a dma-buf");
  passed_for_dma_buffer = nothing;
  refused(nothing, 0, EINVAL, "[0, + 4096) is not within the 0 bytes of the dma-buf");
  passed_for_dma_buffer = pages;
  refused(pages, 8000, EINVAL, "[8000, + 4096) is not within the 8192 bytes of the dma-buf");
  refused(pages, 4096, EOPNOTSUPP,
          "the exporter of this dma-buf lets no processor map it (Operation not permitted)");
  passed_for_dma_buffer = -1;
  close(nothing);
  close(pages);
}

TEST_F(Lacking, IsRefusedAndSaidForTypesOfQueues) {
  for (const ibv_qp_type type : {IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER}) {
    expect_refused_and_said({"create_qp",
                             [&] {
                               ibv_qp_init_attr other{};
                               other.qp_type = type;
                               other.send_cq = other.recv_cq = cq_.get();
                               other.cap = {1, 1, 1, 1, 0};
                               return errno_of(ibv_create_qp(pd(), &other));
                             },
                             "",
                             "shm: create_qp: queue pairs are RC, UC, UD or XRC; type " +
                                 std::to_string(type) + " is not supported"});
  }
  expect_refused_and_said(
      {"create_srq",
       [&] {
         ibv_srq_init_attr_ex matching{};
         matching.attr = {4, 1, 0};
         matching.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                              IBV_SRQ_INIT_ATTR_TM;
         matching.srq_type = IBV_SRQT_TM;
         matching.pd = pd();
         matching.cq = cq_.get();
         matching.tm_cap = {4, 1};
         return errno_of(ibv_create_srq_ex(context(), &matching));
       },
       "", "shm: create_srq: shared receive queues are basic or XRC; type 2 is not supported"});
}

TEST_F(Lacking, IsRefusedAndSaidOnObjectsThatCannotBeHad) {
  HandMade<ibv_wq> wq;
  HandMade<ibv_rwq_ind_table> table;
  HandMade<ibv_flow> flow;
  HandMade<ibv_flow_action> action;
  HandMade<ibv_counters> counters;
  HandMade<ibv_dmah> dmah;
  wq.handle.context = table.handle.context = flow.handle.context = action.handle.context =
      counters.handle.context = dmah.handle.context = context();
  wq.handle.pd = pd();
  wq.handle.cq = cq_.get();
  const Verb verbs[] = {
      {"modify_wq",
       [&] {
         ibv_wq_attr ready{};
         ready.attr_mask = IBV_WQ_ATTR_STATE;
         ready.wq_state = IBV_WQS_RDY;
         return ibv_modify_wq(&wq.handle, &ready);
       },
       kNoWorkQueues},
      {"destroy_wq", [&] { return ibv_destroy_wq(&wq.handle); }, kNoWorkQueues},
      {"create_rwq_ind_table",
       [&] {
         ibv_wq* queues[] = {&wq.handle};
         ibv_rwq_ind_table_init_attr wanted{};
         wanted.ind_tbl = queues;
         return errno_of(ibv_create_rwq_ind_table(context(), &wanted));
       },
       kNoWorkQueues},
      {"destroy_rwq_ind_table", [&] { return ibv_destroy_rwq_ind_table(&table.handle); },
       kNoWorkQueues},
      {"destroy_flow", [&] { return ibv_destroy_flow(&flow.handle); }, kNoSteering},
      {"modify_flow_action_esp",
       [&] {
         ibv_flow_action_esp_attr wanted{};
         return ibv_modify_flow_action_esp(&action.handle, &wanted);
       },
       kNoSteering},
      {"destroy_flow_action", [&] { return ibv_destroy_flow_action(&action.handle); }, kNoSteering},
      {"attach_counters_point_flow",
       [&] {
         ibv_counter_attach_attr wanted{};
         return ibv_attach_counters_point_flow(&counters.handle, &wanted, &flow.handle);
       },
       kNoSteering},
      {"read_counters",
       [&] {
         std::uint64_t values[1] = {};
         return ibv_read_counters(&counters.handle, values, 1, 0);
       },
       kNoCounters},
      {"destroy_counters", [&] { return ibv_destroy_counters(&counters.handle); }, kNoCounters},
      {"dealloc_dmah", [&] { return ibv_dealloc_dmah(&dmah.handle); }, kNoHints},
  };
  for (const Verb& verb : verbs) expect_refused_and_said(verb);
}

TEST_F(Lacking, IsRefusedAndSaidOfWhatAQueuePairIsToDoBesides) {
  ibv_qp_init_attr_ex asked{};
  asked.qp_type = IBV_QPT_UD;
  asked.send_cq = asked.recv_cq = cq_.get();
  asked.cap = {1, 1, 1, 1, 0};
  asked.pd = pd();
  asked.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH;
  asked.rx_hash_conf.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
  const auto refused = [&] { return errno_of(ibv_create_qp_ex(context(), &asked)); };
  expect_refused_and_said({"create_qp_ex", refused, "",
                           "shm: create_qp: receives are spread by no hash (RSS); not supported"});
  asked.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
  asked.max_tso_header = 64;
  expect_refused_and_said(
      {"create_qp_ex", refused, "",
       "shm: create_qp: messages are not segmented (max_tso_header); not supported"});
  asked.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  asked.create_flags = IBV_QP_CREATE_SCATTER_FCS;
  expect_refused_and_said(
      {"create_qp_ex", refused, "",
       "shm: create_qp: of create_flags there is BLOCK_SELF_MCAST_LB; not supported"});
  asked.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
  const QpHandle made(ibv_create_qp_ex(context(), &asked));
  EXPECT_NE(made, nullptr) << "no member of a group hears itself";
}

// Messages are copied as the C library likes: who watches the last byte knows nothing of the
// others.
TEST_F(Lacking, PromisesNoOrderOfAMessagesBytes) {
  for (const ibv_wr_opcode op : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    EXPECT_EQ(ibv_query_qp_data_in_order(qp_.get(), op, 0), 0) << op;
    EXPECT_EQ(ibv_query_qp_data_in_order(qp_.get(), op, IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS), 0)
        << op;
  }
}

// A work queue brings the call that posts to it, and whoever has none of the one has none of the
// other: the header's function only hands on.
TEST_F(Lacking, PostsToAWorkQueueByTheQueuesOwnCall) {
  HandMade<ibv_wq> wq;
  wq.handle.context = context();
  wq.handle.post_recv = [](ibv_wq*, ibv_recv_wr* first, ibv_recv_wr** bad) {
    *bad = first;
    return EOPNOTSUPP;
  };
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_wq_recv(&wq.handle, &wr, &bad), EOPNOTSUPP);
  EXPECT_EQ(bad, &wr);
}

}  // namespace

extern "C" {
int __real_fstatfs(int fd, struct statfs* about);
int __wrap_fstatfs(int fd, struct statfs* about);
int __wrap_fstatfs(int fd, struct statfs* about) {
  const int answer = __real_fstatfs(fd, about);
  if (answer == 0 && fd == passed_for_dma_buffer) about->f_type = 0x444d4142;  // DMA_BUF_MAGIC
  return answer;
}
}

}  // namespace verbatim::harness
