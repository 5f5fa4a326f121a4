// SPDX-License-Identifier: BSD-2-Clause
// The multi-call tool: `verbatim <command>`, or the name of a classic tool that links to it.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "perf/cli/commands.hpp"
#include "perf/cli/measuring.hpp"
#include "perf/support/lost_output.hpp"

namespace {

using verbatim::cli::Calling;
using verbatim::cli::Command;

constexpr std::array kCommands = {
    Command{"ibv_devices", "devices", "", verbatim::cli::devices},
    Command{"ibv_devinfo", "devinfo", "", verbatim::cli::devinfo},
    Command{"ibv_rc_pingpong", "pingpong", "rc", verbatim::cli::pingpong_rc},
    Command{"ibv_uc_pingpong", "pingpong", "uc", verbatim::cli::pingpong_uc},
    Command{"ibv_ud_pingpong", "pingpong", "ud", verbatim::cli::pingpong_ud},
    Command{"ibv_srq_pingpong", "pingpong", "srq", verbatim::cli::pingpong_srq},
    Command{"ibv_xsrq_pingpong", "pingpong", "xsrq", verbatim::cli::pingpong_xsrq},
    Command{"ib_send_lat", "perf", "send-lat", verbatim::cli::perf_send_lat},
    Command{"ib_send_bw", "perf", "send-bw", verbatim::cli::perf_send_bw},
    Command{"ib_write_lat", "perf", "write-lat", verbatim::cli::perf_write_lat},
    Command{"ib_write_bw", "perf", "write-bw", verbatim::cli::perf_write_bw},
    Command{"ib_read_lat", "perf", "read-lat", verbatim::cli::perf_read_lat},
    Command{"ib_read_bw", "perf", "read-bw", verbatim::cli::perf_read_bw},
    Command{"ib_atomic_lat", "perf", "atomic-lat", verbatim::cli::perf_atomic_lat},
    Command{"ib_atomic_bw", "perf", "atomic-bw", verbatim::cli::perf_atomic_bw},
    Command{"", "perf", "sim", verbatim::cli::perf_sim},
    Command{"", "perf", "pattern", verbatim::cli::perf_pattern},
    Command{"", "perf", "coll", verbatim::cli::perf_coll},
    Command{"ibv_asyncwatch", "asyncwatch", "", verbatim::cli::asyncwatch},
    Command{"", "top", "", verbatim::cli::top},
    Command{"", "topo", "", verbatim::cli::topology},
    Command{"", "run", "", verbatim::cli::run},
    Command{"", "mpi", "", verbatim::cli::mpi},
    Command{"", "exec", "", verbatim::cli::exec},
    Command{"", "doctor", "", verbatim::cli::doctor},
};

constexpr const char* kPerfCommands =
    "  verbatim perf send-lat [options] [host] measure latency with another process, which may\n"
    "                                          be perftest's; or bandwidth, send-bw, and\n"
    "                                          write-, read- and atomic-lat and -bw likewise\n"
    "  verbatim perf sim [options]             what a model of a network says of a collective\n"
    "  verbatim perf pattern <name>            all processes of a launcher's job at once\n"
    "  verbatim perf coll <name> [options]     measure a collective of MPI among ranks\n"
    "  verbatim perf floors [options]          measure what no message here can undercut\n"
    "  verbatim perf scaling [options]         measure costs among many queue pairs and regions\n"
    "  verbatim perf gate <base> <new>         fail when a run is slower than another one\n"
    "  verbatim perf report <run> [<base>]     draw a run as a page for a browser\n";

void usage(std::FILE* out) {
  std::fprintf(
      out,
      "Usage:\n"
      "  verbatim devices                        list the RDMA devices\n"
      "  verbatim devinfo [options]              print what devices and ports say\n"
      "  verbatim pingpong rc [options] [host]   exchange messages with another process:\n"
      "  verbatim pingpong uc [options] [host]   over reliable and unreliable connections,\n"
      "  verbatim pingpong ud [options] [host]   datagrams,\n"
      "  verbatim pingpong srq [options] [host]  connections that share their receives,\n"
      "  verbatim pingpong xsrq [options] [host] and XRC, one server with several clients\n"
      "%s"
      "  verbatim asyncwatch [options]           print a device's asynchronous events\n"
      "  verbatim top [options]                  show what all processes of the user are doing\n"
      "  verbatim topo [options]                 print or draw the machine: where memory and cores "
      "are\n"
      "  verbatim run -n <ranks> <program>       start an MPI program on this host\n"
      "  verbatim mpi --explain <collective>     which algorithm does it, and why\n"
      "  verbatim exec <program>                 run a program linked with libibverbs, as it is, "
      "on\n"
      "                                          this library's devices\n"
      "  verbatim doctor [options]               explain what keeps RDMA from working here\n"
      "  verbatim --version\n"
      "\n"
      "'verbatim <command> --help' lists a command's options. Linked to as ibv_devices,\n"
      "ibv_devinfo, ibv_asyncwatch, ibv_{rc,uc,ud,srq,xsrq}_pingpong or\n"
      "ib_{send,write,read,atomic}_{lat,bw}, this program behaves as that tool.\n",
      kPerfCommands);
}

void perf_usage() {
  std::printf(
      "Usage:\n"
      "%s"
      "\n"
      "'verbatim perf <command> --help' lists a command's options.\n",
      kPerfCommands);
}

std::string_view base_name(const char* path) {
  const std::string_view whole = path;
  return whole.substr(whole.rfind('/') + 1);  // npos + 1 is 0
}

/// Runs a subcommand with its own name as argv[0] and its own arguments behind.
int run_subcommand(const Command& command, int words, int argc, char** argv) {
  std::string name = "verbatim";
  for (int i = 1; i <= words; ++i) name.append(" ").append(argv[i]);
  argv[words] = name.data();
  return command.run(Calling::kSubcommand, argc - words, argv + words);
}

/// Descriptors that the program was started without are somebody's files as soon as something is
/// opened: what is printed then would be written into them.
void fill_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // Of the wrong direction, so that using it fails as it did before.
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int run_command(int argc, char** argv) {
  const std::string_view called = base_name(argv[0]);
  for (const Command& command : kCommands) {
    if (!command.classic.empty() && called == command.classic)
      return command.run(Calling::kClassicName, argc, argv);
  }
  const std::string_view first = argc > 1 ? argv[1] : "";
  const std::string_view second = argc > 2 ? argv[2] : "";
  for (const std::span<const Command> commands :
       {std::span<const Command>(kCommands), verbatim::cli::measuring_commands()}) {
    for (const Command& command : commands) {
      if (first != command.first || command.run == nullptr) continue;
      if (command.second.empty()) return run_subcommand(command, 1, argc, argv);
      if (second == command.second) return run_subcommand(command, 2, argc, argv);
    }
  }
  if (first == "--help" || first == "-h") {
    usage(stdout);
    return 0;
  }
  if (first == "perf" && (second == "--help" || second == "-h")) {
    perf_usage();
    return 0;
  }
  if (first == "--version") {
    std::printf("verbatim %s\n", VERBATIM_VERSION);
    return 0;
  }
  for (const Command& command : kCommands) {
    if (command.run != nullptr || first != command.first) continue;
    if (!command.second.empty() && second != command.second) continue;
    std::fprintf(stderr, "verbatim: '%s%s%s' is not in a build without MPI\n", argv[1],
                 command.second.empty() ? "" : " ", command.second.data());
    return 1;
  }
  if (!first.empty()) {
    std::fprintf(
        stderr,
        "verbatim: no command '%s%s%s' (there are: devices, devinfo, pingpong rc, "
        "uc, ud, srq or xsrq, perf send-, write-, read- or atomic-lat or -bw, perf coll, floors, "
        "gate, pattern, report, scaling or sim, asyncwatch, "
        "top, topo, run, mpi, exec, doctor; see 'verbatim --help')\n",
        argv[1], argc > 2 ? " " : "", argc > 2 ? argv[2] : "");
    return 1;
  }
  usage(stderr);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 1) return 1;
  if (const int status = verbatim::cli::run_if_measuring_end(argc, argv); status >= 0) {
    return status;
  }
  fill_standard_descriptors();
  return verbatim::perf::status_of_output("verbatim", run_command(argc, argv));
}
