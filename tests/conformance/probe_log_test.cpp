// SPDX-License-Identifier: BSD-2-Clause
//
// What a program hears that asks for what it may not get. Programs probe: libfabric and UCX ask for
// queues and rights until something is refused, and go by the answers. So refusals are no warnings;
// who looks for their reasons sets VERBATIM_LOG=info, and finds each kind once (runtime/README.md).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "tests/support/child.hpp"
#include "tests/support/device.hpp"
#include "tests/support/role.hpp"

namespace verbatim::harness {
namespace {

struct Name {
  char text[64];
};

/// Asks for what no device has, each thing many times. Returns how often it was refused.
int probe(Session& session) {
  int refused = 0;
  const auto note = [&](bool made) { refused += !made; };
  ibv_context* const context = session.context.get();
  const CqHandle cq(ibv_create_cq(context, 16, nullptr, nullptr, 0));
  for (std::uint32_t size = 1u << 30; size >= 1u << 20; size /= 2) {
    ibv_qp_init_attr asked{};
    asked.send_cq = asked.recv_cq = cq.get();
    asked.cap = {1, 1, 1, 1, size};
    asked.qp_type = IBV_QPT_RC;
    note(QpHandle(ibv_create_qp(session.pd.get(), &asked)) != nullptr);
    asked.cap = {size, 1, 1, 1, 0};
    note(QpHandle(ibv_create_qp(session.pd.get(), &asked)) != nullptr);
    asked.cap = {1, 1, 1, 1, 0};
    asked.qp_type = IBV_QPT_RAW_PACKET;
    note(QpHandle(ibv_create_qp(session.pd.get(), &asked)) != nullptr);
  }
  static char bytes[64];
  ibv_td_init_attr thread_domain{};
  thread_domain.comp_mask = 1;
  for (int i = 0; i < 10; ++i) {
    note(MrHandle(ibv_reg_mr_iova2(session.pd.get(), bytes, sizeof bytes, 0, 1u << 19)) != nullptr);
    ibv_cq_init_attr_ex asked{};
    asked.cqe = 16;
    asked.wc_flags = std::uint64_t{1} << 50;
    note(ibv_create_cq_ex(context, &asked) != nullptr);
    asked.wc_flags = 0;
    asked.comp_vector = 1u << 20;
    note(ibv_create_cq_ex(context, &asked) != nullptr);
    ibv_srq_init_attr receives{};
    receives.attr = {1u << 30, 1, 0};
    note(SrqHandle(ibv_create_srq(session.pd.get(), &receives)) != nullptr);
    note(ibv_alloc_td(context, &thread_domain) != nullptr);
    ibv_port_attr port;
    note(ibv_query_port(context, 77, &port) == 0);
  }
  return refused;
}

VBT_ROLE(probes_a_device) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0 || dup2(ends[1], STDERR_FILENO) < 0) return 1;
  Session session(control.receive_value<Name>().text);
  control.send_value(probe(session));
  char text[1 << 14];
  const ssize_t length = ::read(ends[0], text, sizeof text);
  control.send_value(std::vector<std::uint8_t>(text, text + (length < 0 ? 0 : length)));
  return 0;
}

class ProbeLog : public ::testing::TestWithParam<const char*> {
 protected:
  /// The lines of refusals, by what they begin with before the numbers.
  static std::vector<std::string> heard_at(const char* level) {
    Child child("probes_a_device", {{"VERBATIM_LOG", level}, {"VERBATIM_TEST_REFUSALS", "users"}});
    Name name{};
    std::strncpy(name.text, GetParam(), sizeof name.text - 1);
    child.control().send_value(name);
    EXPECT_GT(child.control().receive_value<int>(), 50);
    const auto heard = child.control().receive_value<std::vector<std::uint8_t>>();
    EXPECT_EQ(child.wait().exit_status, 0);
    std::vector<std::string> lines;
    for (auto at = heard.begin(); at != heard.end();) {
      const auto end = std::find(at, heard.end(), '\n');
      lines.emplace_back(at, end);
      at = end == heard.end() ? end : end + 1;
    }
    return lines;
  }
};
RUN_ON_EVERY_DEVICE(ProbeLog);

TEST_P(ProbeLog, IsSilentOfRefusalsUnlessAskedFor) {
  EXPECT_EQ(heard_at("warn"), std::vector<std::string>{});
}

TEST_P(ProbeLog, TellsEachKindOnceWhenAskedFor) {
  std::vector<std::string> lines = heard_at("info");
  EXPECT_FALSE(lines.empty());
  // Of a kind, only the numbers differ.
  for (std::string& line : lines) std::erase_if(line, [](char c) { return c >= '0' && c <= '9'; });
  EXPECT_EQ(std::set(lines.begin(), lines.end()).size(), lines.size())
      << ::testing::PrintToString(lines);
}

}  // namespace
}  // namespace verbatim::harness
