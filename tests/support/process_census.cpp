// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/process_census.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace verbatim::harness {
namespace {

std::vector<std::string> names_in(const char* folder, int* own_descriptor) {
  std::vector<std::string> names;
  DIR* dir = opendir(folder);
  if (dir == nullptr) return names;
  if (own_descriptor != nullptr) *own_descriptor = dirfd(dir);
  while (const dirent* entry = readdir(dir)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(dir);
  return names;
}

}  // namespace

ProcessCensus ProcessCensus::take() {
  ProcessCensus census;
  int own = -1;
  for (const std::string& name : names_in("/proc/self/fd", &own)) {
    const int number = std::atoi(name.c_str());
    if (number == own) continue;
    char target[512];
    const ssize_t n = readlink(("/proc/self/fd/" + name).c_str(), target, sizeof target);
    census.descriptors[number] = std::string(target, n > 0 ? static_cast<std::size_t>(n) : 0);
  }
  for (std::string& name : names_in("/proc/self/task", nullptr)) {
    census.threads.insert(std::move(name));
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t name = line.find('/');
    if (name != std::string::npos) census.files_mapped.insert(line.substr(name));
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    char dash = 0;
    std::istringstream range(line);
    range >> std::hex >> begin >> dash >> end;
    census.address_space += end - begin;
  }
  return census;
}

std::string left_behind(const ProcessCensus& before, const ProcessCensus& after) {
  std::ostringstream out;
  for (const auto& [number, target] : after.descriptors) {
    const auto old = before.descriptors.find(number);
    if (old == before.descriptors.end() || old->second != target) {
      out << "descriptor " << number << " -> " << target << '\n';
    }
  }
  for (const std::string& thread : after.threads) {
    if (!before.threads.contains(thread)) out << "thread " << thread << '\n';
  }
  std::vector<std::string> extra;
  std::set_difference(after.files_mapped.begin(), after.files_mapped.end(),
                      before.files_mapped.begin(), before.files_mapped.end(),
                      std::back_inserter(extra));
  for (const std::string& name : extra) out << "mapping of " << name << '\n';
  return out.str();
}

}  // namespace verbatim::harness
