#include "array/ops/index/update.h"

#include <sdx/array.hpp>

#include "array/ops/batch.h"
#include "array/ops/common.h"

namespace sdx::array::detail {
namespace {

// `g` where two arrays are equal, else 0.
array where_equal(const array& a, const array& b, const array& g) { return where(equal(a, b), g, array(0, g.dtype())); }

}  // namespace

UpdateGradients update_gradients(Update mode, const VjpCall& c, const std::function<array(const array&)>& read,
                                 const std::function<array(const array&, const array&, Update)>& write) {
  const array g = c.of_outputs[0], a = c.inputs[0], values = c.inputs[1], out = c.outputs[0];
  switch (mode) {
    case Update::set:
      return {[=] { return write(g, zeros_of(values.shape(), g.dtype()), Update::set); }, [=] { return read(g); }};
    case Update::multiply:
      // The factor of each value is the product of all others that meet there.
      return {[=] { return write(g, values, Update::multiply); }, [=] { return divide(read(multiply(g, out)), values); }};
    case Update::maximum:
    case Update::minimum:
      return {[=] { return where_equal(a, out, g); }, [=] { return where_equal(values, read(out), read(g)); }};
    default: return {[=] { return array(g); }, [=] { return read(g); }};
  }
}

std::vector<array> chosen(const VjpCall& c, const UpdateGradients& g) {
  std::vector<array> out;
  for (const std::size_t i : c.wanted) {
    out.push_back(i == 0 ? g.of_array() : i == 1 ? g.of_values() : zeros_of(c.inputs[i].shape(), c.inputs[i].dtype()));
  }
  return out;
}

array combined(Update mode, const array& now, const array& values, const StreamOrDevice& s) {
  switch (mode) {
    case Update::add: return add(now, values, s);
    case Update::subtract: return subtract(now, values, s);
    case Update::multiply: return multiply(now, values, s);
    case Update::divide: return as_type(divide(now, values, s), now.dtype(), s);
    case Update::maximum: return maximum(now, values, s);
    case Update::minimum: return minimum(now, values, s);
    default: return values;
  }
}

array reversed(Update mode, const array& values, const StreamOrDevice& s) {
  return mode == Update::subtract ? negative(values, s) : as_type(reciprocal(values, s), values.dtype(), s);
}

}  // namespace sdx::array::detail
