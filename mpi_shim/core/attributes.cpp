// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/attributes.hpp"

#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

constinit HandleTable<HandleKind::kKeyval, Keyval> table;

/// The values of the standard ABI for "copy nothing" and "delete nothing", and for "copy the value".
constexpr std::uintptr_t kNothing = 0x0;
constexpr std::uintptr_t kCopyValue = 0x1;

/// The program's functions may call the library.
class WithoutBigLock {
 public:
  WithoutBigLock() noexcept { big_lock.unlock(); }
  ~WithoutBigLock() { big_lock.lock(); }
  WithoutBigLock(const WithoutBigLock&) = delete;
  WithoutBigLock& operator=(const WithoutBigLock&) = delete;
};

template <class Handle, class Object>
[[nodiscard]] Handle handle_of(const Object& object) noexcept {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(object.handle));
}

// What differs between the owners: types of handles and functions.
struct OfComm {
  using Object = Comm;
  static int copy(const Comm& from, const Keyval& keyval, void* in, void* out, int* flag) noexcept {
    const WithoutBigLock unlocked;
    return keyval.copy.comm(handle_of<MPI_Comm>(from), static_cast<int>(keyval.handle),
                            keyval.extra_state, in, out, flag);
  }
  static int remove(const Comm& of, const Keyval& keyval, void* value) noexcept {
    const WithoutBigLock unlocked;
    return keyval.remove.comm(handle_of<MPI_Comm>(of), static_cast<int>(keyval.handle), value,
                              keyval.extra_state);
  }
  static std::uintptr_t copy_address(const Keyval& keyval) noexcept {
    return reinterpret_cast<std::uintptr_t>(keyval.copy.comm);
  }
  static std::uintptr_t remove_address(const Keyval& keyval) noexcept {
    return reinterpret_cast<std::uintptr_t>(keyval.remove.comm);
  }
};

struct OfType {
  using Object = Datatype;
  static int copy(const Datatype& from, const Keyval& keyval, void* in, void* out,
                  int* flag) noexcept {
    const WithoutBigLock unlocked;
    return keyval.copy.type(handle_of<MPI_Datatype>(from), static_cast<int>(keyval.handle),
                            keyval.extra_state, in, out, flag);
  }
  static int remove(const Datatype& of, const Keyval& keyval, void* value) noexcept {
    const WithoutBigLock unlocked;
    return keyval.remove.type(handle_of<MPI_Datatype>(of), static_cast<int>(keyval.handle), value,
                              keyval.extra_state);
  }
  static std::uintptr_t copy_address(const Keyval& keyval) noexcept {
    return reinterpret_cast<std::uintptr_t>(keyval.copy.type);
  }
  static std::uintptr_t remove_address(const Keyval& keyval) noexcept {
    return reinterpret_cast<std::uintptr_t>(keyval.remove.type);
  }
};

void release(Keyval& keyval) noexcept {
  if (--keyval.references == 0) table.release(keyval);
}

[[nodiscard]] const AttributeValue* find(const Array<AttributeValue>& values,
                                         std::uint32_t keyval) noexcept {
  for (const AttributeValue& each : values)
    if (each.keyval == keyval) return &each;
  return nullptr;
}

void erase(Array<AttributeValue>& values, std::uint32_t keyval) noexcept {
  std::size_t kept = 0;
  for (const AttributeValue& each : values)
    if (each.keyval != keyval) values[kept++] = each;
  if (kept < values.size()) values.pop_back();
}

/// The value stays when the program's function says no.
template <class Of>
[[nodiscard]] int remove_value(typename Of::Object& object, Keyval& keyval) noexcept {
  const AttributeValue* const found = find(object.attributes, keyval.handle);
  if (found == nullptr) return MPI_SUCCESS;
  if (Of::remove_address(keyval) != kNothing) {
    const int error = Of::remove(object, keyval, found->value);
    if (error != MPI_SUCCESS) return error;
  }
  // The function may have set or deleted others meanwhile.
  if (find(object.attributes, keyval.handle) == nullptr) return MPI_SUCCESS;
  erase(object.attributes, keyval.handle);
  release(keyval);
  return MPI_SUCCESS;
}

template <class Of>
[[nodiscard]] int set_value(typename Of::Object& object, Keyval& keyval, void* value) noexcept {
  const int error = remove_value<Of>(object, keyval);
  if (error != MPI_SUCCESS) return error;
  if (!object.attributes.push_back(AttributeValue{keyval.handle, value})) return MPI_ERR_NO_MEM;
  ++keyval.references;
  return MPI_SUCCESS;
}

[[nodiscard]] bool get_value(const Array<AttributeValue>& values, const Keyval& keyval,
                             void** value) noexcept {
  const AttributeValue* const found = find(values, keyval.handle);
  if (found == nullptr) return false;
  *value = found->value;
  return true;
}

template <class Of>
[[nodiscard]] int copy_values(const typename Of::Object& from, typename Of::Object& to) noexcept {
  for (std::size_t i = 0; i < from.attributes.size(); ++i) {
    const AttributeValue each = from.attributes[i];
    Keyval* const keyval = table.find(each.keyval);
    if (keyval == nullptr) continue;
    const std::uintptr_t function = Of::copy_address(*keyval);
    if (function == kNothing) continue;
    void* copy = each.value;
    int is_copied = 1;
    if (function != kCopyValue) {
      is_copied = 0;
      const int error = Of::copy(from, *keyval, each.value, static_cast<void*>(&copy), &is_copied);
      if (error != MPI_SUCCESS) return error;
    }
    if (is_copied == 0) continue;
    if (!to.attributes.push_back(AttributeValue{each.keyval, copy})) return MPI_ERR_NO_MEM;
    ++keyval->references;
  }
  return MPI_SUCCESS;
}

template <class Of>
[[nodiscard]] int remove_all(typename Of::Object& object) noexcept {
  while (!object.attributes.empty()) {
    const std::uint32_t last = object.attributes[object.attributes.size() - 1].keyval;
    Keyval* const keyval = table.find(last);
    if (keyval == nullptr) {
      object.attributes.pop_back();
      continue;
    }
    const int error = remove_value<Of>(object, *keyval);
    if (error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

}  // namespace

Keyval* make_keyval(KeyvalOwner owner) noexcept {
  Keyval* const made = table.make();
  if (made != nullptr) made->owner = owner;
  return made;
}

Keyval* find_keyval(int number, KeyvalOwner owner) noexcept {
  Keyval* const found = table.find(static_cast<std::uint32_t>(number));
  return found == nullptr || found->is_freed || found->owner != owner ? nullptr : found;
}

void free_keyval(Keyval& keyval) noexcept {
  keyval.is_freed = true;
  release(keyval);
}

void set_foreign_functions(int keyval, ForeignFunctions functions) noexcept {
  const BigGuard guard;
  if (Keyval* const found = table.find(static_cast<std::uint32_t>(keyval)); found != nullptr)
    found->foreign = functions;
}

ForeignFunctions foreign_functions_of(int keyval) noexcept {
  const BigGuard guard;
  const Keyval* const found = table.find(static_cast<std::uint32_t>(keyval));
  return found != nullptr ? found->foreign : ForeignFunctions{};
}

void drop_all_keyvals() noexcept { table.clear(); }

int set_attribute(Comm& comm, Keyval& keyval, void* value) noexcept {
  return set_value<OfComm>(comm, keyval, value);
}
int set_attribute(Datatype& type, Keyval& keyval, void* value) noexcept {
  return set_value<OfType>(type, keyval, value);
}

bool get_attribute(const Comm& comm, const Keyval& keyval, void** value) noexcept {
  return get_value(comm.attributes, keyval, value);
}
bool get_attribute(const Datatype& type, const Keyval& keyval, void** value) noexcept {
  return get_value(type.attributes, keyval, value);
}

int delete_attribute(Comm& comm, Keyval& keyval) noexcept {
  return remove_value<OfComm>(comm, keyval);
}
int delete_attribute(Datatype& type, Keyval& keyval) noexcept {
  return remove_value<OfType>(type, keyval);
}

int copy_attributes(const Comm& from, Comm& to) noexcept { return copy_values<OfComm>(from, to); }
int copy_attributes(const Datatype& from, Datatype& to) noexcept {
  return copy_values<OfType>(from, to);
}

int delete_attributes(Comm& comm) noexcept { return remove_all<OfComm>(comm); }
int delete_attributes(Datatype& type) noexcept { return remove_all<OfType>(type); }

}  // namespace vmpi
