// SPDX-License-Identifier: BSD-2-Clause
// The main job. This process only supervises: it starts the two measuring ends (this same program
// in another role), asks them for one block after another, and sleeps meanwhile. Ctrl-C, an error
// or the end of a run ends both and removes the private fabric folder; after Ctrl-C the tables
// have what was measured till then.
#include <cstdio>
#include <exception>

#include "perf/ends/end.hpp"
#include "perf/figures/options.hpp"
#include "perf/figures/plan.hpp"
#include "perf/figures/report.hpp"
#include "perf/figures/run.hpp"
#include "perf/support/interrupt.hpp"
#include "perf/support/lost_output.hpp"

namespace verbatim::perf {
namespace {

int supervise(const RunOptions& options) {
  catch_interrupts();
  try {
    Run run(options, make_plan({options.sizes, options.floors_only}),
            options.floors_only ? "" : "shm");
    const int status = run.measure();
    const bool printed = options.jsonl == "-" || options.csv == "-";
    if (printed || (status != 0 && run.records().empty())) return status;
    if (options.json) {
      print_json(stdout, run.facts(), run.groups());
    } else {
      print_tables(stdout, run.facts(), run.groups());
    }
    return status;
  } catch (const Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "verbatim_perf: %s\n", failure.what());
    return 1;
  }
}

}  // namespace
}  // namespace verbatim::perf

int main(int argc, char** argv) {
  using namespace verbatim::perf;
  const int as_end = run_if_end(argc, argv);
  if (as_end >= 0) return as_end;
  std::string error;
  const auto options = parse_run_options({argv + 1, argv + argc}, error);
  if (!options) {
    std::fprintf(stderr, "verbatim_perf: %s\n%s", error.c_str(), kRunUsage);
    return 2;
  }
  if (options->help) {
    std::fputs(kRunUsage, stdout);
    return status_of_output("verbatim_perf", 0);
  }
  return status_of_output("verbatim_perf", supervise(*options));
}
