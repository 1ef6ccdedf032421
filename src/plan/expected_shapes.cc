#include "plan/expected_shapes.h"

namespace sdx::plan {
namespace {

constexpr std::int64_t kAny = -1;
constexpr std::size_t kMostAxes = 256;  // more are not compared

std::int64_t same_as(std::size_t value, std::size_t axis) {
  return kAny - 1 - static_cast<std::int64_t>(value * kMostAxes + axis);
}

// The shape of a tensor with fixed extents; null for others.
const SymShape* fixed_shape(const Type* type) { return type != nullptr && type->has_static_shape() ? &*type->shape : nullptr; }

struct Named {
  Dim dim;
  std::size_t value, axis;
};

}  // namespace

void ExpectedShapes::add(const Graph& graph, const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs) {
  begins_.push_back(facts_.size());
  std::vector<Named> seen;
  std::size_t number = 0;
  const auto note = [&](ValueId v) {
    const std::size_t value = number++;
    const Type* type = v == kNoValue ? nullptr : &graph.value(v).type;
    if (type == nullptr || !type->is_tensor() || !type->shape || type->shape->size() > kMostAxes) {
      facts_.push_back(kAny);
      return;
    }
    facts_.push_back(static_cast<std::int64_t>(type->shape->size()));
    for (std::size_t axis = 0; axis < type->shape->size(); ++axis) {
      const Dim& d = (*type->shape)[axis];
      facts_.push_back(d.is_const() ? d.value() : kAny);
      if (!d.is_symbolic()) continue;
      for (const Named& s : seen) {
        if (s.dim == d) facts_.back() = same_as(s.value, s.axis);
        if (s.dim == d) break;
      }
      if (facts_.back() == kAny) seen.push_back({d, value, axis});
    }
  };
  for (const ValueId v : inputs) note(v);
  for (const ValueId v : outputs) note(v);
}

bool ExpectedShapes::hold(std::size_t which, std::span<const Type* const> inputs, std::span<const Type* const> outputs) const {
  const auto shape_of = [&](std::size_t value) {
    return fixed_shape(value < inputs.size() ? inputs[value] : outputs[value - inputs.size()]);
  };
  const std::int64_t* at = facts_.data() + begins_[which];
  for (std::size_t value = 0; value < inputs.size() + outputs.size(); ++value) {
    const std::int64_t rank = *at++;
    if (rank == kAny) continue;
    const std::int64_t* const axes = at;
    at += rank;
    const SymShape* shape = shape_of(value);
    if (shape == nullptr) continue;
    if (static_cast<std::int64_t>(shape->size()) != rank) return false;
    for (std::size_t axis = 0; axis < shape->size(); ++axis) {
      std::int64_t expected = axes[axis];
      if (expected == kAny) continue;
      if (expected < kAny) {
        const auto place = static_cast<std::size_t>(kAny - 1 - expected);
        const SymShape* other = shape_of(place / kMostAxes);
        if (other == nullptr || other->size() <= place % kMostAxes) continue;
        expected = (*other)[place % kMostAxes].value();
      }
      if ((*shape)[axis].value() != expected) return false;
    }
  }
  return true;
}

}  // namespace sdx::plan
