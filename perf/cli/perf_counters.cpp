// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_counters.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "perf/cli/failure.hpp"
#include "perf/cli/file_handle.hpp"

namespace verbatim::cli {
PortCounters::PortCounters(const char* device, int port, const std::vector<std::string>& names)
    : folder_{std::string("/sys/class/infiniband/") + device + "/ports/" + std::to_string(port) +
              "/"},
      names_{names} {
  start();
}

std::uint64_t PortCounters::read(std::size_t counter) const {
  const std::string name = folder_ + names_[counter];
  std::uint64_t value = 0;
  errno = 0;
  const FileHandle file(std::fopen(name.c_str(), "re"));
  if (file && std::fscanf(file.get(), "%" SCNu64, &value) == 1) return value;
  fail("Couldn't read counter '%s': %s (-W)", name.c_str(),
       errno != 0 ? std::strerror(errno) : "it is no number");
}

void PortCounters::start() {
  before_.clear();
  for (std::size_t counter = 0; counter < names_.size(); ++counter)
    before_.push_back(read(counter));
}

void PortCounters::print() const {
  for (std::size_t counter = 0; counter < names_.size(); ++counter) {
    std::printf("\t%s=%" PRIu64 "\n", names_[counter].c_str(), read(counter) - before_[counter]);
  }
  if (!names_.empty()) std::printf("\n");
}

ProcessorUse::Times ProcessorUse::now() {
  Times times;
  const FileHandle file(std::fopen("/proc/stat", "re"));
  if (!file ||
      std::fscanf(file.get(), "cpu %" SCNu64 " %*u %*u %" SCNu64, &times.user, &times.idle) != 2) {
    return {};
  }
  return times;
}

double ProcessorUse::percent() const {
  const Times end = now();
  const auto user = static_cast<double>(end.user - before_.user);
  const auto idle = static_cast<double>(end.idle - before_.idle);
  return user + idle > 0 ? 100 * user / (user + idle) : 0;
}

}  // namespace verbatim::cli
