#pragma once
// The array itself: what it is, when it is computed, and how its numbers are read.

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <sdx/dtype.hpp>
#include <sdx/error.hpp>
#include <sdx/export.hpp>
#include <sdx/tensor.hpp>

namespace sdx::array {

using Dtype = DataType;
using sdx::Shape;

// The device on which arrays are computed. `gpu` exists only if the backend (SDX_BACKEND) has one.
struct Device {
  enum class Type : std::uint8_t { cpu, gpu };
  Type type = Type::cpu;
  int index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

// A queue: work in one stream runs in order; several streams run concurrently. Number 0 is the CPU's default stream.
struct Stream {
  int index = 0;
  Device device;
  friend bool operator==(const Stream&, const Stream&) = default;
};

// The last argument of every operation; none means the calling thread's default stream.
using StreamOrDevice = std::variant<std::monostate, Stream, Device>;

namespace detail {
struct Node;
SDX_API void retain(Node* node) noexcept;
SDX_API void release(Node* node) noexcept;
}  // namespace detail

// A handle to one result of an operation, or to data. Copying is cheap and shares the result. Shape and element type are known at
// once; the numbers are computed when they are asked for: by eval(), tensor(), item() and data(). Element types: boolean, int8 to
// int64, uint8 to uint64, float16, bfloat16, float32, float64, complex64, complex128.
// Thread safety: any number of threads may use one array, also for reading its numbers at the same time.
// Operations throw Error(invalid_argument) when they are built, with the operation's name, shapes and types.
class SDX_API array {
 public:
  // A scalar. Without `dtype` the element type of T: double and float give float32, as in MLX; int gives int32.
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  explicit array(T value, Dtype dtype = Dtype::undefined) : array(scalar_tensor(value, dtype)) {}
  // Wraps the tensor without copying.
  explicit array(Tensor tensor);
  // One-dimensional.
  explicit array(std::initializer_list<float> values);
  template <class T>
  array(std::initializer_list<T> values, Shape shape) : array(Tensor::of<T>(std::move(shape), values)) {}

  array(const array& other) noexcept : node_(other.node_), index_(other.index_) { detail::retain(node_); }
  array(array&& other) noexcept : node_(std::exchange(other.node_, nullptr)), index_(other.index_) {}
  array& operator=(const array& other) noexcept {
    array copy(other);
    swap(copy);
    return *this;
  }
  array& operator=(array&& other) noexcept {
    swap(other);
    return *this;
  }
  ~array() {
    if (node_ != nullptr) detail::release(node_);
  }
  void swap(array& other) noexcept {
    std::swap(node_, other.node_);
    std::swap(index_, other.index_);
  }

  const Shape& shape() const noexcept;
  std::int64_t shape(int axis) const;  // negative axes count from the end; throws Error(invalid_argument) outside the rank
  int ndim() const noexcept { return static_cast<int>(shape().size()); }
  std::int64_t size() const noexcept;  // elements
  Dtype dtype() const noexcept;
  std::size_t itemsize() const noexcept;  // bytes of one element
  std::size_t nbytes() const noexcept { return itemsize() * static_cast<std::size_t>(size()); }

  // The numbers, computed first if necessary. Shares memory with the array: read only.
  const Tensor& tensor() const;
  // Row-major elements. T must be the element type exactly.
  template <class T>
  std::span<const T> data() const {
    return tensor().template values<T>();
  }
  // The single element, converted to T. Throws Error(invalid_argument) unless there is exactly one.
  template <class T>
  T item() const {
    return static_cast<T>(std::is_integral_v<T> && !std::is_same_v<T, bool> ? static_cast<T>(integer_item())
                                                                            : static_cast<T>(real_item()));
  }
  // Computes the numbers if not done yet.
  void eval() const;
  // Whether the numbers have been computed.
  bool is_evaluated() const noexcept;

  // Identifies the result: equal for copies of one array.
  std::pair<const void*, std::uint32_t> id() const noexcept { return {node_, index_}; }

  // For the implementation.
  array(detail::Node* adopted, std::uint32_t index) noexcept : node_(adopted), index_(index) {}
  detail::Node* node() const noexcept { return node_; }
  std::uint32_t index() const noexcept { return index_; }

 private:
  template <class T>
  static Tensor scalar_tensor(T value, Dtype dtype) {
    if constexpr (std::is_same_v<T, bool>) return of_integer(value ? 1 : 0, dtype == Dtype::undefined ? Dtype::boolean : dtype);
    if constexpr (std::is_floating_point_v<T>) {
      return of_real(static_cast<double>(value), dtype == Dtype::undefined ? Dtype::float32 : dtype);
    }
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      return of_unsigned(value, dtype == Dtype::undefined ? Dtype::uint64 : dtype);
    }
    if (dtype == Dtype::undefined) dtype = sizeof(T) == 8 ? Dtype::int64 : Dtype::int32;
    return of_integer(static_cast<std::int64_t>(value), dtype);
  }
  static Tensor of_real(double value, Dtype dtype);
  static Tensor of_integer(std::int64_t value, Dtype dtype);
  static Tensor of_unsigned(std::uint64_t value, Dtype dtype);
  std::int64_t integer_item() const;
  double real_item() const;

  detail::Node* node_ = nullptr;  // reference-counted
  std::uint32_t index_ = 0;
};

// Computes several arrays in one pass; work they share is done once.
SDX_API void eval(std::span<const array> arrays);
inline void eval(const array& a) { a.eval(); }
// Starts computing and returns without waiting; reading the numbers waits and throws any error.
SDX_API void async_eval(std::span<const array> arrays);

// The calling thread's default stream, and others.
SDX_API Device default_device();
SDX_API void set_default_device(Device device);
SDX_API Stream default_stream(Device device);
SDX_API void set_default_stream(Stream stream);
SDX_API Stream new_stream(Device device);
// Waits until all work in the stream (default: the default stream) is done.
SDX_API void synchronize();
SDX_API void synchronize(Stream stream);

}  // namespace sdx::array
