#pragma once
// Moving elements without looking at their type: by size, in runs, on all threads.

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/copy_bytes.h"
#include "base/error.h"
#include "base/tools_api.h"
#include "ops/context.h"

namespace sdx::ops {

using Ints = std::vector<std::int64_t>;

// One loop of a strided copy; strides in elements, any sign, 0 to repeat an element.
struct CopyAxis {
  std::int64_t extent;
  std::int64_t from;
  std::int64_t to;
};

// Tensors of sub-byte types as uint8 with one code per element; all others unchanged.
SDX_TOOLS_API Tensor widened(const Tensor& t);
// The inverse: packs `codes` (uint8) into `packed`, a tensor of a sub-byte type and of the same shape.
SDX_TOOLS_API void narrow(const Tensor& codes, Tensor& packed);

// Copies element by element along `axes`, outermost first. Both tensors have the same element type, not a sub-byte one; the
// caller has made sure that every offset lies inside, and that no element of `to` is written twice.
SDX_TOOLS_API void copy_strided(const Tensor& from, std::int64_t from_offset, Tensor& to, std::int64_t to_offset,
                                std::vector<CopyAxis> axes);

// All elements, same count and type; shapes may differ.
SDX_TOOLS_API void copy_all(const Tensor& from, Tensor& to);

// Fills with element 0 of `value` (same type). A sub-byte tensor is filled as well.
SDX_TOOLS_API void fill_with(Tensor& to, const Tensor& value);
// Fills with zeros, false, or empty strings.
SDX_TOOLS_API void fill_zero(Tensor& to);

// Output i, as fn(Tensor&) writes it. For a sub-byte type fn gets a uint8 tensor with one code per element, packed afterwards.
template <class F>
void produce(OpContext& c, std::size_t i, DataType dtype, const Shape& shape, F&& fn) {
  Tensor& out = c.output(i, dtype, shape);
  if (!is_sub_byte(dtype)) {
    fn(out);
    return;
  }
  Tensor codes(DataType::uint8, shape);
  fn(codes);
  narrow(codes, out);
}

// 16 bytes that move together: complex128.
struct Unit16 {
  std::uint64_t half[2];
};

template <class T>
struct UnitTag {
  using type = T;
};

// Calls fn(UnitTag<T>{}) where T is the unsigned integer (or Unit16, or std::string) of the type's element size.
template <class F>
void dispatch_unit(DataType dtype, F&& fn) {
  if (dtype == DataType::string) return fn(UnitTag<std::string>{});
  switch (bit_width(dtype)) {
    case 8: return fn(UnitTag<std::uint8_t>{});
    case 16: return fn(UnitTag<std::uint16_t>{});
    case 32: return fn(UnitTag<std::uint32_t>{});
    case 64: return fn(UnitTag<std::uint64_t>{});
    case 128: return fn(UnitTag<Unit16>{});
    default: fail(ErrorCode::internal, "elements of type {} cannot be moved singly", name(dtype));
  }
}

// Copies `count` elements that do not overlap.
template <class T>
void copy_units(const T* from, T* to, std::int64_t count) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    copy_bytes(to, from, static_cast<std::size_t>(count) * sizeof(T));
  } else {
    std::copy_n(from, count, to);
  }
}

// Runs of about this many bytes are worth handing to another thread.
inline constexpr std::int64_t kMoveGrainBytes = 64 * 1024;
SDX_TOOLS_API std::int64_t grain_for(std::int64_t bytes_per_item);

}  // namespace sdx::ops
