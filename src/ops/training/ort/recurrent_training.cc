// com.microsoft LSTMTraining, LSTMGrad, GRUTraining, GRUGrad.

#include "ops/training/ort/recurrent_training.h"

#include <string_view>

#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/signatures.h"

namespace sdx::ops {
namespace {

using enum RecurrentIn::Slot;

// Reads the attributes, and refuses values that ONNX Runtime's kernels refuse, too.
RecurrentAttrs read_attrs(const Node& node, Cell cell) {
  RecurrentAttrs a = read_recurrent_attrs(node, cell);
  const bool usual = a.activations[0].kind == ActivationKind::sigmoid && a.activations[1].kind == ActivationKind::tanh &&
                     (cell == Cell::gru || a.activations[2].kind == ActivationKind::tanh);
  if (!a.forward || a.backward || a.clip > 0 || a.input_forget || !usual) {
    fail(ErrorCode::not_implemented,
         "{} runs forward, with the default activations, without clip and input_forget; use the operator of ai.onnx otherwise",
         node.op_type);
  }
  return a;
}

constexpr std::size_t kNone = 99;  // beyond all inputs

// Positions of the forward operator's inputs, in it and in its gradient.
struct InputSlots {
  std::size_t bias = kB, lengths = kLengths, h0 = kH0, c0 = kNone, peephole = kNone;
};

constexpr InputSlots forward_slots(Cell cell) {
  if (cell == Cell::lstm) return {kB, kLengths, kH0, kC0, kPeephole};
  return {};
}

constexpr InputSlots grad_slots(Cell cell) {
  if (cell == Cell::lstm) return {kNone, LstmGradIn::kLengths, LstmGradIn::kH0, LstmGradIn::kC0, kNone};
  return {};
}

RecurrentSizes check_inputs(OpContext& c, Cell cell, const RecurrentAttrs& a, const InputSlots& slots) {
  const Tensor &x = c.input(kX), &r = c.input(kR);
  if (x.rank() != 3 || r.rank() != 3) c.fail("X and R must have rank 3, received {} and {}", x.type_string(), r.type_string());
  const RecurrentSizes s{x.dim(0), x.dim(1), x.dim(2), r.dim(2)};
  if (a.hidden != 0 && a.hidden != s.hidden) c.fail("hidden_size is {} but R holds {} hidden units", a.hidden, s.hidden);
  if (s.hidden < 1 || s.hidden > (std::int64_t{1} << 40)) c.fail("R has {} hidden units; it must have at least one", s.hidden);
  const std::int64_t gh = gates_of(cell) * s.hidden;
  const auto check = [&](std::size_t i, const Shape& expected, std::string_view name) {
    const Tensor* t = c.optional_input(i);
    if (t == nullptr || t->shape() == expected) return;
    c.fail("{} must have shape {}, received {}", name, to_string(expected), t->type_string());
  };
  check(kW, {1, gh, s.input}, "W");
  check(kR, {1, gh, s.hidden}, "R");
  check(slots.bias, {1, 2 * gh}, "B");
  check(slots.h0, {1, s.batch, s.hidden}, "initial_h");
  check(slots.c0, {1, s.batch, s.hidden}, "initial_c");
  check(slots.peephole, {1, 3 * s.hidden}, "P");
  if (c.has_input(slots.lengths)) c.fail("sequence_lens is not supported; use the operator of ai.onnx");
  return s;
}

// The inputs of both directions, as C.
template <class C>
struct ForwardInputs {
  FloatInput<C> x, w, r, b, h0, c0, p;

  ForwardInputs(OpContext& c, const InputSlots& slots)
      : x(c.input(kX)),
        w(c.input(kW)),
        r(c.input(kR)),
        b(c.optional_input(slots.bias)),
        h0(c.optional_input(slots.h0)),
        c0(c.optional_input(slots.c0)),
        p(c.optional_input(slots.peephole)) {}

  RecurrentForward<C> view(const RecurrentSizes& s, const RecurrentAttrs& a) const {
    return {s,       x.data(), w.data(), r.data(), b.data(), h0.data(), c0.data(), p.data(), a.linear_before_reset,
            nullptr, nullptr,  nullptr};
  }
};

template <class C>
void store_last(OpContext& c, std::size_t i, const RecurrentSizes& s, const C* initial, const C* all) {
  if (!c.wants_output(i)) return;
  const Shape shape{1, s.batch, s.hidden};
  std::vector<C> zeros;
  const C* last = s.steps > 0 ? all + (s.steps - 1) * s.state() : initial;
  if (last == nullptr) {
    zeros.assign(static_cast<std::size_t>(s.state()), C(0));
    last = zeros.data();
  }
  store_floats(last, c.output(i, c.input(kX).dtype(), shape));
}

template <Cell kCell>
void run_training(OpContext& c) {
  const RecurrentAttrs a = read_attrs(c.node(), kCell);
  const RecurrentSizes s = check_inputs(c, kCell, a, forward_slots(kCell));
  const DataType elem = c.input(kX).dtype();
  dispatch_compute(elem, c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const ForwardInputs<C> in(c, forward_slots(kCell));
    const Shape states{s.steps, 1, s.batch, s.hidden};
    const bool lstm = kCell == Cell::lstm;
    FloatOutput<C> all_h(c.output(0, elem, states));
    FloatOutput<C> gates(c.output(lstm ? 4 : 2, elem, {s.steps, 1, s.batch, gates_of(kCell) * s.hidden}));
    RecurrentForward<C> f = in.view(s, a);
    f.all_h = all_h.data();
    f.gates = gates.data();
    if constexpr (kCell == Cell::lstm) {
      FloatOutput<C> all_c(c.output(3, elem, states));
      f.all_c = all_c.data();
      lstm_training(f, reference_math<C>());
      store_last(c, 2, s, f.c0, f.all_c);
      all_c.store();
    } else {
      gru_training(f, reference_math<C>());
    }
    store_last(c, 1, s, f.h0, f.all_h);
    all_h.store();
    gates.store();
  });
}

void check_saved(OpContext& c, std::size_t i, const Shape& expected, std::string_view name, bool required) {
  const Tensor* t = c.optional_input(i);
  if (t == nullptr && !required) return;
  if (t == nullptr) c.fail("{} is missing; it comes from the forward operator", name);
  if (t->shape() != expected) c.fail("{} must have shape {}, received {}", name, to_string(expected), t->type_string());
}

// An output that is computed whether it is wanted or not, since the pass needs its memory, or one that is left out.
template <class C>
class Result {
 public:
  Result(OpContext& c, std::size_t i, const Shape& shape, bool needed) {
    if (c.wants_output(i)) {
      out_.emplace(c.output(i, c.input(kX).dtype(), shape));
    } else if (needed) {
      spare_.resize(static_cast<std::size_t>(element_count(shape)));
    }
  }
  C* data() { return out_ ? out_->data() : spare_.empty() ? nullptr : spare_.data(); }
  void store() {
    if (out_) out_->store();
  }

 private:
  std::optional<FloatOutput<C>> out_;
  std::vector<C> spare_;
};

struct SavedSlots {
  std::size_t all_h, all_c, gates, d_all_h, d_h, d_c;
};

constexpr SavedSlots slots_of(Cell cell) {
  using L = LstmGradIn;
  using G = GruGradIn;
  if (cell == Cell::lstm) return {L::kAllH, L::kAllC, L::kGates, L::kDAllH, L::kDH, L::kDC};
  return {G::kAllH, kNone, G::kGates, G::kDAllH, G::kDH, kNone};
}

template <Cell kCell>
void run_grad(OpContext& c) {
  const RecurrentAttrs a = read_attrs(c.node(), kCell);
  const RecurrentSizes s = check_inputs(c, kCell, a, grad_slots(kCell));
  constexpr SavedSlots slots = slots_of(kCell);
  constexpr bool lstm = kCell == Cell::lstm;
  const std::int64_t gh = gates_of(kCell) * s.hidden;
  const Shape states{s.steps, 1, s.batch, s.hidden}, state{1, s.batch, s.hidden};
  check_saved(c, slots.all_h, states, "the hidden states of all steps", true);
  check_saved(c, slots.gates, {s.steps, 1, s.batch, gh}, "the gates of all steps", true);
  check_saved(c, slots.d_all_h, states, "the gradient of all hidden states", false);
  check_saved(c, slots.d_h, state, "the gradient of the last hidden state", false);
  if (lstm) check_saved(c, slots.all_c, states, "the cell states of all steps", true);
  if (lstm) check_saved(c, slots.d_c, state, "the gradient of the last cell state", false);
  dispatch_compute(c.input(kX).dtype(), c.node().op_type, [&](auto tag) {
    using C = typename decltype(tag)::type;
    const ForwardInputs<C> in(c, grad_slots(kCell));
    const FloatInput<C> all_h(c.input(slots.all_h)), gates(c.input(slots.gates)), d_all_h(c.optional_input(slots.d_all_h)),
        d_h(c.optional_input(slots.d_h)), all_c(lstm ? c.optional_input(slots.all_c) : nullptr),
        d_c(lstm ? c.optional_input(slots.d_c) : nullptr);
    Result<C> dx(c, 0, c.input(kX).shape(), false), dw(c, 1, c.input(kW).shape(), false), dr(c, 2, c.input(kR).shape(), false),
        db(c, 3, {1, 2 * gh}, false), dh(c, 4, state, true), dc(c, 5, state, lstm), dp(c, 6, {1, 3 * s.hidden}, false);
    RecurrentBackward<C> b;
    b.forward = in.view(s, a);
    b.forward.all_h = const_cast<C*>(all_h.data());
    b.forward.gates = const_cast<C*>(gates.data());
    b.forward.all_c = const_cast<C*>(all_c.data());
    b.d_all_h = d_all_h.data();
    b.d_h = d_h.data();
    b.d_c = d_c.data();
    b.d_x = dx.data();
    b.d_w = dw.data();
    b.d_r = dr.data();
    b.d_bias = db.data();
    b.d_h0 = dh.data();
    b.d_c0 = dc.data();
    b.d_peephole = dp.data();
    (lstm ? lstm_grad<C> : gru_grad<C>)(b, reference_math<C>());
    for (Result<C>* r : {&dx, &dw, &dr, &db, &dh, &dc, &dp}) r->store();
  });
}

template <Cell kCell>
void infer_training(InferContext& c) {
  const RecurrentAttrs a = read_attrs(c.node(), kCell);
  const SymShape *x = c.shape(kX), *r = c.shape(kR);
  if (x != nullptr && x->size() != 3) c.fail("X must have rank 3, received shape {}", to_string(*x));
  const Dim hidden = r != nullptr && r->size() == 3 ? (*r)[2] : a.hidden > 0 ? Dim(a.hidden) : Dim();
  const Dim steps = x == nullptr ? Dim() : (*x)[0], batch = x == nullptr ? Dim() : (*x)[1];
  const SymShape states{steps, Dim(1), batch, hidden}, state{Dim(1), batch, hidden};
  const SymShape gates{steps, Dim(1), batch, hidden * Dim(gates_of(kCell))};
  const std::vector<SymShape> shapes = kCell == Cell::lstm ? std::vector<SymShape>{states, state, state, states, gates}
                                                           : std::vector<SymShape>{states, state, gates};
  for (std::size_t i = 0; i < c.num_outputs(); ++i) c.output(i, c.dtype(kX), shapes[i]);
}

// Each gradient has the type of its input; of those that may be left out it follows from the others.
template <Cell kCell>
void infer_grad(InferContext& c) {
  const RecurrentAttrs a = read_attrs(c.node(), kCell);
  const SymShape *x = c.shape(kX), *w = c.shape(kW), *r = c.shape(kR);
  const DataType elem = c.dtype(kX);
  const Dim hidden = r != nullptr && r->size() == 3 ? (*r)[2] : a.hidden > 0 ? Dim(a.hidden) : Dim();
  const Dim batch = x != nullptr && x->size() == 3 ? (*x)[1] : Dim();
  const SymShape state{Dim(1), batch, hidden};
  const auto like = [&](std::size_t i, const SymShape* s) { s != nullptr ? c.output(i, elem, *s) : c.output(i, elem); };
  for (std::size_t i = 0; i < c.num_outputs(); ++i) {
    switch (i) {
      case 0: like(i, x); break;
      case 1: like(i, w); break;
      case 2: like(i, r); break;
      case 3: c.output(i, elem, SymShape{Dim(1), hidden * Dim(2 * gates_of(kCell))}); break;
      case 6: c.output(i, elem, SymShape{Dim(1), hidden * Dim(3)}); break;
      default: c.output(i, elem, state); break;
    }
  }
}

OpDef with_inputs(const char* name, const InputSlots& slots) {
  const TypeSet f = types::floats;
  OpDef d("com.microsoft", name, 1);
  d.in("X W R", "T", f);
  if (slots.bias != kNone) d.in("B", "T", f, Arity::optional);
  d.in("sequence_lens", "", bit(DataType::int32), Arity::optional).in("initial_h", "T", f, Arity::optional);
  if (slots.c0 != kNone) d.in("initial_c", "T", f, Arity::optional);
  if (slots.peephole != kNone) d.in("P", "T", f, Arity::optional);
  d.attrs<RecurrentFields>();
  return d;
}

template <Cell kCell>
void add_cell(OpTable& t, const char* training, const char* grad) {
  const TypeSet f = types::floats;
  constexpr bool lstm = kCell == Cell::lstm;
  OpDef forward = with_inputs(training, forward_slots(kCell));
  forward.out("HAll", "T", f).out("HFinal", "T", f, Arity::optional);
  if (lstm) forward.out("CFinal CAll", "T", f, Arity::optional);
  forward.out(lstm ? "iofc" : "zrh", "T", f, Arity::optional);
  t.add(std::move(forward).infer_with(infer_training<kCell>).run_with(run_training<kCell>));
  OpDef back = with_inputs(grad, grad_slots(kCell));
  back.in("HAll", "T", f, Arity::optional);
  if (lstm) back.in("CAll", "T", f, Arity::optional);
  back.in(lstm ? "iofc" : "zrh", "T", f, Arity::optional).in("dHAll", "T", f, Arity::optional);
  back.in("dHFinal", "T", f, Arity::optional);
  if (lstm) back.in("dCFinal", "T", f, Arity::optional);
  back.out("dX dW dR dB dH0", "T", f, Arity::optional);
  if (lstm) back.out("dC0 dP", "T", f, Arity::optional);
  t.add(std::move(back).infer_with(infer_grad<kCell>).run_with(run_grad<kCell>));
}

}  // namespace

void register_recurrent_training(OpTable& t) {
  add_cell<Cell::lstm>(t, "LSTMTraining", "LSTMGrad");
  add_cell<Cell::gru>(t, "GRUTraining", "GRUGrad");
}

}  // namespace sdx::ops
