// SPDX-License-Identifier: BSD-2-Clause
// A JSON value that is built and then printed, or read from a file. One thread. The library that
// knows how JSON is written is in json.cpp alone, since reading its headers takes seconds a file.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace verbatim::perf {

class Json {
 public:
  using Member = std::pair<const char*, Json>;

  Json() = default;  ///< null
  Json(std::nullptr_t) {}
  Json(bool value) : kind_(Kind::kTruth), natural_(value ? 1 : 0) {}
  Json(double value) : kind_(Kind::kReal), real_(value) {}
  template <std::unsigned_integral Number>
  Json(Number value) : kind_(Kind::kNatural), natural_(value) {}
  template <std::signed_integral Number>
  Json(Number value) : kind_(Kind::kInteger), integer_(value) {}
  Json(const char* text) : Json(std::string(text)) {}
  Json(std::string text) : kind_(Kind::kText), text_(std::move(text)) {}
  /// An object; its members are printed in this order.
  Json(std::initializer_list<Member> members);
  static Json array();
  template <class Element>
  Json(const std::vector<Element>& elements)
      : kind_(Kind::kArray), elements_(elements.begin(), elements.end()) {}

  bool is_null() const { return kind_ == Kind::kNull; }
  /// Adds to an array.
  void push_back(Json element);
  /// The member of this name, which is added behind the others when there is none; null becomes an
  /// object.
  Json& operator[](const char* name);

  /// In lines indented by two, in ASCII. What is no UTF-8 is replaced, never refused: it may come
  /// from a file.
  std::string text() const;
  /// In one line, otherwise as text().
  std::string line() const;

  /// One value from what a stranger wrote; nothing, with `why` in words, when it is no JSON,
  /// nests deeper than kDeepest, or has more members or elements than any record.
  static std::optional<Json> parse(std::string_view text, std::string* why);
  static constexpr int kDeepest = 16;
  /// The member of this name of an object, else null.
  const Json* find(std::string_view name) const;
  bool is_object() const { return kind_ == Kind::kObject; }
  std::optional<double> number() const;
  std::optional<std::string> string() const;
  std::optional<bool> truth() const;
  /// Of an array; null for anything else.
  const std::vector<Json>* elements() const;

 private:
  friend struct JsonPrinter;
  friend struct JsonReader;
  enum class Kind { kNull, kTruth, kInteger, kNatural, kReal, kText, kArray, kObject };

  // Not a std::variant, of which GCC 12 warns that it may be uninitialised.
  Kind kind_ = Kind::kNull;
  std::uint64_t natural_ = 0;
  std::int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;
  std::vector<Json> elements_;      // of an array, or the members' values
  std::vector<std::string> names_;  // of an object's members, one for each element
};

}  // namespace verbatim::perf
