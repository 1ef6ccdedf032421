// Gradients of LSTM, GRU and RNN: LSTMGrad and GRUGrad of com.microsoft where these may be emitted and will do, else by way of a
// Scan over the steps.

#include "ops/recurrent/recurrent.h"
#include "graph/edit.h"
#include "ops/gradients/flow/decompose.h"
#include "ops/recurrent/signatures.h"

namespace sdx::ops {
namespace {

using enum RecurrentIn::Slot;

std::vector<Expr> parts_of(Expr e, std::int64_t axis, std::int64_t parts) {
  return e.here().emit_many("Split", {e}, static_cast<std::size_t>(parts), {{"axis", axis}, {"num_outputs", parts}});
}

Expr activation(const RecurrentActivation& f, Expr x) {
  GradientContext& c = *x.context;
  const std::pair<const char*, AttributeValue> alpha{"alpha", f.alpha};
  switch (f.kind) {
    case ActivationKind::relu: return call("Relu", x);
    case ActivationKind::tanh: return call("Tanh", x);
    case ActivationKind::sigmoid: return call("Sigmoid", x);
    case ActivationKind::affine: return x * static_cast<double>(f.alpha) + static_cast<double>(f.beta);
    case ActivationKind::leaky_relu: return c.emit("LeakyRelu", {x}, {alpha});
    case ActivationKind::thresholded_relu: return c.emit("ThresholdedRelu", {x}, {alpha});
    case ActivationKind::scaled_tanh: return call("Tanh", x * static_cast<double>(f.beta)) * static_cast<double>(f.alpha);
    case ActivationKind::hard_sigmoid: return c.emit("HardSigmoid", {x}, {alpha, {"beta", f.beta}});
    case ActivationKind::elu: return c.emit("Elu", {x}, {alpha});
    case ActivationKind::softsign: return call("Softsign", x);
    case ActivationKind::softplus: return call("Softplus", x);
  }
  return x;
}

Expr clipped(const RecurrentAttrs& a, const RecurrentActivation& f, Expr x) {
  GradientContext& c = *x.context;
  const double limit = a.clip;
  return activation(f, limit > 0 ? c.emit("Clip", {x, c.scalar(-limit), c.scalar(limit)}) : x);
}

// The inputs of one direction, in the graph around the Scan. Null: left out.
struct Direction {
  Expr gates;  // [steps, batch, gates * hidden]: W X and the biases that are added to it
  // R transposed, [hidden, gates * hidden]; without the hidden gate of GRU, unless linear_before_reset.
  Expr recurrent;
  Expr apart;     // GRU's hidden gate: its part of R, or with linear_before_reset its recurrent bias
  Expr peephole;  // [3 * hidden]: input, output, forget
  Expr h, c;      // [batch, hidden]
  Expr active;    // [steps, batch, 1]: whether the sequence is that long
  const RecurrentActivation* activations = nullptr;
  bool backward = false;
};

struct StepValues {
  Expr gates, h, c, active, recurrent, apart, peephole;
};

struct StepResult {
  Expr h, c;
};

StepResult lstm_step(const RecurrentAttrs& a, const RecurrentActivation* f, const StepValues& v) {
  const std::vector<Expr> sums = parts_of(v.gates + call("MatMul", v.h, v.recurrent), -1, 4);
  const std::vector<Expr> peepholes = v.peephole ? parts_of(v.peephole, 0, 3) : std::vector<Expr>();
  const auto peep = [&](std::size_t i, Expr cell) { return v.peephole ? sums[i] + peepholes[i] * cell : sums[i]; };
  const Expr in = clipped(a, f[0], peep(0, v.c));
  const Expr forget = a.input_forget ? 1.0 - in : clipped(a, f[0], peep(2, v.c));
  const Expr cell = forget * v.c + in * clipped(a, f[1], sums[3]);
  const Expr out = clipped(a, f[0], peep(1, cell));
  return {out * activation(f[2], cell), cell};
}

StepResult gru_step(const RecurrentAttrs& a, const RecurrentActivation* f, const StepValues& v) {
  const std::vector<Expr> of_x = parts_of(v.gates, -1, 3);
  const std::vector<Expr> of_h = parts_of(call("MatMul", v.h, v.recurrent), -1, a.linear_before_reset ? 3 : 2);
  const Expr update = clipped(a, f[0], of_x[0] + of_h[0]);
  const Expr reset = clipped(a, f[0], of_x[1] + of_h[1]);
  Expr hidden;
  if (a.linear_before_reset) {
    hidden = reset * (v.apart ? of_h[2] + v.apart : of_h[2]);
  } else {
    hidden = call("MatMul", reset * v.h, v.apart);
  }
  const Expr candidate = clipped(a, f[1], of_x[2] + hidden);
  return {(1.0 - update) * candidate + update * v.h, {}};
}

StepResult rnn_step(const RecurrentAttrs& a, const RecurrentActivation* f, const StepValues& v) {
  return {clipped(a, f[0], v.gates + call("MatMul", v.h, v.recurrent)), {}};
}

class Unrolled {
 public:
  Unrolled(GradientContext& c, Cell cell, const RecurrentAttrs& attrs, const std::vector<Expr>& inputs)
      : c_(c), cell_(cell), attrs_(attrs), inputs_(inputs) {}

  // Y, Y_h and, of LSTM, Y_c.
  std::vector<Expr> run() {
    x_ = turned(in(kX), {1, 0, 2});
    hidden_ = c_.extents(in(kR), 2, 3);
    batch_ = c_.extents(x_, 1, 2);
    std::vector<Expr> y, h, cell;
    for (std::int64_t d = 0; d < attrs_.directions(); ++d) {
      const std::vector<Expr> results = scan(direction(d));
      y.push_back(c_.emit("Unsqueeze", {results.back(), c_.ints({1})}));
      h.push_back(c_.emit("Unsqueeze", {results[0], c_.ints({0})}));
      if (cell_ == Cell::lstm) cell.push_back(c_.emit("Unsqueeze", {results[1], c_.ints({0})}));
    }
    std::vector<Expr> out{turned(joined(y, 1), {2, 0, 1, 3}), turned(joined(h, 0), {1, 0, 2})};
    if (cell_ == Cell::lstm) out.push_back(turned(joined(cell, 0), {1, 0, 2}));
    return out;
  }

 private:
  Expr in(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : Expr{}; }
  Expr joined(const std::vector<Expr>& parts, std::int64_t axis) {
    return parts.size() == 1 ? parts[0] : c_.emit("Concat", parts, {{"axis", axis}});
  }
  // Converts from the node's layout, or to it.
  Expr turned(Expr e, const std::vector<std::int64_t>& perm) {
    return attrs_.batch_first ? c_.emit("Transpose", {e}, {{"perm", perm}}) : e;
  }
  Expr of_direction(Expr e, std::int64_t d) {
    if (attrs_.directions() > 1) e = parts_of(e, 0, attrs_.directions())[static_cast<std::size_t>(d)];
    return c_.emit("Squeeze", {e, c_.ints({0})});
  }

  Expr initial(std::size_t i, std::int64_t d) {
    if (in(i)) return of_direction(turned(in(i), {1, 0, 2}), d);
    return c_.emit("Expand", {c_.scalar(0), c_.emit("Concat", {batch_, hidden_}, {{"axis", std::int64_t{0}}})});
  }

  Direction direction(std::int64_t d) {
    Direction out;
    out.recurrent = call("Transpose", of_direction(in(kR), d));
    const bool late = cell_ == Cell::gru && attrs_.linear_before_reset;
    if (cell_ == Cell::gru && !late) {
      const std::vector<Expr> parts = parts_of(out.recurrent, 1, 3);
      out.recurrent = c_.emit("Concat", {parts[0], parts[1]}, {{"axis", std::int64_t{1}}});
      out.apart = parts[2];
    }
    out.gates = call("MatMul", x_, call("Transpose", of_direction(in(kW), d)));
    if (in(kB)) {
      const std::vector<Expr> biases = parts_of(of_direction(in(kB), d), 0, 2);
      Expr added = biases[1];
      if (late) {
        const std::vector<Expr> parts = parts_of(added, 0, 3);
        out.apart = parts[2];
        added = c_.emit("Concat", {parts[0], parts[1], c_.zeros_like(parts[2])}, {{"axis", std::int64_t{0}}});
      }
      out.gates = out.gates + (biases[0] + added);
    }
    if (cell_ == Cell::lstm && in(kPeephole)) out.peephole = of_direction(in(kPeephole), d);
    out.h = initial(kH0, d);
    if (cell_ == Cell::lstm) out.c = initial(kC0, d);
    if (in(kLengths)) out.active = active();
    out.activations = attrs_.activations.data() + static_cast<std::size_t>(d) * activations_of(cell_);
    out.backward = attrs_.backward && (d == 1 || !attrs_.forward);
    return out;
  }

  Expr active() {
    const Expr steps = c_.emit("Range", {c_.int_scalar(0), c_.emit("Squeeze", {c_.extents(x_, 0, 1)}), c_.int_scalar(1)});
    const Expr lengths = c_.emit("Cast", {in(kLengths)}, {{"to", static_cast<std::int64_t>(DataType::int64)}});
    return call("Less", c_.emit("Unsqueeze", {steps, c_.ints({1, 2})}), c_.emit("Unsqueeze", {lengths, c_.ints({1})}));
  }

  // The last states, then the states of every step.
  std::vector<Expr> scan(const Direction& d) {
    Node n;
    n.op_type = "Scan";
    n.version = 21;
    Subgraph body;
    body.attribute = "body";
    body.graph = std::make_unique<Graph>();
    Graph& g = *body.graph;
    GradientContext inner(g, c_.graph().value(in(kX).id).type.elem);
    const auto formal = [&](Expr outer) {
      if (!outer) return Expr{};
      n.inputs.push_back(outer.id);
      return inner.expr(g.add_input("formal", {}));
    };
    StepValues v;
    v.h = formal(d.h);
    v.c = formal(d.c);
    v.gates = formal(d.gates);
    v.active = formal(d.active);
    const auto capture = [&](Expr outer) {
      if (!outer) return Expr{};
      body.captures.push_back(outer.id);
      return inner.expr(g.add_input("captured", {}));
    };
    v.recurrent = capture(d.recurrent);
    v.apart = capture(d.apart);
    v.peephole = capture(d.peephole);
    finish_step(g, d, v);
    n.attributes.set("num_scan_inputs", std::int64_t{d.active ? 2 : 1});
    if (d.backward) {
      n.attributes.set("scan_input_directions", std::vector<std::int64_t>(d.active ? 2 : 1, 1));
      n.attributes.set("scan_output_directions", std::vector<std::int64_t>{1});
    }
    n.subgraphs.push_back(std::move(body));
    std::vector<Expr> out;
    for (std::size_t i = 0; i < n.subgraphs[0].graph->outputs().size(); ++i) {
      out.push_back(c_.expr(c_.graph().add_value("states")));
      n.outputs.push_back(out.back().id);
    }
    c_.graph().add_node(std::move(n));
    return out;
  }

  // Beyond its length, a sequence keeps its states and gives zeros.
  void finish_step(Graph& g, const Direction& d, const StepValues& v) {
    const auto step = cell_ == Cell::lstm ? lstm_step : cell_ == Cell::gru ? gru_step : rnn_step;
    StepResult r = step(attrs_, d.activations, v);
    Expr given = call("Identity", r.h);
    if (v.active) {
      given = where(v.active, r.h, r.h.here().scalar(0));
      r.h = where(v.active, r.h, v.h);
      if (r.c) r.c = where(v.active, r.c, v.c);
    }
    g.add_output(r.h.id);
    if (r.c) g.add_output(r.c.id);
    g.add_output(given.id);
  }

  GradientContext& c_;
  Cell cell_;
  const RecurrentAttrs& attrs_;
  const std::vector<Expr>& inputs_;
  Expr x_, hidden_, batch_;
};

// Whether ONNX Runtime's LSTMGrad and GRUGrad support the node. They ignore peephole weights in the gradient of cells.
bool is_plain(GradientContext& c, Cell cell, const RecurrentAttrs& a) {
  using enum ActivationKind;
  const bool usual = a.activations[0].kind == sigmoid && a.activations[1].kind == ActivationKind::tanh &&
                     (cell == Cell::gru || a.activations[2].kind == ActivationKind::tanh);
  return cell != Cell::rnn && usual && !a.backward && !a.batch_first && a.clip == 0 && !a.input_forget && a.hidden > 0 &&
         !c.has_input(kLengths) && !(cell == Cell::lstm && c.has_input(kPeephole)) && c.dtype(c.in(kX)) == DataType::float32;
}

// The node becomes the one that keeps the values that its gradient needs.
void fused(GradientContext& c, Cell cell, const RecurrentAttrs& a) {
  const bool lstm = cell == Cell::lstm;
  const Expr all_h = c.out(0);
  const Expr all_c = lstm ? c.out(3) : Expr{};
  const Expr gates = c.out(lstm ? 4 : 2);
  Node& node = c.graph().node(c.id());
  node.domain = "com.microsoft";
  node.op_type = lstm ? "LSTMTraining" : "GRUTraining";
  node.version = 1;
  node.attributes = {};
  node.attributes.set("hidden_size", a.hidden);
  if (!lstm) node.attributes.set("linear_before_reset", std::int64_t{a.linear_before_reset});
  Node grad = make_node({}, lstm ? "LSTMGrad" : "GRUGrad", 1, {}, node.attributes, "com.microsoft");
  for (std::size_t i = kX; i <= (lstm ? kC0 : kH0); ++i) {
    if (!lstm || i != kB) grad.inputs.push_back(c.in(i).id);
  }
  grad.inputs.push_back(all_h.id);
  if (lstm) grad.inputs.push_back(all_c.id);
  for (const Expr& e : {gates, c.dy(0), c.dy(1)}) grad.inputs.push_back(e.id);
  if (lstm) grad.inputs.push_back(c.dy(2).id);
  // dX, dW, dR, dB, dH0, dC0: the kernels want them all.
  constexpr std::size_t kOf[] = {kX, kW, kR, kB, kH0, kC0};
  for (std::size_t i = 0; i < (lstm ? 6U : 5U); ++i) {
    grad.outputs.push_back(c.graph().add_value("gradient"));
    c.set(kOf[i], c.expr(grad.outputs.back()));
  }
  c.graph().add_node(std::move(grad));
}

template <Cell kCell>
void recurrent(GradientContext& c) {
  const RecurrentAttrs attrs = read_recurrent_attrs(c.node(), kCell);
  if (c.fused() && is_plain(c, kCell, attrs)) return fused(c, kCell, attrs);
  flow::differentiate(
      c, [&](GradientContext& writer, const std::vector<Expr>& inputs) { return Unrolled(writer, kCell, attrs, inputs).run(); });
}

}  // namespace

void register_gradients_recurrent(GradientTable& t) {
  t.add("LSTM", recurrent<Cell::lstm>);
  t.add("GRU", recurrent<Cell::gru>);
  t.add("RNN", recurrent<Cell::rnn>);
}

}  // namespace sdx::ops
