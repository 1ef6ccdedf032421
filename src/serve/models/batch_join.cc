#include "serve/models/batch_join.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "serve/models/value_specs.h"

namespace sdx::serve {
namespace {

std::string_view second_symbol(const ValueSpec& spec) {
  return spec.symbols.size() >= 2 ? std::string_view(spec.symbols[1]) : std::string_view();
}

// The second extent is the length of a text: open, for this request that of its mask, and of the mask's name where both have one:
// equal extents alone may be a coincidence.
bool has_length(const JoinRules& rules, const ValueSpec* spec, const Tensor& t, std::int64_t length) {
  if (spec == nullptr || !spec->has_shape || spec->shape.size() < 2 || spec->shape[1] != -1) return false;
  if (t.rank() < 2 || t.dim(1) != length) return false;
  const ValueSpec* mask = find_spec(rules.inputs, rules.mask_input);
  const std::string_view own = second_symbol(*spec), of_mask = mask != nullptr ? second_symbol(*mask) : std::string_view();
  return own.empty() || of_mask.empty() || own == of_mask;
}

std::int64_t length_of(const JoinRules& rules, const NamedValues& inputs) {
  if (rules.mask_input.empty()) return 0;
  const Value* mask = inputs.find(rules.mask_input);
  if (mask == nullptr || !mask->is_tensor() || mask->tensor().rank() != 2) return 0;
  return mask->tensor().dim(1);
}

std::size_t bytes_behind(const Tensor& t, std::size_t axis) {
  std::int64_t count = 1;
  for (std::size_t i = axis; i < t.rank(); ++i) count *= t.dim(i);
  return byte_size(t.dtype(), count);
}

std::int64_t all_rows(std::span<const JoinPart> parts) {
  std::int64_t rows = 0;
  for (const JoinPart& part : parts) rows += part.rows;
  return rows;
}

std::int64_t longest(std::span<const JoinPart> parts) {
  std::int64_t length = 0;
  for (const JoinPart& part : parts) length = std::max(length, part.length);
  return length;
}

// Copies `width` bytes of each row into rows of `stride`; the rest is zeros.
void copy_rows(std::byte* to, std::size_t stride, const std::byte* from, std::size_t width, std::int64_t rows) {
  if (width > stride) fail(ErrorCode::internal, "a row of {} bytes does not fit into {}: the requests differ", width, stride);
  if (width == stride) {
    if (width > 0) std::memcpy(to, from, width * static_cast<std::size_t>(rows));
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row, to += stride, from += width) {
    if (width > 0) std::memcpy(to, from, width);
    std::memset(to + width, 0, stride - width);
  }
}

Tensor part_of(const Tensor& whole, std::int64_t first, std::int64_t rows) {
  Shape shape = whole.shape();
  shape[0] = rows;
  if (whole.dtype() == DataType::string) {
    Tensor out(DataType::string, shape);
    const auto all = whole.values<std::string>();
    const std::size_t width = all.size() / static_cast<std::size_t>(std::max<std::int64_t>(1, whole.dim(0)));
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(width * static_cast<std::size_t>(first));
    std::copy_n(from, out.size(), out.mutable_values<std::string>().begin());
    return out;
  }
  const auto* data = static_cast<const std::byte*>(whole.data()) + bytes_behind(whole, 1) * static_cast<std::size_t>(first);
  std::shared_ptr<const void> owner = whole.owner();
  if (!owner) owner = std::make_shared<Tensor>(whole);
  return Tensor::view(data, whole.dtype(), std::move(shape), std::move(owner));
}

// The first `length` of the second extent.
Tensor shortened(const Tensor& t, std::int64_t length) {
  Shape shape = t.shape();
  shape[1] = length;
  Tensor out(t.dtype(), shape);
  const std::size_t stride = bytes_behind(t, 1), width = bytes_behind(out, 1);
  const auto* from = static_cast<const std::byte*>(t.data());
  auto* to = static_cast<std::byte*>(out.mutable_data());
  for (std::int64_t row = 0; row < t.dim(0) && width > 0; ++row, to += width, from += stride) std::memcpy(to, from, width);
  return out;
}

// Appends a number in a fixed number of bytes, so that no text can look like several others in a row.
void append(std::string& key, std::uint64_t number) { key.append(reinterpret_cast<const char*>(&number), sizeof number); }

bool joinable(const Tensor& t) {
  return t.rank() >= 1 && t.dim(0) >= 1 && t.dtype() != DataType::string && !is_sub_byte(t.dtype());
}

}  // namespace

std::optional<JoinKey> join_key(const JoinRules& rules, const NamedValues& inputs) {
  JoinKey key;
  key.length = length_of(rules, inputs);
  for (const NamedValue& item : inputs) {
    if (!item.value.is_tensor() || !joinable(item.value.tensor())) return std::nullopt;
    const Tensor& t = item.value.tensor();
    if (key.rows == 0) key.rows = t.dim(0);
    if (t.dim(0) != key.rows) return std::nullopt;
    const ValueSpec* spec = find_spec(rules.inputs, item.name);
    if (spec == nullptr) return std::nullopt;  // fails for its own faults
    const bool filled = key.length > 0 && has_length(rules, spec, t, key.length);
    append(key.text, item.name.size());
    key.text += item.name;
    append(key.text, static_cast<std::uint64_t>(t.dtype()));
    append(key.text, t.rank());
    append(key.text, filled ? 1 : 0);
    for (std::size_t axis = 1; axis < t.rank(); ++axis) {
      // Lengths up to the next power of two come together: at most half of a run is filling.
      const auto extent = static_cast<std::uint64_t>(t.dim(axis));
      append(key.text, filled && axis == 1 ? std::bit_ceil(extent) : extent);
    }
  }
  if (key.rows == 0) return std::nullopt;
  return key;
}

NamedValues join(const JoinRules& rules, std::span<const JoinPart> parts) {
  const std::int64_t rows = all_rows(parts), length = longest(parts);
  NamedValues out;
  for (std::size_t i = 0; i < parts.front().inputs->size(); ++i) {
    const NamedValue& item = (*parts.front().inputs)[i];
    const Tensor& first = item.value.tensor();
    const ValueSpec* spec = find_spec(rules.inputs, item.name);
    Shape shape = first.shape();
    shape[0] = rows;
    if (length > 0 && has_length(rules, spec, first, parts.front().length)) shape[1] = length;
    Tensor whole(first.dtype(), shape);
    const std::size_t stride = bytes_behind(whole, 1);
    auto* to = static_cast<std::byte*>(whole.mutable_data());
    for (const JoinPart& part : parts) {
      const Tensor& t = (*part.inputs)[i].value.tensor();  // keys are equal: so is the order of names
      copy_rows(to, stride, static_cast<const std::byte*>(t.data()), bytes_behind(t, 1), part.rows);
      to += stride * static_cast<std::size_t>(part.rows);
    }
    out.add(item.name, std::move(whole));
  }
  return out;
}

std::vector<NamedValues> cut(const JoinRules& rules, const NamedValues& outputs, std::span<const JoinPart> parts) {
  const std::int64_t rows = all_rows(parts), length = longest(parts);
  std::vector<NamedValues> out(parts.size());
  for (const NamedValue& item : outputs) {
    if (!item.value.is_tensor() || item.value.tensor().rank() == 0 || item.value.tensor().dim(0) != rows ||
        is_sub_byte(item.value.tensor().dtype())) {
      return {};
    }
    const Tensor& whole = item.value.tensor();
    const bool filled =
        length > 0 && whole.dtype() != DataType::string && has_length(rules, find_spec(rules.outputs, item.name), whole, length);
    std::int64_t first = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Tensor part = part_of(whole, first, parts[i].rows);
      if (filled && parts[i].length < length) part = shortened(part, parts[i].length);
      out[i].add(item.name, std::move(part));
      first += parts[i].rows;
    }
  }
  return out;
}

}  // namespace sdx::serve
