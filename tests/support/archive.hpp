// SPDX-License-Identifier: BSD-2-Clause
//
// Values as bytes, for the control channel between processes that run the same executable: plain
// structs are copied as they lie, vectors and strings carry their length in front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace verbatim::harness {

using Bytes = std::vector<std::byte>;

class Writer {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { append(&value, sizeof value); }
  template <class T>
  void put(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(static_cast<std::uint64_t>(values.size()));
    append(values.data(), values.size() * sizeof(T));
  }
  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    append(text.data(), text.size());
  }
  Bytes take() { return std::move(bytes_); }

 private:
  void append(const void* data, std::size_t size) {
    if (size == 0) return;
    const std::size_t old = bytes_.size();
    bytes_.resize(old + size);
    std::memcpy(bytes_.data() + old, data, size);
  }
  Bytes bytes_;
};

class Reader {
 public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes) {}

  template <class T>
  T get() {
    T value{};
    read(value);
    return value;
  }

 private:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void read(T& value) { copy(&value, sizeof value); }
  template <class T>
  void read(std::vector<T>& values) {
    values.resize(get<std::uint64_t>());
    copy(values.data(), values.size() * sizeof(T));
  }
  void read(std::string& text) {
    text.resize(get<std::uint64_t>());
    copy(text.data(), text.size());
  }
  void copy(void* to, std::size_t size) {
    if (size > bytes_.size() - at_) throw std::runtime_error("control message is too short");
    if (size != 0) std::memcpy(to, bytes_.data() + at_, size);
    at_ += size;
  }
  const Bytes& bytes_;
  std::size_t at_ = 0;
};

}  // namespace verbatim::harness
