// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf` with itself at the other end, over shm0: every operation over every kind of queue
// pair, the options, what is printed, and what goes wrong.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "tests/tools/perf_output.hpp"
#include "tests/tools/perf_pair.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;

struct Played {
  std::string tool;
  Words options;
  std::size_t rows = 1;
};
void PrintTo(const Played& played, std::ostream* out) {
  *out << played.tool << ::testing::PrintToString(played.options);
}

class Perf : public ::testing::Test {
 protected:
  Program tool(const std::string& name) { return real_tool(name, fabric_.environment()); }
  PerfEndings play(const std::string& name, const Words& words, const Words& client_more = {}) {
    return play_our_server(tool(name), words, tool(name), joined(words, client_more));
  }
  void expect_complaint(const Ending& ending, const std::string& says) {
    EXPECT_TRUE(ending.in_time);
    EXPECT_GT(ending.status, 0) << ending.out;
    EXPECT_THAT(ending.err, HasSubstr(says));
  }
  PrivateFabric fabric_;
};

/// A client that is no program of ours: it says and hears bytes.
class Stranger {
 public:
  explicit Stranger(int port) : fd_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  ~Stranger() { close(fd_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  void say(const std::string& bytes) const {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string hear(std::size_t size) const {
    std::string bytes(size, '\0');
    const ssize_t got = recv(fd_, bytes.data(), size, MSG_WAITALL);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }
  void hang_up() const { shutdown(fd_, SHUT_WR); }

 private:
  int fd_;
};

class PerfPlays : public Perf, public ::testing::WithParamInterface<Played> {};

TEST_P(PerfPlays, ToTheEndAndSaysSoInColumns) {
  const PerfEndings endings = play(GetParam().tool, GetParam().options);
  expect_both_finished(endings);
  const auto rows = perf_rows(endings.client.out);
  ASSERT_EQ(rows.size(), GetParam().rows) << endings.client.out;
  const bool latency = GetParam().tool.find("_lat") != std::string::npos;
  for (const PerfRow& row : rows) {
    ASSERT_GE(row.size(), 4u);
    EXPECT_GT(latency ? row[2] : row.back(), 0) << endings.client.out;
  }
  EXPECT_EQ(endings.client.err, "");
}

const Words kFew = {"-n", "100"};

std::vector<Played> operations() {
  std::vector<Played> all;
  const auto add = [&](const std::string& verb, const std::vector<const char*>& connections) {
    for (const char* connection : connections) {
      for (const char* measure : {"_lat", "_bw"}) {
        all.push_back({"ib_" + verb + measure, joined(kFew, {"-c", connection})});
      }
    }
  };
  add("send", {"RC", "UC", "UD", "XRC"});
  add("write", {"RC", "UC", "XRC"});
  add("read", {"RC", "XRC"});
  add("atomic", {"RC", "XRC"});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Operations, PerfPlays, ::testing::ValuesIn(operations()));

INSTANTIATE_TEST_SUITE_P(
    Options, PerfPlays,
    ::testing::Values(
        Played{"ib_send_lat", {"-a", "-n", "10"}, 23}, Played{"ib_send_bw", {"-a", "-n", "5"}, 23},
        Played{"ib_write_bw", {"-a", "-b", "-n", "5"}, 23},
        Played{"ib_send_lat", {"-c", "UD", "-a", "-n", "10"}, 12},
        Played{"ib_send_bw", {"-q", "8", "-n", "50", "--report_gbits"}},
        Played{"ib_send_bw", {"-b", "-q", "2", "-c", "XRC", "-n", "50"}},
        Played{"ib_send_bw", {"-b", "-n", "100", "--report-both"}, 3},
        Played{"ib_read_bw", {"-b", "-e", "-n", "100", "-o", "4"}},
        Played{"ib_send_bw", {"--use-srq", "-q", "4", "-e", "-n", "100"}},
        Played{"ib_send_lat", {"-e", "--use-srq", "-n", "50", "-I", "0"}},
        Played{"ib_send_bw", {"-l", "16", "-n", "160", "-s", "64", "-I", "64"}},
        Played{"ib_write_bw", {"-Q", "7", "-t", "16", "-n", "100", "--use_old_post_send"}},
        Played{"ib_atomic_bw", {"-A", "CMP_AND_SWAP", "-b", "-n", "100", "-N"}},
        Played{"ib_write_bw", {"--perform_warm_up", "-s", "1K", "-m", "1024", "-n", "200"}},
        Played{"ib_write_bw", {"--odp", "-x", "0", "-n", "50", "-s", "8192"}},
        Played{"ib_read_lat", {"-C", "--latency_gap", "10", "-n", "20"}},
        Played{"ib_write_lat", {"-D", "1", "-f", "0"}}, Played{"ib_send_bw", {"-D", "1", "-b"}}));

INSTANTIATE_TEST_SUITE_P(
    LaterOptions, PerfPlays,
    ::testing::Values(
        Played{"ib_send_bw", {"-g", "-s", "64", "-n", "50"}},
        Played{"ib_send_lat", {"-g", "-n", "50"}},
        Played{"ib_send_bw", {"--reversed", "-n", "50", "--send_with_imm"}},
        Played{"ib_read_bw", {"--reversed", "-n", "50", "--use-null-mr"}},
        Played{"ib_send_bw", {"--recv_post_list", "10", "-q", "2", "-n", "100", "-r", "35"}},
        Played{"ib_write_bw", {"--write_with_imm", "-n", "50", "-a"}, 23},
        Played{"ib_write_bw", {"--write_with_imm", "-b", "-c", "XRC", "-n", "50"}},
        Played{"ib_write_bw", {"--write_with_imm", "--use_old_post_send", "-c", "UC", "-n", "50"}},
        Played{"ib_write_lat", {"--write_with_imm", "-n", "20", "--no_lock"}},
        Played{"ib_write_bw", {"--mr_per_qp", "-q", "3", "-b", "-n", "50", "--data_validation"}},
        Played{"ib_read_bw", {"-s", "64", "-n", "200", "-q", "2", "--data_validation"}},
        Played{"ib_send_bw", {"-c", "XRC", "-b", "-n", "100", "--data_validation"}},
        Played{"ib_send_bw", {"-c", "UD", "-n", "100", "--data_validation", "--no_lock"}},
        Played{"ib_send_bw", {"--dont_xchg_versions", "--force-link", "Ethernet", "-n", "50"}},
        Played{"ib_write_bw", {"--source_ip", "127.0.0.1", "--dlid", "7", "-n", "50"}},
        Played{"ib_write_bw", {"--pin_cores", "0", "--disable_numa", "-n", "50", "-s", "64"}},
        Played{"ib_send_lat", {"-D", "1", "-f", "0", "--cpu_util"}}));

/// `option` at both ends, behind which the file of `text` is.
TEST_F(Perf, SendsWhatIsInAFile) {
  const std::string mine = ::testing::TempDir() + "perf_payload." + std::to_string(getpid());
  const std::string memory = mine + ".memory";
  std::ofstream(mine) << "0x04030201,0x08070605\n";
  std::ofstream(memory) << std::string(1 << 20, ' ');
  // Of a client's memory, which a file shows: first what it sends.
  expect_both_finished(
      play("ib_write_bw", {"-n", "20"},
           {"--payload_file_path", mine, "--mmap", memory, "--mmap-offset", "4096"}));
  std::string read(12, 0);
  std::ifstream(memory).seekg(4096).read(read.data(), 12);
  EXPECT_EQ(read, "\1\2\3\4\5\6\7\10\1\2\3\4");
  std::ofstream(mine) << "0x0403020";
  expect_complaint(play("ib_write_bw", {"-n", "20"}, {"--payload_file_path", mine}).client,
                   "number 0 of '" + mine + "' is not as 0xaabbccdd");
  expect_complaint(play("ib_write_bw", {"-n", "20"}, {"--mmap", mine}).client,
                   "has 9 bytes, and the test takes 131072 from 0 on");
  expect_complaint(play("ib_write_bw", {"-n", "20"}, {"--mmap", mine + ".none"}).client,
                   ".none': No such file or directory (--mmap)");
  unlink(mine.c_str());
  unlink(memory.c_str());
}

TEST_F(Perf, ALimitedRateIsNotExceeded) {
  const PerfEndings endings =
      play("ib_write_bw", {"-s", "64", "-n", "1000"},
           {"--rate_limit", "2000", "--rate_units", "p", "--burst_size", "10"});
  expect_both_finished(endings);
  const auto rows = perf_rows(endings.client.out);
  ASSERT_EQ(rows.size(), 1u);
  // 100 bursts with 99 pauses between; who is late is slower, which is no fault.
  EXPECT_LE(rows[0].back(), 0.002 * 100 / 99 + 0.00001) << endings.client.out;
}

TEST_F(Perf, AnEndlessTestTellsEachIntervalUntilItIsStopped) {
  for (const char* name : {"ib_send_bw", "ib_write_bw"}) {
    ToolProcess server(tool(name), {"--run_infinitely", "-D", "1", "-p", "0"});
    const auto port = listening_port(server);
    ASSERT_TRUE(port);
    ToolProcess client(tool(name),
                       {"--run_infinitely", "-D", "1", "-p", std::to_string(*port), "127.0.0.1"});
    ASSERT_TRUE(client.wait_for_output("\n 65536 "));
    client.signal(SIGINT);
    EXPECT_TRUE(client.finish().in_time);
    const Ending ending = server.finish(std::chrono::seconds(10));
    EXPECT_EQ(ending.status, 0) << ending.err;
    EXPECT_THAT(ending.out, HasSubstr(" Client closed connection\n"));
  }
}

class PerfAlone : public Perf, public ::testing::WithParamInterface<const char*> {
 protected:
  Ending alone(const std::string& name, const Words& words) {
    return run(tool(name), joined(words, {GetParam()}));
  }
};

TEST_P(PerfAlone, PlaysBothEndsAndPrintsOne) {
  for (const Played& played :
       {Played{"ib_send_lat", {}}, Played{"ib_write_lat", {}}, Played{"ib_read_bw", {}},
        Played{"ib_atomic_bw", {}}, Played{"ib_send_bw", {"-c", "XRC", "-b", "--reversed"}},
        Played{"ib_send_lat", {"-c", "UD", "-e"}},
        Played{"ib_write_bw", {"--data_validation", "-q", "2"}}}) {
    const Ending ending = alone(played.tool, joined(played.options, kFew));
    EXPECT_TRUE(ending.in_time);
    EXPECT_EQ(ending.status, 0) << ending.err;
    EXPECT_EQ(ending.err, "");
    EXPECT_EQ(perf_rows(ending.out).size(), 1u) << ending.out;
    EXPECT_THAT(ending.out, HasSubstr(" Both ends       : two "));
    EXPECT_THAT(ending.out, ::testing::Not(HasSubstr("Waiting for client")));
  }
  EXPECT_THAT(alone("ib_send_lat", {"-n", "20", "--output", "latency"}).out,
              ::testing::MatchesRegex("[0-9]+\\.[0-9]+\n"));
}

TEST_P(PerfAlone, SaysInOneLineWhatWentWrongAtEitherEnd) {
  struct Wrong {
    std::string tool;
    Words words;
    std::string says;
  };
  for (const Wrong& wrong :
       {Wrong{"ib_send_lat", {"-I", "900"}, "inline size 900 is more than shm0 takes"},
        Wrong{"ib_send_bw", {"-d", "mlx5_0"}, "IB device mlx5_0 not found"},
        Wrong{"ib_send_bw", {"--pin_cores", "1022,1023"}, "Couldn't run on the cores asked for"},
        Wrong{"ib_write_bw", {"--out_json_file", "/proc/none/x"}, "Couldn't write '/proc/none/x'"},
        Wrong{
            "ib_read_lat", {"-n", "20", "--out_json_file", "/dev/full"}, "No space left on device"},
        Wrong{
            "ib_send_lat", {"-n", "20", "--jsonl", "/dev/full"}, "cannot write all of '/dev/full'"},
        Wrong{"ib_write_bw", {"-n", "20", "--csv", "/dev/full"}, "No space left on device (--csv)"},
        Wrong{"ib_write_bw", {"--payload_file_path", "/"}, "Couldn't read '/': Is a directory"},
        Wrong{"ib_write_bw", {"-n", "20", "-w", "1e12"}, "is below bw limit"}}) {
    const Ending ending = alone(wrong.tool, wrong.words);
    expect_complaint(ending, wrong.says);
    EXPECT_EQ(own_lines(ending.err), 1) << ending.err;
  }
}

TEST_P(PerfAlone, EndsWhenItIsStopped) {
  ToolProcess both(tool("ib_send_bw"), {GetParam(), "-D", "100"});
  ASSERT_TRUE(both.wait_for_output(" #bytes"));
  both.signal(SIGTERM);
  const Ending ending = both.finish(std::chrono::seconds(10));
  EXPECT_TRUE(ending.in_time);
  EXPECT_EQ(ending.signal, SIGTERM);
}

INSTANTIATE_TEST_SUITE_P(Modes, PerfAlone, ::testing::Values("--both-ends", "--single-process"));

TEST_F(Perf, TheProcessorsUseIsTheLastColumn) {
  const PerfEndings endings = play("ib_write_bw", {"-D", "1", "-f", "0", "--cpu_util"});
  expect_both_finished(endings);
  EXPECT_THAT(endings.client.out, HasSubstr("MsgRate[Mpps]    CPU_Util[%]\n"));
  const auto rows = perf_rows(endings.client.out);
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0].size(), 6u);
  EXPECT_LE(rows[0].back(), 100);
}

TEST_F(Perf, TheSubcommandIsTheProgramOfPerftestsName) {
  const Words words = {"perf", "send-lat", "-n", "20"};
  const PerfEndings endings =
      play_our_server(tool("verbatim"), words, tool("ib_send_lat"), {"-n", "20"});
  expect_both_finished(endings);
  EXPECT_THAT(endings.server.out, HasSubstr("* Waiting for client to connect... *"));
  EXPECT_THAT(endings.server.out, HasSubstr(" RX depth        : 20\n"));
  EXPECT_THAT(endings.client.out, HasSubstr(" TX depth        : 1\n"));
}

TEST_F(Perf, OneNumberIsPrintedWhereOneIsAskedFor) {
  for (const auto& [name, what] :
       {std::pair("ib_send_lat", "latency"), std::pair("ib_send_bw", "bandwidth"),
        std::pair("ib_write_bw", "message_rate")}) {
    const PerfEndings endings = play(name, {"-n", "20", "--output", what});
    expect_both_finished(endings);
    EXPECT_THAT(endings.client.out, ::testing::MatchesRegex("[0-9]+\\.[0-9]+\n"));
  }
}

TEST_F(Perf, AllResultsArePrintedSortedOrInTheirOrder) {
  const PerfEndings endings = play("ib_send_lat", {"-n", "20", "-H"}, {"-U"});
  expect_both_finished(endings);
  std::size_t lists = 0, at = 0;
  while ((at = endings.client.out.find("#, usec\n1, ", at)) != std::string::npos) ++at, ++lists;
  EXPECT_EQ(lists, 2u);
  EXPECT_THAT(endings.client.out, HasSubstr("\n19, "));
  EXPECT_EQ(perf_rows(endings.client.out).size(), 1u);
}

TEST_F(Perf, TheFileOfResultsIsJson) {
  const std::string file = ::testing::TempDir() + "perf_out." + std::to_string(getpid());
  expect_both_finished(play("ib_write_bw", {"-a", "-n", "5"}, {"--out_json_file", file}));
  const auto read = nlohmann::json::parse(std::ifstream(file));
  EXPECT_EQ(read.at("test"), "RDMA_Write BW Test");
  EXPECT_EQ(read.at("results").size(), 23u);
  EXPECT_EQ(read.at("results").back().at("MsgSize"), 8388608);
  EXPECT_GT(read.at("results").back().at("BW_average").get<double>(), 0);
  unlink(file.c_str());
}

TEST_F(Perf, AResultBelowTheLimitIsAFailure) {
  const PerfEndings endings = play("ib_write_bw", {"-n", "20"}, {"-w", "1e12"});
  EXPECT_EQ(endings.server.status, 0) << endings.server.err;
  expect_complaint(endings.client, "is below bw limit");
}

TEST_F(Perf, AFileThatTakesNothingIsSaid) {
  const PerfEndings endings = play("ib_read_lat", {"-n", "20"}, {"--out_json_file", "/dev/full"});
  expect_complaint(endings.client, "Couldn't write all of '/dev/full': No space left on device");
}

struct Unlike {
  std::string server_tool;
  Words server;
  std::string client_tool;
  Words client;
  std::string client_hears;
};
void PrintTo(const Unlike& unlike, std::ostream* out) {
  *out << unlike.server_tool << ::testing::PrintToString(unlike.server) << unlike.client_tool
       << ::testing::PrintToString(unlike.client);
}

class PerfUnlike : public Perf, public ::testing::WithParamInterface<Unlike> {};

TEST_P(PerfUnlike, EndsAreToldInOneLineEach) {
  const Unlike& unlike = GetParam();
  const PerfEndings endings = play_our_server(tool(unlike.server_tool), unlike.server,
                                              tool(unlike.client_tool), unlike.client);
  expect_complaint(endings.client, unlike.client_hears);
  expect_complaint(endings.server, "give both the same");
  EXPECT_EQ(own_lines(endings.client.err), 1) << endings.client.err;
  EXPECT_EQ(own_lines(endings.server.err), 2) << endings.server.err;  // where it listens, too
}

INSTANTIATE_TEST_SUITE_P(
    Options, PerfUnlike,
    ::testing::Values(
        Unlike{"ib_send_bw",
               {"-s", "64"},
               "ib_send_bw",
               {"-s", "128"},
               "the other side runs 'send-bw -c RC -s 64', this one 'send-bw -c RC -s 128'"},
        Unlike{"ib_write_bw", {"-s", "64"}, "ib_write_bw", {"-s", "128"}, "'write-bw -c RC -s 64'"},
        Unlike{"ib_send_bw", {}, "ib_read_bw", {}, "this one 'read-bw"},
        Unlike{"ib_send_lat", {}, "ib_send_bw", {"-s", "2"}, "'send-lat -c RC -s 2'"},
        Unlike{"ib_send_lat", {}, "ib_send_lat", {"-c", "UC"}, "this one 'send-lat -c UC -s 2'"},
        Unlike{"ib_send_bw", {"-q", "2"}, "ib_send_bw", {}, "'send-bw -c RC -s 65536 -q 2'"},
        Unlike{"ib_send_bw", {"-b"}, "ib_send_bw", {}, "'send-bw -c RC -s 65536 -b'"},
        Unlike{"ib_send_bw", {"-a"}, "ib_send_bw", {}, "'send-bw -c RC -a'"},
        Unlike{"ib_send_bw", {"-D", "9"}, "ib_send_bw", {}, "'send-bw -c RC -s 65536 -D ...'"},
        Unlike{"ib_send_bw", {"-x", "0"}, "ib_send_bw", {}, "'send-bw -c RC -s 65536 -x ...'"},
        Unlike{
            "ib_send_bw", {}, "ib_send_bw", {"--reversed"}, "'send-bw -c RC -s 65536 --reversed'"},
        Unlike{
            "ib_write_bw", {}, "ib_write_bw", {"--write_with_imm"}, "-s 65536 --write_with_imm'"},
        Unlike{
            "ib_write_bw", {"--run_infinitely"}, "ib_write_bw", {}, "-s 65536 --run_infinitely'"},
        Unlike{
            "ib_read_bw", {"--data_validation"}, "ib_read_bw", {}, "-s 65536 --data_validation'"},
        Unlike{
            "ib_send_lat", {"-n", "10"}, "ib_send_lat", {}, "than 1000: give both the same -n"}));

TEST_F(Perf, AServerOfMoreMemoryServes) {
  expect_both_finished(play_our_server(tool("ib_write_bw"), {"-s", "8192"}, tool("ib_write_bw"),
                                       {"-s", "64", "-n", "100"}));
}

struct Departure {
  std::string tool;
  bool server_goes;
  Words more = {};
};
void PrintTo(const Departure& departure, std::ostream* out) {
  *out << departure.tool << (departure.server_goes ? " server" : " client");
}

class PerfDeparture : public Perf, public ::testing::WithParamInterface<Departure> {};

TEST_P(PerfDeparture, OfTheOtherEndIsSaidSoon) {
  // Without -F of lines: the columns come when both are at it.
  const Words words = joined({"-D", "100"}, GetParam().more);
  ToolProcess server(tool(GetParam().tool), joined(words, {"-p", "0"}));
  const auto port = listening_port(server);
  ASSERT_TRUE(port);
  ToolProcess client(tool(GetParam().tool),
                     joined(words, {"-p", std::to_string(*port), "127.0.0.1"}));
  ASSERT_TRUE(client.wait_for_output(" #bytes"));
  (GetParam().server_goes ? server : client).signal(SIGKILL);
  ToolProcess& left = GetParam().server_goes ? client : server;
  const Ending ending = left.finish(std::chrono::seconds(10));
  EXPECT_TRUE(ending.in_time);
  EXPECT_EQ(ending.status, 1);
  // By the program's conversation or by the library, whichever sees it first.
  EXPECT_THAT(ending.err,
              ::testing::ContainsRegex("look at its own message|its process has ended"));
}

INSTANTIATE_TEST_SUITE_P(Ends, PerfDeparture,
                         ::testing::Values(Departure{"ib_send_lat", true},
                                           Departure{"ib_write_lat", false},
                                           Departure{"ib_send_bw", true},
                                           Departure{"ib_write_bw", false},
                                           Departure{"ib_read_lat", true},
                                           Departure{"ib_send_lat", false, {"-c", "UD"}}));

TEST_F(Perf, StrangersAreTold) {
  struct Words2 {
    std::string bytes;
    std::string says;
  };
  std::string version = "6.06";
  version.resize(16);
  const std::string introduced =
      version + std::string("\0\0\x10\0\0\0\0\x40", 8) + std::string("5\0", 2);
  for (const Words2& stranger :
       {Words2{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "is no perftest program from 5.70 on"},
        Words2{std::string("5.60").append(12, '\0'), "from 5.70 on (it says 5.60)"},
        Words2{"", "closed the connection after 0 of 16 bytes"},
        Words2{version + "\xff\xff\xff\xff", "a page of 4294967295 bytes is none"},
        Words2{introduced + std::string(59, '\0'), "sent no address"},
        Words2{introduced + std::string(108, ':'), "with a GID, this one without"},
        Words2{introduced + std::string(20, '0'), "closed the connection after 20 of 59 bytes"}}) {
    ToolProcess server(tool("ib_send_bw"), {"-p", "0"});
    const auto port = listening_port(server);
    ASSERT_TRUE(port);
    const Stranger client(*port);
    client.say(stranger.bytes);
    client.hang_up();
    expect_complaint(server.finish(), stranger.says);
  }
}

/// As perftest 6.29's ib_send_bw -s 64 -n 1000 says its options.
std::string negotiation_of_sends() {
  std::string bytes(312, '\0');
  bytes[15] = 1;                      // bandwidth
  bytes[27] = 1;                      // MiB/s
  bytes[39] = 64;                     // size
  bytes[46] = 3, bytes[47] = '\xe8';  // 1000
  bytes[55] = 1;                      // queue pair
  bytes[59] = 5;                      // seconds
  return bytes;
}

struct Negotiation {
  std::string bytes;
  std::string says;
};

// The facts of a perftest that is not at hand: the exchange of 6.28 and later, with and without the
// field of one vendor.
TEST_F(Perf, NegotiatesWithAClientOfALaterVersion) {
  std::string other_size = negotiation_of_sends(), encrypted = negotiation_of_sends();
  other_size[38] = 1;
  encrypted[51] = 1;
  const std::string of_one_vendor(8, '\7');
  const std::string fits = "closed the connection after 0 of 59 bytes";  // as far as this peer goes
  for (const Negotiation& negotiation :
       {Negotiation{negotiation_of_sends(), fits},
        Negotiation{negotiation_of_sends() + of_one_vendor, fits},
        Negotiation{other_size, "perftest 6.29, has another size (-s): 320 there, 64 here"},
        Negotiation{encrypted + of_one_vendor, "encryption (--aes_xts): on there, off here"},
        Negotiation{std::string(312, '\xff'), "another operation: number 4294967295 there"}}) {
    ToolProcess server(tool("ib_send_bw"), {"-s", "64", "-p", "0"});
    const auto port = listening_port(server);
    ASSERT_TRUE(port);
    const Stranger client(*port);
    std::string version = "6.29";
    version.resize(16);
    client.say(version);
    EXPECT_EQ(client.hear(16).substr(0, 5), std::string("6.29\0", 5));
    const std::string page("\0\0\x10\0", 4), line("\0\0\0\x40", 4), mtu("5\0", 2);
    for (const std::string& bytes : {page, line, mtu}) {
      client.say(bytes);
      EXPECT_EQ(client.hear(bytes.size()).size(), bytes.size());
    }
    client.say(negotiation.bytes);
    const std::string answer = client.hear(negotiation.bytes.size());
    EXPECT_EQ(answer.substr(0, 80), negotiation_of_sends().substr(0, 80));
    EXPECT_EQ(answer.size(), negotiation.bytes.size());
    client.hang_up();
    const Ending ending = server.finish();
    expect_complaint(ending, negotiation.says);
    EXPECT_EQ(own_lines(ending.err), 2) << ending.err;  // where it listens, too
  }
}

TEST_F(Perf, SaysWhenALaterVersionsNegotiationDoesNotCome) {
  ToolProcess server(tool("ib_send_bw"), {"-p", "0"});
  const auto port = listening_port(server);
  ASSERT_TRUE(port);
  const Stranger client(*port);
  std::string version = "26.07";
  version.resize(16);
  client.say(version + std::string("\0\0\x10\0\0\0\0\x40", 8) + std::string("5\0", 2) +
             std::string(100, '\0'));
  client.hang_up();
  expect_complaint(server.finish(),
                   "Couldn't exchange parameters: 127.0.0.1 closed the connection "
                   "after 100 of 312 bytes");
}

TEST_F(Perf, WhatADeviceLacksIsSaidBeforeAnybodyIsWaitedFor) {
  Environment fake = fabric_.environment({{"FAKE_VERBS_RC", "1"}, {"FAKE_VERBS_LACKS", "xrc"}});
  expect_complaint(run(fake_tool("ib_atomic_bw", fake), {}), "has no atomics");
  expect_complaint(run(fake_tool("ib_send_bw", fake), {"-c", "XRC", "-x", "0"}), "has no XRC");
}

TEST_F(Perf, AnMtuThatThePortDoesNotHaveIsSaidBeforeAnybodyIsWaitedFor) {
  const Environment fake =
      fabric_.environment({{"FAKE_VERBS_RC", "1"}, {"FAKE_VERBS_LACKS", "mtu"}});
  expect_complaint(run(fake_tool("ib_send_bw", fake), {"-m", "2048", "-x", "0"}),
                   "path MTU 2048 is more than the port's 1024; choose a smaller -m");
}

TEST_F(Perf, LostMessagesAreSaidWhenTheOtherSideIsThrough) {
  // One receive, and far more datagrams at once.
  const PerfEndings endings =
      play("ib_send_bw", {"-c", "UD", "-s", "64", "-n", "20000", "-r", "1"});
  expect_complaint(endings.server, "not all messages have come: UC and UD lose those that find");
  expect_complaint(endings.client, "closed the connection");
}

TEST_F(Perf, AnInlineSizeTooLargeIsSaidBeforeAnybodyIsWaitedFor) {
  for (const char* const connection : {"RC", "UC", "UD", "XRC"}) {
    // A server, and a client where no server is.
    for (const Words& other : {Words{}, Words{"127.0.0.1"}}) {
      const Ending ending =
          run(tool("ib_send_lat"), joined({"-c", connection, "-I", "900", "-p", "1"}, other));
      expect_complaint(ending, "inline size 900 is more than shm0 takes; choose a smaller -I");
      EXPECT_EQ(own_lines(ending.err), 1) << ending.err;
    }
  }
}

}  // namespace
}  // namespace verbatim::tools
