#include "cli/values/stack.h"

#include <algorithm>
#include <cstring>

#include "tensor/types.h"

namespace sdx::cli {
namespace {

// Strings are not plain bytes, and elements of less than a byte do not begin at one.
bool plain(const Tensor& t) { return t.dtype() != DataType::string && bit_width(t.dtype()) >= 8; }

}  // namespace

std::optional<NamedValues> Stack::stacked(const std::vector<const NamedValues*>& samples) const {
  NamedValues out;
  bool any = false;
  for (const NamedValue& first : *samples.front()) {
    const auto spec = std::find_if(specs_.begin(), specs_.end(), [&](const ValueSpec& s) { return s.name == first.name; });
    if (spec == specs_.end() || !first.value.is_tensor()) return std::nullopt;
    const Tensor& t = first.value.tensor();
    const bool open = spec->has_shape && !spec->shape.empty() && spec->shape[0] < 0;
    for (const NamedValues* sample : samples) {
      const Value* other = sample->find(first.name);
      if (other == nullptr || !other->is_tensor() || other->tensor().dtype() != t.dtype()) return std::nullopt;
      if (open ? other->tensor().shape() != t.shape() : other->tensor().data() != t.data()) return std::nullopt;
      if (sample->size() != samples.front()->size()) return std::nullopt;
    }
    if (!open) {
      out.add(first.name, first.value);
      continue;
    }
    if (!plain(t) || t.rank() == 0 || t.dim(0) != 1) return std::nullopt;
    any = true;
    Shape shape = t.shape();
    shape[0] = static_cast<std::int64_t>(samples.size());
    Tensor all(t.dtype(), shape);
    auto* to = static_cast<std::byte*>(all.mutable_data());
    for (std::size_t i = 0; i < samples.size() && t.bytes() > 0; ++i) {
      std::memcpy(to + i * t.bytes(), samples[i]->tensor(first.name).data(), t.bytes());
    }
    out.add(first.name, std::move(all));
  }
  return any ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<std::vector<NamedValues>> Stack::split(const NamedValues& outputs, std::size_t count) {
  std::vector<NamedValues> out(count);
  for (const NamedValue& item : outputs) {
    if (!item.value.is_tensor()) return std::nullopt;
    const Tensor& t = item.value.tensor();
    if (!plain(t) || t.rank() == 0 || t.dim(0) != static_cast<std::int64_t>(count)) return std::nullopt;
    Shape shape = t.shape();
    shape[0] = 1;
    const std::size_t bytes = t.bytes() / count;
    for (std::size_t i = 0; i < count; ++i) {
      Tensor row(t.dtype(), shape);
      if (bytes > 0) std::memcpy(row.mutable_data(), static_cast<const std::byte*>(t.data()) + i * bytes, bytes);
      out[i].add(item.name, std::move(row));
    }
  }
  return out;
}

}  // namespace sdx::cli
