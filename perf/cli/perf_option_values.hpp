// SPDX-License-Identifier: BSD-2-Clause
// The values of options of `verbatim perf` that are more than a number. Any thread; pure. What is
// none is a Failure that names the option and what it takes.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perf/cli/perf_options.hpp"

namespace verbatim::cli {

std::uint32_t perf_message_size(const char* text);
PerfConnection perf_connection(const char* text, PerfTest test);
PerfOutput perf_output(const char* text, PerfTest test);
double perf_limit(const char* option, const char* text);
/// "255:1:0:...", each number in any base that C knows.
ibv_gid perf_group(const char* text);
std::vector<std::string> perf_counter_names(std::string_view list, const char* option);
/// "0,2-5"
std::vector<int> perf_cores(const char* text);
double perf_rate(const char* text);
PerfRateUnit perf_rate_unit(const char* text);
/// What limits a rate: this program alone can say that it does.
void check_perf_limiter(const char* text);
std::uint8_t perf_link(const char* text);

}  // namespace verbatim::cli
