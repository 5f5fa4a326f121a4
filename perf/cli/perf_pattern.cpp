// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf pattern`: every process of a job writes to its neighbours at once, by the pattern
// that is named, and one table, or records, say what that comes to.
//
// An MPI program, since a launcher is what starts such a job: MPI tells who is there, carries the
// addresses and the figures, and is silent while the queue pairs of the pattern, which are not
// MPI's, are measured. Main thread. What only one rank meets ends the job, with its line.
#include <getopt.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perf/cli/commands.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/option_values.hpp"
#include "perf/cli/perf_floor_plan.hpp"
#include "perf/cli/perf_option_values.hpp"
#include "perf/cli/perf_pattern_edges.hpp"
#include "perf/cli/perf_pattern_report.hpp"
#include "perf/cli/perf_progress.hpp"
#include "perf/cli/perf_queues.hpp"
#include "perf/cli/perf_rank_floors.hpp"
#include "perf/cli/perf_ranks.hpp"
#include "perf/cli/pingpong_device.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::cli {
namespace {

constexpr std::uint32_t kLargest = 1u << 23;
constexpr std::uint32_t kPollsBetweenPauses = 2048;

struct PatternJob {
  PerfPattern pattern{};
  std::string name;
  std::size_t blocks = 0;
  bool floors = true;
  PerfOptions options{{PerfVerb::kWrite, PerfMeasure::kBandwidth}};
};

void pattern_usage(const char* name) {
  std::printf(
      "Usage:\n"
      "  mpiexec -n <processes> %s <pairs|incast|all-pairs|ring|halo> [options]\n"
      "                                  (or verbatim run, or srun --mpi=pmi2)\n"
      "\n"
      "Options:\n"
      "  -a, --all                       sizes from 2 to 2^23, by twos\n"
      "  -d, --ib-dev=<dev>              the device (default: the first)\n"
      "  -h, --help                      print this\n"
      "  -i, --ib-port=<port>            port of the device (default 1)\n"
      "  -n, --iters=<number>            messages to each neighbour (default 1000)\n"
      "  -s, --size=<bytes>              of a message (default 65536)\n"
      "  -t, --tx-depth=<number>         requests under way to each neighbour (default 128)\n"
      "  -x, --gid-index=<index>         of our GID (default: none; on Ethernet the best one)\n"
      "      --report_gbits              Gbit/s instead of MiB/s\n"
      "      --blocks=<number>           how often all of it is measured, of which the median "
      "counts\n"
      "                                  (default 1, of records 9)\n"
      "      --no-floors                 do not measure this host's floors beside it\n"
      "      --jsonl=<file>, --csv=<file>\n"
      "                                  records too, as 'verbatim perf report' and gate take "
      "them;\n"
      "                                  - instead of the table\n",
      name);
}

/// Nothing: the usage text was asked for.
std::optional<PatternJob> parse_pattern(int argc, char** argv) {
  enum { kGbits = 256, kBlocks, kNoFloors, kJsonl, kCsv };
  static const option kNames[] = {{"all", no_argument, nullptr, 'a'},
                                  {"ib-dev", required_argument, nullptr, 'd'},
                                  {"help", no_argument, nullptr, 'h'},
                                  {"ib-port", required_argument, nullptr, 'i'},
                                  {"iters", required_argument, nullptr, 'n'},
                                  {"size", required_argument, nullptr, 's'},
                                  {"tx-depth", required_argument, nullptr, 't'},
                                  {"gid-index", required_argument, nullptr, 'x'},
                                  {"report_gbits", no_argument, nullptr, kGbits},
                                  {"blocks", required_argument, nullptr, kBlocks},
                                  {"no-floors", no_argument, nullptr, kNoFloors},
                                  {"jsonl", required_argument, nullptr, kJsonl},
                                  {"csv", required_argument, nullptr, kCsv},
                                  {}};
  PatternJob job;
  PerfOptions& o = job.options;
  o.server = job.name = "pattern";  // each end sends, as a client does
  o.ends = PerfEnds::kHost;
  o.iterations = 1000;
  o.no_peak = true;
  static constexpr char kLetters[] = ":ad:hi:n:s:t:x:";
  opterr = 0;
  for (int id; (id = getopt_long(argc, argv, kLetters, kNames, nullptr)) != -1;) {
    switch (id) {
      case 'a':
        o.all_sizes = true;
        break;
      case 'd':
        o.device = optarg;
        break;
      case 'h':
        return {};
      case 'i':
        o.ib_port = static_cast<std::uint8_t>(option_number("port", "-i", optarg, 1, 255));
        break;
      case 'n':
        o.iterations =
            static_cast<std::uint64_t>(option_number("iterations", "-n", optarg, 5, 100'000'000));
        break;
      case 's':
        o.size = perf_message_size(optarg);
        break;
      case 't':
        o.tx_depth = static_cast<std::uint32_t>(option_number("tx depth", "-t", optarg, 1, 15'000));
        break;
      case 'x':
        o.gid_index = static_cast<int>(option_number("GID index", "-x", optarg, 0, 255));
        break;
      case kGbits:
        o.gbits = true;
        break;
      case kBlocks:
        job.blocks = static_cast<std::size_t>(option_number("blocks", "--blocks", optarg, 1, 1000));
        break;
      case kNoFloors:
        job.floors = false;
        break;
      case kJsonl:
        o.jsonl_file = optarg;
        break;
      case kCsv:
        o.csv_file = optarg;
        break;
      default:
        refuse_option(id, kLetters, argv);
    }
  }
  if (optind != argc - 1) fail("name one pattern: pairs, incast, all-pairs, ring or halo");
  const auto pattern = perf_pattern_named(argv[optind]);
  if (!pattern) {
    fail("'%s' is none of pairs, incast, all-pairs, ring, halo", argv[optind]);
  }
  job.pattern = *pattern;
  job.name = argv[optind];
  if (job.blocks == 0) job.blocks = o.jsonl_file || o.csv_file ? 9 : 1;
  if (o.all_sizes) o.size = kLargest;
  o.tx_depth = static_cast<std::uint32_t>(std::min<std::uint64_t>(o.tx_depth, o.iterations));
  o.cq_moderation = std::min(o.size > 8192 && !o.all_sizes ? 1 : o.cq_moderation, o.tx_depth);
  return job;
}

class PatternRank {
 public:
  PatternRank(const PatternJob& job, PatternReport& report)
      : job_{job}, options_{job.options}, report_{report} {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  void run() {
    for (const PatternEdge& edge : pattern_edges(job_.pattern, ranks_)) {
      if (edge.from == rank_ || edge.to == rank_) edges_.push_back(edge);
    }
    options_.queue_pairs = static_cast<std::uint32_t>(edges_.size());
    const Device device = open_device(options_.device, options_.ib_port);
    if (options_.size > device.port.max_msg_sz) {
      fail("size %u is more than %s sends in one message (%u bytes); choose a smaller -s",
           options_.size, device.name(), device.port.max_msg_sz);
    }
    agree(device.port.active_mtu);
    if (job_.floors && PerfRunFloors::possible()) report_.set_floors(take_floors(device));
    std::optional<PerfQueues> queues;
    if (!edges_.empty()) queues.emplace(device, options_, terms_);
    if (queues) queues->connect(swap_addresses(*queues));
    report_.heading(device.name(), terms_.mtu);
    for (const std::uint32_t size : sizes()) {
      std::optional<PerfProgress> progress;
      if (rank_ == 0) progress.emplace(progress_text(size), 0);
      std::vector<PatternFigures> blocks;
      while (blocks.size() < job_.blocks)
        blocks.push_back(queues ? measure(*queues, size) : idle());
      progress.reset();
      report_.row(size, blocks);
    }
    MPI_Barrier(MPI_COMM_WORLD);  // before anybody's memory goes
    report_.finish();
  }

 private:
  std::vector<std::uint32_t> sizes() const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t size = options_.all_sizes ? 2 : options_.size; size <= options_.size;
         size *= 2)
      all.push_back(size);
    return all;
  }

  std::string progress_text(std::uint32_t size) const {
    return "write pattern " + job_.name + ", " + std::to_string(size) + " bytes";
  }

  /// No rank that writes is faster than one core copies.
  std::optional<PerfRunFloors> take_floors(const Device& device) const {
    const bool by_memory = std::string_view(device.name()).starts_with("shm");
    int partner = 1;
    for (const PatternEdge& edge : pattern_edges(job_.pattern, ranks_)) {
      if (edge.from != 0 && edge.to != 0) continue;
      partner = edge.from + edge.to;
      break;
    }
    return take_rank_floors(
        {"bandwidth", false, options_.gbits, true,
         "test: the slowest rank that sends; test/floor of it is normally below 1"},
        plan_floors(options_, by_memory, sizes()), partner);
  }

  void agree(ibv_mtu mtu) {
    terms_ = own_perf_terms(mtu);
    unsigned most[2] = {terms_.walk, terms_.cache_line}, all[2];
    MPI_Allreduce(most, all, 2, MPI_UNSIGNED, MPI_MAX, MPI_COMM_WORLD);
    int least = mtu, path = mtu;
    MPI_Allreduce(&least, &path, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    terms_ = {all[0], all[1], static_cast<ibv_mtu>(path)};
  }

  int peer_of(const PatternEdge& edge) const { return edge.from == rank_ ? edge.to : edge.from; }

  /// Edge by edge in the order that all ranks have, so that the two ends of the first that is left
  /// always meet.
  const std::vector<PerftestAddress>& swap_addresses(const PerfQueues& queues) {
    for (std::uint32_t pair = 0; pair < edges_.size(); ++pair) {
      const PerftestAddress ours = queues.address(pair);
      PerftestAddress theirs;
      const int peer = peer_of(edges_[pair]);
      MPI_Sendrecv(&ours, sizeof ours, MPI_BYTE, peer, 0, &theirs, sizeof theirs, MPI_BYTE, peer, 0,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      peers_.push_back(theirs);
    }
    return peers_;
  }

  PatternFigures idle() const {
    MPI_Barrier(MPI_COMM_WORLD);
    return {};
  }

  PatternFigures measure(PerfQueues& queues, std::uint32_t size) const {
    queues.prepare(size, peers_);
    const std::uint64_t all = options_.iterations;
    std::uint64_t left = 0;
    for (const PatternEdge& edge : edges_) left += edge.from == rank_ ? all : 0;
    PatternFigures found{.bytes = left * size, .messages = left, .seconds = 0, .used = {}};
    MPI_Barrier(MPI_COMM_WORLD);
    const perf::Usage used = perf::usage_now();
    const std::uint64_t start = perf::ticks();
    std::uint32_t polls = 0;
    while (left > 0) {
      bool busy = false;
      for (std::uint32_t pair = 0; pair < edges_.size(); ++pair) {
        if (edges_[pair].from != rank_) continue;
        PerfSender& sender = queues.senders()[pair];
        while (sender.posted < all && sender.posted - sender.completed < options_.tx_depth) {
          queues.post(sender);
          busy = true;
        }
      }
      std::array<ibv_wc, 16> wc;
      const int count = ibv_poll_cq(queues.send_cq(), static_cast<int>(wc.size()), wc.data());
      if (count < 0) fail("Couldn't poll CQ");
      for (int at = 0; at < count; ++at) left -= take(queues, wc[static_cast<std::size_t>(at)]);
      if (busy || count > 0) continue;
      if (++polls % kPollsBetweenPauses != 0) continue;
      sched_yield();  // there may be more ranks than processors
    }
    found.seconds = static_cast<double>(perf::ticks() - start) * perf::ns_per_tick() / 1e9;
    found.used = perf::usage_since(used);
    return found;
  }

  /// How many requests a completion is of.
  std::uint64_t take(PerfQueues& queues, const ibv_wc& wc) const {
    if (wc.wr_id >= edges_.size()) return 0;
    if (wc.status != IBV_WC_SUCCESS) {
      fail("Completion of a write to rank %d with status %d (%s)", peer_of(edges_[wc.wr_id]),
           static_cast<int>(wc.status), ibv_wc_status_str(wc.status));
    }
    PerfSender& sender = queues.senders()[wc.wr_id];
    const std::uint64_t done =
        std::min<std::uint64_t>(options_.cq_moderation, options_.iterations - sender.completed);
    sender.completed += done;
    return done;
  }

  const PatternJob& job_;
  PerfOptions options_;
  PatternReport& report_;
  int rank_ = 0, ranks_ = 1;
  PerfTerms terms_;
  std::vector<PatternEdge> edges_;  // of this rank, in the order of all
  std::vector<PerftestAddress> peers_;
};

int run_pattern(const PatternJob& job, int rank, int ranks) {
  // Before anything is measured, and by all: a file that cannot be written is one line.
  std::optional<PatternReport> report;
  int status = 0;
  try {
    report.emplace(job.name, job.options, rank, ranks);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    status = failure.status;
  }
  MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (status != 0) return status;
  if (rank == 0) tell_when_interrupted();
  try {
    PatternRank(job, *report).run();
  } catch (const Failure& failure) {
    end_all_ranks(rank, failure);
  }
  return 0;
}

}  // namespace

int perf_pattern(Calling, int argc, char** argv) {
  std::optional<PatternJob> job;
  std::string wrong;
  try {
    job = parse_pattern(argc, argv);
    if (!job) {
      pattern_usage(argv[0]);
      return 0;
    }
  } catch (const Failure& failure) {
    wrong = failure.line;
  }
  return run_among_ranks(argc, argv, wrong, [&](int rank, int ranks) {
    if (ranks >= 2) return run_pattern(*job, rank, ranks);
    std::fprintf(
        stderr, "a pattern is of two processes or more: mpiexec -n 8 verbatim perf pattern halo\n");
    return 1;
  });
}

}  // namespace verbatim::cli
