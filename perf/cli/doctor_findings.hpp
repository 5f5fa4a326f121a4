// SPDX-License-Identifier: BSD-2-Clause
// What `verbatim doctor` has to say: one finding a line, each with its verdict, its cause and,
// where something is wrong, its fix; and the examinations that find. One thread.
//
// A verdict is about this library: kFail is what keeps a device or the whole library from working,
// kWarn what makes it slower, smaller or dependent on luck. Texts may hold what files say, which
// may be anything: whoever prints makes them printable.
#pragma once

#include <string>
#include <vector>

#include "perf/cli/doctor_files.hpp"
#include "perf/support/json.hpp"

namespace verbatim::cli {

enum class Verdict { kOk, kWarn, kFail };

struct Finding {
  Verdict verdict;
  std::string topic;
  std::string cause;
  std::string fix;  // empty: there is nothing to do
  perf::Json facts;
};

class Findings {
 public:
  using Facts = perf::Json;

  void ok(const char* topic, std::string cause, Facts facts = nullptr) {
    add(Verdict::kOk, topic, std::move(cause), "", std::move(facts));
  }
  void warn(const char* topic, std::string cause, std::string fix, Facts facts = nullptr) {
    add(Verdict::kWarn, topic, std::move(cause), std::move(fix), std::move(facts));
  }
  void fail(const char* topic, std::string cause, std::string fix, Facts facts = nullptr) {
    add(Verdict::kFail, topic, std::move(cause), std::move(fix), std::move(facts));
  }
  void add(Verdict verdict, const char* topic, std::string cause, std::string fix, Facts facts) {
    all_.push_back({verdict, topic, std::move(cause), std::move(fix), std::move(facts)});
  }
  const std::vector<Finding>& all() const { return all_; }
  std::size_t count(Verdict verdict) const {
    std::size_t found = 0;
    for (const Finding& finding : all_) found += finding.verdict == verdict ? 1 : 0;
    return found;
  }

 private:
  std::vector<Finding> all_;
};

void examine_providers(Findings& findings);
/// The kernel's devices, as its files tell of them, and why some are not in the library's list.
void examine_kernel_devices(const HostFiles& files, Findings& findings);
/// The library's list: every device is opened, every port asked.
void examine_devices(Findings& findings);
void examine_memory(const HostFiles& files, Findings& findings);
void examine_shared_memory(const HostFiles& files, Findings& findings);
void examine_processes(const HostFiles& files, Findings& findings);
void examine_fabric_folder(const HostFiles& files, Findings& findings);
void examine_cores(const HostFiles& files, Findings& findings);

/// The other process of the examination of direct copies: copies from and to `whom`, given as
/// "<pid>:<address>". The exit status: 0, or which call failed and the errno, see
/// doctor_copy_check.cpp.
int copy_as_peer(const char* whom);

}  // namespace verbatim::cli
