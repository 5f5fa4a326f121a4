// SPDX-License-Identifier: BSD-2-Clause
// A growing array of plain values, on the C heap: a C program links this library with `cc` alone.
// Whoever grows it asks whether there was memory. What lives as long as the process is a
// LastingArray: a destructor would have code run at load, to be called at the end.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

namespace vmpi {

/// Emptied, and its memory given back, by `= {}`.
template <class T>
class LastingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  constexpr LastingArray() noexcept = default;
  LastingArray(const LastingArray&) = delete;
  LastingArray& operator=(const LastingArray&) = delete;
  LastingArray(LastingArray&& other) noexcept
      : data_(other.data_), size_(other.size_), capacity_(other.capacity_) {
    other.data_ = nullptr;
    other.size_ = other.capacity_ = 0;
  }
  LastingArray& operator=(LastingArray&& other) noexcept {
    if (this == &other) return *this;
    std::free(data_);
    data_ = other.data_;
    size_ = other.size_;
    capacity_ = other.capacity_;
    other.data_ = nullptr;
    other.size_ = other.capacity_ = 0;
    return *this;
  }

  [[nodiscard]] bool reserve(std::size_t capacity) noexcept {
    if (capacity <= capacity_) return true;
    void* const grown = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
    if (grown == nullptr) return false;
    data_ = static_cast<T*>(grown);
    capacity_ = capacity;
    return true;
  }
  /// New elements are zero.
  [[nodiscard]] bool resize(std::size_t size) noexcept {
    if (size > capacity_ && !reserve(size)) return false;
    if (size > size_) std::memset(static_cast<void*>(data_ + size_), 0, (size - size_) * sizeof(T));
    size_ = size;
    return true;
  }
  [[nodiscard]] bool push_back(const T& value) noexcept {
    const T copy = value;
    if (size_ == capacity_ && !reserve(capacity_ == 0 ? 8 : 2 * capacity_)) return false;
    data_[size_++] = copy;
    return true;
  }
  [[nodiscard]] bool assign(const T* from, std::size_t count) noexcept {
    if (!resize(count)) return false;
    if (count != 0) std::memcpy(static_cast<void*>(data_), from, count * sizeof(T));
    return true;
  }
  void pop_back() noexcept { --size_; }
  void clear() noexcept { size_ = 0; }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data_; }
  [[nodiscard]] const T* end() const noexcept { return data_ + size_; }

 protected:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

template <class T>
class Array : public LastingArray<T> {
 public:
  constexpr Array() noexcept = default;
  Array(Array&&) noexcept = default;
  Array& operator=(Array&&) noexcept = default;
  explicit Array(LastingArray<T>&& other) noexcept : LastingArray<T>(std::move(other)) {}
  ~Array() { std::free(this->data_); }
};

}  // namespace vmpi
