// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/json.hpp"

#include <nlohmann/json.hpp>

namespace verbatim::perf {

Json::Json(std::initializer_list<Member> members) : kind_(Kind::kObject) {
  for (const auto& [name, value] : members) {
    names_.emplace_back(name);
    elements_.push_back(value);
  }
}

Json Json::array() {
  Json json;
  json.kind_ = Kind::kArray;
  return json;
}

void Json::push_back(Json element) { elements_.push_back(std::move(element)); }

Json& Json::operator[](const char* name) {
  kind_ = Kind::kObject;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return elements_[i];
  }
  names_.emplace_back(name);
  return elements_.emplace_back();
}

/// What the library prints is a value of its own kind.
struct JsonPrinter {
  using Printed = nlohmann::ordered_json;

  static Printed printed(const Json& json) {
    Printed all;
    switch (json.kind_) {
      case Json::Kind::kNull:
        return nullptr;
      case Json::Kind::kTruth:
        return json.natural_ != 0;
      case Json::Kind::kInteger:
        return json.integer_;
      case Json::Kind::kNatural:
        return json.natural_;
      case Json::Kind::kReal:
        return json.real_;
      case Json::Kind::kText:
        return json.text_;
      case Json::Kind::kArray:
        all = Printed::array();
        for (const Json& element : json.elements_) all.push_back(printed(element));
        return all;
      case Json::Kind::kObject:
        all = Printed::object();
        for (std::size_t i = 0; i < json.names_.size(); ++i) {
          all[json.names_[i]] = printed(json.elements_[i]);
        }
        return all;
    }
    return all;
  }
};

std::string Json::text() const {
  using Printed = JsonPrinter::Printed;
  return JsonPrinter::printed(*this).dump(2, ' ', true, Printed::error_handler_t::replace);
}

std::string Json::line() const {
  using Printed = JsonPrinter::Printed;
  return JsonPrinter::printed(*this).dump(-1, ' ', true, Printed::error_handler_t::replace);
}

/// What the library has read becomes a value of ours. Its depth is bounded before.
struct JsonReader {
  using Read = nlohmann::ordered_json;

  static Json taken(const Read& read) {
    switch (read.type()) {
      case Read::value_t::boolean:
        return read.get<bool>();
      case Read::value_t::number_integer:
        return read.get<std::int64_t>();
      case Read::value_t::number_unsigned:
        return read.get<std::uint64_t>();
      case Read::value_t::number_float:
        return read.get<double>();
      case Read::value_t::string:
        return read.get<std::string>();
      case Read::value_t::array: {
        Json all = Json::array();
        all.elements_.reserve(read.size());
        for (const Read& element : read) all.elements_.push_back(taken(element));
        return all;
      }
      case Read::value_t::object: {
        Json all;
        all.kind_ = Json::Kind::kObject;
        for (const auto& [name, value] : read.items()) {
          all.names_.push_back(name);
          all.elements_.push_back(taken(value));
        }
        return all;
      }
      default:
        return {};
    }
  }

  /// What is wrong with its size, before it is read; null: nothing. The library takes a time for a
  /// member that grows with their number, and a hundred bytes for an element of a list.
  static const char* excess(std::string_view text) {
    constexpr std::size_t kMostMembers = 2'000, kMostElements = 300'000;
    static_assert(Json::kDeepest == 16, "as the text says");
    int depth = 0;
    bool quoted = false;
    std::size_t members = 0, elements = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (quoted) {
        if (c == '\\') ++i;
        if (c == '"') quoted = false;
      } else if (c == '"') {
        quoted = true;
      } else if (c == '[' || c == '{') {
        if (++depth > Json::kDeepest) return "it nests deeper than 16";
      } else if (c == ']' || c == '}') {
        --depth;
      } else if (c == ':') {
        if (++members > kMostMembers) return "it has too many members";
      } else if (c == ',') {
        if (++elements > kMostElements) return "it has too many elements";
      }
    }
    return nullptr;
  }
};

std::optional<Json> Json::parse(std::string_view text, std::string* why) {
  if (const char* const excess = JsonReader::excess(text); excess != nullptr) {
    *why = excess;
    return {};
  }
  const auto read = JsonReader::Read::parse(text.begin(), text.end(), nullptr, false);
  if (!read.is_discarded()) return JsonReader::taken(read);
  *why = text.empty() ? "it is empty" : "it is no JSON";
  return {};
}

const Json* Json::find(std::string_view name) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return &elements_[i];
  }
  return nullptr;
}

std::optional<double> Json::number() const {
  if (kind_ == Kind::kReal) return real_;
  if (kind_ == Kind::kInteger) return static_cast<double>(integer_);
  if (kind_ == Kind::kNatural) return static_cast<double>(natural_);
  return {};
}

std::optional<std::string> Json::string() const {
  return kind_ == Kind::kText ? std::optional(text_) : std::nullopt;
}

std::optional<bool> Json::truth() const {
  return kind_ == Kind::kTruth ? std::optional(natural_ != 0) : std::nullopt;
}

const std::vector<Json>* Json::elements() const {
  return kind_ == Kind::kArray ? &elements_ : nullptr;
}

}  // namespace verbatim::perf
