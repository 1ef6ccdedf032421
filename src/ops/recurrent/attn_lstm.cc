// com.microsoft AttnLSTM 1: an LSTM whose input is joined by what attention over a memory gave at the step before. Source:
// Bahdanau et al., arXiv:1409.0473.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

enum In : std::size_t {
  kX,
  kW,
  kR,
  kB,
  kLengths,
  kInitialH,
  kInitialC,
  kP,
  kQueryW,
  kMemoryW,
  kV,
  kMemory,
  kMemoryLengths,
  kAttentionW
};

void infer_attn_lstm(InferContext& c) {
  const RecurrentAttrs attrs = read_recurrent_attrs(c.node(), Cell::lstm);
  const SymShape *x = c.shape(kX), *r = c.shape(kR);
  if (x != nullptr && x->size() != 3) c.fail("X must have 3 axes, received {}", to_string(*x));
  if (r != nullptr && r->size() != 3) c.fail("R must have 3 axes, received {}", to_string(*r));
  const Dim hidden = attrs.hidden > 0 ? Dim(attrs.hidden) : r != nullptr ? (*r)[2] : Dim();
  const Dim batch = x != nullptr ? (*x)[1] : Dim(), directions(attrs.directions());
  c.output(0, c.dtype(kX), {x != nullptr ? (*x)[0] : Dim(), directions, batch, hidden});
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) c.output(i, c.dtype(kX), {directions, batch, hidden});
}

struct Extents {
  std::int64_t steps = 0, batch = 0, input = 0, hidden = 0, directions = 0;
  std::int64_t memory = 0, depth = 0, keys = 0,
               attention = 0;  // memory steps and width, width of the keys, of what joins the input
};

void expect(OpContext& c, std::size_t i, const Shape& shape, const char* name, bool required = true) {
  const Tensor* t = c.optional_input(i);
  if (t == nullptr && !required) return;
  if (t == nullptr) c.fail("AttnLSTM needs {}", name);
  if (t->shape() != shape) c.fail("{} must be {}, received {}", name, to_string(shape), t->type_string());
}

Extents extents_of(OpContext& c, const RecurrentAttrs& attrs) {
  const Tensor &x = c.input(kX), &r = c.input(kR), &memory = c.input(kMemory), &keys = c.input(kMemoryW);
  if (x.rank() != 3 || r.rank() != 3 || memory.rank() != 3 || keys.rank() != 3) c.fail("X, R, M and MW must have 3 axes");
  Extents e{x.dim(0), x.dim(1), x.dim(2), r.dim(2), attrs.directions(), memory.dim(1), memory.dim(2), keys.dim(2), memory.dim(2)};
  if (attrs.hidden > 0 && attrs.hidden != e.hidden) c.fail("hidden_size is {}, but R has {}", attrs.hidden, e.hidden);
  if (const Tensor* w = c.optional_input(kAttentionW)) {
    e.attention = w->rank() == 3 ? w->dim(2) : 0;
    expect(c, kAttentionW, {e.directions, e.depth + e.hidden, e.attention}, "AW");
  }
  constexpr std::int64_t kWidest = std::int64_t{1} << 31;
  for (const std::int64_t n : {e.input, e.hidden, e.depth, e.keys, e.attention, e.memory, e.batch, e.steps}) {
    if (n > kWidest) c.fail("an extent of {} is too large", n);
  }
  for (const std::int64_t n : {e.input, e.hidden, e.depth, e.keys, e.attention}) {
    if (n < 1)
      c.fail("X, R, M, MW and AW must have features, received {}, {}, {} and {}", x.type_string(), r.type_string(),
             memory.type_string(), keys.type_string());
  }
  expect(c, kW, {e.directions, 4 * e.hidden, e.input + e.attention}, "W");
  expect(c, kR, {e.directions, 4 * e.hidden, e.hidden}, "R");
  expect(c, kB, {e.directions, 8 * e.hidden}, "B", false);
  for (const std::size_t i : {kInitialH, kInitialC}) expect(c, i, {e.directions, e.batch, e.hidden}, "an initial state", false);
  expect(c, kP, {e.directions, 3 * e.hidden}, "P", false);
  expect(c, kQueryW, {e.directions, e.hidden, e.keys}, "QW");
  expect(c, kMemoryW, {e.directions, e.depth, e.keys}, "MW");
  expect(c, kV, {e.directions, e.keys}, "V");
  expect(c, kMemory, {e.batch, e.memory, e.depth}, "M");
  return e;
}

std::vector<std::int64_t> lengths_of(OpContext& c, std::size_t i, std::int64_t batch, std::int64_t most) {
  const Tensor* t = c.optional_input(i);
  if (t == nullptr) return std::vector<std::int64_t>(static_cast<std::size_t>(batch), most);
  std::vector<std::int64_t> lengths = to_ints(*t);
  if (static_cast<std::int64_t>(lengths.size()) != batch)
    c.fail("lengths must have {} elements, received {}", batch, t->type_string());
  for (const std::int64_t n : lengths) {
    if (n < 0 || n > most) c.fail("a length is {}; the maximum is {}", n, most);
  }
  return lengths;
}

// y += x * w, w [rows, columns] (or its transpose, when `transposed`: w [columns, rows]).
template <class C>
void multiply(const C* x, const C* w, std::int64_t rows, std::int64_t columns, bool transposed, C* y) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) y[j] += x[i] * (transposed ? w[j * rows + i] : w[i * columns + j]);
  }
}

// One direction for one sequence.
template <class C>
struct Cells {
  const Extents& e;
  const RecurrentAttrs& attrs;
  const RecurrentActivation* activations;  // f, g, h
  const C *w, *r, *b, *p, *query_w, *v, *attention_w, *memory;
  std::vector<C> keys;  // [valid, e.keys]
  std::int64_t valid = 0;
  std::vector<C> h, cell, attention, gates;

  void clip(C* x, std::int64_t n) const {
    if (attrs.clip <= 0) return;
    for (std::int64_t i = 0; i < n; ++i) x[i] = std::clamp(x[i], static_cast<C>(-attrs.clip), static_cast<C>(attrs.clip));
  }

  void step(const C* x) {
    const std::int64_t n = e.hidden;
    std::fill(gates.begin(), gates.end(), C(0));
    std::vector<C> joined(x, x + e.input);
    joined.insert(joined.end(), attention.begin(), attention.end());
    multiply(joined.data(), w, e.input + e.attention, 4 * n, true, gates.data());
    multiply(h.data(), r, n, 4 * n, true, gates.data());
    for (std::int64_t i = 0; b != nullptr && i < 4 * n; ++i) gates[static_cast<std::size_t>(i)] += b[i] + b[4 * n + i];
    C *in = gates.data(), *out = in + n, *forget = out + n, *fresh = forget + n;
    for (std::int64_t i = 0; p != nullptr && i < n; ++i) {
      in[i] += p[i] * cell[static_cast<std::size_t>(i)];
      forget[i] += p[2 * n + i] * cell[static_cast<std::size_t>(i)];
    }
    clip(in, n), clip(forget, n), clip(fresh, n);
    activate(activations[0], in, n);
    activate(activations[0], forget, n);
    activate(activations[1], fresh, n);
    for (std::int64_t i = 0; i < n; ++i) {
      C& state = cell[static_cast<std::size_t>(i)];
      const C keep = attrs.input_forget ? C(1) - in[i] : forget[i];
      state = keep * state + in[i] * fresh[i];
      if (p != nullptr) out[i] += p[n + i] * state;
    }
    clip(out, n);
    activate(activations[0], out, n);
    h = cell;
    activate(activations[2], h.data(), n);
    for (std::int64_t i = 0; i < n; ++i) h[static_cast<std::size_t>(i)] *= out[i];
    attend();
  }

  void attend() {
    std::vector<C> query(static_cast<std::size_t>(e.keys)), scores(static_cast<std::size_t>(valid)),
        context(static_cast<std::size_t>(e.depth));
    multiply(h.data(), query_w, e.hidden, e.keys, false, query.data());
    C top = -std::numeric_limits<C>::infinity();
    for (std::int64_t j = 0; j < valid; ++j) {
      C sum = 0;
      for (std::int64_t k = 0; k < e.keys; ++k)
        sum += v[k] * std::tanh(keys[static_cast<std::size_t>(j * e.keys + k)] + query[static_cast<std::size_t>(k)]);
      scores[static_cast<std::size_t>(j)] = sum;
      top = std::max(top, sum);
    }
    C total = 0;
    for (C& s : scores) total += s = std::exp(s - top);
    for (C& s : scores) s /= total;
    multiply(scores.data(), memory, valid, e.depth, false, context.data());
    if (attention_w == nullptr) {
      attention = context;
      return;
    }
    std::vector<C> both = h;
    both.insert(both.end(), context.begin(), context.end());
    std::fill(attention.begin(), attention.end(), C(0));
    multiply(both.data(), attention_w, e.hidden + e.depth, e.attention, false, attention.data());
  }
};

template <class C>
struct Arrays {
  FloatInput<C> x, w, r, b, h, c, p, query_w, memory_w, v, memory, attention_w;
  explicit Arrays(OpContext& k)
      : x(k.input(kX)),
        w(k.input(kW)),
        r(k.input(kR)),
        b(k.optional_input(kB)),
        h(k.optional_input(kInitialH)),
        c(k.optional_input(kInitialC)),
        p(k.optional_input(kP)),
        query_w(k.input(kQueryW)),
        memory_w(k.input(kMemoryW)),
        v(k.input(kV)),
        memory(k.input(kMemory)),
        attention_w(k.optional_input(kAttentionW)) {}
};

template <class C>
Cells<C> cells_of(const Arrays<C>& a, const Extents& e, const RecurrentAttrs& attrs, std::int64_t d, std::int64_t b,
                  std::int64_t valid) {
  const std::int64_t n = e.hidden, state = (d * e.batch + b) * n;
  const auto part = [&](const FloatInput<C>& t, std::int64_t size) { return t ? t.data() + d * size : nullptr; };
  Cells<C> k{e,
             attrs,
             attrs.activations.data() + 3 * d,
             part(a.w, 4 * n * (e.input + e.attention)),
             part(a.r, 4 * n * n),
             part(a.b, 8 * n),
             part(a.p, 3 * n),
             part(a.query_w, n * e.keys),
             part(a.v, e.keys),
             part(a.attention_w, (e.depth + n) * e.attention),
             a.memory.data() + b * e.memory * e.depth,
             {},
             valid,
             {},
             {},
             {},
             {}};
  k.h.assign(static_cast<std::size_t>(n), C(0));
  k.cell = k.h;
  if (a.h) std::copy_n(a.h.data() + state, n, k.h.begin());
  if (a.c) std::copy_n(a.c.data() + state, n, k.cell.begin());
  k.attention.resize(static_cast<std::size_t>(e.attention));
  k.gates.resize(static_cast<std::size_t>(4 * n));
  k.keys.resize(static_cast<std::size_t>(valid * e.keys));
  for (std::int64_t j = 0; j < valid; ++j) {
    multiply(k.memory + j * e.depth, part(a.memory_w, e.depth * e.keys), e.depth, e.keys, false, k.keys.data() + j * e.keys);
  }
  return k;
}

void run_attn_lstm(OpContext& c) {
  const RecurrentAttrs attrs = read_recurrent_attrs(c.node(), Cell::lstm);
  const Extents e = extents_of(c, attrs);
  const std::vector<std::int64_t> lengths = lengths_of(c, kLengths, e.batch, e.steps),
                                  valid = lengths_of(c, kMemoryLengths, e.batch, e.memory);
  const DataType type = c.input(kX).dtype();
  Tensor& y = c.output(0, type, {e.steps, e.directions, e.batch, e.hidden});
  Tensor& last_h = c.output(1, type, {e.directions, e.batch, e.hidden});
  Tensor& last_c = c.output(2, type, {e.directions, e.batch, e.hidden});
  dispatch_compute(type, "AttnLSTM", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Arrays<C> arrays(c);
    FloatOutput<C> fy(y), fh(last_h), fc(last_c);
    std::fill_n(fy.data(), y.size(), C(0));
    for (std::int64_t i = 0; i < e.directions * e.batch; ++i) {
      const std::int64_t d = i / e.batch, b = i % e.batch, length = lengths[static_cast<std::size_t>(b)];
      Cells<C> cells = cells_of(arrays, e, attrs, d, b, valid[static_cast<std::size_t>(b)]);
      const bool reverse = attrs.backward && (d == 1 || !attrs.forward);
      for (std::int64_t s = 0; s < length; ++s) {
        c.stop().check();
        const std::int64_t t = reverse ? length - 1 - s : s;
        cells.step(arrays.x.data() + (t * e.batch + b) * e.input);
        std::copy(cells.h.begin(), cells.h.end(), fy.data() + ((t * e.directions + d) * e.batch + b) * e.hidden);
      }
      std::copy(cells.h.begin(), cells.h.end(), fh.data() + i * e.hidden);
      std::copy(cells.cell.begin(), cells.cell.end(), fc.data() + i * e.hidden);
    }
    fy.store(), fh.store(), fc.store();
  });
}

}  // namespace

void register_attn_lstm(OpTable& t) {
  const TypeSet f = set_of(DataType::float32, DataType::float64);
  constexpr TypeSet kInt = bit(DataType::int32);
  constexpr Arity kOptional = Arity::optional;
  OpDef d("com.microsoft", "AttnLSTM", 1);
  d.in("X W R", "T", f).in("B", "T", f, kOptional).in("sequence_lens", "T1", kInt, kOptional);
  d.in("initial_h initial_c P QW MW V M", "T", f, kOptional);
  d.in("memory_seq_lens", "T1", kInt, kOptional).in("AW", "T", f, kOptional);
  d.out("Y Y_h Y_c", "T", f, kOptional);
  d.attrs<RecurrentFields>();
  t.add(std::move(d).infer_with(infer_attn_lstm).run_with(run_attn_lstm));
}

}  // namespace sdx::ops
