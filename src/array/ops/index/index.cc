// a[at...] as in Python and NumPy: whole numbers, slices, new axes, the ellipsis, arrays of positions and of bool.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/ops/batch.h"
#include "array/ops/common.h"
#include "array/ops/index/slice.h"
#include "array/ops/index/update.h"

namespace sdx::array {
namespace detail {
namespace {

bool is_mask(const Index& i) {
  const auto* a = std::get_if<array>(&i);
  return a != nullptr && a->dtype() == Dtype::boolean;
}

// Returns the number of the array's axes that an index takes up.
std::size_t axes_taken(const Index& i) {
  if (std::holds_alternative<NewAxis>(i) || std::holds_alternative<Ellipsis>(i)) return 0;
  return is_mask(i) ? std::get<array>(i).shape().size() : 1;
}

// Indices without bool arrays: one for each axis of the array and for each new axis. A scalar bool takes no axis of the array: it
// becomes position 0, or none, of a new axis.
struct Plain {
  array a;
  std::vector<Index> at;
};

void add_mask(const array& mask, Plain& plain, std::size_t axis, const char* operation) {
  if (mask.ndim() == 0) {
    plain.a = expand_dims(plain.a, static_cast<int>(axis));
    plain.at.emplace_back(iota(mask.item<bool>() ? 1 : 0));
    return;
  }
  for (std::size_t i = 0; i < mask.shape().size(); ++i) {
    if (mask.shape()[i] != plain.a.shape()[axis + i]) {
      refuse(operation, "a bool array of shape {} from axis {} of an array of shape {}", to_string(mask.shape()), axis,
             to_string(plain.a.shape()));
    }
  }
  for (const array& positions : nonzero(mask)) plain.at.emplace_back(positions);
}

Plain plain_of(const char* operation, const array& a, const std::vector<Index>& at) {
  std::size_t taken = 0, dots = 0;
  for (const Index& i : at) {
    taken += axes_taken(i);
    dots += std::holds_alternative<Ellipsis>(i) ? 1 : 0;
  }
  if (taken > a.shape().size()) {
    refuse(operation, "indices for {} axes of an array of shape {}", taken, to_string(a.shape()));
  }
  if (dots > 1) refuse(operation, "more than one ellipsis");
  Plain plain{a, {}};
  std::size_t axis = 0;
  const auto rest = [&] {
    for (std::size_t i = taken; i < a.shape().size(); ++i, ++axis) plain.at.emplace_back(Slice{});
  };
  for (const Index& i : at) {
    if (std::holds_alternative<Ellipsis>(i)) {
      plain.at.push_back(i);  // separates arrays even where it stands for no axis
      rest();
    } else if (is_mask(i)) {
      add_mask(std::get<array>(i), plain, axis, operation);
      axis += std::max<std::size_t>(1, std::get<array>(i).shape().size());
    } else {
      plain.at.push_back(i);
      axis += axes_taken(i);
    }
  }
  if (dots == 0) rest();
  return plain;
}

// The two steps that indices come down to: a regular part, whose axes are then reshaped, and positions along some of these.
struct Plan {
  Steps steps;
  Shape counts;           // of the part, one for each axis of the array
  Shape part;             // the part without axes of whole numbers, with new ones
  std::vector<int> axes;  // of `part` that have positions
  std::vector<array> positions;
  bool together = true;   // arrays (and the whole numbers among them) stand side by side
  std::size_t place = 0;  // the axis of the result where those of the positions come
  bool whole = true;      // the part is the array
};

void add_number(Plan& p, const char* operation, std::int64_t at, std::int64_t extent) {
  if (at < -extent || at >= extent) refuse(operation, "position {} in an axis of {} elements", at, extent);
  p.whole = p.whole && extent == 1;
  p.steps.start.push_back(at < 0 ? at + extent : at);
  p.steps.step.push_back(1);
  p.counts.push_back(1);
}

// Beside arrays, a whole number acts as an array: NumPy broadcasts it with them. It counts for the place of their axes, and is
// sliced.
Plan plan_of(const char* operation, const array& a, const std::vector<Index>& at) {
  Plan p;
  bool any = false, ended = false;
  const bool arrays = std::any_of(at.begin(), at.end(), [](const Index& i) { return std::holds_alternative<array>(i); });
  std::size_t axis = 0;
  for (const Index& i : at) {
    const bool advanced = arrays && (std::holds_alternative<array>(i) || std::holds_alternative<std::int64_t>(i));
    if (advanced && ended) p.together = false;
    if (advanced && !any) p.place = p.part.size();
    any = any || advanced;
    ended = any && !advanced;
    if (std::holds_alternative<Ellipsis>(i)) continue;
    if (std::holds_alternative<NewAxis>(i)) {
      p.part.push_back(1);
      continue;
    }
    const std::int64_t extent = a.shape()[axis++];
    if (const auto* number = std::get_if<std::int64_t>(&i)) {
      add_number(p, operation, *number, extent);
    } else if (const auto* slice = std::get_if<Slice>(&i)) {
      const Range r = range_of(operation, *slice, extent);
      p.whole = p.whole && r.step == 1 && r.count == extent;
      p.steps.start.push_back(r.start);
      p.steps.step.push_back(r.step);
      p.counts.push_back(r.count);
      p.part.push_back(r.count);
    } else {
      p.steps.start.push_back(0);
      p.steps.step.push_back(1);
      p.counts.push_back(extent);
      p.axes.push_back(static_cast<int>(p.part.size()));
      p.part.push_back(extent);
      p.positions.push_back(std::get<array>(i));
    }
  }
  if (!p.together) p.place = 0;
  return p;
}

// Returns the extents of one block of gather(): whole axes, except those that have positions.
Shape block_of(const Plan& p) {
  Shape block = p.part;
  for (const int axis : p.axes) block[static_cast<std::size_t>(axis)] = 1;
  return block;
}

Shape shape_of_positions(const char* operation, const Plan& p) {
  Shape shape;
  for (const array& a : p.positions) shape = broadcast(operation, shape, a.shape());
  return shape;
}

// Returns the permutation that moves the first `count` axes to `place`, or back.
std::vector<int> moving(std::size_t rank, std::size_t count, std::size_t place, bool back) {
  std::vector<int> to;
  for (std::size_t i = 0; i < place; ++i) to.push_back(static_cast<int>(count + i));
  for (std::size_t i = 0; i < count; ++i) to.push_back(static_cast<int>(i));
  for (std::size_t i = count + place; i < rank; ++i) to.push_back(static_cast<int>(i));
  if (!back) return to;
  std::vector<int> from(rank);
  for (std::size_t i = 0; i < rank; ++i) from[static_cast<std::size_t>(to[i])] = static_cast<int>(i);
  return from;
}

array read(const char* operation, const array& a, const Plan& p, const StreamOrDevice& s) {
  array part = reshape(strided_slice(a, p.steps, p.counts, s), p.part, s);
  if (p.positions.empty()) return part;
  if (p.positions.size() == 1 && p.place == static_cast<std::size_t>(p.axes[0])) {
    return take(part, p.positions[0], p.axes[0], s);
  }
  const std::size_t count = shape_of_positions(operation, p).size();
  array out = gather(part, p.positions, p.axes, block_of(p), s);
  std::vector<int> gone;
  for (const int axis : p.axes) gone.push_back(static_cast<int>(count) + axis);
  out = squeeze(out, gone, s);
  return transpose(out, moving(out.shape().size(), count, p.place, false), s);
}

// Returns the shape of read()'s result.
Shape shape_read(const Plan& p, const Shape& positions) {
  Shape shape;
  for (std::size_t i = 0, next = 0; i < p.part.size(); ++i) {
    if (next < p.axes.size() && p.axes[next] == static_cast<int>(i)) {
      ++next;
    } else {
      shape.push_back(p.part[i]);
    }
  }
  if (!p.positions.empty()) {
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(p.place), positions.begin(), positions.end());
  }
  return shape;
}

// Broadcasts values to the shape of read()'s result; as in NumPy, they may have more axes of extent 1 in front.
array fitted(const char* operation, const array& values, const Shape& shape, const StreamOrDevice& s) {
  Shape own = values.shape();
  while (own.size() > shape.size() && own.front() == 1) own.erase(own.begin());
  if (own.size() > shape.size() || broadcast(operation, own, shape) != shape) {
    refuse(operation, "values of shape {} for a part of shape {}", to_string(values.shape()), to_string(shape));
  }
  return broadcast_to(reshape(values, own, s), shape, s);
}

array write(const char* operation, const array& a, const Plan& p, const array& values, Update mode, const StreamOrDevice& s) {
  const Shape positions = shape_of_positions(operation, p);
  array v = fitted(operation, as_type(values, a.dtype(), s), shape_read(p, positions), s);
  if (p.positions.empty()) {
    if (p.whole) return reshape(combined(mode, reshape(a, p.part, s), v, s), a.shape(), s);
    return strided_update(a, reshape(v, p.counts, s), p.steps, mode, s);
  }
  v = transpose(v, moving(v.shape().size(), positions.size(), p.place, true), s);
  Shape blocks = positions;
  const Shape block = block_of(p);
  blocks.insert(blocks.end(), block.begin(), block.end());
  array part = reshape(strided_slice(a, p.steps, p.counts, s), p.part, s);
  const array changed = scatter(part, p.positions, reshape(v, blocks, s), p.axes, mode, s);
  if (p.whole) return reshape(changed, a.shape(), s);
  return strided_update(a, reshape(changed, p.counts, s), p.steps, Update::set, s);
}

// Returns a[mask] = values if `values` do not depend on what the mask picks: then nothing has to be computed first.
std::optional<array> write_masked(const array& a, const std::vector<Index>& at, const array& values, Update mode,
                                  const StreamOrDevice& s) {
  std::vector<Index> rest;
  std::copy_if(at.begin(), at.end(), std::back_inserter(rest),
               [](const Index& i) { return !std::holds_alternative<Ellipsis>(i); });
  if (rest.size() != 1 || at.size() > 2 || !is_mask(rest[0]) || !std::holds_alternative<array>(at[0])) return std::nullopt;
  const array& mask = std::get<array>(rest[0]);
  const std::size_t taken = mask.shape().size(), rank = a.shape().size();
  if (taken == 0 || taken > rank || !std::equal(mask.shape().begin(), mask.shape().end(), a.shape().begin())) return std::nullopt;
  Shape v = values.shape();
  while (!v.empty() && v.front() == 1) v.erase(v.begin());
  if (v.size() > rank - taken) return std::nullopt;
  const Shape behind(a.shape().begin() + static_cast<std::ptrdiff_t>(taken), a.shape().end());
  if (broadcast("index_update", v, behind) != behind) return std::nullopt;
  Shape wide = mask.shape();
  wide.resize(rank, 1);
  const array fitting = as_type(reshape(values, v, s), a.dtype(), s);
  return where(reshape(mask, wide, s), combined(mode, a, fitting, s), a, s);
}

}  // namespace
}  // namespace detail

array index(const array& a, const std::vector<Index>& at, StreamOrDevice s) {
  const detail::Plain plain = detail::plain_of("index", a, at);
  return detail::read("index", plain.a, detail::plan_of("index", plain.a, plain.at), s);
}

array index_update(const array& a, const std::vector<Index>& at, const array& values, Update mode, StreamOrDevice s) {
  if (const auto masked = detail::write_masked(a, at, values, mode, s)) return *masked;
  const detail::Plain plain = detail::plain_of("index_update", a, at);
  const detail::Plan plan = detail::plan_of("index_update", plain.a, plain.at);
  return reshape(detail::write("index_update", plain.a, plan, values, mode, s), a.shape(), s);
}

std::vector<array> nonzero(const array& a) {
  const array flags = detail::as_type(a, Dtype::boolean);
  const Tensor& t = flags.tensor();
  const auto values = t.values<bool>();
  const auto count = static_cast<std::int64_t>(std::count(values.begin(), values.end(), true));
  const std::size_t rank = a.shape().size();
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < rank; ++i) out.emplace_back(Dtype::int64, Shape{count});
  std::vector<std::int64_t> at(rank, 0);
  std::size_t next = 0;
  for (std::size_t n = 0; n < values.size(); ++n) {
    if (values[n]) {
      for (std::size_t i = 0; i < rank; ++i) out[i].mutable_values<std::int64_t>()[next] = at[i];
      ++next;
    }
    for (std::size_t i = rank; i-- > 0;) {
      if (++at[i] < a.shape()[i]) break;
      at[i] = 0;
    }
  }
  std::vector<array> positions;
  for (Tensor& positions_of_axis : out) positions.emplace_back(std::move(positions_of_axis));
  return positions;
}

}  // namespace sdx::array
