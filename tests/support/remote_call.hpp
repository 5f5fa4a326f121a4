// SPDX-License-Identifier: BSD-2-Clause
//
// Calling methods of an object in another process that runs the same executable: the method's place
// in one list is its number on the wire, its signature says how arguments and result are carried.
#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/support/archive.hpp"

namespace verbatim::harness {

template <class Method>
struct Signature;
template <class Object, class Result, class... Arguments>
struct Signature<Result (Object::*)(Arguments...)> {
  using Owner = Object;
  using Answer = Result;
  /// Braces evaluate in order: the arguments lie in the frame as they stand in the declaration.
  static std::tuple<std::decay_t<Arguments>...> decode(Reader& in) {
    return {in.get<std::decay_t<Arguments>>()...};
  }
  static Bytes encode(const std::decay_t<Arguments>&... arguments) {
    Writer out;
    (out.put(arguments), ...);
    return out.take();
  }
};

template <auto Method>
struct Constant {};

template <auto... Methods>
struct MethodList {
  template <auto Method>
  static constexpr std::uint32_t number() {
    static_assert((std::is_same_v<Constant<Method>, Constant<Methods>> || ...),
                  "a method that other processes call must stand in the list");
    std::uint32_t n = 0;
    bool found = false;
    (((found = found || std::is_same_v<Constant<Method>, Constant<Methods>>), n += !found), ...);
    return n;
  }

  /// Calls method `number` with the arguments in `arguments`; the encoded result. Exceptions pass.
  template <class Object>
  static Bytes invoke(Object& object, std::uint32_t number, const Bytes& arguments) {
    using Thunk = Bytes (*)(Object&, const Bytes&);
    static constexpr Thunk kThunks[] = {&call<Methods, Object>...};
    if (number >= std::size(kThunks)) throw std::runtime_error("no such method");
    return kThunks[number](object, arguments);
  }

 private:
  template <auto Method, class Object>
  static Bytes call(Object& object, const Bytes& bytes) {
    using Called = Signature<decltype(Method)>;
    Reader in(bytes);
    auto arguments = Called::decode(in);
    Writer out;
    const auto on_object = [&](auto&... each) { return (object.*Method)(each...); };
    if constexpr (std::is_void_v<typename Called::Answer>) {
      std::apply(on_object, arguments);
    } else {
      out.put(std::apply(on_object, arguments));
    }
    return out.take();
  }
};

}  // namespace verbatim::harness
