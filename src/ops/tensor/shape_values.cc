#include "ops/tensor/shape_values.h"

#include "base/error.h"
#include "tensor/element.h"

namespace sdx::ops {

std::optional<std::vector<std::int64_t>> known_ints(const InferContext& c, std::size_t i) {
  if (const Tensor* t = c.value(i)) {
    if (is_integer(t->dtype()) || t->dtype() == DataType::boolean) return to_ints(*t);
    return std::nullopt;
  }
  const std::vector<Dim>* elements = c.sym(i);
  if (elements == nullptr) return std::nullopt;
  std::vector<std::int64_t> out;
  for (const Dim& d : *elements) {
    if (!d.is_const()) return std::nullopt;
    out.push_back(d.value());
  }
  return out;
}

AxesArgument axes_argument(const InferContext& c, std::size_t i, const std::optional<IntList>& attribute) {
  if (attribute) return {true, to_vector(*attribute)};
  if (!c.has_input(i)) return {};
  return {true, known_ints(c, i)};
}

AxesArgument axes_argument(const OpContext& c, std::size_t i, const std::optional<IntList>& attribute) {
  if (attribute) return {true, to_vector(*attribute)};
  if (!c.has_input(i)) return {};
  return {true, to_ints(c.input(i))};
}

std::optional<std::int64_t> known_length(const InferContext& c, std::size_t i) {
  if (const std::vector<Dim>* elements = c.sym(i)) return static_cast<std::int64_t>(elements->size());
  const SymShape* s = c.shape(i);
  if (s == nullptr || !all_const(*s)) return std::nullopt;
  std::int64_t n = 1;
  for (const Dim& d : *s) {
    if (__builtin_mul_overflow(n, d.value(), &n)) return std::nullopt;
  }
  return n;
}

void pass_elements(InferContext& c) {
  const std::vector<Dim>* elements = c.sym(0);
  if (elements == nullptr || c.outputs.empty() || !c.outputs[0].shape || c.outputs[0].shape->size() > 1) return;
  c.output_sym(0, *elements);
}

bool surely_not_negative(const Dim& d) {
  if (d.is_const()) return d.value() >= 0;
  const std::string name = d.symbol_name();
  // Names made by floor_div, min and max contain their expression, which may be a difference.
  return !name.empty() && name.find('-') == std::string::npos;
}

Dim least(const Dim& a, const Dim& b) {
  if (surely_not_negative(b - a)) return a;
  if (surely_not_negative(a - b)) return b;
  return min(a, b);
}

Dim most(const Dim& a, const Dim& b) {
  if (surely_not_negative(b - a)) return b;
  if (surely_not_negative(a - b)) return a;
  return max(a, b);
}

Dim agree(const Dim& a, const Dim& b, std::string_view what) {
  if (a.is_const() && b.is_const() && a.value() != b.value()) {
    fail(ErrorCode::invalid_model, "{}: extents {} and {} must be equal", what, a.value(), b.value());
  }
  if (a.is_const() || b.is_unknown()) return a;
  return b.is_const() || a.is_unknown() ? b : a;
}

}  // namespace sdx::ops
