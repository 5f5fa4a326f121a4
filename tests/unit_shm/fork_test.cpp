// SPDX-License-Identifier: BSD-2-Clause
// A process of the fabric forks: the child harms neither the parent nor its peers, and can
// join it by itself.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/hostile/datagram_end.hpp"
#include "tests/support/child.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/fabric_directory.hpp"
#include "tests/support/forked_child.hpp"
#include "tests/support/role.hpp"
#include "tests/unit_shm/process_events.hpp"

namespace verbatim::shm {
namespace {

struct Findings {
  bool child_worked;
  bool own_node_differs;
  bool memory_intact;
  bool names_intact;
  bool still_served;
};

/// Does the service thread answer, for the time that is said?
bool is_served(std::uint32_t times) {
  Peer& self = Process::get().self();
  self.segment.doorbells().cq_wake.ring(4);
  self.wake_service();
  return harness::wait_until([&] { return ProcessEvents::get().cq_wakes == times; });
}

VBT_ROLE(forking_node) {
  if (Process::start(ProcessEvents::hooks()) != 0) return 1;
  Process& process = Process::get();
  std::uint32_t index = 0;
  std::uint32_t qpn = 0;
  if (process.take_qpn(index, qpn) != 0) return 2;
  const std::uint64_t offset = process.segment().allocate(4096);
  auto* const words = process.segment().at<std::uint64_t>(offset);
  words[0] = 7;
  const std::uint64_t identity = process.segment().head().identity;
  const std::size_t names = harness::fabric_contents().size();

  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return 3;
  // Its thread is up when it has answered: AddressSanitizer's runtime has a lock while one begins,
  // and at a fork the child would have it for good.
  if (!is_served(1)) return 4;
  const pid_t child = fork();
  if (child == 0) {
    // What programs do at the end of a child: take their inherited objects apart.
    bool good = words[0] == 7;
    words[0] = 99;
    process.segment().doorbells().service.ring(1);
    process.give_qpn(index);
    process.segment().release(offset, 4096);
    good = good && Process::start(ProcessEvents::hooks()) == 0;  // and one of its own
    std::uint64_t own = Process::get().segment().head().identity;
    std::uint32_t own_qpn = 0;
    good = good && Process::get().take_qpn(index, own_qpn) == 0 && own_qpn >> 12 != qpn >> 12;
    good = good && write(pipe_ends[1], &own, sizeof own) == sizeof own;
    Process::stop();
    Process::stop();
    _exit(good ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  std::uint64_t own = 0;
  const bool told = read(pipe_ends[0], &own, sizeof own) == sizeof own;
  Findings findings{};
  findings.child_worked = told && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  findings.own_node_differs = own != identity;
  findings.memory_intact =
      words[0] == 7 && process.segment().doorbells().service.summary.load() == 0;
  findings.names_intact = harness::fabric_contents().size() == names;
  findings.still_served = is_served(2);
  control.send_value(findings);
  Process::stop();
  return 0;
}

TEST(Fork, AChildHarmsNobodyAndMayHaveItsOwnNode) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads";
#endif
  harness::Child child("forking_node");
  const auto findings = child.control().receive_value<Findings>();
  EXPECT_TRUE(findings.child_worked);
  EXPECT_TRUE(findings.own_node_differs);
  EXPECT_TRUE(findings.memory_intact);
  EXPECT_TRUE(findings.names_intact);
  EXPECT_TRUE(findings.still_served);
  EXPECT_EQ(child.wait().exit_status, 0);
}

/// Leaves by exit without a stop, as most programs do.
VBT_ROLE(careless_node) {
  if (Process::start(ProcessEvents::hooks()) != 0) return 1;
  std::uint32_t index = 0;
  std::uint32_t qpn = 0;
  if (Process::get().take_qpn(index, qpn) != 0) return 2;
  control.send_value(qpn);
  return 0;
}

/// What peers walk to find who asks to connect.
std::uint32_t count_endpoints_shown() {
  constexpr std::uint32_t kMost = 64;
  OwnSegment& segment = Process::get().segment();
  std::uint32_t count = 0;
  for (std::uint32_t link = segment.head().endpoint_link.load(); link != 0 && count < kMost;
       ++count)
    link = segment.qps()[link - 1].endpoint_link;
  return count;
}

/// Two ends of this process, of which one has spoken to the other: over an endpoint.
struct Acquainted {
  harness::Session session;
  hostile::DatagramEnd hears{session}, speaks{session};

  Acquainted() {
    ibv_ah_attr path{};
    path.port_num = 1;
    path.dlid = session.port.lid;
    const harness::AhHandle ah(ibv_create_ah(session.pd.get(), &path));
    speaks.send(ah.get(), hears.qpn(), 8);
  }
};

TEST(Fork, AChildShowsNoneOfItsParentsEndpoints) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads";
#endif
  const Acquainted parents;
  ASSERT_EQ(count_endpoints_shown(), 1u);
  EXPECT_EQ(harness::run_in_child([] {
              const Acquainted childs;
              return count_endpoints_shown() == 1 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(count_endpoints_shown(), 1u);
}

TEST(Fork, AProcessThatOnlyExitsLeavesNoName) {
  harness::Child child("careless_node");
  const auto qpn = child.control().receive_value<std::uint32_t>();
  EXPECT_NE(qpn, 0u);
  EXPECT_EQ(child.wait().exit_status, 0);
  char gone[8];
  std::snprintf(gone, sizeof gone, "q%03x", qpn >> kQpnBlockBits);
  for (const std::string& name : harness::fabric_contents()) EXPECT_NE(name, gone);
}

}  // namespace
}  // namespace verbatim::shm
