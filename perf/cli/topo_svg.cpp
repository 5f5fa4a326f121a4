// SPDX-License-Identifier: BSD-2-Clause
// Boxes within boxes, laid out from the inside: each is made with its own size, and whoever holds
// it says where it goes.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "perf/cli/topo_views.hpp"

namespace verbatim::cli {
namespace {

constexpr int kGap = 6;
constexpr int kTitle = 18;
constexpr int kPuWidth = 40;
constexpr int kPuHeight = 20;
constexpr int kLetter = 8;  // a little wider than a letter is

[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...) {
  char text[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

/// A device's name is the kernel's; XML has five characters of its own.
std::string escaped(const std::string& raw) {
  std::string text;
  for (const char c : raw) {
    if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'') {
      text += formatted("&#%d;", c);
    } else {
      text += c;
    }
  }
  return text;
}

struct Box {
  int width = 0;
  int height = 0;
  std::string body;  // drawn with its upper left corner at 0, 0
};

std::string placed(const Box& box, int x, int y) {
  return formatted("<g transform=\"translate(%d,%d)\">", x, y) + box.body + "</g>\n";
}

std::string words(const std::string& text, int x, int y) {
  return formatted("<text x=\"%d\" y=\"%d\">", x, y) + escaped(text) + "</text>";
}

/// `inner`, row by row, in a frame of that class with a title.
Box frame(const char* kind, const std::string& title, const std::vector<Box>& inner,
          std::size_t per_row) {
  Box made;
  const int top = title.empty() ? kGap : kTitle + kGap;
  int x = kGap;
  int y = top;
  int row_height = 0;
  int right = static_cast<int>(title.size()) * kLetter + 2 * kGap;
  std::string body;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (i != 0 && i % per_row == 0) {
      x = kGap;
      y += row_height + kGap;
      row_height = 0;
    }
    body += placed(inner[i], x, y);
    x += inner[i].width + kGap;
    right = std::max(right, x);
    row_height = std::max(row_height, inner[i].height);
  }
  made.width = right;
  made.height = inner.empty() ? top : y + row_height + kGap;
  made.body = formatted("<rect class=\"%s\" width=\"%d\" height=\"%d\" rx=\"3\"/>", kind,
                        made.width, made.height) +
              (title.empty() ? "" : words(title, kGap, kTitle - 4)) + body;
  return made;
}

Box processor(const TopoFacts& facts, std::uint32_t cpu) {
  const char* const kind = cpu == facts.cpu ? "here" : facts.may_run_on(cpu) ? "pu" : "denied";
  return {kPuWidth, kPuHeight,
          formatted("<rect class=\"%s\" width=\"%d\" height=\"%d\" rx=\"2\"/>"
                    "<text class=\"number\" x=\"%d\" y=\"14\">%u</text>",
                    kind, kPuWidth, kPuHeight, kPuWidth / 2, cpu)};
}

Box core(const TopoFacts& facts, const topo::Core& core) {
  std::vector<Box> inner;
  for (const std::uint32_t cpu : cpus_of(*facts.machine, core.first_pu, core.pu_count))
    inner.push_back(processor(facts, cpu));
  const bool slow = core.efficiency == 0;
  return frame(slow ? "slow" : "core", "", inner, 1);
}

/// About as wide as high.
std::size_t row_of(std::size_t count) {
  std::size_t row = 1;
  while (row * row < count) ++row;
  return row;
}

Box node(const TopoFacts& facts, std::uint32_t index) {
  const topo::Machine& machine = *facts.machine;
  const topo::Node& node = machine.nodes()[index];
  std::vector<Box> groups;
  std::vector<Box> cores;
  std::uint32_t group = topo::kNone;
  const auto close_group = [&] {
    if (cores.empty()) return;
    if (group == topo::kNone) {
      groups.insert(groups.end(), cores.begin(), cores.end());
    } else {
      groups.push_back(frame("cache", "L3 " + bytes_text(machine.groups()[group].cache_bytes),
                             cores, row_of(cores.size())));
    }
    cores.clear();
  };
  for (const topo::Core& each : machine.cores()) {
    if (each.node != index) continue;
    if (each.group != group) close_group();
    group = each.group;
    cores.push_back(core(facts, each));
  }
  close_group();
  for (const TopoDevice& device : facts.devices) {
    if (device.node == index) groups.push_back(frame("device", device.name, {}, 1));
  }
  std::string title = formatted("node %u: ", node.number) + bytes_text(node.memory_bytes);
  if (node.kind == topo::NodeKind::kHighBandwidth) title += " of high bandwidth";
  const bool allowed = topo::node_is_allowed(machine, facts.limits, index);
  return frame(allowed ? "node" : "denied", title, groups, row_of(groups.size()));
}

Box package(const TopoFacts& facts, std::uint32_t index) {
  std::vector<Box> nodes;
  for (std::uint32_t i = 0; i < facts.machine->nodes().size(); ++i) {
    if (facts.machine->nodes()[i].package == index) nodes.push_back(node(facts, i));
  }
  if (nodes.empty()) return {};
  return frame("package", index == topo::kNone ? "" : formatted("package %u", index), nodes,
               row_of(nodes.size()));
}

}  // namespace

std::string topo_svg(const TopoFacts& facts) {
  const topo::Machine& machine = *facts.machine;
  std::vector<Box> parts;
  for (std::uint32_t i = 0; i < machine.head().package_count; ++i) {
    Box made = package(facts, i);
    if (made.width != 0) parts.push_back(std::move(made));
  }
  Box apart = package(facts, topo::kNone);
  if (apart.width != 0) parts.push_back(std::move(apart));
  for (const TopoDevice& device : facts.devices) {
    if (device.node == topo::kNone) parts.push_back(frame("device", device.name, {}, 1));
  }
  const std::string title = std::string(facts.origin()) + ": " +
                            std::to_string(machine.pus().size()) + " processors, " +
                            std::to_string(machine.nodes().size()) + " nodes";
  const Box all = frame("machine", title, parts, row_of(parts.size()));
  return formatted(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %d %d\">\n",
             all.width, all.height, all.width, all.height) +
         "<style>text{font:12px sans-serif;fill:#222}.number{text-anchor:middle}"
         "rect{stroke:#667;stroke-width:1}.machine{fill:#fff}.package{fill:#eef1f6}"
         ".node{fill:#dde6f2}.cache{fill:#f6efdc}.core{fill:#fff}.slow{fill:#e4efe4}"
         ".pu{fill:#cfe3cf}.here{fill:#f2b84b}.denied{fill:#ddd}.device{fill:#f3d9e3}</style>\n" +
         all.body + "</svg>\n";
}

}  // namespace verbatim::cli
