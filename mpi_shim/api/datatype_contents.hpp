// SPDX-License-Identifier: BSD-2-Clause
// Arguments of a constructor, kept for MPI_Type_get_contents. Those of the large-count forms are all
// counts, but for what is an int in both.
#pragma once

#include "mpi_shim/core/datatype.hpp"
#include "mpi_shim/core/datatype_make.hpp"

namespace vmpi {

class Contents {
 public:
  Contents(Datatype* type, bool is_large) noexcept : type_(type), is_large_(is_large) {}

  Contents& integer(int value) noexcept {
    if (type_ != nullptr) has_memory_ = has_memory_ && type_->integers.push_back(value);
    return *this;
  }
  Contents& integers(const int* values, int count) noexcept {
    for (int i = 0; i < count; ++i) integer(values[i]);
    return *this;
  }
  /// Of a parameter that is int in one form and MPI_Count in the other.
  Contents& number(std::int64_t value) noexcept {
    return is_large_ ? count(value) : integer(static_cast<int>(value));
  }
  Contents& numbers(Numbers values, std::int64_t n) noexcept {
    for (std::int64_t i = 0; i < n; ++i) number(values[i]);
    return *this;
  }
  /// MPI_Aint in one form and MPI_Count in the other.
  Contents& address(std::int64_t value) noexcept {
    if (is_large_) return count(value);
    if (type_ != nullptr) has_memory_ = has_memory_ && type_->addresses.push_back(value);
    return *this;
  }
  Contents& addresses(Numbers values, std::int64_t n) noexcept {
    for (std::int64_t i = 0; i < n; ++i) address(values[i]);
    return *this;
  }
  [[nodiscard]] bool has_memory() const noexcept { return has_memory_; }

 private:
  Contents& count(std::int64_t value) noexcept {
    if (type_ != nullptr) has_memory_ = has_memory_ && type_->counts.push_back(value);
    return *this;
  }

  Datatype* type_;
  bool is_large_;
  bool has_memory_ = true;
};

/// What is left of each constructor: hands the new type out, or raises `error`.
[[nodiscard]] int give_type(const char* function, int error, Datatype* made, int combiner,
                            const Contents& contents, MPI_Datatype* out) noexcept;

}  // namespace vmpi
