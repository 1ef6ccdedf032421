#pragma once
// Turns a DataType known at run time into a C++ type known at compile time.

#include <complex>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "tensor/types.h"

namespace sdx {

template <class... Ts>
struct TypeList {};

template <class T>
struct TypeTag {
  using type = T;
};

using FloatTypes = TypeList<float, double, Float16, BFloat16>;
using SignedIntTypes = TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t>;
using UnsignedIntTypes = TypeList<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
using IntTypes =
    TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
using NumericTypes = TypeList<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                              std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;

// Calls fn(TypeTag<T>{}) for the T in the list that stands for `type`. Throws Error(not_implemented) naming `what`.
template <class... Ts, class F>
void dispatch(DataType type, TypeList<Ts...>, std::string_view what, F&& fn) {
  const bool found = ((type == DataTypeOf<Ts>::value ? (fn(TypeTag<Ts>{}), true) : false) || ...);
  if (!found) fail(ErrorCode::not_implemented, "{} has no kernel for element type {}", what, name(type));
}

}  // namespace sdx
