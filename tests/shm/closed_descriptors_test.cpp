// SPDX-License-Identifier: BSD-2-Clause
//
// An application that closes descriptors of the library's behind its back, as daemons do that close
// all they do not know, loses the device, and is told so (IBTA 11.6.3.3; man ibv_get_async_event);
// what it opens then under the same numbers is its own. Each in a process of its own, which says
// what it found wrong.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/support/child.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/role.hpp"

namespace verbatim::harness {
namespace {

namespace fs = std::filesystem;

enum class What : int { kEpoll, kListener, kWakeSocket, kFolder, kSegment, kAll };

/// What the process finds wrong, for the test to print.
struct Findings {
  std::string text;
  void expect(bool is_right, const std::string& sentence) {
    if (!is_right) text += sentence + " (" + std::strerror(errno) + ")\n";
  }
};

bool is_socket(int fd, int option, int value) {
  int found = 0;
  socklen_t length = sizeof found;
  return ::getsockopt(fd, SOL_SOCKET, option, &found, &length) == 0 && found == value;
}

bool is_that(int fd, const std::string& link, What what) {
  switch (what) {
    case What::kEpoll:
      return link == "anon_inode:[eventpoll]";
    case What::kListener:
      return is_socket(fd, SO_ACCEPTCONN, 1);
    case What::kWakeSocket:
      return link.starts_with("socket:") && is_socket(fd, SO_TYPE, SOCK_DGRAM);
    case What::kFolder:
      return link == getenv("VERBATIM_FABRIC");
    case What::kSegment:
      return link.starts_with("/memfd:verbatim-segment");
    case What::kAll:
      return true;
  }
  return false;
}

/// The numbers that were closed: not the standard ones, the test's own, nor what is `kept`.
std::vector<int> close_behind_its_back(What what, const std::set<int>& kept) {
  std::vector<int> closed;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    std::error_code gone;
    const std::string link = fs::read_symlink(entry.path(), gone);
    if (fd <= kControlFd || kept.contains(fd) || gone || link.starts_with("/proc/")) continue;
    if (is_that(fd, link, what)) closed.push_back(fd);
  }
  for (const int fd : closed) ::close(fd);
  std::sort(closed.begin(), closed.end());
  return closed;
}

bool is_readable(int fd, int wait_ms) {
  pollfd watched{fd, POLLIN, 0};
  return ::poll(&watched, 1, wait_ms) == 1 && (watched.revents & POLLIN) != 0;
}

void expect_one_fatal_event(Findings& findings, ibv_context* context) {
  if (!is_readable(context->async_fd, kDefaultWaitMs)) {
    findings.expect(false, "no event came");
    return;
  }
  ibv_async_event event{};
  findings.expect(ibv_get_async_event(context, &event) == 0, "the event cannot be fetched");
  findings.expect(event.event_type == IBV_EVENT_DEVICE_FATAL, "the event is another one");
  ibv_ack_async_event(&event);
  findings.expect(!is_readable(context->async_fd, 0), "the context hears of it twice");
}

void expect_refused(Findings& findings, Session& session, ibv_cq* cq, ibv_device* device) {
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {1, 1, 1, 1, 0};
  errno = 0;
  findings.expect(ibv_create_qp(session.pd.get(), &attr) == nullptr && errno == EIO,
                  "ibv_create_qp does not answer EIO");
  errno = 0;
  findings.expect(ibv_open_device(device) == nullptr && errno == EIO,
                  "ibv_open_device does not answer EIO");
}

/// The whole life of a program that does it: two contexts, a connection with itself that has work
/// to flush.
std::string lose(What what) {
  Findings findings;
  auto session = std::make_shared<Session>();
  ContextHandle second(ibv_open_device(session->context->device));
  {
    Side side(session);
    const QpInfo qp = side.create_qp();
    side.connect(qp, qp);
    const RegionInfo region = side.allocate(MemoryKind::kOrdinary, 64);
    const CqHandle cq(ibv_create_cq(session->context.get(), 1, nullptr, nullptr, 0));
    findings.expect(side.post_receive(qp, receive(7, slice(region, 0, 64))).error == 0,
                    "a receive cannot be posted");

    const std::set<int> kept{session->context->async_fd, second->async_fd};
    findings.expect(!close_behind_its_back(what, kept).empty(), "there is nothing to close");

    expect_one_fatal_event(findings, session->context.get());
    expect_one_fatal_event(findings, second.get());
    const std::vector<ibv_wc> flushed = side.poll_receives(qp, 1);
    findings.expect(flushed.size() == 1 && flushed[0].status == IBV_WC_WR_FLUSH_ERR,
                    "the receive is not flushed");
    findings.expect(side.post_send(qp, send(8, slice(region, 0, 64))).error == 0,
                    "a request cannot be posted");
    const std::vector<ibv_wc> sent = side.poll_sends(qp, 1);
    findings.expect(sent.size() == 1 && sent[0].status == IBV_WC_WR_FLUSH_ERR,
                    "the request is not flushed");
    expect_refused(findings, *session, cq.get(), session->context->device);
  }
  second.reset();
  session.reset();
  findings.expect(Session().context != nullptr, "the device cannot be opened anew");
  return findings.text;
}

VBT_ROLE(loses) {
  control.send_value(lose(control.receive_value<What>()));
  return 0;
}

/// What an application may open next: of each kind that the library reads, writes, watches or
/// closes.
class Stranger {
 public:
  Stranger(int number, int kind) : number_(number), kind_(kind % 3) {
    int fd = -1;
    if (kind_ == 0) fd = ::memfd_create("stranger", MFD_CLOEXEC);
    if (kind_ == 1) {
      int ends[2] = {-1, -1};
      (void)::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
      fd = ends[0];
      away_ = ::fcntl(ends[1], F_DUPFD_CLOEXEC, kAway);
      if (ends[1] != number) ::close(ends[1]);
      (void)!::write(away_, "word", 4);
    }
    if (kind_ == 2) {
      fd = ::epoll_create1(EPOLL_CLOEXEC);
      int ends[2] = {-1, -1};
      (void)::pipe2(ends, O_CLOEXEC);
      away_ = ::fcntl(ends[0], F_DUPFD_CLOEXEC, kAway);
      written_ = ::fcntl(ends[1], F_DUPFD_CLOEXEC, kAway);
      ::close(ends[0]);
      ::close(ends[1]);
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = kWord;
      (void)::epoll_ctl(fd, EPOLL_CTL_ADD, away_, &event);
      (void)!::write(written_, "word", 4);
    }
    if (fd != number) {
      (void)::dup3(fd, number, O_CLOEXEC);
      ::close(fd);
    }
  }

  void expect_open(Findings& findings) const {
    findings.expect(::fcntl(number_, F_GETFD) >= 0, name() + " was closed");
  }
  void expect_untouched(Findings& findings) const {
    expect_open(findings);
    struct stat status {};
    (void)::fstat(number_, &status);
    if (kind_ == 0) findings.expect(status.st_size == 0, name() + ", a file, was written to");
    if (kind_ == 1) {
      char word[8] = {};
      findings.expect(::recv(number_, word, sizeof word, MSG_DONTWAIT) == 4,
                      name() + ", a socket, was read from, or is none");
      findings.expect(!is_readable(away_, 0), name() + ", a socket, was written to");
    }
    if (kind_ == 2) {
      epoll_event event{};
      findings.expect(::epoll_wait(number_, &event, 1, 0) == 1 && event.data.u64 == kWord,
                      name() + ", an epoll, was changed, or is none");
    }
  }

 private:
  std::string name() const { return "descriptor " + std::to_string(number_); }

  static constexpr int kAway = 500;
  static constexpr std::uint64_t kWord = 0x0123456789abcdef;
  int number_;
  int kind_;
  int away_ = -1;
  int written_ = -1;
};

/// `shift`: so that each number is each kind once.
std::string lose_to_strangers(int shift) {
  Findings findings;
  std::vector<Stranger> strangers;
  auto session = std::make_shared<Session>();
  {
    QpWish wish;
    wish.with_channel = 1;
    Side side(session);
    const QpInfo qp = side.create_qp(wish);
    side.connect(qp, qp);
    const RegionInfo region = side.allocate(MemoryKind::kOrdinary, 64);
    (void)side.post_receive(qp, receive(7, slice(region, 0, 64)));
    for (const std::int32_t cq : {qp.send_cq, qp.receive_cq})
      findings.expect(side.call<&Endpoint::arm>(cq, 0) == 0, "a queue cannot be armed");
    const std::vector<int> closed = close_behind_its_back(What::kAll, {session->context->async_fd});
    for (const int number : closed) strangers.emplace_back(number, number + shift);
    // Before the loss is noticed, most likely: its completions have events to tell of.
    (void)side.post_send(qp, send(8, slice(region, 0, 64)));
    expect_one_fatal_event(findings, session->context.get());
    for (const Stranger& stranger : strangers) stranger.expect_untouched(findings);
  }
  session.reset();
  // What was taken out of the sockets is put back by nobody: of them only that they are there.
  for (const Stranger& stranger : strangers) stranger.expect_open(findings);
  return findings.text;
}

VBT_ROLE(loses_to_strangers) {
  control.send_value(lose_to_strangers(control.receive_value<int>()));
  return 0;
}

/// Closes all, the asynchronous descriptor too, and at once the device.
VBT_ROLE(loses_and_leaves) {
  Findings findings;
  auto session = std::make_shared<Session>();
  const int events = session->context->async_fd;
  const std::vector<int> closed = close_behind_its_back(What::kAll, {});
  findings.expect(std::ranges::count(closed, events) == 1, "the event descriptor is not closed");
  std::vector<Stranger> strangers;
  for (const int number : closed) strangers.emplace_back(number, 2);
  session.reset();
  for (const Stranger& stranger : strangers) stranger.expect_untouched(findings);
  control.send_value(findings.text);
  return 0;
}

VBT_ROLE(loses_its_peer) {
  Side side(std::make_shared<Session>());
  const QpInfo qp = side.create_qp();
  control.send_value(qp);
  side.connect(qp, control.receive_value<QpInfo>());
  control.send_value(0);
  (void)control.receive_value<int>();
  (void)close_behind_its_back(What::kAll, {});
  control.send_value(0);
  (void)control.receive_value<int>();
  return 0;
}

class ClosedDescriptors : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef VBT_UNDER_THREAD_SANITIZER
    GTEST_SKIP() << "ThreadSanitizer takes the closing of a thread's descriptors for a race";
#endif
  }

  const AllowedLog said{"the application closed descriptors that belong to the library"};

  template <class Word>
  static std::string findings_of(const char* role, Word word) {
    Child child(role);
    child.control().send_value(word);
    const auto findings = child.control().receive_value<std::string>();
    const Ended ended = child.wait();
    EXPECT_TRUE(ended.in_time);
    EXPECT_EQ(ended.exit_status, 0);
    return findings;
  }
  /// What it logged of its loss.
  static std::size_t times_said() {
    std::size_t times = 0;
    for (const std::string& line : LogWatch::instance()->complaints())
      times += line.find("the application closed descriptors") != std::string::npos;
    return times;
  }
};

class ClosedDescriptor : public ClosedDescriptors, public ::testing::WithParamInterface<What> {};

TEST_P(ClosedDescriptor, FailsTheDeviceOnceForEachContextAndFlushes) {
  EXPECT_EQ(findings_of("loses", GetParam()), "");
  EXPECT_EQ(times_said(), 1u);
}
std::string name_of(const ::testing::TestParamInfo<What>& what) {
  static constexpr const char* kNames[] = {"Epoll",  "Listener", "WakeSocket",
                                           "Folder", "Segment",  "All"};
  return kNames[static_cast<int>(what.param)];
}
INSTANTIATE_TEST_SUITE_P(, ClosedDescriptor,
                         ::testing::Values(What::kEpoll, What::kListener, What::kWakeSocket,
                                           What::kFolder, What::kSegment, What::kAll),
                         name_of);

TEST_F(ClosedDescriptors, WhoseNumbersAreUsedAgainAreNotTouched) {
  for (const int shift : {0, 1, 2}) EXPECT_EQ(findings_of("loses_to_strangers", shift), "");
}

TEST_F(ClosedDescriptors, DoNotKeepTheDeviceFromBeingClosed) {
  EXPECT_EQ(findings_of("loses_and_leaves", 0), "");
}

TEST_F(ClosedDescriptors, LeaveAPeerWithoutUs) {
  Child child("loses_its_peer");
  Side side(std::make_shared<Session>());
  const QpInfo own = side.create_qp();
  const QpInfo other = child.control().receive_value<QpInfo>();
  child.control().send_value(own);
  side.connect(own, other);
  (void)child.control().receive_value<int>();
  const RegionInfo region = side.allocate(MemoryKind::kOrdinary, 64);
  child.control().send_value(0);
  (void)child.control().receive_value<int>();
  expect_posted(side.post_send(own, send(1, slice(region, 0, 64))));
  EXPECT_EQ(side.poll_sends(own, 1)[0].status, IBV_WC_RETRY_EXC_ERR);
  child.control().send_value(0);
  EXPECT_TRUE(child.wait().in_time);
}

}  // namespace
}  // namespace verbatim::harness
