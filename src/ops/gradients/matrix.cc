// Gradients of matrix products.

#include <algorithm>
#include <numeric>
#include <string>

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

// Vectors are matrices of one row or column, whose extent of 1 the result lacks.
void matmul(GradientContext& c) {
  std::int64_t ranks[2] = {c.rank(c.in(0)), c.rank(c.in(1))};
  if (ranks[0] == 0 || ranks[1] == 0) c.refuse("a scalar");
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
  const bool stacked = ranks[0] != 2 || ranks[1] != 2;
  const auto finish = [&](std::size_t i, Expr gradient, Expr matrix) {
    c.set(i, c.reshape_like(stacked ? c.sum_to(gradient, matrix) : gradient, c.in(i)));
  };
  if (c.wants(0)) finish(0, call("MatMul", g, swapped(c, b, ranks[1])), a);
  if (c.wants(1)) finish(1, call("MatMul", swapped(c, a, ranks[0]), g), b);
}

// Y = alpha * A' * B' + beta * C, where A' is A or its transpose.
void gemm(GradientContext& c) {
  const auto attr = parse<GemmAttrs>(c);
  if (c.version() < 7 && attr.broadcast) c.refuse("broadcasting as before opset 7");
  const std::int64_t ta = attr.trans_a ? 1 : 0;
  const std::int64_t tb = attr.trans_b ? 1 : 0;
  const float alpha = attr.alpha;
  const auto product = [&](Expr a, Expr b, std::int64_t trans_a, std::int64_t trans_b) {
    return c.emit("Gemm", {a, b}, {{"alpha", alpha}, {"transA", trans_a}, {"transB", trans_b}});
  };
  const Expr g = c.dy();
  if (c.wants(0)) c.set(0, ta != 0 ? product(c.in(1), g, tb, 1) : product(g, c.in(1), 0, 1 - tb));
  if (c.wants(1)) c.set(1, tb != 0 ? product(g, c.in(0), 1, ta) : product(c.in(0), g, 1 - ta, 0));
  if (c.wants(2)) c.set_broadcast(2, g * static_cast<double>(attr.beta));
}

struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

Equation equation(const GradientContext& c) {
  std::string text(parse<EinsumAttrs>(c).equation);
  std::erase(text, ' ');
  if (text.find('.') != std::string::npos) c.refuse("an equation with '...'");
  Equation e;
  const std::size_t arrow = text.find("->");
  std::string terms = text.substr(0, arrow);
  for (std::size_t comma = 0; (comma = terms.find(',')) != std::string::npos; terms.erase(0, comma + 1)) {
    e.terms.push_back(terms.substr(0, comma));
  }
  e.terms.push_back(terms);
  if (arrow != std::string::npos) {
    e.result = text.substr(arrow + 2);
  } else {  // letters that occur once, in alphabetical order
    std::string all;
    for (const std::string& t : e.terms) all += t;
    std::sort(all.begin(), all.end());
    for (const char l : all) {
      if (std::count(all.begin(), all.end(), l) == 1) e.result += l;
    }
  }
  for (const std::string& t : e.terms) {
    for (const char l : t) {
      if (std::count(t.begin(), t.end(), l) != 1) c.refuse("an equation that takes a diagonal");
    }
  }
  return e;
}

// The product of the gradient and the other operands; letters that only this operand has were summed over, so every element
// along them gets the same.
void einsum(GradientContext& c) {
  const Equation e = equation(c);
  for (std::size_t i = 0; i < e.terms.size(); ++i) {
    if (!c.wants(i)) continue;
    std::string text = e.result;
    std::vector<Expr> operands{c.dy()};
    for (std::size_t j = 0; j < e.terms.size(); ++j) {
      if (j == i) continue;
      text += "," + e.terms[j];
      operands.push_back(c.in(j));
    }
    std::string present;
    std::vector<std::int64_t> absent;
    for (std::size_t k = 0; k < e.terms[i].size(); ++k) {
      if (text.find(e.terms[i][k]) != std::string::npos) {
        present += e.terms[i][k];
      } else {
        absent.push_back(static_cast<std::int64_t>(k));
      }
    }
    Expr g = c.emit("Einsum", operands, {{"equation", text + "->" + present}});
    if (!absent.empty()) g = c.emit("Unsqueeze", {g, c.ints(absent)});
    c.set(i, call("Expand", g, c.shape_of(c.in(i))));
  }
}

}  // namespace

void register_gradients_matrix(GradientTable& t) {
  t.add("MatMul", matmul);
  t.add("Gemm", gemm);
  t.add("Einsum", einsum);
}

}  // namespace sdx::ops
