#include <sdx/tensor.hpp>

#include <cstdint>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/poison.h"
#include "tensor/own.h"
#include "tensor/poison.h"

namespace sdx {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 62;

void check_dtype(DataType dtype) {
  if (dtype == DataType::undefined || static_cast<int>(dtype) >= kDataTypeCount) {
    fail(ErrorCode::invalid_argument, "a tensor needs a defined element type, received {}", static_cast<int>(dtype));
  }
}

std::shared_ptr<void> allocate_strings(std::int64_t count) {
  auto budgeted = allocate(byte_size(DataType::string, count));
  auto* strings = static_cast<std::string*>(budgeted.get());
  std::uninitialized_default_construct_n(strings, count);
  return {strings, [budgeted, count](void* p) { std::destroy_n(static_cast<std::string*>(p), count); }};
}

}  // namespace

std::int64_t element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  bool zero = false;
  for (const std::int64_t d : shape) {
    if (d < 0) fail(ErrorCode::invalid_argument, "shape {} has a negative extent", to_string(shape));
    if (d == 0) {
      zero = true;
      continue;
    }
    const auto product = checked_mul(count, d);
    if (!product || *product > kMaxElements) {
      fail(ErrorCode::invalid_argument, "shape {} has more elements than can be addressed", to_string(shape));
    }
    count = *product;
  }
  return zero ? 0 : count;
}

std::string to_string(std::span<const std::int64_t> shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) out += ',';
    out += std::to_string(shape[i]);
  }
  return out + "]";
}

Tensor::Tensor(DataType dtype, Shape shape) : shape_(std::move(shape)), dtype_(dtype), writable_(true) {
  check_dtype(dtype);
  count_ = element_count(shape_);
  const std::int64_t limit = INT64_MAX / 64;  // byte counts stay far from overflow
  if (count_ > limit) {
    fail(ErrorCode::out_of_memory, "a tensor of shape {} does not fit in memory", to_string(shape_));
  }
  std::shared_ptr<void> memory = dtype == DataType::string ? allocate_strings(count_) : allocate(byte_size(dtype, count_));
  data_ = memory.get();
  owner_ = std::move(memory);
  if (poisoning() && dtype != DataType::string) poison(*this);
}

Tensor Tensor::view(const void* data, DataType dtype, Shape shape, std::shared_ptr<const void> owner) {
  check_dtype(dtype);
  Tensor t;
  t.shape_ = std::move(shape);
  t.count_ = element_count(t.shape_);
  t.dtype_ = dtype;
  t.data_ = data;
  t.owner_ = std::move(owner);
  return t;
}

Tensor Tensor::view_mutable(void* data, DataType dtype, Shape shape, std::shared_ptr<void> owner) {
  Tensor t = view(data, dtype, std::move(shape), std::move(owner));
  t.writable_ = true;
  return t;
}

bool Tensor::is_aligned() const noexcept {
  if (dtype_ == DataType::string) return true;
  const int bits = bit_width(dtype_);
  const std::uintptr_t unit = bits >= 64 ? 8 : (bits >= 8 ? static_cast<std::uintptr_t>(bits / 8) : 1);
  return reinterpret_cast<std::uintptr_t>(data_) % unit == 0;
}

void* Tensor::mutable_data() {
  if (!writable_) fail(ErrorCode::invalid_argument, "this {} tensor is a read-only view", type_string());
  return const_cast<void*>(data_);
}

void Tensor::check_type(DataType asked) const {
  if (asked != dtype_) {
    fail(ErrorCode::invalid_argument, "the tensor is {}, asked for {}", type_string(), name(asked));
  }
}

Tensor Tensor::reshaped(Shape shape) const {
  if (element_count(shape) != count_) {
    fail(ErrorCode::invalid_argument, "cannot view {} as shape {}", type_string(), to_string(shape));
  }
  Tensor t = *this;
  t.shape_ = std::move(shape);
  return t;
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor t(dtype_, shape_);
  if (dtype_ == DataType::string) {
    std::copy_n(static_cast<const std::string*>(data_), count_, static_cast<std::string*>(t.mutable_data()));
  } else if (bytes() != 0) {
    std::memcpy(t.mutable_data(), data_, bytes());
  }
  return t;
}

Tensor Tensor::aligned() const { return is_aligned() ? *this : clone(); }

std::string Tensor::type_string() const { return std::string(name(dtype_)) + to_string(shape_); }

Value::Value(Sequence sequence) : held_(std::make_shared<HeldSequence>(std::move(sequence))) {}

Value::Value(Map map) : held_(std::make_shared<const Map>(std::move(map))) {}

const Tensor& Value::tensor() const {
  if (const auto* t = std::get_if<Tensor>(&held_)) return *t;
  fail(ErrorCode::invalid_argument, "expected a tensor, received {}", type_string());
}

Tensor& Value::tensor() {
  if (auto* t = std::get_if<Tensor>(&held_)) return *t;
  fail(ErrorCode::invalid_argument, "expected a tensor, received {}", type_string());
}

const Sequence& Value::sequence() const {
  if (is_sequence()) return *std::get<2>(held_);
  fail(ErrorCode::invalid_argument, "expected a sequence, received {}", type_string());
}

const Map& Value::map() const {
  if (is_map()) return *std::get<3>(held_);
  fail(ErrorCode::invalid_argument, "expected a map, received {}", type_string());
}

std::string Value::type_string() const {
  if (is_tensor()) return tensor().type_string();
  if (is_sequence()) {
    const Sequence& s = sequence();
    return "sequence(" + std::string(name(s.element_type)) + ") of " + std::to_string(s.items.size());
  }
  if (is_map()) {
    const Map& m = map();
    return "map(" + std::string(name(m.keys.dtype())) + ", " + std::string(name(m.values.dtype())) + ") of " +
           std::to_string(m.keys.size());
  }
  return "none";
}

}  // namespace sdx
