// SPDX-License-Identifier: BSD-2-Clause
// What the constructors share: a type under construction holds references to its parts, and is gone
// again when the construction fails.
#pragma once

#include "mpi_shim/core/datatype.hpp"
#include "mpi_shim/core/datatype_build.hpp"

namespace vmpi {

class NewType {
 public:
  NewType() noexcept : type_(new_datatype()) {}
  NewType(const NewType&) = delete;
  NewType& operator=(const NewType&) = delete;
  ~NewType() {
    if (type_ != nullptr) release(*type_);
  }

  [[nodiscard]] bool has_memory() const noexcept { return type_ != nullptr; }
  /// The new type lives as long as the parts that it holds. False: no memory.
  [[nodiscard]] bool hold(Datatype& part) noexcept {
    if (type_ == nullptr || !type_->types.push_back(part.handle)) return false;
    retain(part);
    return true;
  }
  /// A part of ours, which MPI_Type_get_contents does not tell; takes over its reference.
  [[nodiscard]] bool adopt(Datatype& part) noexcept {
    const bool held = hold(part);
    release(part);
    if (held) ++type_->inner_types;
    return held;
  }
  [[nodiscard]] Datatype& get() noexcept { return *type_; }

  [[nodiscard]] int finish(TypeBuilder& builder, Datatype*& out) noexcept {
    const int error = builder.finish();
    if (error != MPI_SUCCESS) return error;
    out = type_;
    type_ = nullptr;
    return MPI_SUCCESS;
  }

 private:
  Datatype* type_;
};

}  // namespace vmpi
