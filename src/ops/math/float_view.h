#pragma once
// Floating tensors seen as float or double, so that a kernel is compiled for two types instead of four: float16 and bfloat16
// are widened on the way in and rounded on the way out.

#include <string_view>
#include <vector>

#include <sdx/tensor.hpp>

#include "tensor/dispatch.h"

namespace sdx::ops {

// Calls fn(TypeTag<double>{}) for float64, fn(TypeTag<float>{}) for float32, float16 and bfloat16.
template <class F>
void dispatch_compute(DataType type, std::string_view what, F&& fn) {
  if (type == DataType::float64) {
    fn(TypeTag<double>{});
  } else if (type == DataType::float32 || type == DataType::float16 || type == DataType::bfloat16) {
    fn(TypeTag<float>{});
  } else {
    fail(ErrorCode::not_implemented, "{} has no kernel for element type {}", what, name(type));
  }
}

// Elements of a float32, float64, float16 or bfloat16 tensor converted to C. Implemented in float_view.cc for float, double.
template <class C>
void load_floats(const Tensor& tensor, C* out);
template <class C>
void store_floats(const C* values, Tensor& tensor);

// A tensor's elements as C (float or double): copied only when they are of another type. data() is null for no tensor.
template <class C>
class FloatInput {
 public:
  explicit FloatInput(const Tensor* tensor) {
    if (tensor == nullptr) return;
    if (tensor->dtype() == DataTypeOf<C>::value) {
      data_ = static_cast<const C*>(tensor->data());
      return;
    }
    copy_.resize(static_cast<std::size_t>(tensor->size()));
    load_floats(*tensor, copy_.data());
    data_ = copy_.data();
  }
  explicit FloatInput(const Tensor& tensor) : FloatInput(&tensor) {}
  FloatInput(const FloatInput&) = delete;
  FloatInput& operator=(const FloatInput&) = delete;

  const C* data() const { return data_; }
  C operator[](std::int64_t i) const { return data_[i]; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  std::vector<C> copy_;
  const C* data_ = nullptr;
};

// Room for C elements of a tensor; store() rounds them into a tensor of another type. `tensor` must outlive this.
template <class C>
class FloatOutput {
 public:
  explicit FloatOutput(Tensor& tensor) : tensor_(tensor) {
    if (tensor.dtype() == DataTypeOf<C>::value) {
      data_ = static_cast<C*>(tensor.mutable_data());
    } else {
      copy_.resize(static_cast<std::size_t>(tensor.size()));
      data_ = copy_.data();
    }
  }
  FloatOutput(const FloatOutput&) = delete;
  FloatOutput& operator=(const FloatOutput&) = delete;

  C* data() const { return data_; }
  C& operator[](std::int64_t i) const { return data_[i]; }
  void store() {
    if (!copy_.empty()) store_floats(copy_.data(), tensor_);
  }

 private:
  Tensor& tensor_;
  std::vector<C> copy_;
  C* data_ = nullptr;
};

}  // namespace sdx::ops
