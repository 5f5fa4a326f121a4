// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/condition.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace verbatim::harness {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "condition: %s\n", why.c_str());
  std::exit(EXIT_FAILURE);
}

unsigned number_of(const std::string& call) {
  struct Known {
    const char* name;
    long number;
  };
  constexpr Known kKnown[] = {{"membarrier", SYS_membarrier},
                              {"memfd_create", SYS_memfd_create},
                              {"pidfd_open", SYS_pidfd_open},
                              {"process_vm_readv", SYS_process_vm_readv},
                              {"process_vm_writev", SYS_process_vm_writev}};
  for (const Known& known : kKnown)
    if (call == known.name) return static_cast<unsigned>(known.number);
  give_up("unknown system call " + call);
}

/// These calls answer EPERM from now on.
void deny(std::istream& names) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (std::string name; names >> name;) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number_of(name), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    give_up("no filter of system calls can be set here");
}

/// What lifts a limit, also for what is executed later.
void lose(unsigned capability) {
  (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);  // not ours to drop: then we lack it
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct held[2] = {};
  if (syscall(SYS_capget, &head, held) != 0) give_up("cannot read capabilities");
  const std::uint32_t bit = 1u << capability;  // all of ours are of the first word
  held[0].effective &= ~bit;
  held[0].permitted &= ~bit;
  held[0].inheritable &= ~bit;
  if (syscall(SYS_capset, &head, held) != 0) give_up("cannot give up a capability");
}

void limit(std::istream& words) {
  std::string name;
  rlim_t most = 0;
  words >> name >> most;
  const rlimit both{most, most};
  const auto resource = name == "nofile"    ? RLIMIT_NOFILE
                        : name == "fsize"   ? RLIMIT_FSIZE
                        : name == "as"      ? RLIMIT_AS
                        : name == "memlock" ? RLIMIT_MEMLOCK
                                            : RLIM_NLIMITS;
  if (setrlimit(resource, &both) != 0) give_up("cannot limit " + name);
  if (resource == RLIMIT_MEMLOCK) lose(CAP_IPC_LOCK);
  if (resource == RLIMIT_NOFILE) {  // of descriptors under way
    lose(CAP_SYS_RESOURCE);
    lose(CAP_SYS_ADMIN);
  }
}

void lock(std::istream& words) {
  std::string what;
  words >> what;
  if (what == "future") {
    std::istringstream most("memlock " + std::string(std::istreambuf_iterator<char>(words), {}));
    limit(most);
  }
  // The call itself: sanitizers make the library's do nothing.
  const int which = what == "future" ? MCL_FUTURE : MCL_CURRENT | MCL_FUTURE;
  if (syscall(SYS_mlockall, which) != 0) give_up("may not lock " + what);
}

/// An empty file system over `folder`, for this process alone.
void mount_over(std::istream& words) {
  std::string how, folder;
  words >> how >> folder;
  const bool full = how == "full";
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", folder.c_str(), "tmpfs", how == "readonly" ? MS_RDONLY : 0,
            full ? "nr_inodes=1,size=4k" : "size=16m") != 0)
    give_up("cannot mount over " + folder);
}

/// From now on another user, without groups and capabilities.
void become(std::istream& words) {
  uid_t user = 0;
  words >> user;
  if (setgroups(0, nullptr) != 0 || setresgid(user, user, user) != 0 ||
      setresuid(user, user, user) != 0)
    give_up("cannot become user " + std::to_string(user));
}

/// Our children (not we ourselves) live in a pid namespace of their own.
void send_children_elsewhere() {
  // Whoever is not root becomes it in a user namespace first.
  if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
    give_up("no namespace can be made here");
}

/// One more member of the control group in that folder.
void join(std::istream& words) {
  std::string folder;
  words >> folder;
  std::ofstream members(folder + "/cgroup.procs");
  if (!(members << getpid() << std::flush)) give_up("cannot join " + folder);
}

}  // namespace

void apply_condition() {
  const char* text = std::getenv(kCondition);
  if (text == nullptr) return;
  std::istringstream words(text);
  std::string kind;
  words >> kind;
  if (kind == "deny")
    deny(words);
  else if (kind == "limit")
    limit(words);
  else if (kind == "lock")
    lock(words);
  else if (kind == "mount")
    mount_over(words);
  else if (kind == "user")
    become(words);
  else if (kind == "children")
    send_children_elsewhere();
  else if (kind == "group")
    join(words);
  else
    give_up(std::string("unknown: ") + text);
}

}  // namespace verbatim::harness
