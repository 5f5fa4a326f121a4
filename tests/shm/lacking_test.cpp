// SPDX-License-Identifier: BSD-2-Clause
//
// What shm lacks, the verbs of network adapters: each is refused with EOPNOTSUPP, and the log says
// which one in a line, the first time alone. In a program of its own, in which nothing else asks.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "tests/support/handles.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

struct Verb {
  const char* name;               ///< as the log says it
  std::function<bool()> refused;  ///< calls it; the errno is looked at
};

TEST(Lacking, IsRefusedAndSaidOnceForEachVerb) {
  LogWatch* const watch = LogWatch::instance();
  if (watch == nullptr) GTEST_SKIP() << "the log is not watched (VERBATIM_LOG is set)";
  const AllowedLog asked_for("is not supported by this provider (EOPNOTSUPP)");
  const Session session;
  ibv_context* const context = session.context.get();
  ibv_pd* const pd = session.pd.get();
  const CqHandle cq(ibv_create_cq(context, 4, nullptr, nullptr, 0));
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = cq.get();
  init.cap = {1, 1, 1, 1, 0};
  const QpHandle qp(ibv_create_qp(pd, &init));
  ASSERT_NE(qp, nullptr);
  const Verb verbs[] = {
      {"create_flow",
       [&] {
         ibv_flow_attr wanted{};
         wanted.size = sizeof wanted;
         wanted.port = 1;
         return ibv_create_flow(qp.get(), &wanted) == nullptr;
       }},
      {"create_flow_action_esp",
       [&] {
         ibv_flow_action_esp_attr wanted{};
         return ibv_create_flow_action_esp(context, &wanted) == nullptr;
       }},
      {"create_wq",
       [&] {
         ibv_wq_init_attr wanted{};
         wanted.wq_type = IBV_WQT_RQ;
         wanted.max_wr = wanted.max_sge = 1;
         wanted.pd = pd;
         wanted.cq = cq.get();
         return ibv_create_wq(context, &wanted) == nullptr;
       }},
      {"create_counters",
       [&] {
         ibv_counters_init_attr wanted{};
         return ibv_create_counters(context, &wanted) == nullptr;
       }},
      {"alloc_dmah",
       [&] {
         ibv_dmah_init_attr wanted{};
         return ibv_alloc_dmah(context, &wanted) == nullptr;
       }},
      {"alloc_buf",
       [&] {
         ibv_buf* buffer = nullptr;
         return ibv_alloc_buf(pd, 4096, &buffer) == nullptr;
       }},
  };
  std::size_t before = watch->complaints().size();
  for (const Verb& verb : verbs) {
    for (const bool first : {true, false}) {
      SCOPED_TRACE(std::string(verb.name) + (first ? ", first" : ", again"));
      errno = 0;
      EXPECT_TRUE(verb.refused());
      EXPECT_EQ(errno, EOPNOTSUPP) << std::strerror(errno);
      const std::vector<std::string> said = watch->complaints();
      ASSERT_EQ(said.size(), before + (first ? 1 : 0));
      before = said.size();
      if (first) {
        EXPECT_EQ(said.back(), "verbatim: shm: " + std::string(verb.name) +
                                   " is not supported by this provider (EOPNOTSUPP)");
      }
    }
  }
}

}  // namespace
}  // namespace verbatim::harness
