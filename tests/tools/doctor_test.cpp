// SPDX-License-Identifier: BSD-2-Clause
// `verbatim doctor` on hosts on which something is missing, refused, tiny or nonsense: each trouble
// is found, and named in the words that its users search for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/base/printable.hpp"
#include "tests/support/limited_cgroup.hpp"
#include "tests/tools/fake_host.hpp"
#include "tests/tools/private_fabric.hpp"

namespace verbatim::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr uid_t kNobody = 65534;

class Doctor : public ::testing::Test {
 protected:
  Ending doctor(const Words& arguments, const Environment& more = {}) {
    Words words{"doctor"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run({VERBATIM_TOOL, "verbatim", fabric_.environment(more)}, words);
  }
  /// Its findings where `conditions` hold (tests/support/condition.hpp).
  Json under(const Words& conditions, Words arguments, const Environment& more = {}) {
    Words words = conditions;
    words.insert(words.end(), {"--", VERBATIM_TOOL, "verbatim", "doctor", "--json"});
    words.insert(words.end(), arguments.begin(), arguments.end());
    return read(run({VERBATIM_CONDITIONED, "conditioned", fabric_.environment(more)}, words));
  }
  Json findings(const Environment& more = {}) { return read(doctor({"--json"}, more)); }
  Json of_host(const Environment& more = {}) {
    return read(doctor({"--json", "--root", host_.root()}, more));
  }
  /// The report, whose verdict is the worst of its findings, as is the exit status.
  static Json read(const Ending& ending) {
    EXPECT_TRUE(ending.in_time);
    const Json all = Json::parse(ending.out, nullptr, false);
    if (all.is_discarded()) {
      ADD_FAILURE() << "no JSON: " << ending.out << ending.err;
      return Json::object();
    }
    bool fails = false;
    for (const Json& finding : all["findings"]) {
      fails = fails || finding["verdict"] == "FAIL";
      EXPECT_EQ(finding["verdict"] == "OK", finding["fix"].is_null()) << finding;
      EXPECT_NE(finding["cause"], "");
    }
    EXPECT_EQ(ending.status, fails ? 1 : 0);
    EXPECT_EQ(all["verdict"] == "FAIL", fails);
    return all;
  }
  /// "VERDICT cause -> fix" of the topic's lines; with `words` only those that have them.
  static std::string line(const Json& all, const std::string& topic,
                          const std::string& words = "") {
    std::string lines;
    if (!all.contains("findings")) return lines;
    for (const Json& finding : all["findings"]) {
      if (finding["topic"] != topic) continue;
      const std::string text = finding["verdict"].get<std::string>() + ' ' +
                               finding["cause"].get<std::string>() + " -> " +
                               (finding["fix"].is_null() ? "" : finding["fix"].get<std::string>());
      if (text.find(words) != std::string::npos) lines += text + '\n';
    }
    return lines;
  }

  PrivateFabric fabric_;
  FakeHost host_;
};

TEST_F(Doctor, SaysALineOfEverythingThatLiesBetweenUsersAndRdma) {
  const Json all = findings();
  for (const char* topic : {"providers",     "modules",
                            "kernel device", "device",
                            "port",          "MTU",
                            "GID",           "memlock",
                            "cgroup memory", "huge pages",
                            "fork",          "memfd",
                            "/dev/shm",      "open files",
                            "address space", "file size",
                            "CMA",           "user namespace",
                            "pid namespace", "membarrier",
                            "pidfd",         "XDG_RUNTIME_DIR",
                            "fabric folder", "NUMA",
                            "cores",         "cpu quota",
                            "shm huge pages"})
    EXPECT_NE(line(all, topic), "") << topic;
  EXPECT_THAT(line(all, "providers"), AllOf(HasSubstr("OK"), HasSubstr("shm"), HasSubstr("rxe")));
  EXPECT_THAT(line(all, "device"), HasSubstr("OK shm0: opened"));
  EXPECT_THAT(line(all, "MTU"), HasSubstr("OK shm0 port 1: active MTU 4096, max 4096"));
  EXPECT_THAT(line(all, "fabric folder"), HasSubstr("OK /tmp/vbt-tools-"));
  EXPECT_TRUE(fabric_.sockets().empty()) << "it leaves nothing behind";

  const Ending text = doctor({});
  const auto lines = static_cast<std::size_t>(std::count(text.out.begin(), text.out.end(), '\n'));
  std::size_t fixes = 0;
  for (const Json& finding : all["findings"]) fixes += finding["fix"].is_null() ? 0 : 1;
  EXPECT_EQ(lines, all["findings"].size() + fixes + 1) << text.out;
}

TEST_F(Doctor, AGidOfAnEthernetPortIsJudgedAsRoce) {
  EXPECT_THAT(line(findings({{"VERBATIM_SHM_LINK", "ethernet"}}), "GID"), HasSubstr("RoCE v2"));
}

TEST_F(Doctor, ALowMemlockLimitIsNoFailureForShm) {
  Words conditions{"limit memlock 65536"};
  if (geteuid() == 0) conditions.push_back("user 65534");  // root has no limit
  const std::string memlock = line(under(conditions, {}), "memlock");
  EXPECT_THAT(memlock, AllOf(HasSubstr("WARN"), HasSubstr("RLIMIT_MEMLOCK"), HasSubstr("64 KiB"),
                             HasSubstr("ulimit -l"), HasSubstr("Cannot allocate memory"),
                             HasSubstr("limits.conf"), HasSubstr("--ulimit memlock=-1")));
}

TEST_F(Doctor, ALowMemlockLimitIsAFailureForKernelDevices) {
  host_.device("rxe0", "uverbs0", "1:3").link("dev/infiniband/uverbs0", "/dev/null");
  const Words conditions{"limit memlock 65536"};
  const Words where{"--root", host_.root()};
  EXPECT_THAT(line(under(conditions, where), "memlock"), HasSubstr("FAIL"));
  // Capabilities lift it, but not those of a user namespace.
  host_.file("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
  host_.link("proc/self/ns/user", "user:[4026539999]");
  EXPECT_THAT(line(under(conditions, where), "memlock"), HasSubstr("FAIL"));
  std::filesystem::remove(host_.path("proc/self/ns/user"));
  host_.link("proc/self/ns/user", "user:[4026531837]");
  EXPECT_THAT(line(under(conditions, where), "memlock"), HasSubstr("OK"));
}

TEST_F(Doctor, ANodeThatWeMayNotOpenIsNamedWithItsMode) {
  host_.device("rxe0", "uverbs0", "231:192").file("dev/infiniband/uverbs0", "");
  ASSERT_EQ(chmod(host_.path("dev/infiniband/uverbs0").c_str(), 0), 0);
  Words conditions;
  if (geteuid() == 0) conditions.push_back("user " + std::to_string(kNobody));
  const std::string found =
      line(under(conditions, {"--root", host_.root()}), "kernel device", "rxe0");
  EXPECT_THAT(found, AllOf(HasSubstr("FAIL rxe0 (uverbs0)"), HasSubstr("Permission denied"),
                           HasSubstr("mode 0000"), HasSubstr("chmod 0666")));
}

TEST_F(Doctor, ANodeThatIsMissingOrAnotherDevicesIsSaidSo) {
  host_.device("rxe0", "uverbs0", "231:192");
  EXPECT_THAT(line(of_host(), "kernel device"),
              AllOf(HasSubstr("FAIL"), HasSubstr("No such file"), HasSubstr("--device")));
  host_.link("dev/infiniband/uverbs0", "/dev/null");
  EXPECT_THAT(line(of_host(), "kernel device"),
              AllOf(HasSubstr("FAIL"), HasSubstr("not the node of this device"),
                    HasSubstr("character device 231:192"), HasSubstr("udev")));
}

TEST_F(Doctor, ADeviceThatNoProviderDrivesIsNamedInTheClassicWords) {
  host_.device("mlx5_0", "uverbs0", "1:3").link("dev/infiniband/uverbs0", "/dev/null");
  EXPECT_THAT(line(of_host(), "kernel device"),
              AllOf(HasSubstr("WARN"), HasSubstr("no userspace device-specific driver found for")));
}

TEST_F(Doctor, ModulesAreMissedWhereTheyAreNeeded) {
  EXPECT_THAT(line(of_host(), "modules"), AllOf(HasSubstr("OK"), HasSubstr("modprobe rdma_rxe")));
  host_.file("sys/class/infiniband/rxe0/node_type", "1: CA\n");
  host_.file("proc/modules", "rdma_rxe 1 0 - Live 0x0\n");
  const Json all = of_host();
  EXPECT_THAT(line(all, "modules"), AllOf(HasSubstr("FAIL"), HasSubstr("modprobe ib_uverbs")));
  EXPECT_THAT(line(all, "kernel device"), AllOf(HasSubstr("FAIL rxe0"), HasSubstr("uverbs")));
}

TEST_F(Doctor, AnUnknownKernelAbiIsToldInTheClassicWords) {
  host_.device("rxe0", "uverbs0", "1:3").link("dev/infiniband/uverbs0", "/dev/null");
  EXPECT_EQ(line(of_host(), "kernel ABI"), "");
  const std::string version = "sys/class/infiniband_verbs/abi_version";
  host_.file(version, "99\n");
  EXPECT_THAT(line(of_host(), "kernel ABI"),
              AllOf(HasSubstr("FAIL"), HasSubstr("kernel ABI version 99 doesn't match library")));
  std::filesystem::remove(host_.path(version));
  EXPECT_THAT(line(of_host(), "kernel ABI"), HasSubstr("couldn't read uverbs ABI version"));
}

TEST_F(Doctor, CopiesBetweenProcessesAreReallyTried) {
  if (line(findings(), "CMA").rfind("OK", 0) != 0) GTEST_SKIP() << "CMA is refused here";
  for (const char* call : {"process_vm_readv", "process_vm_writev"}) {
    const std::string denied = line(under({std::string("deny ") + call}, {}), "CMA");
    EXPECT_THAT(denied, AllOf(HasSubstr(std::string("WARN ") + call + ": Operation not permitted"),
                              HasSubstr("seccomp"), HasSubstr("SYS_PTRACE")));
  }
  host_.file("proc/sys/kernel/yama/ptrace_scope", "2\n");
  EXPECT_THAT(line(under({"deny process_vm_readv"}, {"--root", host_.root()}), "CMA"),
              AllOf(HasSubstr("yama ptrace_scope 2"), HasSubstr("kernel.yama.ptrace_scope=1")));
  EXPECT_THAT(line(findings({{"VERBATIM_SHM_CMA", "off"}}), "CMA"),
              AllOf(HasSubstr("WARN"), HasSubstr("VERBATIM_SHM_CMA=off")));
}

TEST_F(Doctor, APidNamespaceThatHidesProcessesFromEachOtherIsFound) {
  host_.link("proc/self/ns/pid", "pid:[4026530000]");
  host_.link("proc/self/ns/pid_for_children", "pid:[4026530000]");
  EXPECT_THAT(line(of_host(), "pid namespace"), ::testing::Not(HasSubstr("FAIL")));
  std::filesystem::remove(host_.path("proc/self/ns/pid_for_children"));
  host_.link("proc/self/ns/pid_for_children", "pid:[4026530001]");
  EXPECT_THAT(line(of_host(), "pid namespace"), HasSubstr("FAIL what this process starts"));

  const Words elsewhere{"children elsewhere"};
  // (The search for leaks waits for a process of its own, which it does not find either.)
  const Environment no_search{{"ASAN_OPTIONS", "detect_leaks=0"}};
  // With nothing to run it says 127, once the condition holds.
  const Ending possible = run({VERBATIM_CONDITIONED, "conditioned", no_search},
                              {elsewhere[0], "--", VERBATIM_CONDITIONED, "conditioned"});
  if (possible.status != 127) GTEST_SKIP() << possible.err;
  const Json all = under(elsewhere, {}, no_search);
  if (line(findings(), "CMA").rfind("OK", 0) == 0) {
    const std::string copies = line(all, "CMA");
    EXPECT_THAT(copies, AllOf(HasSubstr("WARN process_vm_readv: No such process"),
                              HasSubstr("another pid namespace"), HasSubstr("--pid=host")));
    EXPECT_THAT(copies, ::testing::Not(HasSubstr("seccomp")));
  }
  EXPECT_THAT(line(all, "pid namespace"),
              AllOf(HasSubstr("FAIL what this process starts"), HasSubstr("unshare --fork --pid")));
  EXPECT_THAT(line(all, "device"), HasSubstr("FAIL shm0")) << "which has a thread";
}

TEST_F(Doctor, CallsThatAFilterRefusesAreNamed) {
  const Json slower = under({"deny membarrier pidfd_open"}, {});
  EXPECT_THAT(line(slower, "membarrier"), AllOf(HasSubstr("WARN"), HasSubstr("not permitted")));
  EXPECT_THAT(line(slower, "pidfd"), AllOf(HasSubstr("WARN"), HasSubstr("pidfd_open")));
  EXPECT_THAT(line(slower, "device"), HasSubstr("OK shm0")) << "it works without";
  const Json broken = under({"deny memfd_create"}, {});
  EXPECT_THAT(line(broken, "memfd"), AllOf(HasSubstr("FAIL memfd_create"), HasSubstr("seccomp")));
  EXPECT_THAT(line(broken, "device"), HasSubstr("FAIL shm0: Failed to open device"));
}

TEST_F(Doctor, LimitsOfFilesAreFound) {
  const Json all = under({"limit nofile 64", "limit fsize 100000"}, {});
  EXPECT_THAT(line(all, "open files"), AllOf(HasSubstr("WARN"), HasSubstr("Too many open files")));
  EXPECT_THAT(line(all, "memfd"), AllOf(HasSubstr("FAIL"), HasSubstr("ulimit -f unlimited")));
}

TEST_F(Doctor, ATinyControlGroupIsFoundAmongItsParents) {
  host_.file("proc/self/cgroup", "0::/pod/box\n");
  const std::string pod = "sys/fs/cgroup/pod/";
  host_.file(pod + "box/memory.max", "max\n").file(pod + "box/pids.max", "20\n");
  host_.file(pod + "box/pids.current", "7\n").file(pod + "memory.max", "67108864\n");
  host_.file(pod + "memory.current", "1048576\n").file(pod + "cpu.max", "50000 100000\n");
  host_.file(pod + "rdma.max",
             "mlx5_0 hca_handle=2 hca_object=2000\nrxe0 hca_handle=max hca_object=max\n");
  const Json all = of_host();
  EXPECT_THAT(line(all, "cgroup memory"),
              AllOf(HasSubstr("WARN"), HasSubstr("/pod/memory.max: 64 MiB, of which 1 MiB"),
                    HasSubstr("OOM"), HasSubstr("--memory")));
  EXPECT_THAT(line(all, "cgroup tasks"), AllOf(HasSubstr("WARN"), HasSubstr("20, of which 7")));
  EXPECT_THAT(line(all, "cpu quota"), AllOf(HasSubstr("WARN"), HasSubstr("0.50 processors")));
  EXPECT_THAT(line(all, "cgroup rdma"), HasSubstr("mlx5_0 hca_handle=2"));
  EXPECT_THAT(line(all, "cgroup rdma"), ::testing::Not(HasSubstr("rxe0")));
}

TEST_F(Doctor, ATinyControlGroupThatWeAreReallyInIsFound) {
  const harness::LimitedCgroup group(128u << 20);
  if (!group.made()) GTEST_SKIP() << "no memory cgroup may be made here";
  const std::string found = line(under({"group " + group.folder()}, {}), "cgroup memory");
  EXPECT_THAT(found, AllOf(HasSubstr("WARN " + group.folder()), HasSubstr(": 128 MiB, of which"),
                           HasSubstr("OOM")));
}

TEST_F(Doctor, ControlGroupsOfTheFirstVersionCount) {
  host_.file("proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/x\n");
  host_.file("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_THAT(line(of_host(), "cgroup memory"), HasSubstr("OK"));
  host_.file("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "67108864\n");
  host_.file("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  EXPECT_THAT(line(of_host(), "cgroup memory"), HasSubstr("WARN"));
  EXPECT_THAT(line(of_host(), "cpu quota"), HasSubstr("OK"));
}

TEST_F(Doctor, TellsNamespacesAndHugePages) {
  host_.link("proc/self/ns/pid", "pid:[4026530000]").link("proc/self/ns/user", "user:[4026531837]");
  const std::string pages = "sys/kernel/mm/";
  host_.file(pages + "transparent_hugepage/enabled", "always madvise [never]\n");
  const Json none = of_host();
  EXPECT_THAT(line(none, "huge pages"), AllOf(HasSubstr("WARN"), HasSubstr("vm.nr_hugepages")));
  EXPECT_THAT(line(none, "pid namespace"), AllOf(HasSubstr("one of its own"), HasSubstr("--pid=")));
  EXPECT_THAT(line(none, "user namespace"), HasSubstr("OK the host's"));
  host_.file(pages + "hugepages/hugepages-2048kB/nr_hugepages", "512\n");
  host_.file(pages + "hugepages/hugepages-2048kB/free_hugepages", "500\n");
  EXPECT_THAT(line(of_host(), "huge pages"), HasSubstr("OK 500 of 512 pages of 2 MiB free"));
}

TEST_F(Doctor, TellsWhetherSharedMemoryGetsHugePagesAndHowItWould) {
  EXPECT_THAT(line(of_host(), "shm huge pages"), HasSubstr("OK the kernel does not tell"));
  const std::string pages = "sys/kernel/mm/transparent_hugepage/";
  const std::string of_all = pages + "shmem_enabled";
  const std::string of_the_size = pages + "hugepages-2048kB/shmem_enabled";
  const auto says = [&] { return line(of_host(), "shm huge pages"); };
  host_.file(of_all, "always within_size advise [never] deny force\n");
  EXPECT_THAT(says(), AllOf(HasSubstr("WARN /" + of_all + ": never"), HasSubstr("2 MiB"),
                            HasSubstr("'echo advise > /" + of_all + "'")));
  for (const std::string word : {"always", "within_size", "advise", "force"}) {
    host_.file(of_all, "never [" + word + "] deny\n");
    EXPECT_THAT(says(), HasSubstr("OK /" + of_all + ": " + word));
  }
  host_.file(of_all, "always within_size advise never [deny] force\n");
  EXPECT_THAT(says(), HasSubstr("WARN /" + of_all + ": deny"));

  // Since Linux 6.11 each size has a choice of its own.
  host_.file(of_the_size, "always [inherit] within_size advise never\n");
  EXPECT_THAT(says(), HasSubstr("WARN /" + of_all + ": deny"));
  host_.file(of_the_size, "always inherit within_size [advise] never\n");
  EXPECT_THAT(says(), HasSubstr("WARN /" + of_all + ": deny")) << "it overrules";
  host_.file(of_all, "always within_size advise [never] deny force\n");
  EXPECT_THAT(says(), HasSubstr("OK /" + of_the_size + ": advise"));
  host_.file(of_the_size, "always inherit within_size advise [never]\n");
  host_.file(of_all, "[always] within_size advise never deny force\n");
  EXPECT_THAT(says(), AllOf(HasSubstr("WARN /" + of_the_size + ": never"),
                            HasSubstr("'echo advise > /" + of_the_size + "'")));
}

TEST_F(Doctor, WhereProcessesMeetIsExplained) {
  Environment gone = fabric_.environment();
  gone["XDG_RUNTIME_DIR"] = "/nonexistent/folder";
  const auto with = [&](const Environment& environment) {
    return read(run({VERBATIM_TOOL, "verbatim", environment},
                    {"doctor", "--json", "--root", host_.root()}));
  };
  EXPECT_THAT(line(with(gone), "XDG_RUNTIME_DIR"),
              AllOf(HasSubstr("WARN /nonexistent/folder"), HasSubstr("/tmp is used")));
  gone["XDG_RUNTIME_DIR"] = "";
  EXPECT_THAT(line(with(gone), "XDG_RUNTIME_DIR"), HasSubstr("OK it is not set"));
  std::filesystem::create_directories(host_.path("run/user/" + std::to_string(geteuid())));
  EXPECT_THAT(line(with(gone), "XDG_RUNTIME_DIR"),
              AllOf(HasSubstr("WARN"), HasSubstr("export XDG_RUNTIME_DIR=/run/user/")));

  Environment open_to_all = fabric_.environment();
  open_to_all["VERBATIM_FABRIC"] = host_.root();  // mode 755
  const Json all = with(open_to_all);
  EXPECT_THAT(line(all, "fabric folder"),
              AllOf(HasSubstr("FAIL"), HasSubstr("open to others"), HasSubstr("VERBATIM_FABRIC")));
  open_to_all["VERBATIM_FABRIC"] = "../x";
  EXPECT_THAT(line(with(open_to_all), "fabric folder"), HasSubstr("neither a plain name nor"));
}

TEST_F(Doctor, RanksAreCountedAgainstCores) {
  EXPECT_THAT(line(findings({{"OMPI_COMM_WORLD_LOCAL_SIZE", "100000"}}), "cores"),
              AllOf(HasSubstr("WARN 100000 ranks"), HasSubstr("oversubscribed")));
  EXPECT_THAT(line(findings({{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}), "cores"),
              HasSubstr("OK 1 rank"));
}

TEST_F(Doctor, FilesThatLieOrHangAreSurvived) {
  const auto fill = [](FakeHost& host) {
    host.device("rxe0", "uverbs0", "231:192").file("dev/infiniband/uverbs0", "");
    host.file("proc/self/cgroup", "0::/a\n4:memory,cpu:/a\n")
        .file("proc/self/status", "CapEff: f\n");
    host.file("proc/self/ns/user", "").file("proc/sys/kernel/yama/ptrace_scope", "1\n");
    for (const char* name : {"memory.max", "memory.current", "pids.max", "cpu.max", "rdma.max"})
      host.file(std::string("sys/fs/cgroup/a/") + name, "1000\n");
    host.file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "1\n");
    host.file("sys/kernel/mm/hugepages/hugepages-99999999999999999999kB/nr_hugepages", "1\n");
    const std::string transparent = "sys/kernel/mm/transparent_hugepage/";
    host.file(transparent + "enabled", "[always]\n").file("dev/shm", "");
    host.file(transparent + "shmem_enabled", "[advise]\n");
    host.file(transparent + "hugepages-2048kB/shmem_enabled", "[inherit]\n");
  };
  std::string junk(5000, '\0');
  for (std::size_t i = 0; i < junk.size(); ++i) junk[i] = static_cast<char>(i * 37);
  const std::string texts[] = {"",
                               junk,
                               std::string(2 << 20, '9'),
                               "\x1b[2J\x1b]0;owned\a\n",
                               "-1 -1\n",
                               "]\n[",
                               "%s%n%s%n:%s\n",
                               "../../../../etc/passwd\n",
                               "\xc2\x9b\x32J\x9b\x32J\n"};
  for (const std::string& text : texts) {
    FakeHost host;
    fill(host);
    for (const std::string& file : host.files()) std::ofstream(file, std::ios::binary) << text;
    SCOPED_TRACE(text.substr(0, 20));
    const Ending as_json = doctor({"--json", "--root", host.root()});
    read(as_json);
    EXPECT_TRUE(std::ranges::all_of(as_json.out, [](char c) {
      return c == '\n' || (c >= ' ' && c <= '~');
    })) << "a terminal obeys this";
    const Ending shown = doctor({"--root", host.root()});
    std::istringstream lines(shown.out);
    for (std::string line; std::getline(lines, line);) {
      std::string fit = line;
      make_printable(fit.data(), fit.size());
      ASSERT_EQ(line, fit) << "a terminal obeys this";
    }
  }
  for (const bool pipe : {true, false}) {
    FakeHost host;
    fill(host);
    for (const std::string& file : host.files()) {
      std::filesystem::remove(file);
      if (pipe) {
        ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
      } else {
        std::filesystem::create_directory(file);
      }
    }
    // The library's own discovery reads these too, and is not asked about pipes.
    if (pipe) std::filesystem::remove_all(host.path("sys/class"));
    read(doctor({"--json", "--root", host.root()}));
  }
}

TEST_F(Doctor, AWrongOptionIsNamedAndIsNoFinding) {
  for (const auto& [arguments, says] :
       {std::pair<Words, const char*>{{"--jason"}, "'--jason' is no option"},
        {{"extra"}, "'extra' is too much"},
        {{"--root"}, "'--root' needs a value"},
        {{"--root", "/nonexistent/x"}, "No such file"},
        {{"--root", "/dev/null"}, "is no folder"}}) {
    const Ending ending = doctor(arguments);
    EXPECT_EQ(ending.status, 2);
    EXPECT_EQ(ending.out, "");
    EXPECT_THAT(ending.err, HasSubstr(says));
  }
  const Ending help = doctor({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("--root"));
}

}  // namespace
}  // namespace verbatim::tools
