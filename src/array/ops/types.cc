// Properties of element types: categories, promotion, limits.

#include <sdx/array.hpp>

#include <limits>

#include "array/ops/common.h"

namespace sdx::array {

DtypeCategory category(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::uint8:
    case Dtype::uint16:
    case Dtype::uint32:
    case Dtype::uint64: return DtypeCategory::unsignedinteger;
    case Dtype::int8:
    case Dtype::int16:
    case Dtype::int32:
    case Dtype::int64: return DtypeCategory::signedinteger;
    case Dtype::complex64:
    case Dtype::complex128: return DtypeCategory::complexfloating;
    default: return is_floating(dtype) ? DtypeCategory::floating : DtypeCategory::generic;
  }
}

namespace {

// Returns the next more general category.
DtypeCategory parent(DtypeCategory c) noexcept {
  switch (c) {
    case DtypeCategory::complexfloating:
    case DtypeCategory::floating: return DtypeCategory::inexact;
    case DtypeCategory::signedinteger:
    case DtypeCategory::unsignedinteger: return DtypeCategory::integer;
    case DtypeCategory::inexact:
    case DtypeCategory::integer: return DtypeCategory::number;
    default: return DtypeCategory::generic;
  }
}

}  // namespace

bool issubdtype(const DtypeOrCategory& a, const DtypeOrCategory& b) noexcept {
  const auto* type = std::get_if<Dtype>(&a);
  if (const auto* other = std::get_if<Dtype>(&b)) return type != nullptr && *type == *other;
  const DtypeCategory wanted = *std::get_if<DtypeCategory>(&b);
  DtypeCategory at = type != nullptr ? category(*type) : *std::get_if<DtypeCategory>(&a);
  while (at != wanted && at != DtypeCategory::generic) at = parent(at);
  return at == wanted;
}

bool isdtype(Dtype dtype, std::string_view kind) {
  const DtypeCategory c = category(dtype);
  const bool integral = c == DtypeCategory::signedinteger || c == DtypeCategory::unsignedinteger;
  if (kind == "bool") return dtype == Dtype::boolean;
  if (kind == "signed integer") return c == DtypeCategory::signedinteger;
  if (kind == "unsigned integer") return c == DtypeCategory::unsignedinteger;
  if (kind == "integral") return integral;
  if (kind == "real floating") return c == DtypeCategory::floating;
  if (kind == "complex floating") return c == DtypeCategory::complexfloating;
  if (kind == "numeric") return integral || detail::is_inexact(dtype);
  detail::refuse("isdtype",
                 "\"{}\" is not a known kind of types: expected bool, signed integer, unsigned integer, integral, real floating, "
                 "complex floating or numeric",
                 kind);
}

Dtype promote_types(Dtype a, Dtype b) { return detail::promote(a, b); }

Dtype result_type(const std::vector<Dtype>& types) {
  if (types.empty()) detail::refuse("result_type", "needs a type");
  Dtype result = types[0];
  for (const Dtype type : types) result = detail::promote(result, type);
  return result;
}

Dtype result_type(const array& a, const array& b) { return detail::promote(a.dtype(), b.dtype()); }

bool can_cast(Dtype from, Dtype to) { return detail::promote(from, to) == to; }

FloatInfo finfo(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16: return {16, -65504, 65504, 0x1p-10, 0x1p-14, dtype};
    case Dtype::bfloat16: return {16, -0x1.FEp127, 0x1.FEp127, 0x1p-7, 0x1p-126, dtype};
    case Dtype::float32:
    case Dtype::complex64: {
      using L = std::numeric_limits<float>;
      return {32, L::lowest(), L::max(), L::epsilon(), L::min(), Dtype::float32};
    }
    case Dtype::float64:
    case Dtype::complex128: {
      using L = std::numeric_limits<double>;
      return {64, L::lowest(), L::max(), L::epsilon(), L::min(), Dtype::float64};
    }
    default: detail::refuse("finfo", "{} is not a floating-point type", name(dtype));
  }
}

IntegerInfo iinfo(Dtype dtype) {
  const DtypeCategory c = category(dtype);
  const int bits = bit_width(dtype);
  if (c == DtypeCategory::unsignedinteger) return {bits, 0, ~std::uint64_t{0} >> (64 - bits), dtype};
  if (c != DtypeCategory::signedinteger) detail::refuse("iinfo", "{} is not an integer type", name(dtype));
  const std::uint64_t most = ~std::uint64_t{0} >> (65 - bits);
  return {bits, -static_cast<std::int64_t>(most) - 1, most, dtype};
}

}  // namespace sdx::array
