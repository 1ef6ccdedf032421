// com.microsoft 1: BiasSoftmax, BifurcationDetector, ComplexMul, ComplexMulConj, ExpandDims, IsAllFinite, SampleOp, UnfoldTensor.

#include <algorithm>
#include <cmath>

#include "ops/context.h"
#include "ops/control/subgraphs.h"
#include "ops/math/broadcast.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"

namespace sdx::ops {
namespace {

void infer_same(InferContext& c) { c.output(0, c.type(0)); }

void run_sample(OpContext& c) {
  const Tensor& x = c.input(0);
  copy_all(x, c.output(0, x.dtype(), x.shape()));
}

// --- BiasSoftmax: softmax(data + bias) over the axes from `axis` on, taken together -----------------------------------------

void run_bias_softmax(OpContext& c) {
  const Tensor &x = c.input(0), &bias = c.input(1);
  if (x.rank() == 0) c.fail("data must have an axis, received {}", x.type_string());
  const auto axis = static_cast<std::size_t>(normalize_axis(c.attrs().get_int("axis", 1), x.rank()));
  if (broadcast_shapes(x.shape(), bias.shape()) != x.shape())
    c.fail("bias {} does not broadcast to data {}", bias.type_string(), x.type_string());
  const std::int64_t n = product(x.shape(), axis, x.rank());
  Tensor& y = c.output(0, x.dtype(), x.shape());
  dispatch_compute(x.dtype(), "BiasSoftmax", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fx(x), fb(bias);
    FloatOutput<C> fy(y);
    for_each_broadcast<2>({x.shape(), bias.shape()}, x.shape(),
                          [&](const auto& at, const auto& step, std::int64_t o, std::int64_t count) {
                            for (std::int64_t i = 0; i < count; ++i)
                              fy[o + i] = fx[at[0] + i * step[0]] + fb[at[1] + i * step[1]];
                          });
    for (std::int64_t i = 0; n > 0 && i < y.size(); i += n) {
      C* row = fy.data() + i;
      const C top = *std::max_element(row, row + n);
      C sum = 0;
      for (std::int64_t k = 0; k < n; ++k) sum += row[k] = std::exp(row[k] - top);
      for (std::int64_t k = 0; k < n; ++k) row[k] /= sum;
    }
    fy.store();
  });
}

// --- ComplexMul, ComplexMulConj: pairs on the last axis ---------------------------------------------------------------------

template <class S>
S without_pair(const S& s) {
  if (s.empty()) fail(ErrorCode::invalid_model, "complex numbers need a last axis of 2, received a scalar");
  return S(s.begin(), s.end() - 1);
}

void infer_complex(InferContext& c) {
  if (c.shape(0) == nullptr || c.shape(1) == nullptr) return c.output(0, c.dtype(0));
  SymShape out = broadcast_shapes(without_pair(*c.shape(0)), without_pair(*c.shape(1)));
  out.push_back(Dim(2));
  c.output(0, c.dtype(0), std::move(out));
}

void run_complex(OpContext& c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  const Shape sa = without_pair(a.shape()), sb = without_pair(b.shape()), numbers = broadcast_shapes(sa, sb);
  if (a.shape().back() != 2 || b.shape().back() != 2)
    c.fail("complex numbers need a last axis of 2, received {} and {}", a.type_string(), b.type_string());
  Shape shape = numbers;
  shape.push_back(2);
  Tensor& y = c.output(0, a.dtype(), shape);
  dispatch_compute(a.dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fa(a), fb(b);
    FloatOutput<C> fy(y);
    const C sign = c.node().op_type == "ComplexMulConj" ? C(-1) : C(1);
    for_each_broadcast<2>({sa, sb}, numbers, [&](const auto& at, const auto& step, std::int64_t o, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t p = 2 * (at[0] + i * step[0]), q = 2 * (at[1] + i * step[1]);
        const C im = sign * fb[q + 1];
        fy[2 * (o + i)] = fa[p] * fb[q] - fa[p + 1] * im;
        fy[2 * (o + i) + 1] = fa[p] * im + fa[p + 1] * fb[q];
      }
    });
    fy.store();
  });
}

// --- IsAllFinite -----------------------------------------------------------------------------------------------------------

void infer_is_all_finite(InferContext& c) { c.output(0, DataType::boolean, SymShape{}); }

void run_is_all_finite(OpContext& c) {
  const bool nan_only = c.attrs().get_int("isnan_only", 0) != 0, inf_only = c.attrs().get_int("isinf_only", 0) != 0;
  if (nan_only && inf_only) c.fail("isnan_only and isinf_only exclude each other");
  bool fine = true;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    dispatch_compute(c.input(i).dtype(), "IsAllFinite", [&](auto tag) {
      using C = typename decltype(tag)::type;
      const FloatInput<C> x(c.input(i));
      for (std::int64_t k = 0; k < c.input(i).size(); ++k) {
        fine = fine && !(std::isnan(x[k]) && !inf_only) && !(std::isinf(x[k]) && !nan_only);
      }
    });
  }
  c.output(0, DataType::boolean, {}).mutable_values<bool>()[0] = fine;
}

// --- ExpandDims, UnfoldTensor ----------------------------------------------------------------------------------------------

void infer_expand_dims(InferContext& c) {
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, c.dtype(0));
  SymShape out = *s;
  if (const std::vector<Dim>* axis = c.sym(1); axis != nullptr && axis->size() == 1 && (*axis)[0].is_const()) {
    out.insert(out.begin() + normalize_axis((*axis)[0].value(), s->size() + 1), Dim(1));
  } else {
    out.assign(s->size() + 1, Dim::unknown());
  }
  c.output(0, c.dtype(0), std::move(out));
}

void run_expand_dims(OpContext& c) {
  const Tensor& x = c.input(0);
  Shape shape = x.shape();
  shape.insert(shape.begin() + normalize_axis(single_int(c.input(1), "axis"), x.rank() + 1), 1);
  copy_all(x, c.output(0, x.dtype(), shape));
}

struct Unfold {
  std::int64_t dim, size, step;
};

Unfold unfold_of(const Attributes& attrs, std::size_t rank) {
  if (rank == 0) fail(ErrorCode::invalid_model, "UnfoldTensor needs an axis, received a scalar");
  const Unfold u{normalize_axis(attrs.get_int("dim", -1), rank), attrs.get_int("size"), attrs.get_int("step", 1)};
  if (u.size < 1 || u.step < 1)
    fail(ErrorCode::invalid_model, "size and step must be positive, received {} and {}", u.size, u.step);
  return u;
}

std::int64_t windows(const Unfold& u, std::int64_t extent) {
  if (u.size > extent) fail(ErrorCode::invalid_model, "slices of {} do not fit an extent of {}", u.size, extent);
  return (extent - u.size) / u.step + 1;
}

void infer_unfold(InferContext& c) {
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, c.dtype(0));
  const Unfold u = unfold_of(c.attrs(), s->size());
  SymShape out = *s;
  Dim& extent = out[static_cast<std::size_t>(u.dim)];
  extent = extent.is_const() ? Dim(windows(u, extent.value())) : Dim::unknown();
  out.push_back(Dim(u.size));
  c.output(0, c.dtype(0), std::move(out));
}

void run_unfold(OpContext& c) {
  const Tensor& x = c.input(0);
  const Unfold u = unfold_of(c.attrs(), x.rank());
  const auto dim = static_cast<std::size_t>(u.dim);
  Shape shape = x.shape();
  shape[dim] = windows(u, x.dim(dim));
  shape.push_back(u.size);
  Tensor& y = c.output(0, x.dtype(), shape);
  if (y.size() == 0) return;
  const std::vector<std::int64_t> from = strides_of(x.shape()), to = strides_of(shape);
  std::vector<CopyAxis> axes;
  for (std::size_t i = 0; i < x.rank(); ++i) axes.push_back({shape[i], from[i] * (i == dim ? u.step : 1), to[i]});
  axes.push_back({u.size, from[dim], 1});
  copy_strided(x, 0, y, 0, std::move(axes));
}

// --- BifurcationDetector: for decoding that first guesses that the text goes on as the source does -----------------------------

void infer_bifurcation(InferContext& c) {
  const SymShape* cur = c.shape(1);
  c.output(0, DataType::int64, {cur != nullptr && cur->size() == 1 && !c.has_input(3) ? (*cur)[0] : Dim()});
  c.output(1, DataType::int64, SymShape{});
}

std::vector<std::int64_t> tokens(OpContext& c, std::size_t i) {
  const Tensor& t = c.input(i);
  if (t.rank() != 1) c.fail("input {} must have 1 axis, received {}", i, t.type_string());
  const auto v = t.values<std::int64_t>();
  return {v.begin(), v.end()};
}

void run_bifurcation(OpContext& c) {
  const std::vector<std::int64_t> source = tokens(c, 0);
  std::vector<std::int64_t> text = tokens(c, 1);
  const std::int64_t start = single_int(c.input(2), "prev_suffix_match_idx");
  if (c.has_input(3)) {
    const std::vector<std::int64_t> predicted = tokens(c, 3);
    const auto left = static_cast<std::int64_t>(source.size()) - start;
    if (start < 0 || left < 0 || static_cast<std::int64_t>(predicted.size()) != left + 1) {
      c.fail("{} predicted tokens; from {} on the source has {}: one less is expected", predicted.size(), start, left);
    }
    const auto differs = std::mismatch(source.begin() + start, source.end(), predicted.begin()).second;
    text.insert(text.end(), predicted.begin(), differs + 1);
  }
  const std::int64_t least = c.attrs().get_int("min_ngram_size", 1), most = c.attrs().get_int("max_ngram_size", 3);
  if (least < 1 || most < least) c.fail("n-grams of {} to {} tokens cannot be", least, most);
  std::int64_t match = -1;
  for (std::int64_t n = least; n <= std::min<std::int64_t>(most, static_cast<std::int64_t>(text.size())); ++n) {
    const auto found = std::search(source.begin(), source.end(), text.end() - n, text.end());
    if (found == source.end()) break;
    match = found - source.begin() + n;
    if (match >= static_cast<std::int64_t>(source.size())) break;
    if (std::search(found + 1, source.end(), text.end() - n, text.end()) == source.end()) break;
    match = -1;
  }
  c.set_output(0, Tensor::of<std::int64_t>({static_cast<std::int64_t>(text.size())}, text));
  c.set_output(1, Tensor::of<std::int64_t>({}, {match}));
}

OpDef def(const char* name) { return OpDef("com.microsoft", name, 1); }

}  // namespace

void register_small_ops(OpTable& t) {
  constexpr TypeSet kThree = set_of(DataType::float16, DataType::float32, DataType::float64);
  constexpr TypeSet kAny = types::numeric | types::boolean | types::string | types::complex;
  t.add(def("SampleOp").in("X", "T", types::numeric).out("Y", "T", types::numeric).infer_with(infer_same).run_with(run_sample));
  t.add(def("BiasSoftmax")
            .in("data", "T", kThree)
            .in("bias", "T", kThree)
            .out("output", "T", kThree)
            .attr("axis", AttrKind::i)
            .attr("is_inner_broadcast", AttrKind::i, true)
            .infer_with(infer_same)
            .run_with(run_bias_softmax));
  for (const char* name : {"ComplexMul", "ComplexMulConj"}) {
    t.add(def(name)
              .in("A", "T", kThree)
              .in("B", "T", kThree)
              .out("C", "T", kThree)
              .infer_with(infer_complex)
              .run_with(run_complex));
  }
  t.add(def("IsAllFinite")
            .in("input", "V", types::floats, Arity::variadic)
            .out("output", "T", types::boolean)
            .attr("isinf_only", AttrKind::i)
            .attr("isnan_only", AttrKind::i)
            .infer_with(infer_is_all_finite)
            .run_with(run_is_all_finite));
  t.add(def("ExpandDims")
            .in("X", "T", kAny)
            .in("axis", "", bit(DataType::int32))
            .out("Y", "T", kAny)
            .infer_with(infer_expand_dims)
            .run_with(run_expand_dims));
  t.add(def("UnfoldTensor")
            .in("input", "T", kAny)
            .out("output", "T", kAny)
            .attr("dim", AttrKind::i)
            .attr("size", AttrKind::i, true)
            .attr("step", AttrKind::i)
            .infer_with(infer_unfold)
            .run_with(run_unfold));
  t.add(def("BifurcationDetector")
            .in("src_tokens", "T", types::int64)
            .in("cur_tokens", "T", types::int64)
            .in("prev_suffix_match_idx", "T", types::int64)
            .in("pred_tokens", "T", types::int64, Arity::optional)
            .out("tokens", "T", types::int64)
            .out("suffix_match_idx", "T", types::int64)
            .attr("max_ngram_size", AttrKind::i)
            .attr("min_ngram_size", AttrKind::i)
            .infer_with(infer_bifurcation)
            .run_with(run_bifurcation));
}

}  // namespace sdx::ops
