// Einstein sums: first diagonals and sums of single operands, then products of two operands at a time as batches of matrices.

#include <algorithm>

#include <sdx/array.hpp>

#include "array/ops/common.h"
#include "array/ops/matrix/einsum_path.h"

namespace sdx::array {
namespace detail {
namespace {

struct Term {
  array a;
  Labels labels;
};

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

std::size_t place_of(const Labels& labels, int label) {
  return static_cast<std::size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

// Replaces axes of the same label by one axis: their diagonal.
void take_diagonals(Term& t, const StreamOrDevice& s) {
  for (std::size_t i = 0; i < t.labels.size(); ++i) {
    const auto again = std::find(t.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, t.labels.end(), t.labels[i]);
    if (again == t.labels.end()) continue;
    const int label = t.labels[i];
    const auto j = static_cast<std::size_t>(again - t.labels.begin());
    // An axis of extent 1 stands for a longer one with equal elements.
    const std::int64_t extent = std::max(t.a.shape()[i], t.a.shape()[j]);
    Shape square = t.a.shape();
    square[i] = square[j] = extent;
    t.a = diagonal(broadcast_to(t.a, square, s), 0, static_cast<int>(i), static_cast<int>(j), s);
    t.labels.erase(t.labels.begin() + static_cast<std::ptrdiff_t>(j));
    t.labels.erase(t.labels.begin() + static_cast<std::ptrdiff_t>(i));
    t.labels.push_back(label);
    --i;
  }
}

// Sums over axes whose labels no other operand and no result needs.
void sum_away(Term& t, const Labels& needed, const StreamOrDevice& s) {
  std::vector<int> axes;
  Labels left;
  for (std::size_t i = 0; i < t.labels.size(); ++i) {
    if (has(needed, t.labels[i])) {
      left.push_back(t.labels[i]);
    } else {
      axes.push_back(static_cast<int>(i));
    }
  }
  if (axes.empty()) return;
  t.a = sum(t.a, axes, false, s);
  t.labels = std::move(left);
}

array ordered(const Term& t, const Labels& order, const StreamOrDevice& s) {
  std::vector<int> perm;
  for (const int label : order) perm.push_back(static_cast<int>(place_of(t.labels, label)));
  return transpose(t.a, perm, s);
}

// The labels of two operands, by their part in a product. Where both have a label and one axis has extent 1, that side is summed,
// or drops the axis, first.
struct Sides {
  Labels batch, of_a, of_b, summed;
};

Sides sides_of(const Term& a, const Term& b, const Labels& left) {
  Sides sides;
  for (const int label : a.labels) {
    if (!has(b.labels, label)) {
      sides.of_a.push_back(label);
    } else {
      (has(left, label) ? sides.batch : sides.summed).push_back(label);
    }
  }
  for (const int label : b.labels) {
    if (!has(a.labels, label)) sides.of_b.push_back(label);
  }
  return sides;
}

std::int64_t extent_of(const Term& t, const Labels& labels) {
  std::int64_t count = 1;
  for (const int label : labels) count *= t.a.shape()[place_of(t.labels, label)];
  return count;
}

Labels joined(std::initializer_list<const Labels*> parts) {
  Labels out;
  for (const Labels* part : parts) out.insert(out.end(), part->begin(), part->end());
  return out;
}

// Repeats axes of extent 1 where the other operand's axis is longer.
void even_out(Term& a, Term& b, const StreamOrDevice& s) {
  Shape x = a.a.shape(), y = b.a.shape();
  for (std::size_t i = 0; i < a.labels.size(); ++i) {
    const std::size_t j = place_of(b.labels, a.labels[i]);
    if (j < b.labels.size()) x[i] = y[j] = x[i] == 1 ? y[j] : x[i];
  }
  a.a = broadcast_to(a.a, x, s);
  b.a = broadcast_to(b.a, y, s);
}

Term contracted(Term a, Term b, const Labels& left, const StreamOrDevice& s) {
  Labels for_a = left, for_b = left;
  for_a.insert(for_a.end(), b.labels.begin(), b.labels.end());
  for_b.insert(for_b.end(), a.labels.begin(), a.labels.end());
  sum_away(a, for_a, s);
  sum_away(b, for_b, s);
  even_out(a, b, s);
  const Sides sides = sides_of(a, b, left);
  Shape shape;
  for (const auto& [term, labels] : {std::pair(&a, &sides.batch), std::pair(&a, &sides.of_a), std::pair(&b, &sides.of_b)}) {
    for (const int label : *labels) shape.push_back(term->a.shape()[place_of(term->labels, label)]);
  }
  const std::int64_t batch = extent_of(a, sides.batch), sums = extent_of(a, sides.summed);
  const array x =
      reshape(ordered(a, joined({&sides.batch, &sides.of_a, &sides.summed}), s), {batch, extent_of(a, sides.of_a), sums}, s);
  const array y =
      reshape(ordered(b, joined({&sides.batch, &sides.summed, &sides.of_b}), s), {batch, sums, extent_of(b, sides.of_b)}, s);
  const array product = sums == 1    ? multiply(x, y, s)
                        : batch == 1 ? expand_dims(matmul(squeeze(x, 0, s), squeeze(y, 0, s), s), 0, s)
                                     : matmul(x, y, s);
  return {reshape(product, std::move(shape), s), joined({&sides.batch, &sides.of_a, &sides.of_b})};
}

std::vector<Shape> shapes_of(const std::vector<array>& operands) {
  std::vector<Shape> shapes;
  for (const array& a : operands) shapes.push_back(a.shape());
  return shapes;
}

Labels needed_by(const std::vector<Term>& terms, const Labels& result) {
  Labels needed = result;
  for (const Term& t : terms) needed.insert(needed.end(), t.labels.begin(), t.labels.end());
  return needed;
}

}  // namespace
}  // namespace detail

array einsum(const std::string& subscripts, const std::vector<array>& operands, StreamOrDevice s) {
  using namespace detail;
  const EinsumTerms how = einsum_terms(subscripts, shapes_of(operands));
  std::vector<Term> terms;
  Dtype type = operands[0].dtype();
  for (const array& a : operands) type = promote(type, a.dtype());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    terms.push_back({as_type(operands[i], type, s), how.operands[i]});
    take_diagonals(terms.back(), s);
  }
  for (const std::vector<int>& step : einsum_order(how)) {
    if (step.size() != 2) break;
    Term a = terms[static_cast<std::size_t>(step[0])], b = terms[static_cast<std::size_t>(step[1])];
    terms.erase(terms.begin() + step[1]);
    terms.erase(terms.begin() + step[0]);
    terms.push_back(contracted(std::move(a), std::move(b), needed_by(terms, how.result), s));
  }
  Term last = std::move(terms[0]);
  sum_away(last, how.result, s);
  Shape shape;
  for (const int label : how.result) shape.push_back(how.extents[static_cast<std::size_t>(label)]);
  return broadcast_to(ordered(last, how.result, s), shape, s);
}

std::pair<std::vector<std::vector<int>>, std::string> einsum_path(const std::string& subscripts,
                                                                  const std::vector<array>& operands) {
  using namespace detail;
  const EinsumTerms how = einsum_terms(subscripts, shapes_of(operands));
  const EinsumPath path = einsum_order(how);
  Labels all;
  for (const Labels& labels : how.operands) all.insert(all.end(), labels.begin(), labels.end());
  const double naive = einsum_cost(how, all, {}) * static_cast<double>(std::max<std::size_t>(1, operands.size()));
  double optimised = 0;
  std::vector<Labels> left = how.operands;
  for (const std::vector<int>& step : path) {
    if (step.size() != 2) break;
    const Labels a = left[static_cast<std::size_t>(step[0])], b = left[static_cast<std::size_t>(step[1])];
    optimised += 2 * einsum_cost(how, a, b);
    left.erase(left.begin() + step[1]);
    left.erase(left.begin() + step[0]);
    left.push_back(einsum_left(a, b, left, how.result));
  }
  if (path.size() == 1 && path[0].size() == 1) optimised = naive;
  return {path, fmt::format("  Complete contraction:  {}\n      Naive FLOP count:  {:.0f}\n  Optimized FLOP count:  {:.0f}\n",
                            subscripts, naive, optimised)};
}

}  // namespace sdx::array
