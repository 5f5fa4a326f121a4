// SPDX-License-Identifier: BSD-2-Clause
// The commands of the multi-call tool.
//
// Each is a whole program: it parses argv with getopt_long (so: once per process, main thread),
// prints, and returns the exit status. `Calling` says whether argv[0] is the name of a
// tool of rdma-core or perftest, whose options are then the only ones; a subcommand of `verbatim` has --help
// too. argv[0] is what messages and usage text call the program.
#pragma once

#include <string_view>

namespace verbatim::cli {

enum class Calling { kClassicName, kSubcommand };

struct Command {
  std::string_view classic;  // called by this name, where there is one ...
  std::string_view first;    // ... or as `verbatim first [second]`
  std::string_view second;
  int (*run)(Calling, int, char**);
};

int devices(Calling calling, int argc, char** argv);
int devinfo(Calling calling, int argc, char** argv);
int pingpong_rc(Calling calling, int argc, char** argv);
int pingpong_uc(Calling calling, int argc, char** argv);
int pingpong_ud(Calling calling, int argc, char** argv);
int pingpong_srq(Calling calling, int argc, char** argv);
int pingpong_xsrq(Calling calling, int argc, char** argv);
int perf_send_lat(Calling calling, int argc, char** argv);
int perf_send_bw(Calling calling, int argc, char** argv);
int perf_write_lat(Calling calling, int argc, char** argv);
int perf_write_bw(Calling calling, int argc, char** argv);
int perf_read_lat(Calling calling, int argc, char** argv);
int perf_read_bw(Calling calling, int argc, char** argv);
int perf_atomic_lat(Calling calling, int argc, char** argv);
int perf_atomic_bw(Calling calling, int argc, char** argv);
int asyncwatch(Calling calling, int argc, char** argv);
int top(Calling calling, int argc, char** argv);
int topology(Calling calling, int argc, char** argv);
int run(Calling calling, int argc, char** argv);
int exec(Calling calling, int argc, char** argv);
int doctor(Calling calling, int argc, char** argv);
// Not in a build without MPI.
[[gnu::weak]] int mpi(Calling calling, int argc, char** argv);
[[gnu::weak]] int perf_coll(Calling calling, int argc, char** argv);
[[gnu::weak]] int perf_pattern(Calling calling, int argc, char** argv);
[[gnu::weak]] int perf_sim(Calling calling, int argc, char** argv);

}  // namespace verbatim::cli
