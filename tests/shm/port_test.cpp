// SPDX-License-Identifier: BSD-2-Clause
//
// The port goes down when somebody removes the folder where processes meet, or a name in it, and
// comes back (IBTA 11.6.3.3; man ibv_get_async_event): a logout, a cleaner of /tmp, a hand. Who is
// connected stays so.
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/support/expect.hpp"
#include "tests/support/fabric_directory.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::string> kAsWeAre;

ibv_port_state port_state(ibv_context* context) {
  ibv_port_attr port{};
  EXPECT_EQ(ibv_query_port(context, 1, &port), 0);
  return port.state;
}

/// Patient: the other end may have yet to be told, and the folder to be made anew.
Link patient() {
  Link link;
  link.timeout = 18;
  return link;
}

class Port : public ::testing::Test {
 protected:
  const AllowedLog goes_down{"The port is down"};
  const AllowedLog comes_back{"the port is active"};

  static std::string folder() { return getenv("VERBATIM_FABRIC"); }
  static std::string aside() { return folder() + "-aside"; }
  static void remove_folder() {
    fs::rename(folder(), aside());
    remove_aside();
  }
  static void remove_aside() { remove_used(aside()); }
  /// Somebody may be looking, and make a name anew before the folder goes too.
  static void remove_used(const std::string& path) {
    EXPECT_TRUE(wait_until([&] {
      std::error_code in_use;
      fs::remove_all(path, in_use);
      return !in_use;
    }));
  }

  /// The next event, which names port 1.
  static ibv_event_type next_event(ibv_context* context) {
    pollfd watched{context->async_fd, POLLIN, 0};
    if (::poll(&watched, 1, kDefaultWaitMs) != 1) return IBV_EVENT_WQ_FATAL;
    ibv_async_event event{};
    EXPECT_EQ(ibv_get_async_event(context, &event), 0);
    EXPECT_EQ(event.element.port_num, 1);
    ibv_ack_async_event(&event);
    return event.event_type;
  }
  static void expect_healed(ibv_context* context) {
    EXPECT_EQ(next_event(context), IBV_EVENT_PORT_ERR);
    EXPECT_EQ(next_event(context), IBV_EVENT_PORT_ACTIVE);
    EXPECT_EQ(port_state(context), IBV_PORT_ACTIVE);
  }
  static void expect_healed(Side& side) {
    EXPECT_EQ(side.take_async_event().type, IBV_EVENT_PORT_ERR);
    EXPECT_EQ(side.take_async_event().type, IBV_EVENT_PORT_ACTIVE);
  }
  static void expect_they_talk(Side& a, const QpInfo& qa, Side& b, const QpInfo& qb) {
    const RegionInfo from = a.allocate(MemoryKind::kOrdinary, 64);
    const RegionInfo into = b.allocate(MemoryKind::kOrdinary, 64);
    a.fill(from, 0, 64, 1);
    expect_posted(b.post_receive(qb, receive(1, slice(into, 0, 64))));
    expect_posted(a.post_send(qa, send(2, slice(from, 0, 64))));
    expect_wc(a.poll_sends(qa, 1)[0], 2, IBV_WC_SEND, qa);
    expect_receive(b.poll_receives(qb, 1)[0], 1, 64, qb);
    EXPECT_EQ(b.mismatch(into, 0, 64, 1), -1);
  }
  static void expect_they_meet(Side& a, Side& b) {
    const QpInfo qa = a.create_qp();
    const QpInfo qb = b.create_qp();
    a.connect(qa, qb, patient());
    b.connect(qb, qa, patient());
    expect_they_talk(a, qa, b, qb);
    expect_they_talk(b, qb, a, qa);
  }
  /// Of a side that has made one queue pair.
  static std::string name_of(const QpInfo& qp) {
    char name[8];
    std::snprintf(name, sizeof name, "q%03x", qp.qpn >> 12);
    return folder() + "/" + name;
  }
};

TEST_F(Port, OfAFolderThatWasRemovedGoesDownAndComesBack) {
  Side side(std::make_shared<Session>());
  const QpInfo qp = side.create_qp();
  ibv_context* const context = side.here().context();
  remove_folder();
  EXPECT_EQ(port_state(context), IBV_PORT_DOWN);
  expect_healed(context);
  EXPECT_TRUE(fs::is_socket(name_of(qp))) << "under the same number";
}

TEST_F(Port, OfANameThatWasRemovedGoesDownAndComesBack) {
  Side side(std::make_shared<Session>());
  const QpInfo qp = side.create_qp();
  fs::remove(name_of(qp));
  EXPECT_EQ(port_state(side.here().context()), IBV_PORT_DOWN);
  expect_healed(side.here().context());
  Side other(kAsWeAre);
  expect_they_meet(side, other);
}

TEST_F(Port, EveryContextOfTheProcessHearsOfIt) {
  const Session first;
  const Session second;
  remove_folder();
  EXPECT_EQ(port_state(first.context.get()), IBV_PORT_DOWN);
  expect_healed(first.context.get());
  expect_healed(second.context.get());
}

TEST_F(Port, ThatNobodyAsksAboutIsLookedAtWhileAnotherProcessIsConnected) {
  Pair pair({Placement::kTwoProcesses});
  expect_they_talk(pair.a, pair.qa, pair.b, pair.qb);  // so they have met
  remove_folder();
  expect_healed(pair.a);
  expect_healed(pair.b);
}

TEST_F(Port, WhoMetBeforeOrAfterOrNeverMeetsAgain) {
  Side a(kAsWeAre);
  Side b(kAsWeAre);
  const QpInfo qa = a.create_qp();
  const QpInfo qb = b.create_qp();
  remove_folder();
  a.connect(qa, qb, patient());
  b.connect(qb, qa, patient());
  expect_they_talk(a, qa, b, qb);
  Side newcomer(kAsWeAre);
  expect_they_meet(newcomer, a);
  expect_they_meet(b, newcomer);
}

TEST_F(Port, AQueuePairIsMadeRightAfterTheFolderWent) {
  Side side(std::make_shared<Session>());
  remove_folder();
  Side other(kAsWeAre);
  expect_they_meet(side, other);
}

TEST_F(Port, StaysDownWhileALinkIsInTheWayAndConnectionsGoOn) {
  const AllowedLog says_why("symbolic link");
  Pair pair({Placement::kTwoProcesses});
  ibv_context* const context = pair.a.here().context();
  // Else they may not have met before the folder goes.
  expect_they_talk(pair.a, pair.qa, pair.b, pair.qb);
  fs::create_directory(folder() + "-elsewhere");
  fs::rename(folder(), aside());
  fs::create_directory_symlink(folder() + "-elsewhere", folder());
  remove_aside();
  EXPECT_EQ(port_state(context), IBV_PORT_DOWN);
  EXPECT_EQ(next_event(context), IBV_EVENT_PORT_ERR);
  EXPECT_EQ(port_state(context), IBV_PORT_DOWN);
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(context, 1, &port), 0);
  EXPECT_EQ(port.phys_state, 2) << "Polling";
  expect_they_talk(pair.a, pair.qa, pair.b, pair.qb);
  EXPECT_TRUE(fs::is_empty(folder() + "-elsewhere"));
  fs::remove(folder());
  fs::remove(folder() + "-elsewhere");
  EXPECT_EQ(next_event(context), IBV_EVENT_PORT_ACTIVE);
  EXPECT_EQ(port_state(context), IBV_PORT_ACTIVE);
}

TEST_F(Port, StaysDownWhileAnotherProcessHasOurNumbers) {
  const AllowedLog says_why("another process has taken our name");
  Side side(std::make_shared<Session>());
  const std::string name = name_of(side.create_qp());
  ibv_context* const context = side.here().context();
  fs::rename(folder(), aside());
  fs::create_directory(folder());
  fs::permissions(folder(), fs::perms(0700));
  const int another = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", name.c_str());
  ASSERT_EQ(::bind(another, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(another, 1), 0);
  remove_aside();

  EXPECT_EQ(port_state(context), IBV_PORT_DOWN);
  EXPECT_EQ(next_event(context), IBV_EVENT_PORT_ERR);
  EXPECT_EQ(port_state(context), IBV_PORT_DOWN);
  ::close(another);  // its name is that of a dead process now
  EXPECT_EQ(next_event(context), IBV_EVENT_PORT_ACTIVE);
  EXPECT_EQ(port_state(context), IBV_PORT_ACTIVE);
}

TEST_F(Port, AFilesXrcDomainIsHeldAgain) {
  const AllowedLog says_why("the file's domain exists");
  const std::string path = folder() + "-file";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  Side other(kAsWeAre);
  other.call<&Endpoint::use_xrcd_of>(path);
  remove_folder();
  (void)other.create_qp();  // so it looks
  const Session session;
  ibv_xrcd_init_attr attr{};
  attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attr.fd = file;
  attr.oflags = O_CREAT | O_EXCL;
  EXPECT_EQ(ibv_open_xrcd(session.context.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ::close(file);
  fs::remove(path);
}

TEST_F(Port, OfAParentIsNotHealedByAForkedChild) {
#ifdef VBT_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads";
#endif
  Side side(std::make_shared<Session>());
  const QpInfo qp = side.create_qp();
  ibv_context* const context = side.here().context();
  remove_folder();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    ibv_port_attr port{};
    _exit(ibv_query_port(context, 1, &port) == 0 && !fs::exists(folder()) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(port_state(context), IBV_PORT_DOWN);
  expect_healed(context);
  EXPECT_TRUE(fs::is_socket(name_of(qp)));
}

/// XDG_RUNTIME_DIR goes with a logout, and comes back with the next login.
TEST_F(Port, ALogoutAndALoginLeaveNobodyAlone) {
  char run[] = "/dev/shm/vbt-run-XXXXXX";
  ASSERT_NE(mkdtemp(run), nullptr);
  const std::string fabric = fs::path(folder()).filename();
  const std::map<std::string, std::string> environment{{"VERBATIM_FABRIC", fabric},
                                                       {"XDG_RUNTIME_DIR", run}};
  {
    Side a(environment);
    Side b(environment);
    expect_they_meet(a, b);
    remove_used(run);
    expect_healed(a);
    expect_healed(b);
    Side meanwhile(environment);
    expect_they_meet(meanwhile, a);

    fs::create_directory(run);
    Side after(environment);
    expect_healed(a);
    expect_they_meet(after, a);
    expect_they_meet(b, after);
    EXPECT_TRUE(fs::exists(run + ("/verbatim-" + std::to_string(geteuid())) + "/" + fabric));
  }
  remove_used("/tmp/verbatim-" + std::to_string(geteuid()) + "/" + fabric);
  remove_used(run);
}

}  // namespace
}  // namespace verbatim::harness
