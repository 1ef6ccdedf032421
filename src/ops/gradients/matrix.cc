// Gradients of matrix products.

#include <algorithm>
#include <cctype>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>

#include "ops/gradient.h"
#include "ops/matrix/signatures.h"

namespace sdx::ops {
namespace {

Expr swapped(GradientContext& c, Expr e, std::int64_t rank) {
  std::vector<std::int64_t> perm(static_cast<std::size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return c.emit("Transpose", {e}, {{"perm", perm}});
}

Expr gemm(GradientContext& c, Expr a, std::int64_t trans_a, Expr b, std::int64_t trans_b, float alpha = 1) {
  return c.emit("Gemm", {a, b}, {{"alpha", alpha}, {"transA", trans_a}, {"transB", trans_b}});
}

// The gradient of operand i as a stack of matrices, summed over the axes along which that was broadcast.
Expr summed_stack(GradientContext& c, std::size_t i, Expr gradient, Expr matrix) {
  const SymShape *own = c.shape(c.in(i)), *other = c.shape(c.in(1 - i));
  if (own == nullptr || other == nullptr || own->size() < 2 || other->size() < 2) return c.sum_to(gradient, matrix);
  const std::size_t rank = std::max(own->size(), other->size());
  const auto at = [&](const SymShape& s, std::size_t d) { return d + s.size() < rank ? Dim(1) : s[d + s.size() - rank]; };
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d + 2 < rank; ++d) {
    if (at(*own, d) == at(*other, d)) continue;
    if (at(*own, d) == Dim(1)) {
      axes.push_back(static_cast<std::int64_t>(d));
    } else if (!(at(*other, d) == Dim(1))) {
      return c.sum_to(gradient, matrix);  // one of them may turn out to be 1
    }
  }
  return own->size() < rank ? c.reshape(c.sum(gradient, axes), c.target_shape(c.in(i))) : c.sum(gradient, axes);
}

// All but the last axis as one: a matrix of rows. `like` has the shape of e.
Expr rows(GradientContext& c, Expr e, Expr like) {
  const Dim& last = c.shape(like)->back();
  if (last.is_const() && last.value() > 0) return c.emit("Reshape", {e, c.ints({-1, last.value()})});
  const Expr width = c.extents(like, -1, std::numeric_limits<std::int64_t>::max());
  const Expr count = c.emit("Div", {c.emit("Size", {like}), c.emit("Max", {c.emit("Squeeze", {width}), c.int_scalar(1)})});
  const Expr shape = c.emit("Concat", {c.emit("Unsqueeze", {count, c.ints({0})}), width}, {{"axis", std::int64_t{0}}});
  return c.reshape(e, shape);
}

// Vectors are matrices of one row or column, whose extent of 1 the result lacks.
void matmul(GradientContext& c) {
  std::int64_t ranks[2] = {c.rank(c.in(0)), c.rank(c.in(1))};
  if (ranks[0] == 0 || ranks[1] == 0) c.refuse("a scalar");
  if (ranks[0] == 2 && ranks[1] == 2) {
    if (c.wants(0)) c.set(0, gemm(c, c.dy(), 0, c.in(1), 1));
    if (c.wants(1)) c.set(1, gemm(c, c.in(0), 1, c.dy(), 0));
    return;
  }
  if (ranks[0] > 2 && ranks[1] == 2) {  // the matrix's gradient is one product of all rows
    if (c.wants(0)) c.set(0, call("MatMul", c.dy(), swapped(c, c.in(1), 2)));
    if (c.wants(1)) c.set(1, gemm(c, rows(c, c.in(0), c.in(0)), 1, rows(c, c.dy(), c.out(0)), 0));
    return;
  }
  Expr a = c.in(0);
  Expr b = c.in(1);
  Expr g = c.dy();
  if (ranks[0] == 1 && ranks[1] == 1) g = c.emit("Unsqueeze", {g, c.ints({0, 1})});
  if (ranks[0] == 1 && ranks[1] != 1) g = c.emit("Unsqueeze", {g, c.ints({-2})});
  if (ranks[0] != 1 && ranks[1] == 1) g = c.emit("Unsqueeze", {g, c.ints({-1})});
  if (ranks[0] == 1) a = c.emit("Unsqueeze", {a, c.ints({0})});
  if (ranks[1] == 1) b = c.emit("Unsqueeze", {b, c.ints({1})});
  ranks[0] = std::max<std::int64_t>(ranks[0], 2);
  ranks[1] = std::max<std::int64_t>(ranks[1], 2);
  const auto finish = [&](std::size_t i, Expr gradient, Expr matrix) {
    c.set(i, c.reshape_like(summed_stack(c, i, gradient, matrix), c.in(i)));
  };
  if (c.wants(0)) finish(0, call("MatMul", g, swapped(c, b, ranks[1])), a);
  if (c.wants(1)) finish(1, call("MatMul", swapped(c, a, ranks[0]), g), b);
}

// Y = alpha * A' * B' + beta * C, where A' is A or its transpose.
void gemm_gradient(GradientContext& c) {
  const auto attr = parse<GemmAttrs>(c);
  if (c.version() < 7 && attr.broadcast) c.refuse("broadcasting as before opset 7");
  const std::int64_t ta = attr.trans_a ? 1 : 0;
  const std::int64_t tb = attr.trans_b ? 1 : 0;
  const float alpha = attr.alpha;
  const Expr g = c.dy();
  if (c.wants(0)) c.set(0, ta != 0 ? gemm(c, c.in(1), tb, g, 1, alpha) : gemm(c, g, 0, c.in(1), 1 - tb, alpha));
  if (c.wants(1)) c.set(1, tb != 0 ? gemm(c, g, 1, c.in(0), ta, alpha) : gemm(c, c.in(0), 1 - ta, g, 0, alpha));
  if (c.wants(2)) c.set_broadcast(2, attr.beta == 1 ? g : g * static_cast<double>(attr.beta));
}

struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

constexpr std::string_view kDots = "...";

// Letters in place of '...': the last axes of the widest.
void name_dots(GradientContext& c, Equation& e) {
  std::string all = e.result;
  for (const std::string& t : e.terms) all += t;
  std::string fresh;  // letters that nobody uses
  for (int l = 'A'; l <= 'z'; ++l) {
    if (std::isalpha(l) != 0 && all.find(static_cast<char>(l)) == std::string::npos) fresh += static_cast<char>(l);
  }
  std::size_t widest = 0;
  for (std::size_t i = 0; i < e.terms.size(); ++i) {
    const std::size_t at = e.terms[i].find(kDots);
    if (at == std::string::npos) continue;
    const auto rank = static_cast<std::size_t>(c.rank(c.in(i)));
    const std::size_t letters = e.terms[i].size() - kDots.size();
    if (rank < letters || rank - letters > fresh.size()) c.refuse("an equation that does not fit its operands");
    e.terms[i].replace(at, kDots.size(), fresh.substr(fresh.size() - (rank - letters)));
    widest = std::max(widest, rank - letters);
  }
  if (const std::size_t at = e.result.find(kDots); at != std::string::npos) {
    e.result.replace(at, kDots.size(), fresh.substr(fresh.size() - widest));
  }
}

Equation equation(GradientContext& c) {
  std::string text(parse<EinsumAttrs>(c).equation);
  std::erase(text, ' ');
  Equation e;
  const std::size_t arrow = text.find("->");
  std::string terms = text.substr(0, arrow);
  const bool dots = terms.find(kDots) != std::string::npos;
  for (std::size_t comma = 0; (comma = terms.find(',')) != std::string::npos; terms.erase(0, comma + 1)) {
    e.terms.push_back(terms.substr(0, comma));
  }
  e.terms.push_back(terms);
  if (arrow != std::string::npos) {
    e.result = text.substr(arrow + 2);
  } else {  // the axes of '...', then letters that occur once, in alphabetical order
    std::string all;
    for (const std::string& t : e.terms) all += t;
    std::sort(all.begin(), all.end());
    if (dots) e.result = kDots;
    for (const char l : all) {
      if (l != '.' && std::count(all.begin(), all.end(), l) == 1) e.result += l;
    }
  }
  if (e.terms.size() != c.num_inputs()) c.refuse("an equation that does not fit its operands");
  if (dots) name_dots(c, e);
  return e;
}

// A diagonal is a product with an identity matrix: the operand's repeated letters become others, each with such a matrix.
void name_diagonals(GradientContext& c, const Equation& e, std::size_t i, std::string& term, std::string& text,
                    std::vector<Expr>& operands) {
  std::string used = e.result;
  for (const std::string& t : e.terms) used += t;
  char next = 'A';
  for (std::size_t k = 0; k < term.size(); ++k) {
    if (term.find(term[k]) == k) continue;
    while (std::isalpha(next) == 0 || used.find(next) != std::string::npos) {
      if (next == 'z') c.refuse("an equation with too many letters");
      ++next;
    }
    used += next;
    const auto axis = static_cast<std::int64_t>(k);
    const Expr n = c.extents(c.in(i), axis, axis + 1);
    const Expr square = c.emit("Concat", {n, n}, {{"axis", std::int64_t{0}}});
    operands.push_back(c.emit("EyeLike", {c.emit("Expand", {c.scalar(0), square})}));
    text += std::string(",") + term[k] + next;
    term[k] = next;
  }
}

// The product of the gradient and the other operands; letters that only this operand has were summed over, so every element
// along them gets the same. Extents of 1 were broadcast.
void einsum(GradientContext& c) {
  const Equation e = equation(c);
  for (std::size_t i = 0; i < e.terms.size(); ++i) {
    if (!c.wants(i)) continue;
    std::string term = e.terms[i], text = e.result;
    std::vector<Expr> operands{c.dy()};
    for (std::size_t j = 0; j < e.terms.size(); ++j) {
      if (j == i) continue;
      text += "," + e.terms[j];
      operands.push_back(c.in(j));
    }
    name_diagonals(c, e, i, term, text, operands);
    std::string present;
    std::vector<std::int64_t> absent;
    for (std::size_t k = 0; k < term.size(); ++k) {
      if (text.find(term[k]) != std::string::npos) {
        present += term[k];
      } else {
        absent.push_back(static_cast<std::int64_t>(k));
      }
    }
    Expr g = c.emit("Einsum", operands, {{"equation", text + "->" + present}});
    if (!absent.empty()) g = c.emit("Unsqueeze", {g, c.ints(absent)});
    c.set(i, c.sum_to(call("Expand", g, c.shape_of(c.in(i))), c.in(i)));
  }
}

// det(X) * (1 / X)^T
void det(GradientContext& c) {
  const Expr x = c.in(0);
  const Expr inverse = swapped(c, c.emit_ms("Inverse", {x}), c.rank(x));
  const Expr factor = c.emit("Unsqueeze", {c.dy() * c.out(0), c.ints({-2, -1})});
  c.set(0, factor * inverse);
}

void inverse(GradientContext& c) {
  const Expr y = swapped(c, c.out(0), c.rank(c.in(0)));
  c.set(0, -call("MatMul", call("MatMul", y, c.dy()), y));
}

}  // namespace

void register_gradients_matrix(GradientTable& t) {
  t.add("MatMul", matmul);
  t.add("Gemm", gemm_gradient);
  t.add("Einsum", einsum);
  t.add("Det", det);
  t.add("com.microsoft.Inverse", inverse);
}

}  // namespace sdx::ops
