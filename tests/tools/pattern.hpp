// SPDX-License-Identifier: BSD-2-Clause
//
// Extended regular expressions of POSIX on what a program printed. (std::regex does the same, but
// GCC 12 warns of its insides when a sanitizer is on.)
#pragma once

#include <regex.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace verbatim::tools {

class Pattern {
 public:
  explicit Pattern(const std::string& expression) {
    if (regcomp(&compiled_, expression.c_str(), REG_EXTENDED) != 0) {
      throw std::runtime_error("bad pattern: " + expression);
    }
  }
  ~Pattern() { regfree(&compiled_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  /// The first match in `text`: the whole of it, then its groups (empty where one took no part).
  std::optional<std::vector<std::string>> find(const std::string& text) const {
    std::size_t at = 0;
    return find_from(text, &at);
  }

  std::vector<std::vector<std::string>> find_all(const std::string& text) const {
    std::vector<std::vector<std::string>> all;
    for (std::size_t at = 0; auto match = find_from(text, &at);) all.push_back(*match);
    return all;
  }

  std::string replace_all(const std::string& text, const std::string& by) const {
    std::string out;
    std::size_t from = 0;
    for (std::size_t at = 0; const auto match = find_from(text, &at);) {
      out += text.substr(from, at - match->front().size() - from) + by;
      from = at;
    }
    return out + text.substr(from);
  }

 private:
  /// Moves `at` behind the match.
  std::optional<std::vector<std::string>> find_from(const std::string& text,
                                                    std::size_t* at) const {
    regmatch_t found[10];
    if (regexec(&compiled_, text.c_str() + *at, 10, found, *at == 0 ? 0 : REG_NOTBOL) != 0) {
      return {};
    }
    std::vector<std::string> groups;
    for (std::size_t i = 0; i <= compiled_.re_nsub; ++i) {
      if (found[i].rm_so < 0) {
        groups.emplace_back();
        continue;
      }
      groups.push_back(text.substr(*at + static_cast<std::size_t>(found[i].rm_so),
                                   static_cast<std::size_t>(found[i].rm_eo - found[i].rm_so)));
    }
    *at += static_cast<std::size_t>(found[0].rm_eo);
    return groups;
  }

  regex_t compiled_;
};

}  // namespace verbatim::tools
