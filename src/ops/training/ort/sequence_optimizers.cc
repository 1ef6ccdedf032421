// com.microsoft AdamWOptimizer, SGDOptimizerV2, InplaceClipGradNorm: optimisers of sequences of parameters. In ONNX Runtime they
// change their inputs; here the updated sequences are outputs, and a node without them changes nothing.

#include <algorithm>
#include <cmath>

#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/training/ort/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

struct ClipAttrs {
  float max_norm = 1;
  std::string_view norm_type = "fro";

  void fields(auto& f) {
    f("max_norm", max_norm);
    f("norm_type", norm_type);
  }
};

const Sequence& sequence_at(const OpContext& c, std::size_t i) {
  const Value& v = c.input_value(i);
  if (!v.is_sequence()) c.fail("input {} must be a sequence of tensors, received {}", i, v.type_string());
  for (const Value& item : v.sequence().items) {
    if (!item.is_tensor()) c.fail("input {} must hold tensors, received {}", i, item.type_string());
  }
  return v.sequence();
}

// Sequences of the inputs, which must agree in number and shapes.
std::vector<const Sequence*> parallel_sequences(const OpContext& c, std::initializer_list<std::size_t> inputs) {
  std::vector<const Sequence*> out;
  for (const std::size_t i : inputs) {
    out.push_back(&sequence_at(c, i));
    const auto &first = out.front()->items, &own = out.back()->items;
    if (own.size() != first.size()) {
      c.fail("input {} holds {} tensors, input {} holds {}", i, own.size(), *inputs.begin(), first.size());
    }
    for (std::size_t k = 0; k < own.size(); ++k) {
      if (own[k].tensor().shape() == first[k].tensor().shape()) continue;
      c.fail("tensor {} of input {} is {}, of input {} {}", k, i, own[k].tensor().type_string(), *inputs.begin(),
             first[k].tensor().type_string());
    }
  }
  if (out.front()->items.empty()) c.fail("input {} is an empty sequence", *inputs.begin());
  return out;
}

double number(const OpContext& c, std::size_t i) {
  if (c.input(i).size() != 1) c.fail("input {} must be one number, received {}", i, c.input(i).type_string());
  return element_as_double(c.input(i), 0);
}

bool should_update(const OpContext& c, std::size_t i) {
  const Tensor* t = c.optional_input(i);
  if (t != nullptr && t->size() != 1) c.fail("input {} must be one truth value, received {}", i, t->type_string());
  return t == nullptr || element_as_int(*t, 0) != 0;
}

void set_flag(OpContext& c, std::size_t like, bool value) {
  *static_cast<bool*>(c.output(0, DataType::boolean, c.input(like).shape()).mutable_data()) = value;
}

void infer_flag(InferContext& c, std::size_t like) {
  if (c.shape(like) != nullptr) return c.output(0, DataType::boolean, *c.shape(like));
  c.output(0, DataType::boolean);
}

// --- AdamWOptimizer -----------------------------------------------------------------------------------------------------

void infer_adamw(InferContext& c) {
  infer_flag(c, AdamWIn::kStep);
  const std::size_t sources[] = {AdamWIn::kWeights, AdamWIn::kMoments1, AdamWIn::kMoments2};
  for (std::size_t i = 1; i < c.num_outputs() && i < 4; ++i) c.output(i, c.type(sources[i - 1]));
}

// Sources: Loshchilov and Hutter, "Decoupled weight decay regularization", arXiv:1711.05101; the two modes are PyTorch's, which
// corrects the moments and decays first, and that of Hugging Face's transformers, which corrects the rate and decays last.
template <class C>
struct AdamWStep {
  C alpha, beta, epsilon, decay, rate, correction1 = 1, correction2 = 1;
  bool transformers;

  void operator()(C& w, C g, C& m1, C& m2) const {
    if (!transformers) w -= w * rate * decay;
    m1 = alpha * m1 + (1 - alpha) * g;
    m2 = beta * m2 + (1 - beta) * g * g;
    if (transformers) {
      w -= rate * std::sqrt(correction2) / correction1 * m1 / (std::sqrt(m2) + epsilon);
      w -= rate * decay * w;
    } else {
      w -= rate * m1 / (correction1 * (std::sqrt(m2 / correction2) + epsilon));
    }
  }
};

template <class C>
AdamWStep<C> adamw_step(const OpContext& c) {
  const auto attr = parse<AdamWAttrs>(c);
  AdamWStep<C> s{static_cast<C>(attr.alpha),
                 static_cast<C>(attr.beta),
                 static_cast<C>(attr.epsilon),
                 static_cast<C>(attr.weight_decay),
                 static_cast<C>(number(c, AdamWIn::kRate)),
                 1,
                 1,
                 attr.adam_mode == 1};
  if (attr.correct_bias) {
    const double step = number(c, AdamWIn::kStep);
    s.correction1 = static_cast<C>(1 - std::pow(static_cast<double>(attr.alpha), step));
    s.correction2 = static_cast<C>(1 - std::pow(static_cast<double>(attr.beta), step));
  }
  return s;
}

void run_adamw(OpContext& c) {
  using enum AdamWIn::Slot;
  const auto attr = parse<AdamWAttrs>(c);
  if (attr.adam_mode != 0 && attr.adam_mode != 1) c.fail("attribute 'adam_mode' is {}; permitted: 0, 1", attr.adam_mode);
  if (attr.adam_mode == 0 && !attr.correct_bias) c.fail("adam_mode 0 corrects the bias: correct_bias must be 1");
  const auto in = parallel_sequences(c, {kWeights, kGradients, kMoments1, kMoments2});
  const bool update = should_update(c, kSignal);
  set_flag(c, kStep, update);
  Sequence results[3] = {{in[0]->element_type, {}}, {in[2]->element_type, {}}, {in[3]->element_type, {}}};
  for (std::size_t k = 0; k < in[0]->items.size(); ++k) {
    const auto tensor = [&](std::size_t i) -> const Tensor& { return in[i]->items[k].tensor(); };
    Tensor out[3] = {Tensor(tensor(0).dtype(), tensor(0).shape()), Tensor(tensor(2).dtype(), tensor(2).shape()),
                     Tensor(tensor(3).dtype(), tensor(3).shape())};
    dispatch_compute(tensor(0).dtype(), "AdamWOptimizer", [&](auto tag) {
      using C = typename decltype(tag)::type;
      const AdamWStep<C> step = adamw_step<C>(c);
      const FloatInput<C> w(tensor(0)), g(tensor(1)), m1(tensor(2)), m2(tensor(3));
      FloatOutput<C> nw(out[0]), n1(out[1]), n2(out[2]);
      for (std::int64_t i = 0; i < tensor(0).size(); ++i) {
        C values[3] = {w[i], m1[i], m2[i]};
        if (update) step(values[0], g[i], values[1], values[2]);
        nw[i] = values[0];
        n1[i] = values[1];
        n2[i] = values[2];
      }
      nw.store();
      n1.store();
      n2.store();
    });
    for (std::size_t i = 0; i < 3; ++i) results[i].items.emplace_back(std::move(out[i]));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (c.wants_output(i + 1)) c.set_output(i + 1, std::move(results[i]));
  }
}

// --- SGDOptimizerV2, InplaceClipGradNorm --------------------------------------------------------------------------------

// a + factor * b, item by item; b null: factor * a.
Sequence combined(const OpContext& c, const Sequence& a, double factor, const Sequence* b) {
  Sequence result{a.element_type, {}};
  for (std::size_t k = 0; k < a.items.size(); ++k) {
    const Tensor& from = a.items[k].tensor();
    Tensor out(from.dtype(), from.shape());
    dispatch_compute(from.dtype(), c.node().op_type, [&](auto tag) {
      using C = typename decltype(tag)::type;
      const FloatInput<C> x(from), g(b == nullptr ? nullptr : &b->items[k].tensor());
      FloatOutput<C> y(out);
      const auto f = static_cast<C>(factor);
      for (std::int64_t i = 0; i < from.size(); ++i) y[i] = b == nullptr ? f * x[i] : x[i] + f * g[i];
      y.store();
    });
    result.items.emplace_back(std::move(out));
  }
  return result;
}

void infer_sgd(InferContext& c) {
  infer_flag(c, SgdIn::kRate);
  if (c.has_output(1)) c.output(1, c.type(SgdIn::kWeights));
}

void run_sgd(OpContext& c) {
  const auto in = parallel_sequences(c, {SgdIn::kWeights, SgdIn::kGradients});
  const bool update = should_update(c, SgdIn::kSignal);
  set_flag(c, SgdIn::kRate, update);
  if (!c.wants_output(1)) return;
  if (!update) return c.set_output(1, c.input_value(SgdIn::kWeights));
  c.set_output(1, combined(c, *in[0], -number(c, SgdIn::kRate), in[1]));
}

void infer_clip(InferContext& c) { c.output(0, c.type(0)); }

void run_clip(OpContext& c) {
  const auto attr = parse<ClipAttrs>(c);
  if (attr.norm_type != "fro") c.fail("attribute 'norm_type' is '{}'; permitted: fro", attr.norm_type);
  const Sequence& gradients = sequence_at(c, 0);
  double sum = 0;
  for (const Value& v : gradients.items) {
    const FloatInput<double> g(v.tensor());
    for (std::int64_t i = 0; i < v.tensor().size(); ++i) sum += g[i] * g[i];
  }
  constexpr double kEpsilon = 1e-6;  // ONNX Runtime's and PyTorch's
  const double factor = static_cast<double>(attr.max_norm) / (std::sqrt(sum) + kEpsilon);
  c.set_output(0, combined(c, gradients, factor < 1 ? factor : 1, nullptr));
}

}  // namespace

void register_sequence_optimizers(OpTable& t) {
  const TypeSet s = types::sequence, f = types::floats;
  const Arity optional = Arity::optional;
  OpDef adamw("com.microsoft", "AdamWOptimizer", 1);
  adamw.in("lr", "T1", f).in("step", "T2", types::int64).in("weights gradients", "", s);
  adamw.in("momentums_1 momentums_2", "", s).in("update_signal", "T_BOOL", types::boolean, optional);
  adamw.out("updated_flag", "T_BOOL", types::boolean).out("updated_weights", "", s, optional);
  adamw.out("updated_momentums_1 updated_momentums_2", "", s, optional).attrs<AdamWAttrs>();
  t.add(std::move(adamw).infer_with(infer_adamw).run_with(run_adamw));
  t.add(OpDef("com.microsoft", "SGDOptimizerV2", 1)
            .in("lr", "T1", f)
            .in("weights gradients", "", s)
            .in("update_signal", "T_BOOL", types::boolean, optional)
            .out("update_completed", "T_BOOL", types::boolean)
            .out("updated_weights", "", s, optional)
            .infer_with(infer_sgd)
            .run_with(run_sgd));
  t.add(OpDef("com.microsoft", "InplaceClipGradNorm", 1)
            .in("gradients", "", s)
            .out("clipped_gradients", "", s)
            .attrs<ClipAttrs>()
            .infer_with(infer_clip)
            .run_with(run_clip));
}

}  // namespace sdx::ops
