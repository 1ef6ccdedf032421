#include "ops/control/slices.h"

#include <cstring>

#include "base/error.h"
#include "ops/tensor/axes.h"
#include "tensor/types.h"

namespace sdx::ops {
namespace {

// One slice's place in the tensor: `outer` runs of `inner` elements, `step` elements apart, the first at `start`.
struct Runs {
  std::int64_t outer, inner, step, start;
};

Runs runs_of(const Shape& shape, std::size_t axis, std::int64_t index) {
  const std::int64_t inner = product(shape, axis + 1, shape.size());
  return {product(shape, 0, axis), inner, inner * shape[axis], inner * index};
}

// Copies `count` elements between element offsets; packed types go one element at a time.
void copy_elements(Tensor& to, std::int64_t to_at, const Tensor& from, std::int64_t from_at, std::int64_t count) {
  if (count == 0) return;
  if (from.dtype() == DataType::string) {
    const std::string* s = static_cast<const std::string*>(from.data()) + from_at;
    std::copy(s, s + count, static_cast<std::string*>(to.mutable_data()) + to_at);
    return;
  }
  const int bits = bit_width(from.dtype());
  if (bits < 8) {
    for (std::int64_t i = 0; i < count; ++i) {
      set_packed(to.mutable_data(), bits, to_at + i, get_packed(from.data(), bits, from_at + i));
    }
    return;
  }
  const std::int64_t size = bits / 8;
  std::memcpy(static_cast<char*>(to.mutable_data()) + to_at * size, static_cast<const char*>(from.data()) + from_at * size,
              static_cast<std::size_t>(count * size));
}

// Bits of the last byte that no element owns are zeroed, so that equal tensors have equal bytes.
void clear(Tensor& t) {
  if (t.dtype() != DataType::string && bit_width(t.dtype()) < 8 && t.bytes() > 0) std::memset(t.mutable_data(), 0, t.bytes());
}

Shape with_count(std::int64_t count, const Shape& item) {
  Shape shape{count};
  shape.insert(shape.end(), item.begin(), item.end());
  return shape;
}

}  // namespace

Tensor take_slice(const Tensor& tensor, std::size_t axis, std::int64_t index) {
  SDX_ASSERT(axis < tensor.rank() && index >= 0 && index < tensor.dim(axis));
  Shape shape = tensor.shape();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  if (tensor.size() == 0) return Tensor(tensor.dtype(), std::move(shape));
  const Runs r = runs_of(tensor.shape(), axis, index);
  const bool bytewise = tensor.dtype() != DataType::string && bit_width(tensor.dtype()) >= 8;
  if (r.outer == 1 && bytewise) {
    const auto* at = static_cast<const char*>(tensor.data()) + r.start * (bit_width(tensor.dtype()) / 8);
    return Tensor::view(at, tensor.dtype(), std::move(shape), tensor.owner());
  }
  Tensor out(tensor.dtype(), std::move(shape));
  clear(out);
  for (std::int64_t o = 0; o < r.outer; ++o) copy_elements(out, o * r.inner, tensor, o * r.step + r.start, r.inner);
  return out;
}

void put_slice(Tensor& out, std::size_t axis, std::int64_t index, const Tensor& item) {
  SDX_ASSERT(axis < out.rank() && index >= 0 && index < out.dim(axis));
  if (out.size() == 0) return;
  const Runs r = runs_of(out.shape(), axis, index);
  SDX_ASSERT(item.dtype() == out.dtype() && item.size() == r.outer * r.inner);
  for (std::int64_t o = 0; o < r.outer; ++o) copy_elements(out, o * r.step + r.start, item, o * r.inner, r.inner);
}

void SliceCollector::append(const Tensor& item) {
  if (count_ == 0) {
    item_shape_ = item.shape();
    buffer_ = Tensor(item.dtype(), with_count(1, item_shape_));
    clear(buffer_);
  } else if (item.dtype() != buffer_.dtype() || item.shape() != item_shape_) {
    fail(ErrorCode::runtime_failure, "iteration {} gives {}, but the iterations before it gave {}{}: they cannot be stacked",
         count_, item.type_string(), name(buffer_.dtype()), to_string(item_shape_));
  }
  if (count_ == buffer_.dim(0)) {
    Tensor larger(buffer_.dtype(), with_count(count_ * 2, item_shape_));
    clear(larger);
    copy_elements(larger, 0, buffer_, 0, buffer_.size());
    buffer_ = std::move(larger);
  }
  copy_elements(buffer_, count_ * item.size(), item, 0, item.size());
  ++count_;
}

Tensor SliceCollector::finish() {
  SDX_ASSERT(count_ > 0);
  if (buffer_.dim(0) == count_) return std::move(buffer_);
  Tensor out(buffer_.dtype(), with_count(count_, item_shape_));
  clear(out);
  copy_elements(out, 0, buffer_, 0, out.size());
  return out;
}

}  // namespace sdx::ops
