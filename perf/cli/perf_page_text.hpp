// SPDX-License-Identifier: BSD-2-Clause
// The elements that a page of `verbatim perf report` is made of. Pure.
#pragma once

#include <string>

#include "perf/cli/perf_chart.hpp"

namespace verbatim::cli {

/// `text` may say anything.
inline std::string tag(const char* name, const std::string& text, const char* kind = "") {
  std::string all = std::string("<") + name;
  if (*kind != '\0') all.append(" class=\"").append(kind).append("\"");
  return all + ">" + escaped_html(text) + "</" + name + ">";
}

/// `inner` is made of elements.
inline std::string card(const std::string& inner) {
  return "<div class=\"card\">" + inner + "</div>\n";
}

}  // namespace verbatim::cli
