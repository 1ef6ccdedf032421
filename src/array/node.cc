#include "array/node.h"

#include <algorithm>

#include "array/evaluate.h"
#include "base/error.h"
#include "tensor/element.h"

namespace sdx::array {
namespace detail {
namespace {

// Of the thread: the function that is transformed calls the ordinary operations, which take no word of it.
thread_local int tracing_depth = 0;
std::atomic<std::uint64_t> traced_nodes{0};

bool any_traced(const std::vector<array>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const array& a) { return a.node()->traced != 0; });
}

}  // namespace

std::uint64_t next_traced() noexcept { return traced_nodes.fetch_add(1, std::memory_order_relaxed) + 1; }

bool tracing() noexcept { return tracing_depth > 0; }
TracingScope::TracingScope() noexcept { ++tracing_depth; }
TracingScope::~TracingScope() { --tracing_depth; }

void retain(Node* node) noexcept {
  if (node != nullptr) node->refs.fetch_add(1, std::memory_order_relaxed);
}

// Releases nodes one after the other: with recursion, a chain of a hundred thousand operations would need as many frames of the
// stack.
void release(Node* node) noexcept {
  if (node->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  static thread_local std::vector<Node*>* pending = nullptr;
  if (pending != nullptr) {
    pending->push_back(node);
    return;
  }
  std::vector<Node*> mine{node};
  pending = &mine;
  while (!mine.empty()) {
    Node* last = mine.back();
    mine.pop_back();
    delete last;  // its inputs come to `mine`
  }
  pending = nullptr;
}

namespace {

// Refuses extents that no memory can hold, before anybody multiplies them.
Result result_of(const Kind& kind, Dtype dtype, Shape&& shape) {
  std::int64_t bytes = 16;  // of the largest elements
  for (const std::int64_t extent : shape) {
    if (extent < 0) fail(ErrorCode::invalid_argument, "[{}] the result would have the shape {}", kind.name, to_string(shape));
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes)) {
      fail(ErrorCode::invalid_argument, "[{}] the result would have the shape {}, more than any memory can hold", kind.name,
           to_string(shape));
    }
  }
  return {dtype, std::move(shape), {}};
}

}  // namespace

array make(const Kind& kind, Dtype dtype, Shape shape, std::vector<array> inputs, Params params, const StreamOrDevice& stream) {
  auto node = std::make_unique<Node>();
  node->kind = &kind;
  node->params = std::move(params);
  node->results.push_back(result_of(kind, dtype, std::move(shape)));
  if (any_traced(inputs)) node->traced = next_traced();
  node->inputs = std::move(inputs);
  node->stream = to_stream(stream);
  return array(node.release(), 0);
}

std::vector<array> make_many(const Kind& kind, std::vector<std::pair<Dtype, Shape>> results, std::vector<array> inputs,
                             Params params, const StreamOrDevice& stream) {
  auto node = std::make_unique<Node>();
  node->kind = &kind;
  node->params = std::move(params);
  for (auto& r : results) node->results.push_back(result_of(kind, r.first, std::move(r.second)));
  if (any_traced(inputs)) node->traced = next_traced();
  node->inputs = std::move(inputs);
  node->stream = to_stream(stream);
  const std::size_t count = node->results.size();
  std::vector<array> out;
  Node* shared = node.release();
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0) retain(shared);
    out.emplace_back(shared, static_cast<std::uint32_t>(i));
  }
  return out;
}

}  // namespace detail

array::array(Tensor tensor) {
  auto node = std::make_unique<detail::Node>();
  node->results.push_back({tensor.dtype(), tensor.shape(), std::move(tensor)});
  node->state.store(detail::Node::State::done, std::memory_order_release);
  node_ = node.release();
}

array::array(std::initializer_list<float> values)
    : array(Tensor::of<float>({static_cast<std::int64_t>(values.size())}, values)) {}

const Shape& array::shape() const noexcept { return node_->results[index_].shape; }
Dtype array::dtype() const noexcept { return node_->results[index_].dtype; }
std::size_t array::itemsize() const noexcept { return static_cast<std::size_t>(bit_width(dtype())) / 8; }

std::int64_t array::shape(int axis) const {
  const int rank = ndim();
  if (axis < -rank || axis >= rank) {
    fail(ErrorCode::invalid_argument, "[shape] axis {} of an array of shape {}", axis, to_string(shape()));
  }
  return shape()[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
}

std::int64_t array::size() const noexcept {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape()) count *= extent;
  return count;
}

bool array::is_evaluated() const noexcept { return node_->state.load(std::memory_order_acquire) == detail::Node::State::done; }

void array::eval() const {
  if (!is_evaluated()) detail::evaluate({this, 1});
}

const Tensor& array::tensor() const {
  eval();
  return node_->results[index_].tensor;
}

Tensor array::of_real(double value, Dtype dtype) {
  Tensor t(dtype, {});
  set_element(t, 0, value);
  return t;
}

Tensor array::of_integer(std::int64_t value, Dtype dtype) {
  Tensor t(dtype, {});
  set_element_int(t, 0, value);
  return t;
}

Tensor array::of_unsigned(std::uint64_t value, Dtype dtype) {
  if (dtype == Dtype::uint64) return Tensor::scalar(value);
  return is_integer(dtype) ? of_integer(static_cast<std::int64_t>(value), dtype) : of_real(static_cast<double>(value), dtype);
}

namespace {

const Tensor& single(const array& a) {
  if (a.size() != 1)
    fail(ErrorCode::invalid_argument, "[item] an array of shape {} does not have exactly one element", to_string(a.shape()));
  return a.tensor();
}

}  // namespace

std::int64_t array::integer_item() const { return element_as_int(single(*this), 0); }
double array::real_item() const { return element_as_double(single(*this), 0); }

}  // namespace sdx::array
