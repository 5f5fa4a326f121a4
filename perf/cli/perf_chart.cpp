// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "perf/support/arguments.hpp"

namespace verbatim::cli {
namespace {

constexpr double kLabelHeight = 15;
constexpr double kLetterWidth = 6.4;

[[gnu::format(printf, 1, 2)]] std::string drawn(const char* format, ...) {
  char text[640];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string text_at(double x, double y, const char* kind, const char* anchor,
                    const std::string& text) {
  return drawn("<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, kind, anchor) +
         escaped_html(text) + "</text>\n";
}

std::string line_between(double x1, double y1, double x2, double y2, const char* kind) {
  return drawn("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2,
               y2, kind);
}

std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  return text.substr(0, most - 1) + "\xe2\x80\xa6";
}

/// Digits that say what differs, without zeros behind them.
std::string digits(double value) {
  char text[40];
  const double size = std::fabs(value);
  std::snprintf(text, sizeof text, "%.*f", size >= 100 ? 0 : size >= 10 ? 1 : 2, value);
  std::string all = text;
  if (all.find('.') != std::string::npos) {
    while (all.back() == '0') all.pop_back();
    if (all.back() == '.') all.pop_back();
  }
  return all;
}

struct Scale {
  double low = 0, high = 1;  // of what is drawn
  double from = 0, to = 1;   // on the paper
  bool log = false;

  double at(double value) const {
    const double part = log ? (std::log(value) - std::log(low)) / (std::log(high) - std::log(low))
                            : (value - low) / (high - low);
    return from + (to - from) * part;
  }
};

/// Values to write beside an axis.
std::vector<double> ticks_of(const Scale& scale) {
  std::vector<double> ticks;
  if (scale.log && scale.high / scale.low > 8) {
    const bool wide = scale.high / scale.low > 2000;
    for (double decade = std::pow(10, std::floor(std::log10(scale.low))); decade <= scale.high;
         decade *= 10) {
      for (const double step : {1.0, 2.0, 5.0}) {
        const double value = decade * step;
        if (wide && step != 1) continue;
        if (value >= scale.low * 0.999 && value <= scale.high * 1.001) ticks.push_back(value);
      }
    }
    return ticks;
  }
  const double raw = (scale.high - scale.low) / 5;
  const double decade = std::pow(10, std::floor(std::log10(raw)));
  double step = decade;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = decade * factor;
    if (step >= raw) break;
  }
  for (double value = std::ceil(scale.low / step) * step; value <= scale.high * 1.0001;
       value += step) {
    ticks.push_back(value);
  }
  return ticks;
}

std::string number_of(double value, bool is_size) {
  if (is_size)
    return value < 1024 ? digits(value) + " B" : perf::size_text(static_cast<std::uint64_t>(value));
  if (value >= 1e6) return digits(value / 1e6) + " M";
  if (value >= 1e4) return digits(value / 1e3) + " k";
  return digits(value);
}

struct Label {
  double x, y;  // the point that it belongs to
  double at;    // where it stands
  const Curve* curve;
};

/// Pushes labels apart, within the plot.
void spread(std::vector<Label>& labels, double top, double bottom) {
  std::sort(labels.begin(), labels.end(), [](auto& a, auto& b) { return a.y < b.y; });
  double next = top;
  for (Label& label : labels) {
    label.at = std::max(label.y, next);
    next = label.at + kLabelHeight;
  }
  double limit = bottom;
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    label->at = std::min(label->at, limit);
    limit = label->at - kLabelHeight;
  }
}

const char* class_of(Line line) {
  return line == Line::kFloor ? "floor" : line == Line::kBase ? "base" : "curve";
}

class Plot {
 public:
  explicit Plot(const Chart& chart) : chart_(chart) {
    double least_x = 1e300, most_x = 0, least_y = 1e300, most_y = 0;
    for (const Curve& curve : chart.curves) {
      longest_ = std::max(longest_, std::min<std::size_t>(curve.label.size(), kLongest));
      for (const auto& [x, y] : curve.points) {
        // A limit of one size is a line from edge to edge.
        if (curve.points.size() > 1 || curve.line != Line::kFloor) {
          least_x = std::min(least_x, x);
          most_x = std::max(most_x, x);
        }
        least_y = std::min(least_y, y);
        most_y = std::max(most_y, y);
      }
    }
    right_ = kWidth - 24 - kLetterWidth * static_cast<double>(longest_);
    if (most_x <= least_x) most_x = 2 * std::max(least_x, 0.5);
    x_ = {least_x, most_x, kLeft + 10, right_ - 10, true};
    y_ = {0, most_y * 1.08, kBottom, kTop, false};
    if (chart.log_y) y_ = {least_y / 1.3, most_y * 1.3, kBottom, kTop, true};
    if (y_.high <= y_.low) y_.high = y_.low + 1;
  }

  std::string draw() const {
    std::string svg =
        drawn("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>", kWidth, kHeight) +
        escaped_html(chart_.title) + "</title>\n" + axes();
    std::vector<Label> labels;
    // Limits lie behind what is measured.
    for (const Line line : {Line::kFloor, Line::kBase, Line::kSolid}) {
      for (const Curve& curve : chart_.curves) {
        if (curve.line != line || curve.points.empty()) continue;
        svg += path_of(curve);
        if (line == Line::kBase) continue;
        const bool level = curve.points.size() == 1 && line == Line::kFloor;
        const auto [x, y] = curve.points.back();
        labels.push_back({level ? right_ : x_.at(x), y_.at(y), 0, &curve});
      }
    }
    spread(labels, kTop + 4, kBottom - 2);
    for (const Label& label : labels) svg += label_of(label);
    return svg + "</svg>\n";
  }

 private:
  static constexpr double kWidth = 940, kHeight = 400, kLeft = 74, kTop = 18, kBottom = 344;
  static constexpr std::size_t kLongest = 38;

  std::string axes() const {
    std::string svg;
    for (const double value : ticks_of(y_)) {
      svg += line_between(kLeft, y_.at(value), right_, y_.at(value), "grid");
      const std::string text =
          chart_.unit == "ns" ? with_unit(value, "ns") : number_of(value, false);
      svg += text_at(kLeft - 8, y_.at(value) + 4, "tick", "end", text);
    }
    if (chart_.unit != "ns") svg += text_at(kLeft, kTop - 5, "tick", "end", chart_.unit);
    // Sizes by powers of two, numbers by powers of ten where there are some.
    const double base = chart_.sizes || x_.high < 20 * x_.low ? 2 : 10;
    const double low = std::floor(std::log(x_.low) / std::log(base) + 1e-9);
    const double high = std::ceil(std::log(x_.high) / std::log(base));
    const double every = std::max(1.0, std::ceil((high - low) / 11));
    for (double power = low; power <= high; power += every) {
      const double value = std::pow(base, power);
      if (value < x_.low * 0.99 || value > x_.high * 1.01) continue;
      const double x = x_.at(value);
      svg += line_between(x, kBottom, x, kBottom + 5, "axis");
      svg += text_at(x, kBottom + 20, "tick", "middle", number_of(value, chart_.sizes));
    }
    svg += line_between(kLeft, kBottom, right_, kBottom, "axis");
    return svg + text_at((kLeft + right_) / 2, kBottom + 42, "name", "middle", chart_.x_name);
  }

  std::string path_of(const Curve& curve) const {
    const std::string kind = drawn("%s s%u", class_of(curve.line), curve.colour % 8);
    if (curve.points.size() == 1 && curve.line == Line::kFloor) {
      const double y = y_.at(curve.points.front().second);
      return line_between(kLeft, y, right_, y, "floor");
    }
    std::string svg = "<path class=\"" + kind + "\" d=\"";
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      const auto& [x, y] = curve.points[i];
      svg += drawn("%c%.1f %.1f", i == 0 ? 'M' : 'L', x_.at(x), y_.at(y));
    }
    svg += "\"/>\n";
    if (curve.line != Line::kSolid) return svg;
    for (const auto& [x, y] : curve.points) {
      svg += drawn("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.4\" class=\"dot s%u\"><title>", x_.at(x),
                   y_.at(y), curve.colour % 8) +
             escaped_html(curve.label + ", " + number_of(x, chart_.sizes) + ": " +
                          with_unit(y, chart_.unit)) +
             "</title></circle>\n";
    }
    return svg;
  }

  std::string label_of(const Label& label) const {
    std::string svg;
    const double from = label.x + 6, to = right_ + 12;
    if (to - from > 14 || std::fabs(label.at - label.y) > 3) {
      svg += drawn("<path class=\"leader\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1f\"/>\n", from, label.y,
                   std::max(from, right_ - 2), label.y, to - 2, label.at);
    }
    const Curve& curve = *label.curve;
    const std::string kind = curve.line == Line::kFloor ? std::string("label faint")
                                                        : drawn("label t%u", curve.colour % 8);
    return svg +
           text_at(to + 2, label.at + 4, kind.c_str(), "start", shortened(curve.label, kLongest));
  }

  const Chart& chart_;
  std::size_t longest_ = 8;
  double right_;
  Scale x_, y_;
};

/// Levels put into bins of equal ratio.
std::vector<double> binned(const std::vector<perf::Level>& levels, const Scale& x,
                           std::size_t bins) {
  std::vector<double> all(bins, 0);
  for (const auto& [level, count] : levels) {
    if (level <= 0) continue;
    const double part = (x.at(level) - x.from) / (x.to - x.from);
    const auto bin = static_cast<long>(part * static_cast<double>(bins));
    all[static_cast<std::size_t>(std::clamp<long>(bin, 0, static_cast<long>(bins) - 1))] +=
        static_cast<double>(count);
  }
  return all;
}

}  // namespace

std::string escaped_html(const std::string& text) {
  std::string all;
  for (const char c : text) {
    switch (c) {
      case '<':
        all += "&lt;";
        break;
      case '>':
        all += "&gt;";
        break;
      case '&':
        all += "&amp;";
        break;
      case '"':
        all += "&quot;";
        break;
      case '\'':
        all += "&#39;";
        break;
      default:
        all += c;
    }
  }
  return all;
}

std::string with_unit(double value, const std::string& unit) {
  if (!std::isfinite(value)) return "-";
  if (unit != "ns") return digits(value) + " " + unit;
  if (value >= 1e9) return digits(value / 1e9) + " s";
  if (value >= 1e6) return digits(value / 1e6) + " ms";
  if (value >= 1e3) return digits(value / 1e3) + " \xc2\xb5s";
  return digits(value) + " ns";
}

std::string draw_chart(const Chart& chart) { return Plot(chart).draw(); }

std::string draw_distribution(const perf::Record& record, const std::vector<perf::Level>& base) {
  constexpr double kWidth = 460, kHeight = 210, kLeft = 44, kRight = 448, kTop = 40, kBottom = 176;
  constexpr std::size_t kBins = 101;
  double low = 1e300, high = 0;
  for (const auto* levels : {&record.levels, &base}) {
    for (const auto& [level, count] : *levels) {
      if (level <= 0) continue;
      low = std::min(low, level);
      high = std::max(high, level);
    }
  }
  if (high <= 0) return {};
  const Scale x = {low / 1.1, high * 1.1, kLeft, kRight, true};
  const std::vector<double> bins = binned(record.levels, x, kBins);
  const std::vector<double> before = binned(base, x, kBins);
  const double most = std::max(*std::max_element(bins.begin(), bins.end()),
                               *std::max_element(before.begin(), before.end()));
  const Scale y = {0.6, std::max(10.0, most * 1.5), kBottom, kTop, true};
  const double step = (kRight - kLeft) / static_cast<double>(kBins);
  std::string svg =
      drawn("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>", kWidth, kHeight) +
      escaped_html(record.label()) + "</title>\n" +
      text_at(kLeft, 16, "name", "start", shortened(record.label(), 40)) +
      text_at(kRight, 16, "tick", "end",
              number_of(static_cast<double>(record.samples()), false) + " samples");
  for (double decade = 1; decade <= y.high; decade *= 10) {
    svg += line_between(kLeft, y.at(decade), kRight, y.at(decade), "grid");
    svg += text_at(kLeft - 6, y.at(decade) + 4, "tick", "end", number_of(decade, false));
  }
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    if (bins[bin] <= 0) continue;
    const double top = y.at(bins[bin]);
    svg += drawn("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"bar\"/>\n",
                 kLeft + step * static_cast<double>(bin), top, step * 0.86, kBottom - top);
  }
  if (!base.empty()) {
    std::string path = "<path class=\"outline\" d=\"";
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      const double left = kLeft + step * static_cast<double>(bin);
      const double top = before[bin] > 0 ? y.at(before[bin]) : kBottom;
      path += drawn("%c%.1f %.1fL%.1f %.1f", bin == 0 ? 'M' : 'L', left, top, left + step, top);
    }
    svg += path + "\"/>\n";
  }
  double last = -1e9;
  for (const auto& [name, fraction] :
       {std::pair("p50", 0.5), std::pair("p99", 0.99), std::pair("p99.9", 0.999)}) {
    const double at = x.at(record.percentile(fraction));
    svg += line_between(at, kTop - 6, at, kBottom, "mark");
    // Marks that lie together share the first one's word.
    if (at - last > 34) {
      svg += text_at(at, kTop - 9, "tick", at > kRight - 20 ? "end" : "middle", name);
      last = at;
    }
  }
  double written = -1e9;
  for (const double value : ticks_of(x)) {
    svg += line_between(x.at(value), kBottom, x.at(value), kBottom + 4, "axis");
    if (x.at(value) - written < 52) continue;
    written = x.at(value);
    svg += text_at(x.at(value), kBottom + 18, "tick", "middle", with_unit(value, record.unit));
  }
  return svg + line_between(kLeft, kBottom, kRight, kBottom, "axis") + "</svg>\n";
}

std::string draw_changes(const std::vector<ChangeBar>& bars) {
  constexpr double kWidth = 940, kRow = 20, kTop = 30, kNames = 330, kRight = 860;
  double widest = 0.02;
  for (const ChangeBar& bar : bars) widest = std::max(widest, std::fabs(bar.change));
  widest = std::min(widest, 1.0);
  const Scale x = {-widest, widest, kNames + 50, kRight, false};
  const double height = kTop + kRow * static_cast<double>(bars.size()) + 10;
  std::string svg =
      drawn("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>Change of each figure</title>\n",
            kWidth, height);
  for (const double part : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
    const double at = x.at(part * widest);
    svg += line_between(at, kTop - 8, at, height - 8, part == 0 ? "axis" : "grid");
    svg += text_at(at, kTop - 14, "tick", "middle",
                   (part > 0 ? "+" : "") + digits(100 * part * widest) + " %");
  }
  double y = kTop + 4;
  for (const ChangeBar& bar : bars) {
    const char* kind = !bar.significant ? "same" : bar.worse ? "worse" : "better";
    const double to = x.at(std::clamp(bar.change, -widest, widest));
    svg += text_at(kNames, y + 4, "label", "end", shortened(bar.label, 50));
    svg += line_between(x.at(0), y, to, y, kind);
    svg += drawn("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" class=\"point %s\"/>\n", to, y, kind);
    svg += text_at(kRight + 12, y + 4, "tick", "start",
                   (bar.change > 0 ? "+" : "") + digits(100 * bar.change) + " %");
    y += kRow;
  }
  return svg + "</svg>\n";
}

}  // namespace verbatim::cli
