// SPDX-License-Identifier: BSD-2-Clause
// Read by hand: users of mpiexec write `-np 4`, which getopt takes for `-n p 4`.
#include "perf/cli/run_options.hpp"

#include <cstdlib>
#include <string_view>

#include "perf/cli/failure.hpp"
#include "perf/cli/numbers.hpp"

namespace verbatim::cli {
namespace {

class Words {
 public:
  Words(int argc, char** argv) : argv_{argv}, argc_{argc} {}

  /// False: the next word is no option.
  bool next() {
    if (at_ >= argc_ || argv_[at_][0] != '-' || argv_[at_][1] == '\0') return false;
    word_ = argv_[at_++];
    const auto equals = word_.starts_with("--") ? word_.find('=') : std::string_view::npos;
    has_value_ = equals != std::string_view::npos;
    name_ = word_.substr(0, equals);
    value_ = has_value_ ? word_.data() + equals + 1 : nullptr;
    return name_ != "--";
  }
  bool is(std::string_view one, std::string_view other = "") const {
    return name_ == one || (!other.empty() && name_ == other);
  }
  /// Behind '=' or in the next word.
  const char* value() {
    if (!has_value_ && at_ < argc_) value_ = argv_[at_++];
    if (value_ == nullptr) fail("%s: '%s' needs a value (see --help)", argv_[0], word_.data());
    return value_;
  }
  void takes_no_value() const {
    if (has_value_) fail("%s: '%s' takes no value (see --help)", argv_[0], word_.data());
  }
  const char* word() const { return word_.data(); }
  char** rest() const { return argv_ + at_; }
  bool is_at_end() const { return at_ >= argc_; }

 private:
  char** argv_;
  int argc_;
  int at_ = 1;
  std::string_view word_, name_;
  const char* value_ = nullptr;
  bool has_value_ = false;
};

int number_of_ranks(const char* program, const char* option, const char* text) {
  const auto number = number_in(text, 1, kMostRanks);
  if (!number)
    fail("%s: %s %s: a number of ranks from 1 to %d is wanted", program, option, text, kMostRanks);
  return static_cast<int>(*number);
}

Binding binding_of(const char* program, std::string_view text) {
  if (text == "core") return Binding::kCore;
  if (text == "none") return Binding::kNone;
  fail("%s: --bind-to %s: 'core' or 'none' is wanted", program, text.data());
}

double seconds_of(const char* program, const char* text) {
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(seconds >= 0) || seconds > 3600)
    fail("%s: --grace %s: seconds from 0 to 3600 are wanted", program, text);
  return seconds;
}

}  // namespace

RunOptions parse_run(int argc, char** argv) {
  RunOptions options;
  int per_host = 0;
  Words words(argc, argv);
  while (words.next()) {
    if (words.is("-n", "-np") || words.is("--ranks", "--np")) {
      options.ranks = number_of_ranks(argv[0], "-n", words.value());
    } else if (words.is("-ppn", "--ppn")) {
      per_host = number_of_ranks(argv[0], "-ppn", words.value());
    } else if (words.is("--prefix", "-l")) {
      words.takes_no_value();
      options.has_prefix = true;
    } else if (words.is("--bind-to", "-bind-to")) {
      options.binding = binding_of(argv[0], words.value());
    } else if (words.is("--grace")) {
      options.grace_seconds = seconds_of(argv[0], words.value());
    } else if (words.is("--help", "-h")) {
      options.wants_help = true;
      return options;
    } else {
      fail("%s: there is no option '%s' (see --help)", argv[0], words.word());
    }
  }
  if (words.is_at_end()) fail("%s: which program? (see --help)", argv[0]);
  if (per_host != 0 && per_host < options.ranks)
    fail(
        "%s: -ppn %d leaves no place for %d ranks: all of them run on this host. Beyond it, use "
        "mpiexec or srun",
        argv[0], per_host, options.ranks);
  options.program = words.rest();
  return options;
}

}  // namespace verbatim::cli
