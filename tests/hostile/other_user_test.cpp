// SPDX-License-Identifier: BSD-2-Clause
//
// Another user of the host: he sees no names, reads no memory, and where the folder lets him
// through, which somebody must have opened for him, he is refused all the same. Needs root, to
// become somebody else.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "providers/shm/fabric/peer_messages.hpp"
#include "tests/fuzz/stranger.hpp"
#include "tests/support/child.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/fabric_directory.hpp"
#include "tests/support/handles.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/role.hpp"

namespace verbatim::hostile {
namespace {

using namespace harness;

constexpr uid_t kNobody = 65534;

/// Whom he would spy on.
struct Mark {
  pid_t pid;
  std::uint64_t address;  ///< of registered memory
  std::uint32_t qpn;
  char folder[200];
};

/// What he came to, each an errno or 0.
struct Findings {
  int became;
  int listed;       ///< the folder
  int connected;    ///< to a socket in it
  int descriptors;  ///< of the process
  int memory;       ///< of the process
  int copied;       ///< by process_vm_readv
  int answered;     ///< 0 when his HELLO was, ECONNRESET when the connection was closed
};

int answer_to_hello(int socket) {
  const FabricDirectory own;  // where a process of his has its wake socket
  const fuzz::Stranger stranger(0x6666, 0xfa0);
  if (stranger.introduce(socket, true) != 0) return ECONNRESET;
  int error = EAGAIN;
  shm::Received received;
  (void)wait_until([&] {
    error = shm::receive_message(socket, received);
    return error != EAGAIN;
  });
  return error == 0 ? 0 : error == EAGAIN ? EAGAIN : ECONNRESET;
}

template <class Done>
int error_unless(Done done) {
  errno = 0;
  return done() ? 0 : errno;
}

Findings spy(const Mark& mark) {
  Findings found{};
  const std::string proc = "/proc/" + std::to_string(mark.pid);
  found.listed = error_unless([&] {
    DIR* const folder = opendir(mark.folder);
    if (folder != nullptr) closedir(folder);
    return folder != nullptr;
  });
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%.90s/q%03x", mark.folder,
                mark.qpn >> shm::kQpnBlockBits);
  found.connected = error_unless([&] {
    return connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  });
  found.descriptors = error_unless([&] {
    DIR* const folder = opendir((proc + "/fd").c_str());
    if (folder != nullptr) closedir(folder);
    return folder != nullptr;
  });
  found.memory =
      error_unless([&] { return UniqueFd(open((proc + "/mem").c_str(), O_RDONLY)).valid(); });
  char byte;
  const iovec local{&byte, 1};
  const iovec remote{reinterpret_cast<void*>(mark.address), 1};
  found.copied =
      error_unless([&] { return process_vm_readv(mark.pid, &local, 1, &remote, 1, 0) == 1; });
  found.answered = found.connected == 0 ? answer_to_hello(socket.get()) : ENOTCONN;
  return found;
}

VBT_ROLE(other_user) {
  const int became = error_unless(
      [] { return setgroups(0, nullptr) == 0 && setgid(kNobody) == 0 && setuid(kNobody) == 0; });
  for (int visits = 0; visits < 2; ++visits) {
    Findings found = spy(control.receive_value<Mark>());
    found.became = became;
    control.send_value(found);
  }
  return 0;
}

class OtherUserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    cq_.reset(ibv_create_cq(session_.context.get(), 4, nullptr, nullptr, 0));
    mr_.reset(ibv_reg_mr(session_.pd.get(), memory_, sizeof memory_, 0));
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_.get();
    init.qp_type = IBV_QPT_RC;
    qp_.reset(ibv_create_qp(session_.pd.get(), &init));
    ASSERT_NE(qp_, nullptr);
    mark_.pid = getpid();
    mark_.address = reinterpret_cast<std::uint64_t>(memory_);
    mark_.qpn = qp_->qp_num;
    std::snprintf(mark_.folder, sizeof mark_.folder, "%s", getenv("VERBATIM_FABRIC"));
  }

  char memory_[64] = "a secret";
  Session session_;
  CqHandle cq_;
  MrHandle mr_;
  QpHandle qp_;
  Mark mark_{};
};

TEST_F(OtherUserTest, SeesNothingAndReachesNobody) {
  Child other("other_user");
  other.control().send_value(mark_);
  const auto found = other.control().receive_value<Findings>();
  ASSERT_EQ(found.became, 0);
  EXPECT_EQ(found.listed, EACCES);
  EXPECT_EQ(found.connected, EACCES);
  EXPECT_EQ(found.descriptors, EACCES);
  EXPECT_EQ(found.memory, EACCES);
  EXPECT_EQ(found.copied, EPERM);

  // Somebody opens the door: he comes to the socket, and no further.
  const AllowedLog refused("refused a connection of user 65534");
  struct stat before {};
  ASSERT_EQ(stat(mark_.folder, &before), 0);
  EXPECT_EQ(before.st_mode & 0777u, 0700u);
  ASSERT_EQ(chmod(mark_.folder, 0777), 0);
  for (const std::string& name : fabric_contents())
    ASSERT_EQ(chmod((std::string(mark_.folder) + "/" + name).c_str(), 0777), 0);
  other.control().send_value(mark_);
  const auto again = other.control().receive_value<Findings>();
  EXPECT_EQ(chmod(mark_.folder, 0700), 0);
  EXPECT_EQ(again.connected, 0) << "the door was open";
  EXPECT_EQ(again.answered, ECONNRESET);
  EXPECT_EQ(other.wait().exit_status, 0);
  if (LogWatch* watch = LogWatch::instance()) {
    EXPECT_EQ(watch->complaints().size(), 1u);
  }
}

}  // namespace
}  // namespace verbatim::hostile
