#include "ops/tensor/join.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "ops/tensor/shape_values.h"

namespace sdx::ops {
namespace {

bool is_zero(std::int64_t extent) { return extent == 0; }
bool is_zero(const Dim& extent) { return extent.is_const() && extent.value() == 0; }
bool certain(const Dim& extent) { return extent.is_const() && extent.value() != 0; }
bool is_legacy_empty(const Shape& s) { return s.size() == 1 && s[0] == 0; }
// An input whose rank differs from the others can only be empty.
bool is_legacy_empty(const SymShape& s) { return s.size() == 1 && !certain(s[0]); }

template <class S>
std::size_t greatest_rank(const std::vector<const S*>& shapes) {
  std::size_t rank = 0;
  for (const S* s : shapes) rank = std::max(rank, s->size());
  return rank;
}

// The inputs whose extents count; at least the first of the common rank.
template <class S>
std::vector<const S*> contributing(const std::vector<const S*>& shapes, std::size_t rank, std::size_t axis) {
  std::vector<const S*> out;
  const S* first = nullptr;
  for (const S* s : shapes) {
    if (s->size() != rank) {
      if (is_legacy_empty(*s)) continue;
      fail(ErrorCode::invalid_model, "the inputs of a Concat must have one rank; received {} and {}", to_string(*s),
           to_string(*shapes[s == shapes[0] ? 1 : 0]));
    }
    if (first == nullptr) first = s;
    if (!is_zero((*s)[axis])) out.push_back(s);
  }
  if (out.empty()) out.push_back(first);
  return out;
}

// Outside the axis. Of two numbers the one counts whose input surely is not empty.
Dim common_extent(const Dim& a, bool a_counts, const Dim& b, bool b_counts) {
  const bool differ = a.is_const() && b.is_const() && a.value() != b.value();
  if (!differ || (a_counts && b_counts)) return agree(a, b, "the inputs differ outside the axis");
  return a_counts ? a : b_counts ? b : Dim::unknown();
}

}  // namespace

Joined joined(const std::vector<const Shape*>& shapes, std::int64_t axis) {
  const std::size_t rank = greatest_rank(shapes);
  const auto at = static_cast<std::size_t>(normalize_axis(axis, rank));
  const std::vector<const Shape*> parts = contributing(shapes, rank, at);
  Joined out{*parts[0], at};
  out.shape[at] = 0;
  for (const Shape* s : parts) {
    for (std::size_t d = 0; d < rank; ++d) {
      if (d == at || (*s)[d] == out.shape[d]) continue;
      fail(ErrorCode::invalid_model, "shapes {} and {} cannot be joined on axis {}: they differ on axis {}", to_string(*parts[0]),
           to_string(*s), at, d);
    }
    const auto sum = checked_add(out.shape[at], (*s)[at]);
    if (!sum) fail(ErrorCode::invalid_model, "the extents on axis {} do not fit in 64 bits", at);
    out.shape[at] = *sum;
  }
  return out;
}

JoinedSym joined(const std::vector<const SymShape*>& shapes, std::int64_t axis) {
  const std::size_t rank = greatest_rank(shapes);
  const auto at = static_cast<std::size_t>(normalize_axis(axis, rank));
  const std::vector<const SymShape*> parts = contributing(shapes, rank, at);
  JoinedSym out{*parts[0], at};
  bool sure = certain(out.shape[at]);  // that the extents in `out` count
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const SymShape& s = *parts[i];
    const bool too = certain(s[at]);
    for (std::size_t d = 0; d < rank; ++d) {
      out.shape[d] = d == at ? out.shape[d] + s[d] : common_extent(out.shape[d], sure, s[d], too);
    }
    sure = sure || too;
  }
  return out;
}

}  // namespace sdx::ops
