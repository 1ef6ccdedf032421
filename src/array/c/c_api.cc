#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/array.h>
#include <sdx/array.hpp>

#include "array/c/operations.h"
#include "base/error.h"
#include "base/system/pages.h"
#include "session/c/c_interface.h"

namespace mx = sdx::array;
using sdx::session::guarded;
using sdx::session::require;

struct sdx_array {
  mx::array value;
};

namespace {

const mx::array& in(const sdx_array* a, const char* what = "array") { return require(a, what).value; }

template <class F>
sdx_status giving(sdx_array** out, F&& make) noexcept {
  if (out != nullptr) *out = nullptr;
  return guarded([&] {
    sdx_array*& made = require(out, "out");
    made = std::make_unique<sdx_array>(sdx_array{make()}).release();
  });
}

mx::Shape shape_of(const int64_t* shape, size_t rank) {
  if (rank != 0) require(shape, "shape");
  return rank == 0 ? mx::Shape{} : mx::Shape(shape, shape + rank);
}

std::optional<std::vector<int>> axes_of(const int* axes, size_t count) {
  if (axes == nullptr) return std::nullopt;
  return std::vector<int>(axes, axes + count);
}

std::vector<mx::array> list_of(const sdx_array* const* arrays, size_t count) {
  std::vector<mx::array> list;
  if (count != 0) require(arrays, "arrays");
  for (size_t i = 0; i < count; ++i) list.push_back(in(arrays[i], "an array of the list"));
  return list;
}

mx::Dtype dtype_of(sdx_dtype number) {
  const auto dtype = static_cast<mx::Dtype>(number);
  using enum mx::Dtype;
  constexpr mx::Dtype known[] = {float32, uint8,   int8,   uint16, int16,     int32,      int64,   boolean,
                                 float16, float64, uint32, uint64, complex64, complex128, bfloat16};
  if (std::find(std::begin(known), std::end(known), dtype) == std::end(known)) {
    sdx::fail(sdx::ErrorCode::invalid_argument, "{} is not an element type of arrays", number);
  }
  return dtype;
}

std::string_view text_of(const char* text) { return &require(text, "name"); }

}  // namespace

sdx_status sdx_array_from_data(sdx_dtype dtype, const int64_t* shape, size_t rank, const void* data, size_t bytes,
                               sdx_array** out) {
  return giving(out, [&] {
    sdx::Tensor tensor(dtype_of(dtype), shape_of(shape, rank));
    if (tensor.bytes() != bytes) {
      sdx::fail(sdx::ErrorCode::invalid_argument, "{} takes {} bytes, received {}", tensor.type_string(), tensor.bytes(), bytes);
    }
    if (bytes != 0) std::memcpy(tensor.mutable_data(), &require(static_cast<const char*>(data), "data"), bytes);
    return mx::array(std::move(tensor));
  });
}

sdx_status sdx_array_full(sdx_dtype dtype, const int64_t* shape, size_t rank, double value, sdx_array** out) {
  return giving(out, [&] { return mx::full(shape_of(shape, rank), mx::array(value, dtype_of(dtype))); });
}

sdx_status sdx_array_arange(sdx_dtype dtype, double start, double stop, double step, sdx_array** out) {
  return giving(out, [&] { return mx::arange(start, stop, step, dtype_of(dtype)); });
}

sdx_status sdx_array_random(const char* name, sdx_dtype dtype, const int64_t* shape, size_t rank, double a, double b,
                            sdx_array** out) {
  return giving(out, [&] { return mx::detail::random_by_name(text_of(name), dtype_of(dtype), shape_of(shape, rank), a, b); });
}

sdx_status sdx_array_seed(uint64_t seed) {
  return guarded([&] { mx::random::seed(seed); });
}

sdx_status sdx_array_share(const sdx_array* array, sdx_array** out) {
  return giving(out, [&] { return in(array); });
}

void sdx_array_free(sdx_array* array) { delete array; }

sdx_dtype sdx_array_dtype(const sdx_array* array) { return array == nullptr ? 0 : static_cast<sdx_dtype>(array->value.dtype()); }
size_t sdx_array_rank(const sdx_array* array) { return array == nullptr ? 0 : array->value.shape().size(); }
const int64_t* sdx_array_shape(const sdx_array* array) { return array == nullptr ? nullptr : array->value.shape().data(); }
size_t sdx_array_count(const sdx_array* array) { return array == nullptr ? 0 : static_cast<size_t>(array->value.size()); }
size_t sdx_array_bytes(const sdx_array* array) { return array == nullptr ? 0 : array->value.nbytes(); }

sdx_status sdx_array_eval(const sdx_array* const* arrays, size_t count) {
  return guarded([&] { mx::eval(std::span<const mx::array>(list_of(arrays, count))); });
}

sdx_status sdx_array_async_eval(const sdx_array* const* arrays, size_t count) {
  return guarded([&] { mx::async_eval(list_of(arrays, count)); });
}

sdx_status sdx_array_data(const sdx_array* array, const void** data) {
  return guarded([&] { require(data, "data") = in(array).tensor().data(); });
}

sdx_status sdx_array_unary(const char* name, const sdx_array* a, sdx_array** out) {
  return giving(out, [&] { return mx::detail::unary_by_name(text_of(name))(in(a), {}); });
}

sdx_status sdx_array_binary(const char* name, const sdx_array* a, const sdx_array* b, sdx_array** out) {
  return giving(out, [&] { return mx::detail::binary_by_name(text_of(name))(in(a), in(b), {}); });
}

sdx_status sdx_array_reduce(const char* name, const sdx_array* a, const int* axes, size_t axis_count, int keep, sdx_array** out) {
  return giving(out, [&] { return mx::detail::reduce_by_name(text_of(name), in(a), axes_of(axes, axis_count), keep != 0); });
}

sdx_status sdx_array_where(const sdx_array* condition, const sdx_array* a, const sdx_array* b, sdx_array** out) {
  return giving(out, [&] { return mx::where(in(condition, "condition"), in(a), in(b)); });
}

sdx_status sdx_array_astype(const sdx_array* a, sdx_dtype dtype, sdx_array** out) {
  return giving(out, [&] { return mx::astype(in(a), dtype_of(dtype)); });
}

sdx_status sdx_array_reshape(const sdx_array* a, const int64_t* shape, size_t rank, sdx_array** out) {
  return giving(out, [&] { return mx::reshape(in(a), shape_of(shape, rank)); });
}

sdx_status sdx_array_broadcast_to(const sdx_array* a, const int64_t* shape, size_t rank, sdx_array** out) {
  return giving(out, [&] { return mx::broadcast_to(in(a), shape_of(shape, rank)); });
}

sdx_status sdx_array_transpose(const sdx_array* a, const int* axes, size_t axis_count, sdx_array** out) {
  return giving(out, [&] {
    const auto order = axes_of(axes, axis_count);
    return order ? mx::transpose(in(a), *order) : mx::transpose(in(a));
  });
}

sdx_status sdx_array_concatenate(const sdx_array* const* arrays, size_t count, int axis, sdx_array** out) {
  return giving(out, [&] { return mx::concatenate(list_of(arrays, count), axis); });
}

sdx_status sdx_array_slice(const sdx_array* a, const int64_t* start, const int64_t* stop, const int64_t* step, size_t rank,
                           sdx_array** out) {
  return giving(out, [&] { return mx::slice(in(a), shape_of(start, rank), shape_of(stop, rank), shape_of(step, rank)); });
}

sdx_status sdx_array_take(const sdx_array* a, const sdx_array* indices, int axis, sdx_array** out) {
  return giving(out, [&] { return mx::take(in(a), in(indices, "indices"), axis); });
}

sdx_status sdx_array_set_backend(const char* name) {
  return guarded([&] { mx::set_backend(std::string(text_of(name))); });
}

namespace {

// The texts behind the pointers that sdx_array_backend() has returned on this thread.
struct BackendTexts {
  std::string backend, device, version, why;
};
thread_local BackendTexts shown;

mx::Stream stream_of(int index) {
  if (index < 0) return mx::default_stream(mx::default_device());
  return {index, mx::default_device()};
}

}  // namespace

sdx_status sdx_array_backend(sdx_backend* backend) {
  return guarded([&] {
    sdx_backend& out = require(backend, "backend");
    const std::vector<mx::BackendInfo> all = mx::backend_info();
    const mx::BackendInfo& used = all.at(0);
    shown = {used.name, used.device, used.version, {}};
    for (const mx::BackendInfo& other : all) {
      if (other.available || other.reason.empty() || &other == &used) continue;
      shown.why += (shown.why.empty() ? "" : "; ") + other.name + ": " + other.reason;
    }
    // Reports memory for the CPU only: this function asks no GPU's runtime.
    const std::int64_t memory = used.name == "cpu" || used.name == "onnx" ? static_cast<std::int64_t>(sdx::machine_memory()) : 0;
    out = {shown.backend.c_str(), shown.device.c_str(), shown.version.c_str(), shown.why.c_str(), memory};
  });
}

sdx_status sdx_array_new_stream(int* stream) {
  return guarded([&] { require(stream, "stream") = mx::new_stream(mx::default_device()).index; });
}

sdx_status sdx_array_set_stream(int stream) {
  return guarded([&] { mx::set_default_stream(stream_of(stream)); });
}

sdx_status sdx_array_synchronize(int stream) {
  return guarded([&] { mx::synchronize(stream_of(stream)); });
}
