#include "project/process.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "project/check_model.h"
#include "tensor/element.h"

namespace sdx::project {
namespace {

// Offsets of one row's elements along an axis: start(row) + i * stride.
struct Rows {
  std::int64_t count = 1, length = 1, stride = 1;
  std::int64_t start(std::int64_t row) const { return row / stride * stride * length + row % stride; }
};

Rows rows_of(const Tensor& t, int axis) {
  if (t.rank() == 0) return {};
  const std::size_t at = class_axis(t.shape(), axis);
  Rows rows;
  rows.length = t.dim(at);
  for (std::size_t i = at + 1; i < t.rank(); ++i) rows.stride *= t.dim(i);
  rows.count = rows.length == 0 ? 0 : t.size() / rows.length;
  return rows;
}

void softmax_row(const Tensor& from, Tensor& to, std::int64_t start, const Rows& rows) {
  double highest = -HUGE_VAL, sum = 0;
  std::vector<double> values(static_cast<std::size_t>(rows.length));
  for (std::int64_t i = 0; i < rows.length; ++i) {
    const double v = values[static_cast<std::size_t>(i)] = element_as_double(from, start + i * rows.stride);
    if (v > highest) highest = v;
  }
  if (highest == -HUGE_VAL) highest = 0;  // all -infinity or NaN
  for (double& v : values) sum += v = std::exp(v - highest);
  for (std::int64_t i = 0; i < rows.length; ++i) {
    set_element(to, start + i * rows.stride, values[static_cast<std::size_t>(i)] / sum);
  }
}

}  // namespace

const Preprocessing& preprocessing_of(const ProjectConfig& config, std::string_view input) {
  const auto it = std::find_if(config.inputs.begin(), config.inputs.end(), [&](const auto& i) { return i.name == input; });
  if (it != config.inputs.end()) return it->preprocessing;
  return config.inputs.size() == 1 ? config.inputs.front().preprocessing : config.preprocessing;
}

void check_inputs(const ProjectConfig& config, const std::vector<ValueSpec>& specs, const NamedValues& given) {
  for (const ProjectInput& input : config.inputs) {
    const std::string name = model_name(input.name, config.inputs.size(), specs);
    const Value* value = name.empty() ? nullptr : given.find(name);
    if (value == nullptr) {
      if (input.required && !name.empty()) {
        fail(ErrorCode::invalid_argument, "input '{}' is missing, and the project '{}' requires it", name, config.name);
      }
      continue;
    }
    const std::int64_t most = input.max_length > 0 ? input.max_length : input.preprocessing.max_length;
    if (most == 0 || !value->is_tensor()) continue;
    const Tensor& t = value->tensor();
    if (t.dtype() == DataType::string) {
      for (const std::string& text : t.values<std::string>()) {
        const auto length =
            static_cast<std::int64_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
        if (length > most)
          fail(ErrorCode::invalid_argument, "input '{}' has a text of {} characters, at most {} are allowed", name, length, most);
      }
    } else if (t.rank() > 0 && t.shape().back() > most) {
      fail(ErrorCode::invalid_argument, "input '{}' is {} long, at most {} are allowed", name, t.shape().back(), most);
    }
  }
}

std::size_t class_axis(const Shape& shape, int axis) {
  const auto rank = static_cast<int>(shape.size());
  int at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) {
    fail(ErrorCode::invalid_argument, "postprocessing: there is no axis {} in a tensor of {} dimensions", axis, rank);
  }
  while (axis == -1 && at > 0 && shape[static_cast<std::size_t>(at)] == 1) --at;
  return static_cast<std::size_t>(at);
}

Tensor activated(const Tensor& scores, const Postprocessing& p) {
  if (p.activation == Activation::none) return scores;
  if (!is_floating(scores.dtype())) {
    fail(ErrorCode::invalid_argument, "postprocessing: {} needs floating-point numbers, the output is {}", name(p.activation),
         scores.type_string());
  }
  Tensor out(scores.dtype(), scores.shape());
  if (p.activation == Activation::sigmoid) {
    for (std::int64_t i = 0; i < scores.size(); ++i) set_element(out, i, 1.0 / (1.0 + std::exp(-element_as_double(scores, i))));
    return out;
  }
  const Rows rows = rows_of(scores, p.axis);
  for (std::int64_t row = 0; row < rows.count; ++row) softmax_row(scores, out, rows.start(row), rows);
  return out;
}

std::vector<RankedClass> ranked(const Tensor& scores, const Postprocessing& p) {
  if (!is_floating(scores.dtype()) && !is_integer(scores.dtype()) && scores.dtype() != DataType::boolean) {
    fail(ErrorCode::invalid_argument, "postprocessing: classes need numbers, the output is {}", scores.type_string());
  }
  const Rows rows = rows_of(scores, p.axis);
  std::vector<RankedClass> out;
  std::vector<double> values(static_cast<std::size_t>(rows.length));
  std::vector<std::size_t> order(values.size());
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = element_as_double(scores, rows.start(row) + static_cast<std::int64_t>(i) * rows.stride);
    }
    const auto key = [&](std::size_t i) { return std::isnan(values[i]) ? -HUGE_VAL : values[i]; };
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto count = static_cast<std::size_t>(std::min(p.top_k > 0 ? p.top_k : 5, rows.length));
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                      [&](std::size_t a, std::size_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t c = order[i];
      if (p.threshold && !(values[c] >= *p.threshold)) continue;
      out.push_back({row, static_cast<std::int64_t>(c), values[c], c < p.labels.size() ? p.labels[c] : ""});
    }
  }
  return out;
}

}  // namespace sdx::project
