// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/record.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "perf/support/affinity.hpp"
#include "perf/support/arguments.hpp"
#include "perf/support/json.hpp"
#include "perf/support/lost_output.hpp"

namespace verbatim::perf {
namespace {

constexpr std::pair<const char*, double> kPercentiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string build_text() {
#if defined(__clang__)
  std::string text = "clang " __clang_version__;
#else
  std::string text = "gcc " __VERSION__;
#endif
#if defined(__OPTIMIZE__)
  return text + ", optimised";
#else
  return text + ", not optimised";
#endif
}

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string number_field(double value) {
  if (!std::isfinite(value)) return {};
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

Json json_of(const Record& record) {
  const RunAbout& about = record.about;
  Json json = {{"schema", kRecordSchema},
               {"host", about.host},
               {"kernel", about.kernel},
               {"processor", about.processor},
               {"topology", about.topology},
               {"build", about.build},
               {"provider", about.provider},
               {"started", about.started},
               {"seed", about.seed},
               {"noise",
                {{"stolen", finite(about.noise.stolen)},
                 {"waited", finite(about.noise.waited)},
                 {"floor_spread", finite(about.noise.floor_spread)},
                 {"unreliable", about.noise.unreliable()}}},
               {"kind", record.kind},
               {"name", record.name},
               {"floor", record.floor},
               {"parameter", record.parameter},
               {"at", record.at},
               {"unit", record.unit}};
  if (const Target& target = record.target; !target.row.empty()) {
    json["target"] = {{"row", target.row},
                      {"sense", target.sense},
                      {"value", finite(target.value)},
                      {"verdict", target.verdict},
                      {"better", target.less_is_better ? "less" : "more"},
                      {"detail", target.detail}};
  }
  if (!record.missing.empty()) {
    json["missing"] = record.missing;
    return json;
  }
  json["median"] = finite(record.blocks.median());
  json["min"] = finite(record.blocks.min());
  json["max"] = finite(record.blocks.max());
  json["mean"] = finite(record.blocks.mean());
  json["standard_error"] = finite(record.blocks.standard_error());
  json["spread"] = finite(record.blocks.spread());
  json["blocks"] = record.blocks.values();
  if (!record.levels.empty()) {
    for (const auto& [name, fraction] : kPercentiles)
      json[name] = finite(record.percentile(fraction));
    Json levels = Json::array();
    for (const auto& [level, count] : record.levels) {
      Json one = Json::array();
      one.push_back(level);
      one.push_back(count);
      levels.push_back(std::move(one));
    }
    json["histogram"] = std::move(levels);
  }
  if (!record.reference.empty()) {
    json["reference"] = {{"name", record.reference},
                         {"median", finite(record.reference_median)},
                         {"ratio", finite(record.ratio.median())},
                         {"ratios", record.ratio.values()}};
  }
  if (std::isfinite(record.cpu_ns)) json["cpu_ns"] = record.cpu_ns;
  if (std::isfinite(record.switches)) json["switches"] = record.switches;
  if (std::isfinite(record.system_calls)) json["system_calls"] = record.system_calls;
  return json;
}

/// A field as RFC 4180 has it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

/// Reads one record; what is wrong is thrown, and the caller says where.
class RecordReader {
 public:
  explicit RecordReader(const Json& json) : json_(json) {}

  Record record() const {
    if (!json_.is_object()) throw std::runtime_error("a record is a JSON object");
    if (text("schema", json_) != kRecordSchema) {
      throw std::runtime_error(std::string("its schema is not ") + kRecordSchema);
    }
    Record record;
    record.about = about();
    record.kind = wanted_text("kind");
    record.name = wanted_text("name");
    record.floor = text("floor", json_);
    record.parameter = wanted_text("parameter");
    record.unit = wanted_text("unit");
    record.missing = text("missing", json_);
    const double at = wanted_number("at", json_);
    if (at < 0) throw std::runtime_error("\"at\" is out of range");
    record.at = static_cast<std::uint64_t>(at);
    record.cpu_ns = number("cpu_ns", json_);
    record.switches = number("switches", json_);
    record.system_calls = number("system_calls", json_);
    record.target = target();
    if (!record.missing.empty()) return record;
    record.blocks = blocks("blocks", json_);
    if (record.blocks.empty()) throw std::runtime_error("\"blocks\" has no number");
    record.levels = levels();
    if (const Json* reference = json_.find("reference"); reference != nullptr) {
      record.reference = text("name", *reference);
      record.reference_median = number("median", *reference);
      record.ratio = blocks("ratios", *reference);
    }
    return record;
  }

 private:
  static constexpr std::size_t kLongestText = 500, kMostBlocks = 100'000;
  static constexpr double kLargest = 1e15;
  static constexpr double kSmallest = 1e-9;

  /// Control characters would reach the reader's terminal.
  static std::string text(const char* name, const Json& in) {
    const Json* found = in.find(name);
    if (found == nullptr || found->is_null()) return {};
    std::optional<std::string> value = found->string();
    if (!value) throw std::runtime_error(std::string("\"") + name + "\" is no text");
    if (value->size() > kLongestText) {
      throw std::runtime_error(std::string("\"") + name + "\" is too long");
    }
    for (char& c : *value) {
      if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
    }
    return *value;
  }
  std::string wanted_text(const char* name) const {
    std::string value = text(name, json_);
    if (value.empty()) throw std::runtime_error(std::string("\"") + name + "\" is missing");
    return value;
  }
  static double number(const char* name, const Json& in) {
    const Json* found = in.find(name);
    if (found == nullptr || found->is_null()) return std::numeric_limits<double>::quiet_NaN();
    return finite_number(name, *found);
  }
  static double wanted_number(const char* name, const Json& in) {
    const double value = number(name, in);
    if (std::isnan(value)) throw std::runtime_error(std::string("\"") + name + "\" is missing");
    return value;
  }
  static double finite_number(const char* name, const Json& value) {
    const std::optional<double> found = value.number();
    if (!found || !std::isfinite(*found)) {
      throw std::runtime_error(std::string("\"") + name + "\" is no number");
    }
    // A picture has no room for more.
    if (std::fabs(*found) > kLargest) {
      throw std::runtime_error(std::string("\"") + name + "\" is out of range");
    }
    // Nor for what is smaller than anything that is measured.
    return std::fabs(*found) < kSmallest ? 0 : *found;
  }
  static Blocks blocks(const char* name, const Json& in) {
    const Json* found = in.find(name);
    Blocks blocks;
    if (found == nullptr) return blocks;
    const std::vector<Json>* all = found->elements();
    if (all == nullptr || all->size() > kMostBlocks) {
      throw std::runtime_error(std::string("\"") + name + "\" is no list of numbers");
    }
    for (const Json& one : *all) {
      const double value = finite_number(name, one);
      if (value < 0) throw std::runtime_error(std::string("\"") + name + "\" has a negative one");
      blocks.add(value);
    }
    return blocks;
  }
  std::vector<Level> levels() const {
    std::vector<Level> levels;
    const Json* found = json_.find("histogram");
    if (found == nullptr) return levels;
    const std::vector<Json>* all = found->elements();
    if (all == nullptr || all->size() > kMostBlocks) {
      throw std::runtime_error("\"histogram\" is no list of levels");
    }
    for (const Json& one : *all) {
      const std::vector<Json>* pair = one.elements();
      if (pair == nullptr || pair->size() != 2) {
        throw std::runtime_error("a level of \"histogram\" is no pair");
      }
      const double level = finite_number("histogram", (*pair)[0]);
      const double count = finite_number("histogram", (*pair)[1]);
      const bool rises = levels.empty() || level > levels.back().first;
      if (level < 0 || count < 0 || !rises) {
        throw std::runtime_error("the levels of \"histogram\" do not rise, or count nothing");
      }
      levels.emplace_back(level, static_cast<std::uint64_t>(count));
    }
    return levels;
  }
  Target target() const {
    Target target;
    const Json* found = json_.find("target");
    if (found == nullptr) return target;
    target.row = text("row", *found);
    target.sense = text("sense", *found);
    target.value = number("value", *found);
    target.verdict = text("verdict", *found);
    target.detail = text("detail", *found);
    target.less_is_better = text("better", *found) != "more";
    return target;
  }
  RunAbout about() const {
    RunAbout about;
    about.host = text("host", json_);
    about.kernel = text("kernel", json_);
    about.processor = text("processor", json_);
    about.topology = text("topology", json_);
    about.build = text("build", json_);
    about.provider = text("provider", json_);
    about.started = text("started", json_);
    const double seed = number("seed", json_);
    if (seed >= 0 && seed < 1e18) about.seed = static_cast<std::uint64_t>(seed);
    if (const Json* noise = json_.find("noise"); noise != nullptr) {
      about.noise.stolen = number("stolen", *noise);
      about.noise.waited = number("waited", *noise);
      about.noise.floor_spread = number("floor_spread", *noise);
    }
    return about;
  }

  const Json& json_;
};

constexpr std::size_t kLargestFile = std::size_t{64} << 20;

std::string whole_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (!file) throw std::runtime_error(path + ": " + std::strerror(errno));
  std::string text;
  char part[65536];
  for (std::size_t got; (got = std::fread(part, 1, sizeof part, file.get())) > 0;) {
    text.append(part, got);
    if (text.size() > kLargestFile) throw std::runtime_error(path + ": is larger than 64 MiB");
  }
  if (std::ferror(file.get()) != 0) throw std::runtime_error(path + ": " + std::strerror(errno));
  return text;
}

}  // namespace

RunAbout about_this_run(const std::string& provider, const std::string& cores) {
  RunAbout about;
  utsname name{};
  if (uname(&name) == 0) {
    about.host = name.nodename;
    about.kernel = std::string(name.sysname) + " " + name.release + " " + name.machine;
  }
  about.processor = processor_name();
  about.topology = topology_text() + (cores.empty() ? "" : "; " + cores);
  about.build = build_text();
  about.provider = provider;
  about.started = utc_now();
  return about;
}

std::string Record::label() const {
  if (parameter == "size" && at == 0) return name;
  if (parameter == "size") {
    const std::string size = size_text(at);
    return name + ", " + size + (size.find(' ') == std::string::npos ? " B" : "");
  }
  return name + ", " + std::to_string(at) + " " + parameter;
}

std::string Record::key() const {
  std::string all;
  // A floor is the machine's, whoever was measured beside it.
  for (const std::string& part : {kind, name, parameter, std::to_string(at), unit,
                                  kind == "floor" ? std::string() : about.provider}) {
    all += part;
    all += '\n';
  }
  return all;
}

std::uint64_t Record::samples() const {
  std::uint64_t all = 0;
  for (const auto& [level, count] : levels) all += count;
  return all;
}

double Record::percentile(double fraction) const {
  const double wanted = fraction * static_cast<double>(samples());
  double seen = 0;
  for (const auto& [level, count] : levels) {
    seen += static_cast<double>(count);
    if (seen > 0 && seen >= wanted) return level;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<Level> levels_of(const Histogram& histogram, double scale) {
  std::vector<Level> levels;
  histogram.each([&](std::uint64_t level, std::uint64_t count) {
    levels.emplace_back(static_cast<double>(level) * scale, count);
  });
  return levels;
}

std::string json_line(const Record& record) { return json_of(record).line() + "\n"; }

std::string json_object(const char* format, const std::vector<Record>& records) {
  Json all = Json::array();
  for (const Record& record : records) all.push_back(json_of(record));
  return Json{{"format", format}, {"records", all}}.text() + "\n";
}

std::string csv_heading() {
  std::string line =
      "schema,host,kernel,processor,topology,build,provider,started,seed,stolen,waited,"
      "floor_spread,unreliable,kind,name,floor,parameter,at,unit,median,min,max,mean,"
      "standard_error,spread,blocks,";
  for (const auto& [name, fraction] : kPercentiles) line.append(name).append(",");
  return line +
         "reference,reference_median,ratio,cpu_ns,switches,system_calls,missing,row,sense,target,"
         "verdict\n";
}

std::string csv_line(const Record& record) {
  const RunAbout& about = record.about;
  std::vector<std::string> fields = {kRecordSchema,
                                     about.host,
                                     about.kernel,
                                     about.processor,
                                     about.topology,
                                     about.build,
                                     about.provider,
                                     about.started,
                                     std::to_string(about.seed),
                                     number_field(about.noise.stolen),
                                     number_field(about.noise.waited),
                                     number_field(about.noise.floor_spread),
                                     about.noise.unreliable(),
                                     record.kind,
                                     record.name,
                                     record.floor,
                                     record.parameter,
                                     std::to_string(record.at),
                                     record.unit};
  for (const double value :
       {record.blocks.median(), record.blocks.min(), record.blocks.max(), record.blocks.mean(),
        record.blocks.standard_error(), record.blocks.spread()}) {
    fields.push_back(number_field(value));
  }
  fields.push_back(std::to_string(record.blocks.size()));
  for (const auto& [name, fraction] : kPercentiles) {
    fields.push_back(number_field(record.percentile(fraction)));
  }
  fields.push_back(record.reference);
  for (const double value : {record.reference_median, record.ratio.median(), record.cpu_ns,
                             record.switches, record.system_calls}) {
    fields.push_back(number_field(value));
  }
  fields.push_back(record.missing);
  fields.insert(fields.end(), {record.target.row, record.target.sense,
                               number_field(record.target.value), record.target.verdict});
  std::string line;
  for (const std::string& field : fields) {
    if (!line.empty()) line += ',';
    line += csv_field(field);
  }
  return line + "\n";
}

std::vector<Record> read_records(const std::string& path) {
  const std::string text = whole_file(path);
  std::vector<Record> records;
  std::size_t number = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line(text.data() + start, end - start);
    start = end + 1;
    ++number;
    if (line.empty()) continue;
    std::string why;
    try {
      const std::optional<Json> json = Json::parse(line, &why);
      if (!json) throw std::runtime_error(why);
      // A page is drawn of all of them beside all of them.
      constexpr std::size_t kMostRecords = 20'000;
      if (records.size() == kMostRecords) throw std::runtime_error("too many records");
      records.push_back(RecordReader(*json).record());
    } catch (const std::runtime_error& wrong) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + wrong.what());
    }
  }
  if (records.empty()) throw std::runtime_error(path + ": has no record");
  return records;
}

void RecordFile::Close::operator()(std::FILE* file) const {
  if (file != stdout) std::fclose(file);
}

void RecordFile::fail_writing(const char* what, int error) const {
  throw std::runtime_error(std::string("cannot write ") + what + "'" + path_ +
                           "': " + std::strerror(error) + " (" + option_ + ")");
}

RecordFile::RecordFile(const std::string& path, Form form, const char* option)
    : path_(path), option_(option), form_(form) {
  if (path == "-") {
    file_.reset(stdout);
    return;
  }
  constexpr mode_t kForAll = 0666;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kForAll);
  if (fd < 0) fail_writing("", errno);
  file_.reset(fdopen(fd, "w"));
  if (file_) return;
  const int error = errno;
  ::close(fd);
  fail_writing("", error);
}

/// What an older run has left goes only now.
void RecordFile::begin() {
  has_begun_ = true;
  if (file_.get() == stdout) return;
  struct stat found {};
  const int fd = fileno(file_.get());
  if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && ftruncate(fd, 0) != 0)
    fail_writing("", errno);
}

void RecordFile::append(const std::vector<Record>& records) {
  std::string text = form_ == Form::kCsv && !has_begun_ ? csv_heading() : std::string();
  if (!has_begun_) begin();
  for (const Record& record : records) {
    text += form_ == Form::kCsv ? csv_line(record) : json_line(record);
  }
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (std::fflush(file_.get()) == 0 && written) return;
  const int error = errno == 0 ? EIO : errno;
  if (file_.get() == stdout) forget_lost_output();
  file_.reset();
  fail_writing("all of ", error);
}

void RecordFile::close() {
  std::FILE* const file = file_.release();
  if (file != nullptr && file != stdout && std::fclose(file) != 0) fail_writing("all of ", errno);
}

void RecordFile::write(const std::vector<Record>& records) {
  append(records);
  close();
}

}  // namespace verbatim::perf
