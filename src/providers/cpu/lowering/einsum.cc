// Einsum in float32 with one operand (permuted, summed) or two (products of matrices). Operands are read, and the result is
// written, in place wherever their layout forms rows and columns of matrices: "bthd,bshd->bhts" copies nothing.

#include <algorithm>
#include <optional>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/movement/transpose.h"
#include "kernels/cpu/rows/reduce.h"
#include "ops/matrix/einsum_equation.h"
#include "ops/matrix/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/late_packed.h"

namespace sdx::cpu {
namespace {

using ops::Label;
using Labels = std::vector<Label>;
constexpr std::size_t kMaxRank = 8;
constexpr std::int64_t kMaxBatch = std::int64_t{1} << 20;  // products of one call: three offsets each are kept

struct Axis {
  Label label;
  std::int64_t extent, stride;
};
using Axes = std::vector<Axis>;

const Axis* find(const Axes& axes, Label l) {
  const auto it = std::find_if(axes.begin(), axes.end(), [l](const Axis& a) { return a.label == l; });
  return it == axes.end() ? nullptr : &*it;
}
bool has(const Labels& labels, Label l) { return std::find(labels.begin(), labels.end(), l) != labels.end(); }
Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
std::int64_t size_of(const Axes& axes) {
  std::int64_t n = 1;
  for (const Axis& a : axes) n *= a.extent;
  return n;
}

// Returns the axes of a dense tensor in this order. Leaves out axes of extent 1: they are broadcast, or change nothing.
Axes dense_axes(const Labels& labels, const Shape& shape) {
  Axes axes;
  std::int64_t stride = 1;
  for (std::size_t i = labels.size(); i-- > 0;) {
    if (shape[i] != 1) axes.push_back({labels[i], shape[i], stride});
    stride *= std::max<std::int64_t>(shape[i], 1);
  }
  std::reverse(axes.begin(), axes.end());
  return axes;
}

// A copy in the workspace: of an operand in another order, or of a result before it is reordered.
struct Copy {
  std::size_t at = 0;  // floats from the workspace's begin
  std::vector<std::int64_t> dims;
  std::vector<int> perm;
};

Copy permuted(const Axes& from, const Labels& order) {
  Copy c;
  for (const Axis& a : from) c.dims.push_back(a.extent);
  for (const Label l : order) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i].label == l) c.perm.push_back(static_cast<int>(i));
    }
  }
  return c;
}

void move(const Copy& copy, const float* from, float* to) {
  if (copy.dims.empty()) {
    *to = *from;
  } else if (std::find(copy.dims.begin(), copy.dims.end(), 0) == copy.dims.end()) {
    transpose(from, to, sizeof(float), static_cast<int>(copy.dims.size()), copy.dims.data(), copy.perm.data());
  }
}

// Returns the axes of a dense copy in the order of these labels.
Axes reordered(const Axes& from, const Labels& order) {
  Labels labels;
  Shape shape;
  for (const Label l : order) {
    if (const Axis* a = find(from, l)) {
      labels.push_back(l);
      shape.push_back(a->extent);
    }
  }
  return dense_axes(labels, shape);
}

// Several axes that act as one: their joint extent, and the stride of the innermost. There is none if they do not follow each
// other in memory.
struct Run {
  std::int64_t extent = 1, stride = 1;
};
std::optional<Run> run_of(const Axes& axes, const Labels& labels) {
  Run r;
  for (std::size_t i = labels.size(); i-- > 0;) {
    const Axis& a = *find(axes, labels[i]);
    if (i + 1 == labels.size()) {
      r = {a.extent, a.stride};
    } else if (a.stride == r.stride * r.extent) {
      r.extent *= a.extent;
    } else {
      return std::nullopt;
    }
  }
  return r;
}

// Returns the longest sequence of `labels` that ends with labels[end - 1] and is one axis in both operands.
Labels chain_to(const Labels& labels, std::size_t end, const Axes& a, const Axes& b) {
  std::size_t begin = end;
  while (begin > 0) {
    const Labels longer(labels.begin() + static_cast<std::ptrdiff_t>(begin) - 1,
                        labels.begin() + static_cast<std::ptrdiff_t>(end));
    if (!run_of(a, longer) || !run_of(b, longer)) break;
    --begin;
  }
  return {labels.begin() + static_cast<std::ptrdiff_t>(begin), labels.begin() + static_cast<std::ptrdiff_t>(end)};
}

struct ProductState : KernelState {
  enum class Form : std::uint8_t { reference, nothing, elements, matrices } form = Form::reference;
  int left = 0;  // the operand whose axes are the matrices' rows
  GemmArgs args;
  std::vector<std::int64_t> a_offsets, b_offsets, c_offsets;
  std::optional<Copy> copy[2], result;
  // For Form::elements, where nothing is summed.
  int rank = 0;
  std::int64_t dims[kMaxRank], strides[2][kMaxRank];
};

// One contraction of two operands as products of matrices.
class ProductPlan {
 public:
  ProductPlan(Axes a, Axes b, Axes out, bool packed, ProductState& s, std::size_t& floats)
      : packed_(packed), in_{std::move(a), std::move(b)}, out_(std::move(out)), s_(s), floats_(floats) {}

  // Returns false if the contraction is not one product: it sums over one operand alone, or extents do not fit.
  bool make() {
    if (!classify()) return false;
    if (size_of(out_) == 0) {
      s_.form = ProductState::Form::nothing;
      return true;
    }
    if (sum_.empty() && !packed_) return elementwise();
    s_.form = ProductState::Form::matrices;
    choose_sides();
    place_operand(1, free_[1]);
    place_operand(0, free_[0]);
    return offsets(describe());
  }

 private:
  bool classify() {
    for (const Axis& x : in_[0]) {
      const Axis* y = find(in_[1], x.label);
      if (y != nullptr && y->extent != x.extent) return false;
      if (find(out_, x.label) == nullptr) {
        if (y == nullptr) return false;
        sum_.push_back(x.label);
      }
    }
    for (const Axis& y : in_[1]) {
      if (find(in_[0], y.label) == nullptr && find(out_, y.label) == nullptr) return false;
    }
    for (const Axis& o : out_) {
      const bool in_a = find(in_[0], o.label) != nullptr, in_b = find(in_[1], o.label) != nullptr;
      if (!in_a && !in_b) return false;
      (in_a && in_b ? batch_ : free_[in_a ? 0 : 1]).push_back(o.label);
    }
    return true;
  }

  bool elementwise() {
    if (out_.size() > kMaxRank) return false;
    s_.form = ProductState::Form::elements;
    s_.rank = static_cast<int>(std::max<std::size_t>(1, out_.size()));
    if (out_.empty()) s_.dims[0] = 1, s_.strides[0][0] = s_.strides[1][0] = 0;
    for (std::size_t i = 0; i < out_.size(); ++i) {
      s_.dims[i] = out_[i].extent;
      for (int side = 0; side < 2; ++side) {
        const Axis* a = find(in_[side], out_[i].label);
        s_.strides[side][i] = a == nullptr ? 0 : a->stride;
      }
    }
    return true;
  }

  // Chooses the right operand: the one that has the result's innermost axis, which becomes the matrices' columns.
  void choose_sides() {
    if (packed_) return;
    const Label last = out_.empty() ? 0 : out_.back().label;
    const bool dots = free_[0].empty() && free_[1].empty();
    if (!out_.empty() && has(batch_, last) && !dots) {
      const Labels order = joined(joined(batch_, free_[0]), free_[1]);
      const Axes dense = reordered(out_, order);
      Labels back;
      for (const Axis& o : out_) back.push_back(o.label);
      s_.result = permuted(dense, back);
      s_.result->at = take(size_of(out_));
      out_ = dense;
    }
    if (out_.empty() || !has(free_[0], out_.back().label)) return;
    std::swap(in_[0], in_[1]);
    std::swap(free_[0], free_[1]);
    s_.left = 1;
  }

  std::size_t take(std::int64_t n) {
    const std::size_t at = floats_;
    floats_ += (static_cast<std::size_t>(n) + 15) / 16 * 16;
    return at;
  }

  // Finds which of an operand's own axes are rows (columns) of the matrices; the others are batch axes. Copies the operand if its
  // layout allows none.
  void place_operand(int side, Labels own) {
    Axes& x = in_[side];
    if (side == 1 && packed_) {
      line_[1] = own;
      return;
    }
    const auto fits = [&](const Labels& line) {
      const auto k = run_of(x, sum_), l = run_of(x, line);
      return k && l && (k->stride == 1 || l->stride == 1 || size(sum_) == 1 || size(line) == 1);
    };
    const auto pick = [&] {
      Labels best;
      for (std::size_t end = own.size(); end > 0; --end) {
        const Labels line = chain_to(own, end, x, out_);
        if (fits(line) && (best.empty() || size(line) > size(best))) best = line;
        // The result's rows must be dense.
        if (side == 1) break;
      }
      return best;
    };
    Labels line = pick();
    if (line.empty() && (!own.empty() || !fits({}))) {
      const Labels order = joined(joined(batch_, own), sum_);
      s_.copy[side == 0 ? s_.left : 1 - s_.left] = permuted(x, order);
      s_.copy[side == 0 ? s_.left : 1 - s_.left]->at = take(size_of(x));
      x = reordered(x, order);
      line = pick();
    }
    line_[side] = line;
  }

  std::int64_t size(const Labels& labels) const {
    std::int64_t n = 1;
    for (const Label l : labels) {
      const Axis* a = find(in_[0], l);
      n *= (a != nullptr ? a : find(in_[1], l))->extent;
    }
    return n;
  }

  // Turns the remaining axes into batch axes: one product for each of their positions.
  Labels describe() {
    GemmArgs& g = s_.args;
    g.m = size(line_[0]);
    g.n = size(line_[1]);
    g.k = size(sum_);
    const auto stride = [](const Axes& x, const Labels& l) { return l.empty() ? 1 : run_of(x, l)->stride; };
    const std::int64_t a_k = stride(in_[0], sum_), a_m = stride(in_[0], line_[0]);
    g.trans_a = g.k > 1 && a_k != 1;
    g.lda = g.trans_a ? a_k : (g.m == 1 ? g.k : a_m);
    if (!packed_) {
      const std::int64_t b_k = stride(in_[1], sum_), b_n = stride(in_[1], line_[1]);
      g.trans_b = g.n > 1 && b_n != 1;
      g.ldb = g.trans_b ? b_n : (g.k == 1 ? g.n : b_k);
    }
    g.ldc = g.m == 1 ? g.n : stride(out_, line_[0]);
    Labels left;
    for (const Axis& o : out_) {
      if (!has(line_[0], o.label) && !has(line_[1], o.label)) left.push_back(o.label);
    }
    return left;
  }

  bool offsets(const Labels& labels) {
    const std::int64_t count = size(labels);
    if (count > kMaxBatch) return false;
    for (std::int64_t n = 0; n < count; ++n) {
      std::int64_t rest = n, at[3] = {0, 0, 0};
      for (std::size_t i = labels.size(); i-- > 0;) {
        const std::int64_t extent = find(out_, labels[i])->extent, index = rest % extent;
        rest /= extent;
        const Axes* lists[3] = {&in_[0], &in_[1], &out_};
        for (int j = 0; j < 3; ++j) {
          if (const Axis* a = find(*lists[j], labels[i])) at[j] += index * a->stride;
        }
      }
      s_.a_offsets.push_back(at[0]);
      s_.b_offsets.push_back(packed_ ? 0 : at[1]);
      s_.c_offsets.push_back(at[2]);
    }
    return true;
  }

  bool packed_;
  Axes in_[2], out_;
  ProductState& s_;
  std::size_t& floats_;
  Labels batch_, sum_, free_[2], line_[2];
};

class EinsumProduct : public Kernel {
 public:
  EinsumProduct(const Node& node, ops::EinsumEquation equation, LateMatrix packed, Shape weights)
      : equation_(std::move(equation)),
        reference_(make_reference(node)),
        packed_(std::move(packed)),
        weights_(std::move(weights)) {}
  std::string_view name() const override { return packed_ ? "einsum-packed-f32" : "einsum-f32"; }
  bool uses_input(std::size_t i) const override { return i != 1 || !packed_; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<ProductState>();
    const Shape a = c.input_shape(0), b = packed_ ? weights_ : c.input_shape(1), out = c.output_shape(0);
    const std::size_t width =
        std::max(ops::ellipsis_width(equation_.inputs[0], a.size()), ops::ellipsis_width(equation_.inputs[1], b.size()));
    std::size_t floats = 0;
    ProductPlan plan(dense_axes(ops::expand_term(equation_.inputs[0], a.size()), a),
                     dense_axes(ops::expand_term(equation_.inputs[1], b.size()), b),
                     dense_axes(ops::expand_output(equation_.output, width), out), static_cast<bool>(packed_), *state, floats);
    if (!plan.make()) {
      SDX_ASSERT(!packed_);
      return std::make_unique<ProductState>();
    }
    c.workspace_bytes = floats * sizeof(float);
    return state;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const ProductState*>(c.state);
    if (s.form == ProductState::Form::reference) return reference_->run(c);
    if (s.form == ProductState::Form::nothing) return;
    auto* scratch = static_cast<float*>(c.workspace);
    auto* y = c.out<float>(0);
    if (s.form == ProductState::Form::elements) {
      return binary_broadcast_f32(Binary::mul, c.in<float>(0), c.in<float>(1), y, s.rank, s.dims, s.strides[0], s.strides[1]);
    }
    const auto operand = [&](int i) {
      const auto* x = c.in<float>(static_cast<std::size_t>(i));
      if (!s.copy[i]) return x;
      move(*s.copy[i], x, scratch + s.copy[i]->at);
      return static_cast<const float*>(scratch + s.copy[i]->at);
    };
    GemmArgs g = s.args;
    g.a = operand(s.left);
    g.c = s.result ? scratch + s.result->at : y;
    const auto product = [&] {
      gemm_batch_f32(g, static_cast<std::int64_t>(s.c_offsets.size()), s.a_offsets.data(), s.b_offsets.data(),
                     s.c_offsets.data());
    };
    if (packed_) {
      packed_.multiply(g, product);
    } else {
      g.b = operand(1 - s.left);
      product();
    }
    if (s.result) move(*s.result, g.c, y);
  }

 private:
  ops::EinsumEquation equation_;
  std::unique_ptr<Kernel> reference_;  // of what is no product once the extents are known
  LateMatrix packed_;
  Shape weights_;
};

struct SumState : KernelState {
  Copy copy;
  std::int64_t kept = 1, summed = 1;
  bool moves = false;
};

// Permutes one operand, and sums over the axes that the result lacks.
class EinsumSum : public Kernel {
 public:
  explicit EinsumSum(ops::EinsumEquation equation) : equation_(std::move(equation)) {}
  std::string_view name() const override { return "einsum-f32"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<SumState>();
    const Shape shape = c.input_shape(0);
    const Labels term = ops::expand_term(equation_.inputs[0], shape.size());
    const Axes x = dense_axes(term, shape);
    Labels order = ops::expand_output(equation_.output, ops::ellipsis_width(equation_.inputs[0], shape.size()));
    Labels summed;
    for (const Axis& a : x) {
      if (has(order, a.label)) {
        state->kept *= a.extent;
      } else {
        state->summed *= a.extent;
        summed.push_back(a.label);
      }
    }
    state->copy = permuted(x, joined(std::move(order), summed));
    state->moves = !std::is_sorted(state->copy.perm.begin(), state->copy.perm.end());
    if (state->moves && !summed.empty()) c.workspace_bytes = static_cast<std::size_t>(size_of(x)) * sizeof(float);
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const SumState*>(c.state);
    const auto* x = c.in<float>(0);
    auto* y = c.out<float>(0);
    if (s.kept == 0) return;
    if (s.summed == 0) {
      std::fill_n(y, s.kept, 0.0F);
      return;
    }
    if (s.moves || s.summed == 1) {
      auto* to = s.summed == 1 ? y : static_cast<float*>(c.workspace);
      move(s.copy, x, to);
      x = to;
    }
    if (s.summed != 1) reduce_f32(Reduce::sum, x, y, s.kept, s.summed, 1);
  }

 private:
  ops::EinsumEquation equation_;
};

bool repeats(const Labels& labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (std::find(labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, labels.end(), labels[i]) != labels.end()) return true;
  }
  return false;
}

// A constant right operand, packed as [k, n] if the equation uses it as just that matrix.
struct Weights {
  bool trans;
  std::int64_t k, n;
};
std::optional<Weights> weights_of(LowerContext& c, const Labels& a, const Labels& b, const Labels& out) {
  const Tensor* w = c.constant(1);
  if (w == nullptr || w->size() == 0) return std::nullopt;
  const SymShape& x = *c.shape(0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto at = std::find(b.begin(), b.end(), a[i]);
    if (at == b.end()) {
      if (!has(out, a[i])) return std::nullopt;
      continue;
    }
    const std::int64_t extent = w->shape()[static_cast<std::size_t>(at - b.begin())];
    if (has(out, a[i]) || !x[i].is_const() || x[i].value() != extent) return std::nullopt;
  }
  const Axes axes = dense_axes(b, w->shape());
  Labels sum, columns;
  for (const Label l : a) {
    if (find(axes, l) != nullptr) sum.push_back(l);
  }
  for (const Label l : b) {
    if (!has(a, l) && !has(out, l)) return std::nullopt;
  }
  bool tail = true;  // of the result: its innermost axes are the columns, in order
  for (std::size_t i = out.size(); i-- > 0;) {
    const bool mine = has(b, out[i]);
    if (mine && !tail) return std::nullopt;
    tail = tail && mine;
    if (find(axes, out[i]) != nullptr) columns.insert(columns.begin(), out[i]);
  }
  const auto k = run_of(axes, sum), n = run_of(axes, columns);
  if (!k || !n || (k->stride != 1 && n->stride != 1)) return std::nullopt;
  const bool trans = n->extent > 1 && n->stride != 1;
  return Weights{trans, k->extent, n->extent};
}

std::unique_ptr<Kernel> make_einsum(LowerContext& c) {
  const std::size_t count = c.node().inputs.size();
  if (count > 2) return c.refuse("more than two operands");
  ops::EinsumEquation equation = ops::parse_einsum(ops::parse<ops::EinsumAttrs>(c).equation);
  // Only a branch that never runs can have such an equation; a run reports it.
  if (count == 0 || equation.inputs.size() != count) return c.refuse("the equation has another number of operands");
  std::size_t width = 0;
  std::vector<Labels> terms;
  for (std::size_t i = 0; i < count; ++i) {
    if (c.dtype(i) != DataType::float32) return c.refuse("not float32");
    if (c.shape(i) == nullptr || c.shape(i)->size() > kMaxRank) return c.refuse("rank unknown or above 8");
    terms.push_back(ops::expand_term(equation.inputs[i], c.shape(i)->size()));
    if (repeats(terms[i])) return c.refuse("a diagonal: an operand names an axis twice");
    width = std::max(width, ops::ellipsis_width(equation.inputs[i], c.shape(i)->size()));
  }
  if (count == 1) return std::make_unique<EinsumSum>(std::move(equation));
  const Labels out = ops::expand_output(equation.output, width);
  for (int i = 0; i < 2; ++i) {
    for (const Label l : terms[static_cast<std::size_t>(i)]) {
      if (!has(terms[static_cast<std::size_t>(1 - i)], l) && !has(out, l)) return c.refuse("a sum over one operand alone");
    }
  }
  LateMatrix packed;
  Shape weights;
  if (const auto w = weights_of(c, terms[0], terms[1], out)) {
    const Tensor* t = c.constant(1);
    packed = LateMatrix(c, *t, w->k, w->n, w->trans);
    weights = t->shape();
  }
  return std::make_unique<EinsumProduct>(c.node(), std::move(equation), std::move(packed), std::move(weights));
}

}  // namespace

void register_kernels_einsum(KernelTable& t) { t.add("", "Einsum", "einsum-f32", 10, make_einsum); }

}  // namespace sdx::cpu
