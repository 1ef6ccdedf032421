#include "array/ops/index/update.h"

#include <sdx/array.hpp>

#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "kernels/cpu/movement/blocks.h"

namespace sdx::array::detail {
namespace {

// Returns `g` where two arrays are equal, else 0.
array where_equal(const array& a, const array& b, const array& g) { return where(equal(a, b), g, array(0, g.dtype())); }

// Returns, for each value, the product of all others that meet at its place: what is there, divided by the value. For a value of
// 0 this is the product without it if it is the only 0 there, else 0.
array others(const array& a, const array& values, const array& out, const ReadPart& read, const WritePart& write) {
  const array none = equal(values, array(0, values.dtype()));
  const array divisors = where(none, array(1, values.dtype()), values);
  const array zeros = read(write(zeros_of(a.shape(), Dtype::int32), as_type(none, Dtype::int32), Update::add));
  const array without = where(equal(zeros, array(1)), read(write(a, divisors, Update::multiply)), array(0, a.dtype()));
  return where(none, without, divide(read(out), divisors));
}

}  // namespace

UpdateGradients update_gradients(Update mode, const VjpCall& c, const ReadPart& read, const WritePart& write,
                                 const std::function<std::optional<array>()>& stored) {
  const array g = c.of_outputs[0], a = c.inputs[0], values = c.inputs[1], out = c.outputs[0];
  switch (mode) {
    case Update::set:
      return {[=] { return write(g, zeros_of(values.shape(), g.dtype()), Update::set); },
              [=] {
                const std::optional<array> last = stored();
                return last ? where(*last, read(g), array(0, g.dtype())) : read(g);
              }};
    case Update::multiply:
      return {[=] { return write(g, values, Update::multiply); },
              [=] { return multiply(read(g), others(a, values, out, read, write)); }};
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

std::int64_t number_of(Update mode) {
  const auto number = [](cpu::UpdateFn fn) { return static_cast<std::int64_t>(fn); };
  switch (mode) {
    case Update::add: return number(cpu::UpdateFn::add);
    case Update::multiply: return number(cpu::UpdateFn::multiply);
    case Update::maximum: return number(cpu::UpdateFn::maximum);
    case Update::minimum: return number(cpu::UpdateFn::minimum);
    default: return number(cpu::UpdateFn::set);
  }
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
