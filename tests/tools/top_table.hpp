// SPDX-License-Identifier: BSD-2-Clause
//
// The table that `verbatim top` prints, read column by column under its head.
#pragma once

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace verbatim::tools {

struct TopCell {
  std::string text;
  std::size_t begin = 0, end = 0;  // in its line
};

inline std::vector<TopCell> top_cells(const std::string& line) {
  std::vector<TopCell> cells;
  for (std::size_t at = 0; (at = line.find_first_not_of(' ', at)) != line.npos;) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    cells.push_back({line.substr(at, end - at), at, end});
    at = end;
  }
  return cells;
}

/// A queue pair's row by column; of the two that are called BYTES the second is "BYTES received".
using TopRow = std::map<std::string, std::string>;

struct TopProcess {
  std::string program;
  std::string counts;                  // "5 QPs, 2 CQs, 1 SRQs, 3 keys"
  std::map<std::string, TopRow> rows;  // by number of the queue pair
};

/// By pid, of the last look in `out`. Empty when a row does not stand under the head.
inline std::map<std::string, TopProcess> read_top_table(const std::string& out) {
  std::map<std::string, TopProcess> processes;
  std::vector<TopCell> head;
  TopProcess* process = nullptr;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<TopCell> cells = top_cells(line);
    if (cells.empty()) continue;
    if (cells[0].text == "PID") {
      head = cells;
      processes.clear();
      continue;
    }
    if (head.size() != 14) return {};
    if (cells[0].end == head[0].end) {
      process = &processes[cells[0].text];
      const std::size_t counts = head[2].begin;
      process->program = line.substr(head[1].begin, counts - 1 - head[1].begin);
      process->program.erase(process->program.find_last_not_of(' ') + 1);
      process->counts = line.substr(counts);
      continue;
    }
    if (process == nullptr || cells.size() != head.size() - 2) return {};
    TopRow row;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const TopCell& title = head[i + 2];
      if (cells[i].begin != title.begin && cells[i].end != title.end) return {};
      const bool again = row.contains(title.text);
      row[again ? title.text + " received" : title.text] = cells[i].text;
    }
    process->rows[cells[0].text] = row;
  }
  return processes;
}

}  // namespace verbatim::tools
