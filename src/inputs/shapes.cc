#include "inputs/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/text/ascii.h"

namespace sdx::inputs {
namespace {

constexpr std::int64_t kTokens = 16, kPixels = 224;

bool has(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return text.find(w) != std::string::npos; });
}

bool is(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return text == w; });
}

// "past + seq", "2*h", "batch": sums of products, which is what exporters write. Nothing for other expressions.
class Expression {
 public:
  Expression(const std::string& text, const Dimensions& dimensions) : dimensions_(dimensions) {
    for (const char c : text) {
      if (c != ' ' && c != '(' && c != ')') text_ += c;
    }
  }

  std::optional<std::int64_t> value() const {
    std::int64_t sum = 0;
    for (std::size_t at = 0; at <= text_.size();) {
      const std::size_t end = std::min(text_.find('+', at), text_.size());
      const auto part = product(text_.substr(at, end - at));
      const auto next = part ? checked_add(sum, *part) : std::nullopt;
      if (!next) return std::nullopt;
      sum = *next;
      at = end + 1;
    }
    return sum;
  }

 private:
  std::optional<std::int64_t> product(const std::string& text) const {
    std::int64_t out = 1;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('*', at), text.size());
      const auto factor = atom(text.substr(at, end - at));
      const auto next = factor ? checked_mul(out, *factor) : std::nullopt;
      if (!next) return std::nullopt;
      out = *next;
      at = end + 1;
    }
    return out;
  }

  std::optional<std::int64_t> atom(const std::string& text) const {
    for (const auto& [symbol, extent] : dimensions_) {
      if (symbol == text) return extent;
    }
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
  }

  const Dimensions& dimensions_;
  std::string text_;
};

std::optional<std::int64_t> by_symbol(const std::string& symbol) {
  const std::string s = ascii_lower(symbol);
  if (s.empty()) return std::nullopt;
  if (has(s, {"batch"}) || is(s, {"n", "b", "bs", "bsz"})) return 1;
  if (has(s, {"total"})) return 2 * kTokens;
  if (has(s, {"past", "cache", "seq", "time", "token", "length", "len", "frames", "samples"}) || is(s, {"t", "l", "s"}))
    return kTokens;
  if (has(s, {"height", "width"}) || is(s, {"h", "w"})) return kPixels;
  if (has(s, {"channel"}) || is(s, {"c"})) return 3;
  return std::nullopt;
}

const std::string& symbol_of(const ValueSpec& spec, std::size_t axis) {
  static const std::string none;
  return axis < spec.symbols.size() ? spec.symbols[axis] : none;
}

std::int64_t usual_extent(const ValueSpec& spec, std::size_t axis) {
  const std::string& symbol = symbol_of(spec, axis);
  if (axis == 0 && !has(ascii_lower(symbol), {"seq", "time", "token", "length", "height"})) return 1;
  if (const auto extent = by_symbol(symbol)) return *extent;
  if (spec.shape.size() == 4) {
    const bool channels_last = spec.shape[3] == 3 || spec.shape[3] == 1;
    const std::size_t channels = channels_last ? 3 : 1;
    return axis == channels ? 3 : kPixels;
  }
  const bool ids = spec.shape.size() == 2 && axis == 1 && is_integer(spec.dtype);
  return ids ? kTokens : 1;
}

// Not a fixed axis, nor an expression of symbols.
bool has_plain_symbol(const ValueSpec& spec, std::size_t axis) {
  const std::string& symbol = symbol_of(spec, axis);
  return spec.shape[axis] < 0 && !symbol.empty() && symbol.find_first_of("+*") == std::string::npos;
}

bool is_known(const Dimensions& dimensions, const std::string& symbol) {
  return std::any_of(dimensions.begin(), dimensions.end(), [&](const auto& d) { return d.first == symbol; });
}

bool has_symbol_twice(const std::vector<ValueSpec>& specs, const std::string& symbol) {
  return std::any_of(specs.begin(), specs.end(),
                     [&](const ValueSpec& s) { return std::count(s.symbols.begin(), s.symbols.end(), symbol) > 1; });
}

// The usual extent of axes with this symbol, at most.
ChosenExtent choose(const std::vector<ValueSpec>& open, const std::string& symbol) {
  ChosenExtent out;
  for (const ValueSpec& spec : open) {
    for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
      if (symbol_of(spec, axis) != symbol || spec.shape[axis] >= 0) continue;
      const std::int64_t extent = usual_extent(spec, axis);
      if (out.input.empty() || extent > out.extent) out = {spec.name, symbol, axis, extent};
    }
  }
  return out;
}

}  // namespace

std::vector<std::pair<std::string, Shape>> with_shapes_of(const NamedValues& given,
                                                          std::vector<std::pair<std::string, Shape>> shapes) {
  for (const NamedValue& v : given) {
    if (v.value.is_tensor()) shapes.emplace_back(v.name, v.value.tensor().shape());
  }
  return shapes;
}

Dimensions with_symbols(const std::vector<ValueSpec>& specs, const std::vector<std::pair<std::string, Shape>>& known,
                        Dimensions dimensions, std::vector<ChosenExtent>* chosen) {
  std::vector<ValueSpec> open;
  for (const ValueSpec& spec : specs) {
    if (!spec.has_shape || !spec.is_tensor) continue;
    const auto shape = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == spec.name; });
    if (shape == known.end() && !spec.has_default) open.push_back(spec);
    if (shape == known.end() || shape->second.size() != spec.shape.size()) continue;
    for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
      if (!has_plain_symbol(spec, axis) || is_known(dimensions, symbol_of(spec, axis))) continue;
      if (!has_symbol_twice(specs, symbol_of(spec, axis))) dimensions.emplace_back(symbol_of(spec, axis), shape->second[axis]);
    }
  }
  for (const ValueSpec& spec : open) {
    for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
      const std::string& symbol = symbol_of(spec, axis);
      if (!has_plain_symbol(spec, axis) || is_known(dimensions, symbol) || has_symbol_twice(specs, symbol)) continue;
      const ChosenExtent choice = choose(open, symbol);
      dimensions.emplace_back(symbol, choice.extent);
      if (chosen != nullptr) chosen->push_back(choice);
    }
  }
  return dimensions;
}

Shape concrete_shape(const ValueSpec& spec, const Dimensions& dimensions, std::vector<ChosenExtent>* chosen) {
  if (!spec.has_shape) return {1};
  Shape shape = spec.shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) continue;
    const std::string& symbol = symbol_of(spec, i);
    const auto known = symbol.empty() ? std::nullopt : Expression(symbol, dimensions).value();
    if (known && *known >= 0) {
      shape[i] = *known;
      continue;
    }
    shape[i] = usual_extent(spec, i);
    if (chosen != nullptr) chosen->push_back({spec.name, symbol, i, shape[i]});
  }
  return shape;
}

std::string describe(const std::vector<ChosenExtent>& chosen) {
  std::vector<std::string> parts;
  for (const ChosenExtent& c : chosen) {
    if (c.axis == 0 && c.extent == 1) continue;
    std::string part = c.symbol.empty() ? fmt::format("axis {} of '{}' = {}", c.axis, c.input, c.extent)
                                        : fmt::format("{} = {}", c.symbol, c.extent);
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(std::move(part));
  }
  return join(parts);
}

BatchAxis find_batch_axis(const std::vector<ValueSpec>& specs) {
  BatchAxis axis;
  const ValueSpec* first = nullptr;
  const auto usable = [](const ValueSpec& s) { return !s.has_default && s.is_tensor && s.has_shape && !s.shape.empty(); };
  for (const ValueSpec& s : specs) {
    if (usable(s) && s.shape[0] < 0 && first == nullptr) first = &s;
  }
  if (first != nullptr) {
    axis.symbol = first->symbols.empty() ? "" : first->symbols[0];
    for (const ValueSpec& s : specs) {
      if (usable(s) && s.shape[0] < 0 && (s.symbols.empty() ? "" : s.symbols[0]) == axis.symbol) axis.inputs.push_back(s.name);
    }
    return axis;
  }
  for (const ValueSpec& s : specs) {
    if (!usable(s) || s.shape.size() < 2) continue;
    if (axis.inputs.empty()) axis.fixed = s.shape[0];
    if (s.shape[0] == axis.fixed) axis.inputs.push_back(s.name);
  }
  return axis;
}

Tensor repeat_rows(const Tensor& t, std::int64_t extent) {
  if (t.rank() < 1 || t.dim(0) < 1 || extent < 0) {
    fail(ErrorCode::invalid_argument, "cannot repeat {} along its first axis to {} samples", t.type_string(), extent);
  }
  if (t.dim(0) == extent) return t;
  Shape shape = t.shape();
  shape[0] = extent;
  Tensor out(t.dtype(), shape);
  const std::int64_t row = t.size() / t.dim(0);
  if (t.dtype() == DataType::string) {
    const auto from = t.values<std::string>();
    const auto to = out.mutable_values<std::string>();
    for (std::int64_t i = 0; i < out.size(); ++i) to[static_cast<std::size_t>(i)] = from[static_cast<std::size_t>(i % t.size())];
    return out;
  }
  if (bit_width(t.dtype()) < 8) {
    fail(ErrorCode::not_implemented, "cannot repeat {}: elements smaller than a byte", t.type_string());
  }
  const auto bytes = static_cast<std::size_t>(row) * static_cast<std::size_t>(bit_width(t.dtype()) / 8);
  for (std::int64_t i = 0; i < extent && bytes > 0; ++i) {
    std::memcpy(static_cast<char*>(out.mutable_data()) + static_cast<std::size_t>(i) * bytes,
                static_cast<const char*>(t.data()) + static_cast<std::size_t>(i % t.dim(0)) * bytes, bytes);
  }
  return out;
}

}  // namespace sdx::inputs
