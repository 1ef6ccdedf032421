#include "providers/vulkan/lowering/strided.h"

#include <algorithm>

#include "base/error.h"

namespace sdx::vulkan {

std::vector<StridedAxis> merged(const std::vector<StridedAxis>& axes) {
  std::vector<StridedAxis> out;
  for (const StridedAxis& a : axes) {
    if (a.extent == 1) continue;
    if (!out.empty()) {
      StridedAxis& outer = out.back();
      if (outer.step[0] == a.step[0] * a.extent && outer.step[1] == a.step[1] * a.extent) {
        outer = {outer.extent * a.extent, a.step};
        continue;
      }
    }
    out.push_back(a);
  }
  if (out.empty()) out.push_back({});
  return out;
}

std::vector<std::int64_t> broadcast_steps(const Shape& shape, const Shape& out) {
  std::vector<std::int64_t> steps(out.size(), 0);
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const std::size_t axis = out.size() - shape.size() + i;
    if (shape[i] != 1) steps[axis] = step;
    step *= shape[i];
  }
  return steps;
}

std::vector<StridedAxis> broadcast_axes(const Shape& x, const Shape& y, const Shape& out) {
  const std::vector<std::int64_t> x_steps = broadcast_steps(x, out), y_steps = broadcast_steps(y, out);
  std::vector<StridedAxis> axes;
  for (std::size_t i = 0; i < out.size(); ++i) axes.push_back({out[i], {x_steps[i], y_steps[i]}});
  return merged(axes);
}

void add_axes(Dispatch& d, std::vector<StridedAxis> axes) {
  SDX_ASSERT(axes.size() <= kMostAxes);
  d.word(static_cast<std::int64_t>(axes.size()));
  axes.resize(kMostAxes);
  for (const StridedAxis& a : axes) d.word(a.extent);
  for (const StridedAxis& a : axes) d.word(a.step[0]);
  for (const StridedAxis& a : axes) d.word(a.step[1]);
}

std::uint32_t type_number(DataType type) {
  switch (type) {
    case DataType::float32: return 0;
    case DataType::int32: return 1;
    case DataType::int64: return 2;
    case DataType::boolean: return 3;
    default: return 4;
  }
}

std::int64_t words_of(DataType type) {
  switch (type) {
    case DataType::float32:
    case DataType::int32:
    case DataType::uint32: return 1;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64: return 2;
    default: return 0;
  }
}

namespace {

void emit_words(Emitter& e, Operand from, std::int64_t from_word, Operand to, std::int64_t to_word,
                std::vector<StridedAxis> axes) {
  if (axes.size() > kMostAxes) {
    const StridedAxis outer = axes.front();
    axes.erase(axes.begin());
    for (std::int64_t i = 0; i < outer.extent; ++i) {
      emit_words(e, from, from_word + i * outer.step[0], to, to_word + i * outer.step[1], axes);
    }
    return;
  }
  std::int64_t count = 1;
  for (const StridedAxis& a : axes) count *= a.extent;
  Dispatch d(Shader::move, {});
  d.read(from, static_cast<std::uint64_t>(from_word) * 4).write(to, static_cast<std::uint64_t>(to_word) * 4);
  d.word(count);
  add_axes(d, std::move(axes));
  e.dispatch(std::move(d), count);
}

}  // namespace

void emit_copy(Emitter& e, Operand from, std::int64_t from_offset, Operand to, std::int64_t to_offset, std::int64_t words,
               std::vector<StridedAxis> axes) {
  for (StridedAxis& a : axes) a.step = {a.step[0] * words, a.step[1] * words};
  if (words > 1) axes.push_back({words, {1, 1}});
  emit_words(e, from, from_offset * words, to, to_offset * words, merged(axes));
}

}  // namespace sdx::vulkan
