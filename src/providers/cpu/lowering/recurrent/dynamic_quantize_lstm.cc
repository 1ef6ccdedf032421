// DynamicQuantizeLSTM with its default activations and constant weights. X is rounded to 8 bits as the operator says. The hidden
// state, which lies between -1 and 1, is rounded to about 15 bits: as much as exact 32-bit sums of products with the weights
// permit.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "ops/recurrent/signatures.h"
#include "providers/cpu/byte_operands.h"
#include "providers/cpu/lstm_steps.h"

namespace sdx::cpu {
namespace {

using enum ops::RecurrentIn::Slot;
enum QuantisedIn : std::size_t { kWScale = kPeephole + 1, kWZero, kRScale, kRZero };

// Scales and zero points of a direction's weights, one for each column, of which there are 4 * hidden.
struct Columns {
  std::vector<float> scale;
  std::vector<std::int32_t> zero;
};

struct Direction {
  ByteMatrix w;
  Packed r;
  bool r_signed = true;
  Columns w_columns, r_columns;
  float largest_code = 0;  // of the hidden state
  std::vector<float> bias, peephole;
  bool reverse = false;
};

// What a direction needs beyond the memory of every recurrent kernel.
struct Scratch {
  std::uint8_t* x;  // rounded
  float* scales;
  float* products;
  void* h;  // rounded, packed
};

Scratch scratch(Workspace& w, const RecurrentState& s, const RecurrentExtents& e) {
  Scratch out{};
  out.x = w.take<std::uint8_t>({s.seq, s.batch, e.input});
  out.scales = w.take<float>({e.width() + 16});
  out.products = w.take<float>({s.batch, e.width()});
  out.h = w.take<char>({static_cast<std::int64_t>(packed_qa_bytes(s.batch, e.hidden))});
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
  // To floats: sums times the columns' scales times `factor`, plus the bias. scales: room for all columns.
  static QEpilogue scaled(const Columns& columns, float factor, const float* bias, float* scales) {
    for (std::size_t j = 0; j < columns.scale.size(); ++j) scales[j] = columns.scale[j] * factor;
    QEpilogue e;
    e.output = QEpilogue::Output::f32;
    e.scale = scales;
    e.scale_is_array = true;
    e.bias_f32 = bias;
    return e;
  }

  void input_sums(const KernelContext& c, const RecurrentState& s, const Direction& d, const Scratch& t, float* sums) const {
    const std::int64_t rows = s.seq * s.batch, count = rows * input_;
    const ops::DynamicScale q = dynamic_scale_of(c.in<float>(kX), count);
    quantize_u8(c.in<float>(kX), t.x, count, q.scale, q.zero_point);
    d.w.multiply(t.x, false, q.zero_point, rows, scaled(d.w_columns, q.scale, d.bias.empty() ? nullptr : d.bias.data(), t.scales),
                 sums);
  }

  // The gates of `rows` rows: sums + h R', with |h| <= bound.
  const float* gates(const Direction& d, const Scratch& t, std::int64_t rows, float bound, const float* h,
                     const float* sums) const {
    const std::int64_t n = 4 * hidden_;
    pack_qa_f32(h, hidden_, rows, hidden_, d.largest_code / bound, t.h);
    QGemmArgs g;
    g.m = rows;
    g.n = n;
    g.k = hidden_;
    g.packed_a = t.h;
    g.packed_b = d.r.data();
    g.b_signed = d.r_signed;
    g.b_zeros = d.r_columns.zero.data();
    g.epilogue = scaled(d.r_columns, bound / d.largest_code, rows == 1 ? sums : nullptr, t.scales);
    g.c = t.products;
    g.ldc = n;
    qgemm(g);
    if (rows > 1) binary_f32(Binary::add, t.products, sums, t.products, rows * n);
    return t.products;
  }

  void run_direction(const KernelContext& c, const RecurrentState& s, std::size_t number) const override {
    const Direction& d = directions_[number];
    Workspace w = workspace_of(c, s, number);
    const RecurrentMemory m = recurrent_memory(w, s, extents(), kLstmStates);
    const Scratch t = scratch(w, s, extents());
    input_sums(c, s, d, t, m.sums);
    run_lstm(c, sequences_of(c, s, m), m, output_of(c, number),
             {d.peephole.empty() ? nullptr : d.peephole.data(), clip_, d.reverse},
             [&](std::int64_t rows, std::int64_t step, const float* h, const float* sums) {
               float bound = 1;  // later states are products of a sigmoid and a hyperbolic tangent
               if (step == 0) {
                 for (std::int64_t i = 0; i < rows * hidden_; ++i) bound = std::max(bound, std::fabs(h[i]));
               }
               return gates(d, t, rows, bound, h, sums);
             });
  }

  float clip_;
};

// One direction's scales and zero points, of which there is one per direction or one per column. None: refused, and why is said.
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

// The largest code of 16 bits with which no column's sum of products leaves 32 bits. weights: [k, n].
float largest_code(const Tensor& weights, std::int64_t part, std::int64_t k, const std::vector<std::int32_t>& zeros) {
  const std::size_t n = zeros.size();
  const auto* bytes = static_cast<const std::uint8_t*>(weights.data()) + part * k * static_cast<std::int64_t>(n);
  const bool is_signed = weights.dtype() == DataType::int8;
  std::vector<std::int64_t> sums(n);
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < n; ++j, ++bytes) {
      const std::int32_t value = is_signed ? static_cast<std::int8_t>(*bytes) : *bytes;
      sums[j] += std::abs(value - zeros[j]);
    }
  }
  const std::int64_t most = std::max<std::int64_t>(1, *std::max_element(sums.begin(), sums.end()));
  return static_cast<float>(
      std::min<std::int64_t>(std::numeric_limits<std::int16_t>::max(), std::numeric_limits<std::int32_t>::max() / most));
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
  d.r_signed = r.dtype() == DataType::int8;
  d.r = c.pack({&r}, packed_qb_bytes(hidden, n), cache::PackKey("byte-gates", d.r_signed, number, hidden, n), [&](float* to) {
    pack_qb(static_cast<const char*>(r.data()) + number * hidden * n, d.r_signed, n, false, hidden, n, to);
  });
  d.largest_code = largest_code(r, number, hidden, r_columns->zero);
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
  if (input >= 65536 || hidden >= 32768) return c.refuse("sums of products may exceed 32 bits");
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
