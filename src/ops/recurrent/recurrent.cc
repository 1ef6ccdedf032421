#include "ops/recurrent/recurrent.h"

#include <algorithm>
#include <utility>

#include "ops/math/float_view.h"
#include "ops/matrix/gemm_reference.h"
#include "ops/recurrent/signatures.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

// Inputs: X W R B sequence_lens initial_h initial_c P
using enum RecurrentIn::Slot;

struct Sizes {
  std::int64_t seq, batch, input, hidden, directions, gates;
};

void check_shape(const Tensor* t, const Shape& expected, const char* name) {
  if (t == nullptr || t->shape() == expected) return;
  fail(ErrorCode::runtime_failure, "{} must have shape {}, received {}", name, to_string(expected), to_string(t->shape()));
}

Shape state_shape(const Sizes& s, bool batch_first) {
  return batch_first ? Shape{s.batch, s.directions, s.hidden} : Shape{s.directions, s.batch, s.hidden};
}

Sizes check_inputs(OpContext& c, Cell cell, const RecurrentAttrs& a) {
  const Tensor& x = c.input(kX);
  const Tensor& r = c.input(kR);
  if (x.rank() != 3 || r.rank() != 3) {
    c.fail("X and R must have rank 3, received {} and {}", to_string(x.shape()), to_string(r.shape()));
  }
  Sizes s{x.dim(a.batch_first ? 1 : 0), x.dim(a.batch_first ? 0 : 1), x.dim(2), r.dim(2), a.directions(), gates_of(cell)};
  if (a.hidden != 0 && a.hidden != s.hidden) c.fail("hidden_size is {} but R holds {} hidden units", a.hidden, s.hidden);
  // R exists, so gates * hidden is far from overflowing unless another extent is 0.
  if (s.hidden > (std::int64_t{1} << 40) || s.hidden < 1) c.fail("R has {} hidden units; it must have at least one", s.hidden);
  const std::int64_t gh = s.gates * s.hidden;
  check_shape(&c.input(kW), {s.directions, gh, s.input}, "W");
  check_shape(&r, {s.directions, gh, s.hidden}, "R");
  check_shape(c.optional_input(kB), {s.directions, 2 * gh}, "B");
  check_shape(c.optional_input(kLengths), {s.batch}, "sequence_lens");
  check_shape(c.optional_input(kH0), state_shape(s, a.batch_first), "initial_h");
  if (cell == Cell::lstm) {
    check_shape(c.optional_input(kC0), state_shape(s, a.batch_first), "initial_c");
    check_shape(c.optional_input(kPeephole), {s.directions, 3 * s.hidden}, "P");
  }
  return s;
}

std::vector<std::int64_t> sequence_lengths(OpContext& c, const Sizes& s) {
  const Tensor* lens = c.optional_input(kLengths);
  if (lens == nullptr) return std::vector<std::int64_t>(static_cast<std::size_t>(s.batch), s.seq);
  std::vector<std::int64_t> out = to_ints(*lens);
  for (const std::int64_t n : out) {
    if (n < 0 || n > s.seq) c.fail("sequence_lens holds {}; permitted: 0 to {}", n, s.seq);
  }
  return out;
}

// Everything one direction reads and writes. h and cell: [batch, hidden].
template <class C>
struct Direction {
  const Sizes& s;
  const RecurrentAttrs& a;
  const RecurrentActivation* activations;
  const C* wb;        // gates * hidden, or null
  const C* rb;        // gates * hidden, or null
  const C* peephole;  // i, o, f; or null
  std::vector<C> h, cell;

  C clip(C v) const { return a.clip > 0 ? std::clamp(v, -static_cast<C>(a.clip), static_cast<C>(a.clip)) : v; }
  void activate_clipped(const RecurrentActivation& f, C* v, std::int64_t n) const {
    if (a.clip > 0) {
      for (std::int64_t i = 0; i < n; ++i) v[i] = clip(v[i]);
    }
    activate(f, v, n);
  }
};

// `gates`: X*W' + H*R' + biases, for one row; order i o f c. Updates the row's state.
template <class C>
void lstm_step(Direction<C>& d, C* gates, std::int64_t row) {
  const std::int64_t n = d.s.hidden;
  C* h = d.h.data() + row * n;
  C* cell = d.cell.data() + row * n;
  C* in = gates;
  C* out = gates + n;
  C* forget = gates + 2 * n;
  C* candidate = gates + 3 * n;
  if (d.peephole != nullptr) {
    for (std::int64_t i = 0; i < n; ++i) in[i] += d.peephole[i] * cell[i];
    for (std::int64_t i = 0; i < n; ++i) forget[i] += d.peephole[2 * n + i] * cell[i];
  }
  d.activate_clipped(d.activations[0], in, n);
  d.activate_clipped(d.activations[1], candidate, n);
  if (d.a.input_forget) {
    for (std::int64_t i = 0; i < n; ++i) forget[i] = C(1) - in[i];
  } else {
    d.activate_clipped(d.activations[0], forget, n);
  }
  for (std::int64_t i = 0; i < n; ++i) cell[i] = forget[i] * cell[i] + in[i] * candidate[i];
  if (d.peephole != nullptr) {
    for (std::int64_t i = 0; i < n; ++i) out[i] += d.peephole[n + i] * cell[i];
  }
  d.activate_clipped(d.activations[0], out, n);
  std::copy_n(cell, n, h);
  activate(d.activations[2], h, n);  // the clip is for gates
  for (std::int64_t i = 0; i < n; ++i) h[i] *= out[i];
}

using RoundStates = void (*)(float*, std::int64_t, std::int64_t, std::int64_t);

template <class C>
class Runner {
 public:
  Runner(OpContext& c, Cell cell, const RecurrentAttrs& a, const Sizes& s, RoundStates round_states)
      : c_(c),
        round_states_(round_states),
        cell_(cell),
        a_(a),
        s_(s),
        lens_(sequence_lengths(c, s)),
        longest_(s.batch == 0 ? 0 : *std::max_element(lens_.begin(), lens_.end())) {}

  void run() {
    const DataType elem = c_.input(kX).dtype();
    const Shape y_shape =
        a_.batch_first ? Shape{s_.batch, s_.seq, s_.directions, s_.hidden} : Shape{s_.seq, s_.directions, s_.batch, s_.hidden};
    const FloatInput<C> x(c_.input(kX)), w(c_.input(kW)), r(c_.input(kR)), b(c_.optional_input(kB)), h0(c_.optional_input(kH0));
    const bool lstm = cell_ == Cell::lstm;
    const FloatInput<C> c0(lstm ? c_.optional_input(kC0) : nullptr), p(lstm ? c_.optional_input(kPeephole) : nullptr);
    Tensor& y = c_.output(0, elem, c_.wants_output(0) ? y_shape : Shape{0});
    Tensor& y_h = c_.output(1, elem, state_shape(s_, a_.batch_first));
    FloatOutput<C> fy(y), fh(y_h);
    y_ = c_.wants_output(0) ? fy.data() : nullptr;
    if (y_ != nullptr) std::fill_n(y_, y.size(), C(0));
    std::vector<C> last_cell(static_cast<std::size_t>(y_h.size()));
    const std::int64_t gh = s_.gates * s_.hidden;
    for (std::int64_t d = 0; d < s_.directions; ++d) {
      const bool reverse = a_.backward && (d == 1 || !a_.forward);
      Direction<C> dir{s_,
                       a_,
                       a_.activations.data() + static_cast<std::size_t>(d) * activations_of(cell_),
                       b ? b.data() + d * 2 * gh : nullptr,
                       b ? b.data() + d * 2 * gh + gh : nullptr,
                       p ? p.data() + d * 3 * s_.hidden : nullptr,
                       initial(h0, d),
                       initial(c0, d)};
      const std::vector<C> inputs = project_inputs(x.data(), w.data() + d * gh * s_.input, dir);
      run_direction(dir, inputs, transposed(r.data() + d * gh * s_.hidden, gh, s_.hidden), d, reverse);
      for (std::int64_t row = 0; row < s_.batch; ++row) {
        std::copy_n(dir.h.data() + row * s_.hidden, s_.hidden, fh.data() + state_at(d, row));
        std::copy_n(dir.cell.data() + row * s_.hidden, s_.hidden, last_cell.data() + state_at(d, row));
      }
    }
    fy.store();
    fh.store();
    if (lstm && c_.wants_output(2)) store_floats(last_cell.data(), c_.output(2, elem, state_shape(s_, a_.batch_first)));
  }

 private:
  std::int64_t state_at(std::int64_t d, std::int64_t row) const {
    return (a_.batch_first ? row * s_.directions + d : d * s_.batch + row) * s_.hidden;
  }
  std::int64_t input_row(std::int64_t t, std::int64_t row) const {
    return a_.batch_first ? row * s_.seq + t : t * s_.batch + row;
  }
  std::int64_t output_at(std::int64_t t, std::int64_t d, std::int64_t row) const {
    return (a_.batch_first ? (row * s_.seq + t) * s_.directions + d : (t * s_.directions + d) * s_.batch + row) * s_.hidden;
  }

  std::vector<C> initial(const FloatInput<C>& given, std::int64_t d) const {
    std::vector<C> out(static_cast<std::size_t>(s_.batch * s_.hidden), C(0));
    if (!given) return out;
    for (std::int64_t row = 0; row < s_.batch; ++row) {
      std::copy_n(given.data() + state_at(d, row), s_.hidden, out.data() + row * s_.hidden);
    }
    return out;
  }

  // X*W' plus the biases, for all steps at once. GRU with linear_before_reset keeps the hidden gate's recurrent bias apart.
  std::vector<C> project_inputs(const C* x, const C* w, const Direction<C>& d) const {
    const std::int64_t gh = s_.gates * s_.hidden;
    const std::int64_t rows = s_.seq * s_.batch;
    std::vector<C> out(static_cast<std::size_t>(element_count(Shape{rows, gh})));
    const std::vector<C> straight = transposed(w, gh, s_.input);
    gemm_parallel(GemmArgs<C>{rows, gh, s_.input, x, s_.input, 1, straight.data(), gh, out.data(), gh});
    if (d.wb == nullptr) return out;
    const std::int64_t apart = cell_ == Cell::gru && a_.linear_before_reset ? 2 * s_.hidden : gh;
    for (std::int64_t row = 0; row < rows; ++row) {
      C* o = out.data() + row * gh;
      for (std::int64_t i = 0; i < gh; ++i) o[i] += d.wb[i] + (i < apart ? d.rb[i] : C(0));
    }
    return out;
  }

  // All rows of a (batch x hidden) times columns [from, to) of R', into `out` (batch x gates*hidden).
  void recur(const std::vector<C>& a, const std::vector<C>& r, std::int64_t from, std::int64_t to, std::vector<C>& out) const {
    const std::int64_t gh = s_.gates * s_.hidden;
    gemm_parallel(
        GemmArgs<C>{s_.batch, to - from, s_.hidden, a.data(), s_.hidden, 1, r.data() + from, gh, out.data() + from, gh});
  }

  void run_direction(Direction<C>& d, const std::vector<C>& inputs, const std::vector<C>& r, std::int64_t number, bool reverse) {
    const std::int64_t n = s_.hidden;
    const std::int64_t gh = s_.gates * n;
    std::vector<C> recurrent(static_cast<std::size_t>(s_.batch * gh));
    std::vector<C> gates(recurrent.size());
    for (std::int64_t step = 0; step < longest_; ++step) {
      c_.stop().check();
      const bool split = cell_ == Cell::gru && !a_.linear_before_reset;
      if (round_states_ == nullptr) {
        recur(d.h, r, 0, split ? 2 * n : gh, recurrent);
      } else {
        recur(rounded_states(d.h, step), r, 0, split ? 2 * n : gh, recurrent);
      }
      for (std::int64_t row = 0; row < s_.batch; ++row) {
        if (step < length(row))
          load_gates(inputs, recurrent, row, time(row, step, reverse), cell_ == Cell::gru ? 2 * n : gh, gates);
      }
      if (cell_ == Cell::gru) gru_steps(d, inputs, r, recurrent, gates, step, reverse);
      for (std::int64_t row = 0; row < s_.batch; ++row) {
        if (step >= length(row)) continue;
        C* g = gates.data() + row * gh;
        C* h = d.h.data() + row * n;
        if (cell_ == Cell::lstm) lstm_step(d, g, row);
        if (cell_ == Cell::rnn) {
          d.activate_clipped(d.activations[0], g, n);
          std::copy_n(g, n, h);
        }
        if (y_ != nullptr) std::copy_n(h, n, y_ + output_at(time(row, step, reverse), number, row));
      }
    }
  }

  std::vector<C> rounded_states(const std::vector<C>& states, std::int64_t step) const {
    std::vector<C> seen = states;
    if constexpr (std::is_same_v<C, float>) {
      std::vector<C> going;
      const auto each = [&](const auto& use) {
        for (std::int64_t row = 0; row < s_.batch; ++row) {
          if (step < length(row)) use(seen.begin() + row * s_.hidden);
        }
      };
      each([&](auto row) { going.insert(going.end(), row, row + s_.hidden); });
      round_states_(going.data(), static_cast<std::int64_t>(going.size()) / std::max<std::int64_t>(1, s_.hidden), s_.hidden,
                    s_.batch);
      auto from = going.begin();
      each([&](auto row) { std::copy_n(std::exchange(from, from + s_.hidden), s_.hidden, row); });
    }
    return seen;
  }

  std::int64_t length(std::int64_t row) const { return lens_[static_cast<std::size_t>(row)]; }
  std::int64_t time(std::int64_t row, std::int64_t step, bool reverse) const { return reverse ? length(row) - 1 - step : step; }

  void load_gates(const std::vector<C>& inputs, const std::vector<C>& recurrent, std::int64_t row, std::int64_t t,
                  std::int64_t count, std::vector<C>& gates) const {
    const std::int64_t gh = s_.gates * s_.hidden;
    const C* x = inputs.data() + input_row(t, row) * gh;
    const C* h = recurrent.data() + row * gh;
    C* g = gates.data() + row * gh;
    for (std::int64_t i = 0; i < count; ++i) g[i] = x[i] + h[i];
  }

  // Gates z and r of all rows are summed up already; makes the hidden gate and updates h.
  void gru_steps(Direction<C>& d, const std::vector<C>& inputs, const std::vector<C>& r, std::vector<C>& recurrent,
                 std::vector<C>& gates, std::int64_t step, bool reverse) const {
    const std::int64_t n = s_.hidden;
    const std::int64_t gh = s_.gates * n;
    std::vector<C> reset(d.h);
    for (std::int64_t row = 0; row < s_.batch; ++row) {
      if (step >= length(row)) continue;
      C* g = gates.data() + row * gh;
      d.activate_clipped(d.activations[0], g, 2 * n);
      for (std::int64_t i = 0; i < n; ++i) reset[static_cast<std::size_t>(row * n + i)] *= g[n + i];
    }
    if (!a_.linear_before_reset) recur(reset, r, 2 * n, gh, recurrent);
    for (std::int64_t row = 0; row < s_.batch; ++row) {
      if (step >= length(row)) continue;
      C* g = gates.data() + row * gh;
      C* hidden = g + 2 * n;
      C* h = d.h.data() + row * n;
      const C* x = inputs.data() + input_row(time(row, step, reverse), row) * gh + 2 * n;
      const C* rec = recurrent.data() + row * gh + 2 * n;
      for (std::int64_t i = 0; i < n; ++i) {
        const C bias = a_.linear_before_reset && d.rb != nullptr ? d.rb[2 * n + i] : C(0);
        hidden[i] = x[i] + (a_.linear_before_reset ? g[n + i] * (rec[i] + bias) : rec[i]);
      }
      d.activate_clipped(d.activations[1], hidden, n);
      for (std::int64_t i = 0; i < n; ++i) h[i] = (C(1) - g[i]) * hidden[i] + g[i] * h[i];
    }
  }

  OpContext& c_;
  RoundStates round_states_;
  Cell cell_;
  const RecurrentAttrs& a_;
  const Sizes& s_;
  std::vector<std::int64_t> lens_;
  std::int64_t longest_;
  C* y_ = nullptr;
};

Dim hidden_extent(const InferContext& c, const RecurrentAttrs& a) {
  const SymShape* r = c.shape(kR);
  if (r != nullptr && r->size() == 3 && !(*r)[2].is_unknown()) return (*r)[2];
  return a.hidden > 0 ? Dim(a.hidden) : Dim();
}

void check_rank(const InferContext& c, std::size_t input, std::size_t rank, const char* name) {
  const SymShape* s = c.shape(input);
  if (s != nullptr && s->size() != rank) c.fail("{} must have rank {}, received shape {}", name, rank, to_string(*s));
}

}  // namespace

void infer_recurrent(InferContext& c, Cell cell) {
  const RecurrentAttrs a = read_recurrent_attrs(c.node(), cell);
  check_rank(c, kX, 3, "X");
  check_rank(c, kW, 3, "W");
  check_rank(c, kR, 3, "R");
  const SymShape* x = c.shape(kX);
  const Dim seq = x == nullptr ? Dim() : (*x)[a.batch_first ? 1 : 0];
  const Dim batch = x == nullptr ? Dim() : (*x)[a.batch_first ? 0 : 1];
  const Dim hidden = hidden_extent(c, a);
  if (a.hidden > 0 && hidden.is_const() && hidden.value() != a.hidden) {
    c.fail("hidden_size is {} but R holds {} hidden units", a.hidden, hidden.value());
  }
  const Dim directions(a.directions());
  const DataType elem = c.dtype(kX);
  c.output(0, elem, a.batch_first ? SymShape{batch, seq, directions, hidden} : SymShape{seq, directions, batch, hidden});
  for (std::size_t i = 1; i < c.num_outputs(); ++i) {
    c.output(i, elem, a.batch_first ? SymShape{batch, directions, hidden} : SymShape{directions, batch, hidden});
  }
}

void run_recurrent(OpContext& c, Cell cell, RoundStates round_states) {
  const RecurrentAttrs a = read_recurrent_attrs(c.node(), cell);
  const Sizes s = check_inputs(c, cell, a);
  dispatch_compute(c.input(kX).dtype(), c.node().op_type,
                   [&](auto tag) { Runner<typename decltype(tag)::type>(c, cell, a, s, round_states).run(); });
}

}  // namespace sdx::ops
