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

}  // namespace verbatim::perf
