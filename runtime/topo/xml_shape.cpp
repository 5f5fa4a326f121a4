// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/xml_shape.hpp"

#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>

namespace verbatim::topo {
namespace {

constexpr unsigned kMaxDepth = 64;

bool is_name(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_white_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_hex(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// Fits 64 bits.
bool is_number(std::string_view text) noexcept {
  if (text.empty() || text.size() > 19) return false;
  for (const char c : text) {
    if (!is_digit(c)) return false;
  }
  return true;
}

/// "0x0000ffff", "0x1,0xffffffff", "0xf...f,0x0", and words left empty: "0xff,,0x1".
bool is_set(std::string_view text) noexcept {
  constexpr std::string_view kEndless = "0xf...f";
  if (text.size() >= kEndless.size() && std::memcmp(text.data(), kEndless.data(), 7) == 0) {
    text.remove_prefix(kEndless.size());
    if (text.empty()) return true;
    if (text.front() != ',') return false;
    text.remove_prefix(1);
  }
  std::size_t digits = 0;
  bool in_word = false;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == ',') {
      if (in_word && digits == 0) return false;
      in_word = false;
      digits = 0;
      ++at;
    } else if (!in_word) {
      if (at + 1 >= text.size() || text[at] != '0' || text[at + 1] != 'x') return false;
      in_word = true;
      at += 2;
    } else {
      if (!is_hex(text[at++]) || ++digits > 8) return false;
    }
  }
  return in_word && digits != 0;
}

bool is_one_of(std::string_view text, const std::string_view* names, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    if (text == names[i]) return true;
  }
  return false;
}

constexpr std::string_view kSets[] = {"cpuset",           "complete_cpuset", "nodeset",
                                      "complete_nodeset", "online_cpuset",   "allowed_cpuset",
                                      "allowed_nodeset"};
constexpr std::string_view kNumbers[] = {
    "os_index",         "gp_index", "local_memory", "cache_size", "depth",          "nbobjs",
    "length",           "size",     "count",        "kind",       "cache_linesize", "cache_type",
    "forced_efficiency"};
constexpr std::string_view kWithoutSets[] = {"Misc", "Bridge", "PCIDev", "OSDev"};
constexpr std::string_view kObjects[] = {
    "Machine",  "Package",  "Socket",  "Group",   "NUMANode", "Die",     "Core",     "PU",
    "Cache",    "L1Cache",  "L2Cache", "L3Cache", "L4Cache",  "L5Cache", "L1iCache", "L2iCache",
    "L3iCache", "MemCache", "Misc",    "Bridge",  "PCIDev",   "OSDev",   "System"};

/// What of an element's attributes is looked at.
struct Attributes {
  std::string_view type;
  std::string_view version;
  unsigned sets = 0;  // a bit for each of kSets
  bool has_index = false;
};

class Shape {
 public:
  Shape(const char* text, std::size_t length) noexcept : at_(text), end_(text + length) {}

  XmlComplaint check() noexcept {
    while (what_ == nullptr) {
      skip_text();
      if (at_ == end_) break;
      if (++at_ == end_) {
        refuse("a tag does not end");
      } else if (*at_ == '?' || *at_ == '!') {
        skip_declaration();
      } else if (*at_ == '/') {
        end_element();
      } else {
        begin_element();
      }
    }
    if (what_ == nullptr && depth_ != 0) refuse("it ends before its last element does");
    if (what_ == nullptr && !topology_) refuse("there is no topology in it");
    if (what_ == nullptr && !machine_) refuse("there is no machine in it");
    return {what_, line_};
  }

 private:
  void refuse(const char* what) noexcept {
    if (what_ == nullptr) what_ = what;
  }
  void step() noexcept { line_ += *at_++ == '\n' ? 1 : 0; }
  void skip_blanks() noexcept {
    while (at_ != end_ && is_white_space(*at_)) step();
  }
  /// Up to the next '<'.
  void skip_text() noexcept {
    while (at_ != end_ && *at_ != '<') {
      if (*at_ == '\0') return refuse("there is a null byte in it");
      if (*at_ == '>' || (depth_ == 0 && !is_white_space(*at_)))
        return refuse("there is text outside of elements");
      // Between elements; within those that hold numbers, numbers.
      if (depth_ != 0 && !is_white_space(*at_) && !holds_numbers())
        return refuse("there is text where no text belongs");
      if (depth_ != 0 && holds_numbers() && !is_digit(*at_) && !is_white_space(*at_))
        return refuse("there is something else among numbers");
      step();
    }
  }
  bool holds_numbers() const noexcept {
    const std::string_view name = open_[depth_ - 1];
    return name == "indexes" || name == "u64values";
  }
  void skip_declaration() noexcept {
    while (at_ != end_ && *at_ != '>') {
      if (*at_ == '<') return refuse("a declaration does not end");
      step();
    }
    if (at_ == end_) return refuse("a declaration does not end");
    ++at_;
  }
  std::string_view name() noexcept {
    const char* const begin = at_;
    while (at_ != end_ && is_name(*at_)) ++at_;
    return {begin, static_cast<std::size_t>(at_ - begin)};
  }
  void end_element() noexcept {
    ++at_;
    const std::string_view ended = name();
    if (depth_ == 0 || ended != open_[depth_ - 1])
      return refuse("an element ends that is not open");
    if (at_ == end_ || *at_ != '>') return refuse("a tag does not end");
    ++at_;
    --depth_;
  }
  void begin_element() noexcept {
    const std::string_view element = name();
    if (element.empty()) return refuse("a tag has no name");
    if (depth_ == kMaxDepth) return refuse("it nests too deeply");
    Attributes attributes;
    for (;;) {
      const char* const before = at_;
      skip_blanks();
      if (at_ == end_) return refuse("a tag does not end");
      if (*at_ == '>' || *at_ == '/') break;
      if (at_ == before) return refuse("attributes are not apart");
      if (!attribute(attributes)) return;
    }
    judge(element, attributes);
    if (*at_ == '/') {
      if (++at_ == end_ || *at_ != '>') return refuse("a tag does not end");
    } else {
      open_[depth_++] = element;
    }
    ++at_;
  }
  bool attribute(Attributes& attributes) noexcept {
    const std::string_view key = name();
    if (key.empty() || end_ - at_ < 2 || at_[0] != '=' || at_[1] != '"') {
      refuse("an attribute is not written name=\"value\"");
      return false;
    }
    at_ += 2;
    const char* const begin = at_;
    while (at_ != end_ && *at_ != '"' && *at_ != '<' && *at_ != '>' && *at_ != '\n' && *at_ != '\0')
      ++at_;
    if (at_ == end_ || *at_ != '"') {
      refuse("a value does not end");
      return false;
    }
    const std::string_view value(begin, static_cast<std::size_t>(at_ - begin));
    ++at_;
    for (unsigned i = 0; i < std::size(kSets); ++i) {
      if (key != kSets[i]) continue;
      if (!is_set(value)) refuse("a set is not written 0x00000000,0x00000000");
      attributes.sets |= 1u << i;
    }
    if (key == "type") attributes.type = value;
    if (key == "version") attributes.version = value;
    if (key == "os_index") attributes.has_index = true;
    if (is_one_of(key, kNumbers, std::size(kNumbers)) && !is_number(value))
      refuse("a number is none");
    return what_ == nullptr;
  }
  void judge(std::string_view element, const Attributes& attributes) noexcept {
    if (element == "topology") {
      if (depth_ != 0 || topology_) return refuse("it holds several topologies");
      topology_ = true;
      version_2_ = !attributes.version.empty() && attributes.version.front() != '1';
    } else if (depth_ == 0) {
      refuse("there is no topology in it");
    } else if (element == "object") {
      judge_object(attributes);
    }
  }
  void judge_object(const Attributes& attributes) noexcept {
    const bool first = depth_ == 1;
    if (!is_one_of(attributes.type, kObjects, std::size(kObjects)))
      return refuse("an object has no known type");
    if (!first && open_[depth_ - 1] != "object") return refuse("an object is where none belongs");
    if (first && (machine_ || attributes.type != "Machine"))
      return refuse("the first object is not the machine, or not the only one");
    if (first) machine_ = true;
    if (is_one_of(attributes.type, kWithoutSets, std::size(kWithoutSets))) return;
    constexpr unsigned kCpus = 0x3;
    constexpr unsigned kAll = 0xf;
    const unsigned needed = version_2_ ? kAll : kCpus;
    if ((attributes.sets & needed) != needed) return refuse("an object lacks a set");
    const bool numbered = attributes.type == "PU" || attributes.type == "NUMANode";
    if (numbered && !attributes.has_index) refuse("a processor or a node has no number");
  }

  const char* at_;
  const char* const end_;
  unsigned line_ = 1;
  unsigned depth_ = 0;
  std::string_view open_[kMaxDepth];
  const char* what_ = nullptr;
  bool topology_ = false;
  bool version_2_ = false;
  bool machine_ = false;
};

}  // namespace

XmlComplaint check_xml_shape(const char* text, std::size_t length) noexcept {
  return Shape(text, length).check();
}

}  // namespace verbatim::topo
