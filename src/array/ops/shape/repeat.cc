// Elements repeated, reversed and shifted.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/ops/common.h"

namespace sdx::array {
namespace {

array roll_axis(const array& a, std::int64_t shift, std::size_t axis, const StreamOrDevice& s) {
  const std::int64_t extent = a.shape()[axis];
  if (extent == 0) return a;
  const std::int64_t by = (shift % extent + extent) % extent;
  if (by == 0) return a;
  const std::vector<array> parts = split(a, Shape{extent - by}, static_cast<int>(axis), s);
  return concatenate({parts[1], parts[0]}, static_cast<int>(axis), s);
}

}  // namespace

array repeat(const array& a, int repeats, std::optional<int> axis, StreamOrDevice s) {
  if (repeats < 0) detail::refuse("repeat", "{} repeats; expected 0 or more", repeats);
  if (!axis) return repeat(reshape(a, {-1}, s), repeats, 0, s);
  const int at = detail::axis_of("repeat", *axis, a.shape().size());
  if (repeats == 1) return a;
  Shape wide = a.shape();
  wide.insert(wide.begin() + at + 1, repeats);
  Shape out = a.shape();
  out[static_cast<std::size_t>(at)] = detail::extent_product("repeat", out[static_cast<std::size_t>(at)], repeats);
  return reshape(broadcast_to(expand_dims(a, at + 1, s), wide, s), std::move(out), s);
}

array tile(const array& a, const std::vector<int>& reps, StreamOrDevice s) {
  const std::size_t rank = std::max(a.shape().size(), reps.size());
  Shape narrow, wide, out;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t skip_a = rank - a.shape().size(), skip_r = rank - reps.size();
    const std::int64_t extent = i < skip_a ? 1 : a.shape()[i - skip_a];
    const std::int64_t times = i < skip_r ? 1 : reps[i - skip_r];
    if (times < 0) detail::refuse("tile", "{} repetitions; expected 0 or more", times);
    narrow.insert(narrow.end(), {1, extent});
    wide.insert(wide.end(), {times, extent});
    out.push_back(detail::extent_product("tile", times, extent));
  }
  return reshape(broadcast_to(reshape(a, std::move(narrow), s), wide, s), std::move(out), s);
}

array flip(const array& a, const std::optional<std::vector<int>>& axis, StreamOrDevice s) {
  const std::size_t rank = a.shape().size();
  Shape start(rank, 0), stop = a.shape(), step(rank, 1);
  for (const std::int64_t at : detail::axes_of("flip", axis, rank)) {
    const auto i = static_cast<std::size_t>(at);
    start[i] = a.shape()[i] - 1;
    stop[i] = -a.shape()[i] - 1;
    step[i] = -1;
  }
  return slice(a, start, stop, step, s);
}

array roll(const array& a, const Shape& shift, const std::optional<std::vector<int>>& axis, StreamOrDevice s) {
  if (!axis) {
    if (shift.empty() || a.ndim() == 0) return a;
    if (a.size() == 0) return a;
    std::int64_t total = 0;
    for (const std::int64_t by : shift) total = (total + by % a.size()) % a.size();
    return reshape(roll_axis(reshape(a, {-1}, s), total, 0, s), a.shape(), s);
  }
  if (shift.size() != axis->size() && shift.size() != 1) {
    detail::refuse("roll", "{} shifts for {} axes", shift.size(), axis->size());
  }
  array out = a;
  for (std::size_t i = 0; i < axis->size(); ++i) {
    const int at = detail::axis_of("roll", (*axis)[i], a.shape().size());
    out = roll_axis(out, shift.size() == 1 ? shift[0] : shift[i], static_cast<std::size_t>(at), s);
  }
  return out;
}

array kron(const array& a, const array& b, StreamOrDevice s) {
  const std::size_t rank = std::max(a.shape().size(), b.shape().size());
  Shape of_a, of_b, out;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t skip_a = rank - a.shape().size(), skip_b = rank - b.shape().size();
    const std::int64_t x = i < skip_a ? 1 : a.shape()[i - skip_a], y = i < skip_b ? 1 : b.shape()[i - skip_b];
    of_a.insert(of_a.end(), {x, 1});
    of_b.insert(of_b.end(), {1, y});
    out.push_back(detail::extent_product("kron", x, y));
  }
  return reshape(multiply(reshape(a, std::move(of_a), s), reshape(b, std::move(of_b), s), s), std::move(out), s);
}

}  // namespace sdx::array
