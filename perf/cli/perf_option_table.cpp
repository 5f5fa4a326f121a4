// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_option_table.hpp"

namespace verbatim::cli {
namespace {

constexpr unsigned tests_of(PerfVerb verb) { return 3u << (2 * static_cast<unsigned>(verb)); }
constexpr unsigned kEvery = 0xff, kOfLatency = 0x55, kOfBandwidth = 0xaa;
constexpr unsigned kOfSend = tests_of(PerfVerb::kSend), kOfWrite = tests_of(PerfVerb::kWrite);
constexpr unsigned kOfRead = tests_of(PerfVerb::kRead), kOfAtomic = tests_of(PerfVerb::kAtomic);

constexpr const char* kNoCm = "connections by rdma_cm; addresses are exchanged over TCP";
constexpr const char* kNoMulticast = "multicast; perftest has it, under 'verbatim exec'";
constexpr const char* kNoLimiter = "rate limiter";
constexpr const char* kNoAccelerator = "memory of accelerators";

constexpr PerfOption kPerfOptions[] = {
    {'a', "all", kEvery & ~kOfAtomic, nullptr, "sizes from 2 to 2^23, by twos"},
    {'A', "atomic_type", kOfAtomic, "type", "FETCH_AND_ADD (default) or CMP_AND_SWAP"},
    {'b', "bidirectional", kOfBandwidth, nullptr, "both ends send at once"},
    {'c', "connection", kEvery, "type", "RC (default), XRC; of SEND and WRITE also UC, of SEND UD"},
    {'C', "report-cycles", kOfLatency, nullptr, "times in ticks of the processor's counter"},
    {'d', "ib-dev", kEvery, "dev", "the device (default: the first)"},
    {'D', "duration", kEvery, "seconds", "run for so long, not for a number of messages"},
    {'e', "events", kEvery & ~kOfWrite, nullptr, "sleep until completions come (default: poll)"},
    {'f', "margin", kEvery, "seconds", "not counted at either end of -D (default: a quarter)"},
    {'F', "CPU-freq", kEvery, nullptr, "taken for perftest's sake: no clock depends on it here"},
    {'h', "help", kEvery, nullptr, "print this"},
    {'H', "report-histogram", kOfLatency, nullptr, "print all results, sorted"},
    {'i', "ib-port", kEvery, "port", "port of the device (default 1)"},
    {'I', "inline_size", kOfSend | kOfWrite, "bytes",
     "longest message that is sent inline (default 0; of latency 236, or what the device has)"},
    {'l', "post_list", kOfBandwidth, "number", "requests that are posted at once (default 1)"},
    {'m', "mtu", kEvery, "bytes", "path MTU, 256 to 4096 (default: the port's)"},
    {'n', "iters", kEvery, "number",
     "messages of each queue pair (default 1000, of write-bw 5000)"},
    {'N', "noPeak", kOfBandwidth, nullptr, "no peak (as from 20001 messages on)"},
    {'o', "outs", kOfRead | kOfAtomic, "number",
     "outstanding requests (default: all of the device)"},
    {'p', "port", kEvery, "port", "TCP port (default 18515; a server takes any free one for 0)"},
    {'q', "qp", kOfBandwidth, "number", "queue pairs (default 1)"},
    {'Q', "cq-mod", kEvery, "number", "sends for a completion (default 100; 1 above 8192 bytes)"},
    {'r', "rx-depth", kOfSend, "number", "receives of a queue pair, or of the SRQ (default 512)"},
    {'s', "size", kEvery & ~kOfAtomic, "bytes", "of a message (default 65536; of latency 2)"},
    {'S', "sl", kEvery, "sl", "service level (default 0)"},
    {'t', "tx-depth", kOfBandwidth, "number", "requests under way (default 128)"},
    {'u', "qp-timeout", kEvery, "value", "4.096 us * 2^value (default 14)"},
    {'U', "report-unsorted", kOfLatency, nullptr, "print all results, in their order"},
    {'V', "version", kEvery, nullptr, "print the version of perftest whose exchange this is"},
    {'w', "limit_bw", kOfBandwidth, "value", "fail when the average is below"},
    {'x', "gid-index", kEvery, "index", "of our GID (default: none; on Ethernet the best one)"},
    {'X', "vector", kEvery & ~kOfWrite, "number", "completion vector of events"},
    {'y', "limit_msgrate", kOfBandwidth, "value", "fail when the rate of messages is below"},
    {kUseSrq, "use-srq", kOfSend, nullptr, "queue pairs share their receives"},
    {kReportGbits, "report_gbits", kOfBandwidth, nullptr, "Gbit/s instead of MiB/s"},
    {kReportBoth, "report-both", kOfBandwidth, nullptr, "of -b: each direction by itself, too"},
    {kOldPostSend, "use_old_post_send", kEvery, nullptr, "post by ibv_post_send, not by ibv_wr_*"},
    {kOutJson, "out_json", kEvery, nullptr, "write the results into perftest_out.json, too"},
    {kOutJsonFile, "out_json_file", kEvery, "file", "write them into that file"},
    {kJsonLines, "jsonl", kEvery, "file",
     "write records with blocks and percentiles too, one JSON object a line"},
    {kCsv, "csv", kEvery, "file", "write records as CSV"},
    {kOutput, "output", kEvery, "what", "print only bandwidth, message_rate, or latency"},
    {kRetryCount, "retry_count", kEvery, "number", "retries until a connection fails (default 7)"},
    {kTclass, "tclass", kEvery, "value", "traffic class of the GRH"},
    {kPkeyIndex, "pkey_index", kEvery, "index", "of the partition (default 0)"},
    {kLatencyGap, "latency_gap", kOfLatency, "us", "pause before each message"},
    {kOdp, "odp", kEvery & ~kOfAtomic, nullptr, "memory that is paged on demand"},
    {kWarmUp, "perform_warm_up", kOfBandwidth & ~kOfSend, nullptr, "messages that are not counted"},

    {'g', "mcg", kEvery, nullptr, kNoMulticast, true},
    {'M', "MGID", kEvery, "gid", kNoMulticast, true},
    {'O', "dualport", kEvery, nullptr, "test of two ports at once; run two programs", true},
    {'L', "hop_limit", kEvery, "value", "raw packets, of which this is a field", true},
    {'R', "rdma_cm", kEvery, nullptr, kNoCm, true},
    {'z', "comm_rdma_cm", kEvery, nullptr, kNoCm, true},
    {'T', "tos", kEvery, "value", kNoCm, true},
    {'W', "report-counters", kEvery, "list", "counters of ports; see 'verbatim top'", true},
    {kRefused, "burst_size", kEvery, "size", kNoLimiter, true},
    {kRefused, "typical_pkt_size", kEvery, "bytes", kNoLimiter, true},
    {kRefused, "rate_limit", kEvery, "rate", kNoLimiter, true},
    {kRefused, "rate_units", kEvery, "units", kNoLimiter, true},
    {kRefused, "rate_limit_type", kEvery, "type", kNoLimiter, true},
    {kRefused, "use_cuda", kEvery, "id", kNoAccelerator, true},
    {kRefused, "use_rocm", kEvery, "id", kNoAccelerator, true},
    {kRefused, "mmap", kEvery, "file", "memory of a file", true},
    {kRefused, "mmap-offset", kEvery, "offset", "memory of a file", true},
    {kRefused, "use_hugepages", kEvery, nullptr, "memory of huge pages", true},
    {kRefused, "mr_per_qp", kEvery, nullptr, "memory region for each queue pair", true},
    {kRefused, "recv_post_list", kEvery, "number", "lists of receives; -l is of sends", true},
    {kRefused, "cpu_util", kEvery, nullptr, "figure for the use of processors", true},
    {kRefused, "report-per-port", kEvery, nullptr, "test of two ports at once; run two programs",
     true},
    {kRefused, "reversed", kEvery, nullptr, "other direction; swap server and client", true},
    {kRefused, "run_infinitely", kEvery, nullptr, "runs without an end; give a long -D", true},
    {kRefused, "wait_destroy", kEvery, "seconds", "pause at the end", true},
    {kRefused, "dlid", kEvery, "lid", "other destination than the peer's", true},
    {kRefused, "dont_xchg_versions", kEvery, nullptr, "exchange without versions", true},
    {kRefused, "force-link", kEvery, "type", "other link than the port's", true},
    {kRefused, "inline_recv", kEvery, "bytes", "receives inline", true},
    {kRefused, "ipv6", kEvery, nullptr, "choice of GIDs by family; name one with -x", true},
    {kRefused, "source_ip", kEvery, "address", "choice of its own address on TCP", true},
    {kRefused, "disable_pcie_relaxed", kEvery, nullptr, "relaxed ordering to switch off", true},
};

}  // namespace

std::span<const PerfOption> perf_options() { return kPerfOptions; }

}  // namespace verbatim::cli
