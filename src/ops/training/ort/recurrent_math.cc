#include <algorithm>
#include <cmath>

#include "ops/matrix/gemm_reference.h"
#include "ops/training/ort/recurrent_training.h"

namespace sdx::ops {
namespace {

template <class C>
void plain_product(std::int64_t m, std::int64_t n, std::int64_t k, const C* a, bool trans_a, const C* b, bool trans_b, C* c,
                   bool add) {
  std::vector<C> straight;
  if (trans_b) straight = transposed(b, n, k);
  std::vector<C> apart(add ? static_cast<std::size_t>(m * n) : 0);
  GemmArgs<C> g{m, n, k, a, trans_a ? 1 : k, trans_a ? m : 1, trans_b ? straight.data() : b, n, add ? apart.data() : c, n};
  gemm_parallel(g);
  for (std::size_t i = 0; i < apart.size(); ++i) c[i] += apart[i];
}

template <class C>
void plain_sigmoid(C* v, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) v[i] = C(1) / (C(1) + std::exp(-v[i]));
}

template <class C>
void plain_tanh(C* v, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) v[i] = std::tanh(v[i]);
}

template <class C>
std::vector<C> buffer(std::int64_t n) {
  return std::vector<C>(static_cast<std::size_t>(n), C(0));
}

template <class C>
void copy_or_zero(const C* from, std::int64_t n, C* to) {
  if (from != nullptr) {
    std::copy_n(from, n, to);
  } else {
    std::fill_n(to, n, C(0));
  }
}

// gates = X W' + biases, of all steps; from column `with_r` on the recurrent bias is left out.
template <class C>
void project(const RecurrentForward<C>& f, std::int64_t gh, std::int64_t with_r, const RecurrentMath<C>& math) {
  const std::int64_t rows = f.sizes.steps * f.sizes.batch;
  math.product(rows, gh, f.sizes.input, f.x, false, f.w, true, f.gates, false);
  if (f.bias == nullptr) return;
  std::vector<C> sum(f.bias, f.bias + gh);
  for (std::int64_t i = 0; i < with_r; ++i) sum[static_cast<std::size_t>(i)] += f.bias[gh + i];
  for (std::int64_t row = 0; row < rows; ++row) {
    C* g = f.gates + row * gh;
    for (std::int64_t i = 0; i < gh; ++i) g[i] += sum[static_cast<std::size_t>(i)];
  }
}

// The states that each step started with: [S, N, H].
template <class C>
std::vector<C> before(const RecurrentSizes& s, const C* initial, const C* all) {
  std::vector<C> out = buffer<C>(s.steps * s.state());
  if (s.steps == 0) return out;
  copy_or_zero(initial, s.state(), out.data());
  std::copy_n(all, (s.steps - 1) * s.state(), out.data() + s.state());
  return out;
}

template <class C>
void add_columns(const C* rows, std::int64_t count, std::int64_t width, std::int64_t stride, C* out) {
  std::vector<double> sums(static_cast<std::size_t>(width), 0.0);
  for (std::int64_t r = 0; r < count; ++r) {
    for (std::int64_t i = 0; i < width; ++i) sums[static_cast<std::size_t>(i)] += static_cast<double>(rows[r * stride + i]);
  }
  for (std::int64_t i = 0; i < width; ++i) out[i] = static_cast<C>(sums[static_cast<std::size_t>(i)]);
}

// Computes the gradients of X and W from that of the gates' sums.
template <class C>
void of_input(const RecurrentBackward<C>& b, const std::vector<C>& d, std::int64_t gh, const RecurrentMath<C>& math) {
  const RecurrentSizes& s = b.forward.sizes;
  const std::int64_t rows = s.steps * s.batch;
  if (b.d_x != nullptr) math.product(rows, s.input, gh, d.data(), false, b.forward.w, false, b.d_x, false);
  if (b.d_w != nullptr) math.product(gh, s.input, rows, d.data(), true, b.forward.x, false, b.d_w, false);
  if (b.d_bias == nullptr) return;
  add_columns(d.data(), rows, gh, gh, b.d_bias);
  std::copy_n(b.d_bias, gh, b.d_bias + gh);
}

template <class C>
void add_peephole(const C* weights, const C* cell, std::int64_t h, C* gate) {
  for (std::int64_t i = 0; i < h; ++i) gate[i] += weights[i] * cell[i];
}

// One row of one step: gates hold the sums, then what the activations give.
template <class C>
void lstm_row(const RecurrentForward<C>& f, C* gates, const C* cell, C* next_cell, C* h, const RecurrentMath<C>& math) {
  const std::int64_t n = f.sizes.hidden;
  if (f.peephole != nullptr) {
    add_peephole(f.peephole, cell, n, gates);
    add_peephole(f.peephole + 2 * n, cell, n, gates + 2 * n);
  }
  math.sigmoid(gates, n);
  math.sigmoid(gates + 2 * n, n);
  math.tanh(gates + 3 * n, n);
  for (std::int64_t i = 0; i < n; ++i) next_cell[i] = gates[2 * n + i] * cell[i] + gates[i] * gates[3 * n + i];
  if (f.peephole != nullptr) add_peephole(f.peephole + n, next_cell, n, gates + n);
  math.sigmoid(gates + n, n);
  std::copy_n(next_cell, n, h);
  math.tanh(h, n);
  for (std::int64_t i = 0; i < n; ++i) h[i] *= gates[n + i];
}

// dh and dc come in as those of the step's results and leave as dc of the state before (dh is for the caller); `d` becomes the
// gradient of the gates' sums.
template <class C>
void lstm_row_back(const RecurrentForward<C>& f, const C* gates, const C* cell, const C* tanh_cell, const C* next_cell,
                   const C* dh, C* dc, C* d, double* d_peephole) {
  const std::int64_t n = f.sizes.hidden;
  for (std::int64_t i = 0; i < n; ++i) {
    const C in = gates[i], out = gates[n + i], forget = gates[2 * n + i], candidate = gates[3 * n + i];
    const C d_out = dh[i] * tanh_cell[i] * out * (C(1) - out);
    const C sum = dc[i] + dh[i] * out * (C(1) - tanh_cell[i] * tanh_cell[i]);
    const C d_in = sum * candidate * in * (C(1) - in);
    const C d_forget = sum * cell[i] * forget * (C(1) - forget);
    d[i] = d_in;
    d[n + i] = d_out;
    d[2 * n + i] = d_forget;
    d[3 * n + i] = sum * in * (C(1) - candidate * candidate);
    dc[i] = sum * forget;
    d_peephole[i] += static_cast<double>(d_in * cell[i]);
    d_peephole[n + i] += static_cast<double>(d_out * next_cell[i]);
    d_peephole[2 * n + i] += static_cast<double>(d_forget * cell[i]);
  }
}

}  // namespace

template <class C>
const RecurrentMath<C>& reference_math() {
  static const RecurrentMath<C> math{plain_product<C>, plain_sigmoid<C>, plain_tanh<C>};
  return math;
}

template <class C>
void lstm_training(const RecurrentForward<C>& f, const RecurrentMath<C>& math) {
  const RecurrentSizes& s = f.sizes;
  const std::int64_t gh = 4 * s.hidden;
  project(f, gh, gh, math);
  std::vector<C> first_h = buffer<C>(s.state()), first_c = first_h;
  copy_or_zero(f.h0, s.state(), first_h.data());
  copy_or_zero(f.c0, s.state(), first_c.data());
  for (std::int64_t t = 0; t < s.steps; ++t) {
    const C* h = t == 0 ? first_h.data() : f.all_h + (t - 1) * s.state();
    const C* c = t == 0 ? first_c.data() : f.all_c + (t - 1) * s.state();
    C* gates = f.gates + t * s.batch * gh;
    math.product(s.batch, gh, s.hidden, h, false, f.r, true, gates, true);
    for (std::int64_t row = 0; row < s.batch; ++row) {
      const std::int64_t at = t * s.state() + row * s.hidden;
      lstm_row(f, gates + row * gh, c + row * s.hidden, f.all_c + at, f.all_h + at, math);
    }
  }
}

template <class C>
void lstm_grad(const RecurrentBackward<C>& b, const RecurrentMath<C>& math) {
  const RecurrentForward<C>& f = b.forward;
  const RecurrentSizes& s = f.sizes;
  const std::int64_t n = s.hidden, gh = 4 * n;
  const std::vector<C> h = before(s, f.h0, f.all_h), c = before(s, f.c0, f.all_c);
  std::vector<C> d = buffer<C>(s.steps * s.batch * gh), tanh_cell = buffer<C>(s.state());
  std::vector<double> d_peephole(static_cast<std::size_t>(3 * n), 0.0);
  copy_or_zero(b.d_h, s.state(), b.d_h0);
  copy_or_zero(b.d_c, s.state(), b.d_c0);
  for (std::int64_t t = s.steps; t-- > 0;) {
    if (b.d_all_h != nullptr) {
      for (std::int64_t i = 0; i < s.state(); ++i) b.d_h0[i] += b.d_all_h[t * s.state() + i];
    }
    std::copy_n(f.all_c + t * s.state(), s.state(), tanh_cell.data());
    math.tanh(tanh_cell.data(), s.state());
    for (std::int64_t row = 0; row < s.batch; ++row) {
      const std::int64_t at = row * n, of_step = t * s.state() + at, of_gates = (t * s.batch + row) * gh;
      lstm_row_back(f, f.gates + of_gates, c.data() + of_step, tanh_cell.data() + at, f.all_c + of_step, b.d_h0 + at, b.d_c0 + at,
                    d.data() + of_gates, d_peephole.data());
    }
    math.product(s.batch, n, gh, d.data() + t * s.batch * gh, false, f.r, false, b.d_h0, false);
  }
  of_input(b, d, gh, math);
  if (b.d_r != nullptr) math.product(gh, n, s.steps * s.batch, d.data(), true, h.data(), false, b.d_r, false);
  if (b.d_peephole == nullptr) return;
  for (std::int64_t i = 0; i < 3 * n; ++i) b.d_peephole[i] = static_cast<C>(d_peephole[static_cast<std::size_t>(i)]);
}

namespace {

// q = h Rh' + its bias, which linear_before_reset multiplies with the reset gate.
template <class C>
void reset_operand(const RecurrentForward<C>& f, const C* h, std::int64_t rows, C* q, const RecurrentMath<C>& math) {
  const std::int64_t n = f.sizes.hidden;
  math.product(rows, n, n, h, false, f.r + 2 * n * n, true, q, false);
  if (f.bias == nullptr) return;
  for (std::int64_t i = 0; i < rows * n; ++i) q[i] += f.bias[5 * n + i % n];
}

}  // namespace

template <class C>
void gru_training(const RecurrentForward<C>& f, const RecurrentMath<C>& math) {
  const RecurrentSizes& s = f.sizes;
  const std::int64_t n = s.hidden, gh = 3 * n;
  project(f, gh, f.linear_before_reset ? 2 * n : gh, math);
  std::vector<C> first = buffer<C>(s.state()), both = buffer<C>(2 * s.state()), q = first, reset = first;
  copy_or_zero(f.h0, s.state(), first.data());
  for (std::int64_t t = 0; t < s.steps; ++t) {
    const C* h = t == 0 ? first.data() : f.all_h + (t - 1) * s.state();
    C* gates = f.gates + t * s.batch * gh;
    math.product(s.batch, 2 * n, n, h, false, f.r, true, both.data(), false);
    for (std::int64_t row = 0; row < s.batch; ++row) {
      C* g = gates + row * gh;
      for (std::int64_t i = 0; i < 2 * n; ++i) g[i] += both[static_cast<std::size_t>(row * 2 * n + i)];
      math.sigmoid(g, 2 * n);
      for (std::int64_t i = 0; i < n; ++i) reset[static_cast<std::size_t>(row * n + i)] = g[n + i] * h[row * n + i];
    }
    if (f.linear_before_reset) {
      reset_operand(f, h, s.batch, q.data(), math);
    } else {
      math.product(s.batch, n, n, reset.data(), false, f.r + 2 * n * n, true, q.data(), false);
    }
    for (std::int64_t row = 0; row < s.batch; ++row) {
      C* g = gates + row * gh;
      for (std::int64_t i = 0; i < n; ++i) {
        const C part = q[static_cast<std::size_t>(row * n + i)];
        g[2 * n + i] += f.linear_before_reset ? g[n + i] * part : part;
      }
      math.tanh(g + 2 * n, n);
      C* next = f.all_h + t * s.state() + row * n;
      for (std::int64_t i = 0; i < n; ++i) next[i] = (C(1) - g[i]) * g[2 * n + i] + g[i] * h[row * n + i];
    }
  }
}

template <class C>
void gru_grad(const RecurrentBackward<C>& b, const RecurrentMath<C>& math) {
  const RecurrentForward<C>& f = b.forward;
  const RecurrentSizes& s = f.sizes;
  const std::int64_t n = s.hidden, gh = 3 * n, rows = s.steps * s.batch;
  const bool late = f.linear_before_reset;
  const std::vector<C> h = before(s, f.h0, f.all_h);
  std::vector<C> d = buffer<C>(rows * gh);  // of the gates' sums
  // The hidden gate's product by Rh: its left operand, and the gradient of its result.
  std::vector<C> left = buffer<C>(rows * n), of_product = buffer<C>(rows * n), q = buffer<C>(rows * n), u = buffer<C>(s.state());
  std::vector<C> two = buffer<C>(2 * s.state());
  if (late) reset_operand(f, h.data(), rows, q.data(), math);
  copy_or_zero(b.d_h, s.state(), b.d_h0);
  for (std::int64_t t = s.steps; t-- > 0;) {
    const std::int64_t at = t * s.state();
    if (b.d_all_h != nullptr) {
      for (std::int64_t i = 0; i < s.state(); ++i) b.d_h0[i] += b.d_all_h[at + i];
    }
    for (std::int64_t i = 0; i < s.state(); ++i) {
      const std::int64_t g = (t * s.batch + i / n) * gh + i % n;
      const C z = f.gates[g], hidden = f.gates[g + 2 * n], dh = b.d_h0[i];
      d[static_cast<std::size_t>(g)] = dh * (h[static_cast<std::size_t>(at + i)] - hidden) * z * (C(1) - z);
      const C d_hidden = dh * (C(1) - z) * (C(1) - hidden * hidden);
      d[static_cast<std::size_t>(g + 2 * n)] = d_hidden;
      of_product[static_cast<std::size_t>(at + i)] = late ? d_hidden * f.gates[g + n] : d_hidden;
    }
    math.product(s.batch, n, n, of_product.data() + at, false, f.r + 2 * n * n, false, u.data(), false);
    for (std::int64_t i = 0; i < s.state(); ++i) {
      const std::int64_t g = (t * s.batch + i / n) * gh + i % n;
      const auto e = static_cast<std::size_t>(at + i);
      const C r = f.gates[g + n], z = f.gates[g], back = u[static_cast<std::size_t>(i)];
      const C d_reset = late ? d[static_cast<std::size_t>(g + 2 * n)] * q[e] : back * h[e];
      d[static_cast<std::size_t>(g + n)] = d_reset * r * (C(1) - r);
      left[e] = late ? h[e] : r * h[e];
      b.d_h0[i] = b.d_h0[i] * z + (late ? back : back * r);
      const std::size_t pair = static_cast<std::size_t>(i / n * 2 * n + i % n);
      two[pair] = d[static_cast<std::size_t>(g)];
      two[pair + static_cast<std::size_t>(n)] = d[static_cast<std::size_t>(g + n)];
    }
    math.product(s.batch, n, 2 * n, two.data(), false, f.r, false, b.d_h0, true);
  }
  of_input(b, d, gh, math);
  if (b.d_bias != nullptr && late) add_columns(of_product.data(), rows, n, n, b.d_bias + 5 * n);
  if (b.d_r == nullptr) return;
  std::vector<C> all = buffer<C>(gh * n);
  math.product(gh, n, rows, d.data(), true, h.data(), false, all.data(), false);
  std::copy_n(all.data(), 2 * n * n, b.d_r);
  math.product(n, n, rows, of_product.data(), true, left.data(), false, b.d_r + 2 * n * n, false);
}

template const RecurrentMath<float>& reference_math<float>();
template void lstm_training<float>(const RecurrentForward<float>&, const RecurrentMath<float>&);
template void gru_training<float>(const RecurrentForward<float>&, const RecurrentMath<float>&);
template void lstm_grad<float>(const RecurrentBackward<float>&, const RecurrentMath<float>&);
template void gru_grad<float>(const RecurrentBackward<float>&, const RecurrentMath<float>&);
template const RecurrentMath<double>& reference_math<double>();
template void lstm_training<double>(const RecurrentForward<double>&, const RecurrentMath<double>&);
template void gru_training<double>(const RecurrentForward<double>&, const RecurrentMath<double>&);
template void lstm_grad<double>(const RecurrentBackward<double>&, const RecurrentMath<double>&);
template void gru_grad<double>(const RecurrentBackward<double>&, const RecurrentMath<double>&);

}  // namespace sdx::ops
