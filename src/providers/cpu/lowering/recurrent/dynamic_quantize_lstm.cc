// DynamicQuantizeLSTM with its default activations and constant weights. As in ONNX Runtime, X is rounded to 8 bits as a whole,
// and hidden states before each step. Where ONNX Runtime splits a batch between threads and rounds the states of each part, here
// each sequence is by itself, so that results do not depend on threads.

#include <algorithm>

#include "ops/recurrent/signatures.h"
#include "providers/cpu/byte_operands.h"
#include "providers/cpu/lstm_steps.h"

namespace sdx::cpu {
namespace {

using enum ops::RecurrentIn::Slot;
enum QuantisedIn : std::size_t { kWScale = kPeephole + 1, kWZero, kRScale, kRZero };

// Scales and zero points of one direction's weights, one for each of the 4 * hidden columns.
struct Columns {
  std::vector<float> scale;
  std::vector<std::int32_t> zero;
};

struct Direction {
  ByteMatrix w, r;
  Columns w_columns, r_columns;
  std::vector<float> bias, peephole;
  bool reverse = false;
};

// What one direction needs beside the memory of every recurrent kernel.
struct Scratch {
  std::uint8_t* x;  // rounded
  float* scales;
  float* products;
  std::uint8_t* h;  // of the sequences that go on, rounded
};

Scratch scratch(Workspace& w, const RecurrentState& s, const RecurrentExtents& e) {
  Scratch out{};
  out.x = w.take<std::uint8_t>({s.seq, s.batch, e.input});
  out.scales = w.take<float>({e.width() + 16});
  out.products = w.take<float>({s.batch, e.width()});
  out.h = w.take<std::uint8_t>({s.batch, e.hidden});
  return out;
}

class DynamicLstmKernel : public RecurrentKernel<Direction> {
 public:
  DynamicLstmKernel(std::vector<Direction> directions, std::int64_t input, std::int64_t hidden, float clip)
      : RecurrentKernel(std::move(directions), input, hidden, 4), clip_(clip) {}
  std::string_view name() const override { return "dynamic-quantize-lstm"; }
  bool uses_input(std::size_t i) const override { return i == kX || i == kLengths || i == kH0 || i == kC0; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = resolve_recurrent(c, "DynamicQuantizeLSTM", extents(), {kH0, kC0}, kLstmStates);
    Workspace w;
    recurrent_memory(w, *state, extents(), kLstmStates);
    scratch(w, *state, extents());
    size_workspace(c, *state, extents(), w.used());
    return state;
  }

 private:
  // Makes the epilogue to floats: sums times the columns' scales times `factor`, plus the bias. `scales` has room for all
  // columns.
  static QEpilogue scaled(const Columns& columns, float factor, const float* bias, float* scales) {
    for (std::size_t j = 0; j < columns.scale.size(); ++j) scales[j] = columns.scale[j] * factor;
    QEpilogue e;
    e.output = QEpilogue::Output::f32;
    e.scale = scales;
    e.scale_is_array = true;
    e.bias_f32 = bias;
    return e;
  }

  // Multiplies the inputs of all steps up to the end of the longest sequence; later ones do not count.
  void input_sums(const KernelContext& c, const Sequences& sequences, const Direction& d, const Scratch& t, float* sums) const {
    const std::int64_t rows = sequences.steps() * sequences.batch(), count = rows * input_;
    const ops::DynamicScale q = dynamic_scale_of(c.in<float>(kX), count);
    quantize_u8(c.in<float>(kX), t.x, count, q.scale, q.zero_point);
    d.w.multiply(t.x, false, q.zero_point, rows, scaled(d.w_columns, q.scale, d.bias.empty() ? nullptr : d.bias.data(), t.scales),
                 sums);
  }

  // Returns the gates of `rows` rows: sums + h R'.
  const float* gates(const Direction& d, const Scratch& t, std::int64_t rows, bool together, const float* h,
                     const float* sums) const {
    const std::int64_t n = 4 * hidden_, of_one_grid = together ? rows : 1;
    ops::DynamicScale q;
    for (std::int64_t i = 0; i < rows; ++i) {
      std::uint8_t* const rounded = t.h + i * hidden_;
      if (i % of_one_grid == 0) {
        q = dynamic_scale_of(h + i * hidden_, of_one_grid * hidden_);
        quantize_u8(h + i * hidden_, rounded, of_one_grid * hidden_, q.scale, q.zero_point);
      }
      d.r.multiply(rounded, false, q.zero_point, 1, scaled(d.r_columns, q.scale, sums + i * n, t.scales), t.products + i * n);
    }
    return t.products;
  }

  void run_direction(const KernelContext& c, const RecurrentState& s, std::size_t number) const override {
    const Direction& d = directions_[number];
    Workspace w = workspace_of(c, s, number);
    const RecurrentMemory m = recurrent_memory(w, s, extents(), kLstmStates);
    const Scratch t = scratch(w, s, extents());
    const Sequences sequences = sequences_of(c, s, m);
    input_sums(c, sequences, d, t, m.sums);
    const bool together = ops::states_share_grid(s.batch, hidden_);
    run_lstm(
        c, sequences, m, output_of(c, number), {d.peephole.empty() ? nullptr : d.peephole.data(), clip_, d.reverse},
        [&](std::int64_t rows, std::int64_t, const float* h, const float* sums) { return gates(d, t, rows, together, h, sums); });
  }

  float clip_;
};

// Reads one direction's scales and zero points, one for the direction or one for each column. Nothing after a refusal.
std::optional<Columns> columns_of(LowerContext& c, std::size_t weights, std::size_t scale, std::size_t zero,
                                  std::int64_t directions, std::int64_t number, std::int64_t n) {
  const Tensor *s = c.constant(scale), *z = c.constant(zero);
  if (s == nullptr || z == nullptr) return c.refuse("scales or zero points are not constant"), std::nullopt;
  const bool per_column = s->size() != directions;
  if (s->dtype() != DataType::float32 || z->dtype() != c.dtype(weights) || s->size() != z->size() ||
      (per_column && s->size() != directions * n)) {
    return c.refuse("there is no scale and zero point per direction or per column"), std::nullopt;
  }
  Columns out;
  out.scale = constant_piece(*s, per_column ? number * n : number, per_column ? n : 1);
  const std::vector<std::int32_t> zeros = ops::decode_ints(*z);
  out.zero.assign(zeros.begin() + (per_column ? number * n : number),
                  zeros.begin() + (per_column ? (number + 1) * n : number + 1));
  out.scale.resize(static_cast<std::size_t>(n), out.scale[0]);
  out.zero.resize(static_cast<std::size_t>(n), out.zero[0]);
  return out;
}

std::optional<Direction> make_direction(LowerContext& c, const ops::RecurrentAttrs& a, std::int64_t number, std::int64_t input,
                                        std::int64_t hidden) {
  const Tensor &w = *c.constant(kW), &r = *c.constant(kR);
  const std::int64_t n = 4 * hidden;
  auto w_columns = columns_of(c, kW, kWScale, kWZero, a.directions(), number, n);
  auto r_columns = columns_of(c, kR, kRScale, kRZero, a.directions(), number, n);
  if (!w_columns || !r_columns) return std::nullopt;
  Direction d;
  d.reverse = a.backward && (number == 1 || !a.forward);
  d.w = packed_matrix(c, {w, c.constant(kWZero), number, false}, input, n, w_columns->zero);
  d.r = packed_matrix(c, {r, c.constant(kRZero), number, false}, hidden, n, r_columns->zero);
  d.w_columns = std::move(*w_columns);
  d.r_columns = std::move(*r_columns);
  if (c.has_input(kB)) d.bias = both_biases(*c.constant(kB), number * 2 * n, n);
  if (c.has_input(kPeephole)) d.peephole = constant_piece(*c.constant(kPeephole), number * 3 * hidden, 3 * hidden);
  return d;
}

std::unique_ptr<Kernel> make_dynamic_lstm(LowerContext& c) {
  const ops::RecurrentAttrs a = ops::read_recurrent_attrs(c.node(), ops::Cell::lstm);
  if (a.input_forget) return c.refuse("input and forget gates are coupled");
  if (!default_activations(a, 3)) return c.refuse("other activations than Sigmoid, Tanh, Tanh");
  const Tensor *w = c.constant(kW), *r = c.constant(kR), *b = c.constant(kB), *p = c.constant(kPeephole);
  if (w == nullptr || r == nullptr || (c.has_input(kB) && b == nullptr) || (c.has_input(kPeephole) && p == nullptr)) {
    return c.refuse("the weights are not constant");
  }
  if (w->rank() != 3 || r->rank() != 3 || w->size() == 0 || r->size() == 0) return c.refuse("weights of another rank, or empty");
  const std::int64_t n = a.directions(), input = w->shape()[1], hidden = r->shape()[1];
  if (w->shape() != Shape{n, input, 4 * hidden} || r->shape() != Shape{n, hidden, 4 * hidden} ||
      (b != nullptr && b->shape() != Shape{n, 8 * hidden}) || (p != nullptr && p->shape() != Shape{n, 3 * hidden}) ||
      (a.hidden > 0 && a.hidden != hidden)) {
    return c.refuse("the weights' shapes do not agree");
  }
  if (input >= 65536 || hidden >= 65536) return c.refuse("sums of products may exceed 32 bits");
  std::vector<Direction> directions;
  for (std::int64_t i = 0; i < n; ++i) {
    auto d = make_direction(c, a, i, input, hidden);
    if (!d) return nullptr;
    directions.push_back(std::move(*d));
  }
  return std::make_unique<DynamicLstmKernel>(std::move(directions), input, hidden, a.clip);
}

}  // namespace

void register_kernels_dynamic_quantize_lstm(KernelTable& t) {
  t.add("com.microsoft", "DynamicQuantizeLSTM", "dynamic-quantize-lstm", 10, make_dynamic_lstm);
}

}  // namespace sdx::cpu
