// Einsum: ai.onnx 12, 28. Two tensors at a time are contracted as a batched matrix product; what no other term needs is summed
// before, so that intermediate results stay small.

#include <algorithm>
#include <map>
#include <vector>

#include "ops/math/convert.h"
#include "ops/math/elementwise.h"
#include "ops/matrix/einsum_equation.h"
#include "ops/matrix/signatures.h"
#include "ops/op.h"
#include "ops/reduce/reduction.h"

namespace sdx::ops {
namespace {

// --- inference ---------------------------------------------------------------------------------------------------------

// Extent 1 is broadcast.
void note_extent(std::map<Label, Dim>& extents, Label label, const Dim& d) {
  const auto [it, fresh] = extents.try_emplace(label, d);
  Dim& known = it->second;
  if (fresh || known == d || (d.is_const() && d.value() == 1)) return;
  if (known.is_const() && d.is_const() && known.value() != 1) {
    fail(ErrorCode::invalid_model, "axis '{}' has extents {} and {}", label_text(label), known.value(), d.value());
  }
  if (d.is_const() || (known.is_const() && known.value() == 1)) {
    known = d;
  } else if (!known.is_const()) {
    known = Dim::unknown();
  }
}

EinsumEquation checked_equation(const Node& node) {
  EinsumEquation e = parse_einsum(parse<EinsumAttrs>(node).equation);
  if (e.inputs.size() != node.inputs.size()) {
    fail(ErrorCode::invalid_model, "the equation has {} terms for {} inputs", e.inputs.size(), node.inputs.size());
  }
  return e;
}

void infer_einsum(InferContext& c) {
  const EinsumEquation e = checked_equation(c.node());
  DataType elem = DataType::undefined;
  std::map<Label, Dim> extents;
  std::size_t width = 0;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    if (elem == DataType::undefined) elem = c.dtype(i);
    const SymShape* s = c.shape(i);
    if (s == nullptr) return c.output(0, elem);
    const std::vector<Label> labels = expand_term(e.inputs[i], s->size());
    width = std::max(width, ellipsis_width(e.inputs[i], s->size()));
    for (std::size_t k = 0; k < labels.size(); ++k) note_extent(extents, labels[k], (*s)[k]);
  }
  SymShape out;
  for (const Label l : expand_output(e.output, width)) out.push_back(extents.at(l));
  c.output(0, elem, std::move(out));
}

// --- execution ---------------------------------------------------------------------------------------------------------

// Each label once, with its extent and its stride in `data`.
struct Operand {
  struct Axis {
    Label label;
    std::int64_t extent, stride;
  };
  Tensor data;
  std::vector<Axis> axes;

  const Axis* find(Label label) const {
    for (const Axis& a : axes) {
      if (a.label == label) return &a;
    }
    return nullptr;
  }
};

using Labels = std::vector<Label>;

// float32 carries all smaller floats, uint64 all integers (wrapping); sums are formed in double or uint64.
template <class W>
struct Plus {
  using State = std::conditional_t<std::is_integral_v<W>, std::uint64_t, double>;
  State init() const { return 0; }
  void add(State& s, W x) const { s += static_cast<State>(x); }
  W finish(const State& s, std::int64_t) const { return static_cast<W>(s); }
};

template <class W>
class Contraction {
 public:
  Contraction(OpContext& c, const EinsumEquation& equation);
  Tensor run();

 private:
  Operand operand(const Tensor& t, const Labels& labels) const;
  bool needed(Label l) const { return uses_.at(l) != 0; }
  void count(const Operand& o, int by) {
    for (const auto& a : o.axes) uses_[a.label] += by;
  }
  // Contiguous over `kept` in that order, everything else summed.
  Operand arrange(const Operand& o, const Labels& kept) const;
  Operand sum_unneeded(const Operand& o) const;
  Operand multiply(const Operand& a, const Operand& b) const;
  double result_size(const Operand& a, const Operand& b) const;
  std::pair<std::size_t, std::size_t> cheapest() const;
  void contract(const W* a, const W* b, W* out, std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n) const;

  OpContext& c_;
  std::map<Label, std::int64_t> extents_;
  std::map<Label, int> uses_;  // operands left that have the label, and the output
  std::vector<Operand> operands_;
  Labels output_;
};

template <class W>
Contraction<W>::Contraction(OpContext& c, const EinsumEquation& equation) : c_(c) {
  std::vector<Labels> terms;
  std::size_t width = 0;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    const Shape& shape = c.input(i).shape();
    terms.push_back(expand_term(equation.inputs[i], shape.size()));
    width = std::max(width, ellipsis_width(equation.inputs[i], shape.size()));
    for (std::size_t k = 0; k < shape.size(); ++k) {
      std::int64_t& extent = extents_.try_emplace(terms[i][k], 1).first->second;
      if (extent == 1) {
        extent = shape[k];
      } else if (shape[k] != 1 && shape[k] != extent) {
        c.fail("axis '{}' has extents {} and {}", label_text(terms[i][k]), extent, shape[k]);
      }
    }
  }
  output_ = expand_output(equation.output, width);
  for (const auto& [label, extent] : extents_) uses_[label] = 0;
  for (const Label l : output_) ++uses_[l];
  for (std::size_t i = 0; i < terms.size(); ++i) {
    operands_.push_back(operand(converted(c.input(i), DataTypeOf<W>::value), terms[i]));
    count(operands_.back(), 1);
  }
}

// A repeated label walks the diagonal: strides add up. Broadcast axes are left out.
template <class W>
Operand Contraction<W>::operand(const Tensor& t, const Labels& labels) const {
  Operand o{t, {}};
  std::int64_t stride = 1;
  for (std::size_t k = labels.size(); k-- > 0;) {
    const std::int64_t extent = t.shape()[k];
    const auto it = std::find_if(o.axes.begin(), o.axes.end(), [&](const auto& a) { return a.label == labels[k]; });
    if (extent == 1 && extents_.at(labels[k]) != 1) continue;
    if (it != o.axes.end()) {
      it->stride += stride;
    } else {
      o.axes.push_back({labels[k], extent, stride});
    }
    stride *= std::max<std::int64_t>(extent, 1);
  }
  std::reverse(o.axes.begin(), o.axes.end());
  return o;
}

template <class W>
Operand Contraction<W>::arrange(const Operand& o, const Labels& kept) const {
  ReductionPlan plan;
  Operand out;
  Shape shape;
  for (const Label l : kept) {
    const auto* a = o.find(l);
    plan.kept.push_back({a->extent, a->stride});
    shape.push_back(a->extent);
  }
  plan.outputs = element_count(shape);
  bool in_place = kept.size() == o.axes.size();
  std::int64_t stride = 1;
  for (std::size_t i = kept.size(); i-- > 0;) {
    in_place = in_place && (plan.kept[i].stride == stride || plan.kept[i].extent == 1);
    out.axes.push_back({kept[i], shape[i], stride});
    stride *= std::max<std::int64_t>(shape[i], 1);
  }
  std::reverse(out.axes.begin(), out.axes.end());
  if (in_place) {
    out.data = o.data.reshaped(shape);
    return out;
  }
  for (const auto& a : o.axes) {
    if (std::find(kept.begin(), kept.end(), a.label) != kept.end()) continue;
    plan.reduced.push_back({a.extent, a.stride});
    plan.length *= a.extent;
  }
  plan.inner_kept = plan.reduced.empty() && !plan.kept.empty();
  out.data = Tensor(DataTypeOf<W>::value, shape);
  reduce(plan, static_cast<const W*>(o.data.data()), static_cast<W*>(out.data.mutable_data()), Plus<W>{}, c_.stop());
  return out;
}

template <class W>
Operand Contraction<W>::sum_unneeded(const Operand& o) const {
  Labels kept;
  for (const auto& a : o.axes) {
    if (needed(a.label)) kept.push_back(a.label);
  }
  return kept.size() == o.axes.size() ? o : arrange(o, kept);
}

// out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n]
template <class W>
void Contraction<W>::contract(const W* a, const W* b, W* out, std::int64_t batch, std::int64_t m, std::int64_t k,
                              std::int64_t n) const {
  using State = typename Plus<W>::State;
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, k * n));
  parallel_for(batch * m, grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<State> row(static_cast<std::size_t>(n));
    State* sum = row.data();
    for (std::int64_t r = begin; r < end; ++r) {
      c_.stop().check();
      std::fill(row.begin(), row.end(), State(0));
      const W* left = a + r * k;
      const W* right = b + r / m * k * n;
      if (n == 1) {
        for (std::int64_t i = 0; i < k; ++i) sum[0] += static_cast<State>(left[i]) * static_cast<State>(right[i]);
      } else {
        for (std::int64_t i = 0; i < k; ++i) {
          const State factor = static_cast<State>(left[i]);
          for (std::int64_t j = 0; j < n; ++j) sum[j] += factor * static_cast<State>(right[i * n + j]);
        }
      }
      for (std::int64_t j = 0; j < n; ++j) out[r * n + j] = static_cast<W>(sum[j]);
    }
  });
}

// The operands are counted out already: a label is needed if the output or a third operand has it.
template <class W>
Operand Contraction<W>::multiply(const Operand& a, const Operand& b) const {
  Labels batch, m, k, n;
  for (const auto& axis : a.axes) {
    const bool shared = b.find(axis.label) != nullptr;
    (shared ? (needed(axis.label) ? batch : k) : m).push_back(axis.label);
  }
  for (const auto& axis : b.axes) {
    if (a.find(axis.label) == nullptr) n.push_back(axis.label);
  }
  const auto joined = [](Labels x, const Labels& y, const Labels& z) {
    x.insert(x.end(), y.begin(), y.end());
    x.insert(x.end(), z.begin(), z.end());
    return x;
  };
  const auto extent = [this](const Labels& labels) {
    Shape s;
    for (const Label l : labels) s.push_back(extents_.at(l));
    return element_count(s);
  };
  const Operand left = arrange(a, joined(batch, m, k));
  const Operand right = arrange(b, joined(batch, k, n));
  Operand out;
  Shape shape;
  std::int64_t stride = 1;
  for (const Label l : joined(batch, m, n)) {
    shape.push_back(extents_.at(l));
    out.axes.push_back({l, extents_.at(l), 0});
  }
  for (std::size_t i = shape.size(); i-- > 0;) {
    out.axes[i].stride = stride;
    stride *= std::max<std::int64_t>(shape[i], 1);
  }
  out.data = Tensor(DataTypeOf<W>::value, shape);
  if (out.data.size() != 0) {
    contract(static_cast<const W*>(left.data.data()), static_cast<const W*>(right.data.data()),
             static_cast<W*>(out.data.mutable_data()), extent(batch), extent(m), extent(k), extent(n));
  }
  return out;
}

template <class W>
double Contraction<W>::result_size(const Operand& a, const Operand& b) const {
  double size = 1;
  for (const auto& axis : a.axes) {
    const int here = b.find(axis.label) != nullptr ? 2 : 1;
    if (uses_.at(axis.label) > here) size *= static_cast<double>(axis.extent);
  }
  for (const auto& axis : b.axes) {
    if (a.find(axis.label) == nullptr && uses_.at(axis.label) > 1) size *= static_cast<double>(axis.extent);
  }
  return size;
}

// Trying all pairs is quadratic, so long equations go from left to right.
template <class W>
std::pair<std::size_t, std::size_t> Contraction<W>::cheapest() const {
  std::pair<std::size_t, std::size_t> best{0, 1};
  if (operands_.size() > 16) return {operands_.size() - 2, operands_.size() - 1};
  double size = result_size(operands_[0], operands_[1]);
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    for (std::size_t j = i + 1; j < operands_.size(); ++j) {
      const double s = result_size(operands_[i], operands_[j]);
      if (s < size) {
        size = s;
        best = {i, j};
      }
    }
  }
  return best;
}

template <class W>
Tensor Contraction<W>::run() {
  const auto settle = [this](Operand o) {
    count(o, -1);
    o = sum_unneeded(o);
    count(o, 1);
    return o;
  };
  for (Operand& o : operands_) o = settle(std::move(o));
  while (operands_.size() > 1) {
    const auto [i, j] = cheapest();
    count(operands_[i], -1);
    count(operands_[j], -1);
    Operand product = multiply(operands_[i], operands_[j]);
    operands_.erase(operands_.begin() + static_cast<std::ptrdiff_t>(j));
    count(product, 1);
    operands_[i] = settle(std::move(product));
  }
  return arrange(operands_[0], output_).data;
}

void run_einsum(OpContext& c) {
  const EinsumEquation equation = checked_equation(c.node());
  const DataType elem = c.input(0).dtype();
  for (std::size_t i = 1; i < c.num_inputs(); ++i) {
    if (c.input(i).dtype() != elem) c.fail("inputs must have one type, received {} and {}", name(elem), c.input(i).type_string());
  }
  Tensor result;
  if (is_integer(elem)) {
    result = Contraction<std::uint64_t>(c, equation).run();
  } else if (elem == DataType::float64) {
    result = Contraction<double>(c, equation).run();
  } else {
    result = Contraction<float>(c, equation).run();
  }
  convert(result, c.output(0, elem, result.shape()));
}

}  // namespace

void register_einsum(OpTable& t) {
  t.add(OpDef("Einsum", 12)
            .in("Inputs", "T", types::numeric, Arity::variadic)
            .out("Output", "T", types::numeric)
            .attrs<EinsumAttrs>()
            .infer_with(infer_einsum)
            .run_with(run_einsum));
}

}  // namespace sdx::ops
