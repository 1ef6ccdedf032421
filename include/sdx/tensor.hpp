#pragma once
// Dense tensors, and the other kinds of values in ONNX graphs.

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include <sdx/dtype.hpp>
#include <sdx/error.hpp>
#include <sdx/export.hpp>

namespace sdx {

// Extents, outermost first. A scalar has no extents. All extents are >= 0.
using Shape = std::vector<std::int64_t>;

// Number of elements. Throws Error(invalid_argument) on a negative extent or when the product exceeds 2^62.
SDX_API std::int64_t element_count(std::span<const std::int64_t> shape);

// "[1,3,224,224]"; "[]" for a scalar.
SDX_API std::string to_string(std::span<const std::int64_t> shape);

namespace detail {
template <class T>
constexpr DataType data_type_of() {
  if constexpr (std::is_same_v<T, float>) return DataType::float32;
  if constexpr (std::is_same_v<T, double>) return DataType::float64;
  if constexpr (std::is_same_v<T, bool>) return DataType::boolean;
  if constexpr (std::is_same_v<T, std::int8_t>) return DataType::int8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DataType::uint8;
  if constexpr (std::is_same_v<T, std::int16_t>) return DataType::int16;
  if constexpr (std::is_same_v<T, std::uint16_t>) return DataType::uint16;
  if constexpr (std::is_same_v<T, std::int32_t>) return DataType::int32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return DataType::uint32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DataType::int64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return DataType::uint64;
  if constexpr (std::is_same_v<T, std::string>) return DataType::string;
  return DataType::undefined;
}
}  // namespace detail

// A dense, contiguous, row-major array. One interface, three kinds of storage:
//  - owning: allocated here, 64-byte aligned, shared between copies (copying a Tensor copies the handle, not the data);
//  - borrowed: a view of memory kept alive by a shared owner (a mapped file, another tensor);
//  - external: a view of memory that the caller promises to keep alive.
// Strings are std::string elements and are always owning. 4- and 2-bit types are packed, two or four elements a byte,
// low bits first. Complex numbers are (real, imaginary) pairs.
// Thread safety: as for a std::shared_ptr: distinct Tensor objects may be used concurrently, and the data may be read
// concurrently; nobody synchronises writes to shared data.
class SDX_API Tensor {
 public:
  Tensor() = default;  // undefined: dtype() == DataType::undefined, no data

  // Owning, uninitialised (strings: empty). Throws Error(out_of_memory), Error(invalid_argument).
  Tensor(DataType dtype, Shape shape);

  // Owning copy of `values`, which must hold exactly element_count(shape) elements, else Error(invalid_argument).
  template <class T>
  static Tensor of(Shape shape, std::span<const T> values);
  template <class T>
  static Tensor of(Shape shape, std::initializer_list<T> values) {
    return of<T>(std::move(shape), std::span<const T>(values.begin(), values.size()));
  }
  template <class T>
  static Tensor scalar(T value) {
    return of<T>(Shape{}, std::span<const T>(&value, 1));
  }

  // A view. `data` must hold byte_size(dtype, element_count(shape)) bytes and stay valid as long as `owner` lives, or, if owner
  // is null, as long as the Tensor and all its copies. Not for strings. The data may be unaligned: see is_aligned().
  static Tensor view(const void* data, DataType dtype, Shape shape, std::shared_ptr<const void> owner = nullptr);
  // The same over writable memory, for outputs owned by the caller.
  static Tensor view_mutable(void* data, DataType dtype, Shape shape, std::shared_ptr<void> owner = nullptr);

  bool defined() const noexcept { return dtype_ != DataType::undefined; }
  DataType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::size_t rank() const noexcept { return shape_.size(); }
  std::int64_t dim(std::size_t axis) const { return shape_.at(axis); }
  std::int64_t size() const noexcept { return count_; }  // elements
  std::size_t bytes() const noexcept { return byte_size(dtype_, count_); }
  bool is_aligned() const noexcept;  // data() is a multiple of the element's own size (at most 8)
  bool writable() const noexcept { return writable_; }

  const void* data() const noexcept { return data_; }
  // Throws Error(invalid_argument) for a read-only view.
  void* mutable_data();

  // Typed access; T must match dtype() exactly (bool for boolean), else Error(invalid_argument). 16-bit and smaller
  // floats have no standard C++ type: use data().
  template <class T>
  std::span<const T> values() const {
    check_type(detail::data_type_of<T>());
    return {static_cast<const T*>(data_), static_cast<std::size_t>(count_)};
  }
  template <class T>
  std::span<T> mutable_values() {
    check_type(detail::data_type_of<T>());
    return {static_cast<T*>(mutable_data()), static_cast<std::size_t>(count_)};
  }

  // The same data with another shape of equal element count. Throws Error(invalid_argument) if the counts differ.
  Tensor reshaped(Shape shape) const;
  // A deep, owning copy.
  Tensor clone() const;
  // *this if aligned, else an owning copy.
  Tensor aligned() const;
  // The object that keeps the data alive; null for external views.
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

  // "float32[1,3,224,224]"
  std::string type_string() const;

 private:
  void check_type(DataType asked) const;

  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
  Shape shape_;
  std::int64_t count_ = 0;
  DataType dtype_ = DataType::undefined;
  bool writable_ = false;
};

class Value;

// ONNX map(K, tensor(V)): `keys` is int64 or string, rank 1, without duplicates; `values` has as many elements.
struct Map {
  Tensor keys;
  Tensor values;
};

// ONNX sequence(T). All elements have the same type; an empty sequence keeps its element type.
struct Sequence {
  DataType element_type = DataType::undefined;  // of its tensors; undefined for sequences of maps
  std::vector<Value> items;
};

// Any value on an edge of an ONNX graph: a tensor, a sequence, a map, or nothing (an empty optional). Copying is cheap: tensors
// share data; sequences and maps are shared and immutable once stored here.
class SDX_API Value {
 public:
  Value() = default;                                  // an empty optional or an omitted input
  Value(Tensor tensor) : held_(std::move(tensor)) {}  // NOLINT: implicit on purpose
  Value(Sequence sequence);                           // NOLINT
  Value(Map map);                                     // NOLINT

  bool empty() const noexcept { return held_.index() == 0; }
  bool is_tensor() const noexcept { return held_.index() == 1; }
  bool is_sequence() const noexcept { return held_.index() == 2; }
  bool is_map() const noexcept { return held_.index() == 3; }

  // Throw Error(invalid_argument) if the value is of another kind.
  const Tensor& tensor() const;
  Tensor& tensor();
  const Sequence& sequence() const;
  const Map& map() const;

  // "float32[2,3]", "sequence(float32) of 4", "map(string, float32) of 3", "none"
  std::string type_string() const;

 private:
  std::variant<std::monostate, Tensor, std::shared_ptr<const Sequence>, std::shared_ptr<const Map>> held_;
};

template <class T>
Tensor Tensor::of(Shape shape, std::span<const T> values) {
  Tensor result(detail::data_type_of<T>(), std::move(shape));
  if (static_cast<std::size_t>(result.size()) != values.size()) {
    throw Error(ErrorCode::invalid_argument, "Tensor::of: shape " + to_string(result.shape()) + " holds " +
                                                 std::to_string(result.size()) + " elements, received " +
                                                 std::to_string(values.size()));
  }
  std::copy(values.begin(), values.end(), result.mutable_values<T>().begin());
  return result;
}

}  // namespace sdx
