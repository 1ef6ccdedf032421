#include "serve/models/batch_join.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

namespace sdx::serve {
namespace {

const ValueSpec* find(const std::vector<ValueSpec>& specs, std::string_view name) {
  const auto at = std::find_if(specs.begin(), specs.end(), [&](const ValueSpec& s) { return s.name == name; });
  return at == specs.end() ? nullptr : &*at;
}

// The second extent is the length of a text: open, and for this request that of its mask.
bool has_length(const ValueSpec* spec, const Tensor& t, std::int64_t length) {
  return spec != nullptr && spec->has_shape && spec->shape.size() >= 2 && spec->shape[1] == -1 && t.rank() >= 2 &&
         t.dim(1) == length;
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

// `width` bytes of each row into rows of `stride`; the rest is zeros.
void copy_rows(std::byte* to, std::size_t stride, const std::byte* from, std::size_t width, std::int64_t rows) {
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
    key.text += item.name;
    key.text += '\0';
    key.text += static_cast<char>(t.dtype());
    const bool filled = key.length > 0 && has_length(find(rules.inputs, item.name), t, key.length);
    for (std::size_t axis = 1; axis < t.rank(); ++axis) {
      // Lengths up to the next power of two come together: at most half of a run is filling.
      const std::uint64_t extent =
          filled && axis == 1 ? std::bit_ceil(static_cast<std::uint64_t>(key.length)) : static_cast<std::uint64_t>(t.dim(axis));
      key.text.append(reinterpret_cast<const char*>(&extent), sizeof extent);
    }
    key.text += '\0';
  }
  if (key.rows == 0) return std::nullopt;
  return key;
}

NamedValues join(const JoinRules& rules, std::span<const JoinPart> parts) {
  const std::int64_t rows = all_rows(parts), length = longest(parts);
  NamedValues out;
  for (const NamedValue& item : *parts.front().inputs) {
    const Tensor& first = item.value.tensor();
    const ValueSpec* spec = find(rules.inputs, item.name);
    Shape shape = first.shape();
    shape[0] = rows;
    if (length > 0 && has_length(spec, first, parts.front().length)) shape[1] = length;
    Tensor whole(first.dtype(), shape);
    const std::size_t stride = bytes_behind(whole, 1);
    auto* to = static_cast<std::byte*>(whole.mutable_data());
    for (const JoinPart& part : parts) {
      const Tensor& t = part.inputs->tensor(item.name);
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
        length > 0 && whole.dtype() != DataType::string && has_length(find(rules.outputs, item.name), whole, length);
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
