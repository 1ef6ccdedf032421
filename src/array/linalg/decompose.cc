// The operator behind all decompositions, and the library that computes it.

#include "array/linalg/decompose.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/common.h"
#include "array/transforms/tape.h"
#include "base/parallel.h"
#include "ops/tensor/movement.h"
#include "tensor/element.h"

namespace sdx::array::detail {
namespace {

constexpr int kDecompositions = static_cast<int>(Decomposition::svdvals) + 1;

LinalgScalar scalar_of(Dtype dtype) {
  if (dtype == Dtype::float64) return LinalgScalar::f64;
  if (dtype == Dtype::complex64) return LinalgScalar::c64;
  return dtype == Dtype::complex128 ? LinalgScalar::c128 : LinalgScalar::f32;
}

[[noreturn]] void report(Decomposition what, LinalgOutcome outcome) {
  const char* why = outcome == LinalgOutcome::not_positive_definite ? "a matrix is not positive definite"
                    : outcome == LinalgOutcome::singular            ? "a matrix is singular"
                    : outcome == LinalgOutcome::no_convergence ? "it does not converge; check the matrix for NaN and infinities"
                    : outcome == LinalgOutcome::no_memory      ? "there is not enough memory"
                                                               : "an unknown failure";
  const bool memory = outcome == LinalgOutcome::no_memory;
  fail(memory ? ErrorCode::out_of_memory : ErrorCode::invalid_argument, "[linalg::{}] {}", name_of(what), why);
}

// Fills a factor of a matrix without elements: square factors are identities, and rows keep their order.
void fill_factor(Tensor& out) {
  if (out.size() == 0) return;
  if (out.dtype() == Dtype::uint32) {
    const std::int64_t rows = out.shape().back();
    const auto order = out.mutable_values<std::uint32_t>();
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(static_cast<std::int64_t>(i) % rows);
    return;
  }
  ops::fill_zero(out);
  const std::int64_t n = out.shape().back(), matrix = n * n;
  for (std::int64_t i = 0; i < out.size(); i += i % matrix == matrix - 1 ? 1 : n + 1) set_element(out, i, 1);
}

void run_decomposition(ops::OpContext& c) {
  const std::vector<std::int64_t> ints = c.attrs().get_ints("ints");
  const Tensor& a = c.input(0);
  LinalgRequest all{};
  all.what = static_cast<Decomposition>(ints[0]);
  all.scalar = scalar_of(a.dtype());
  all.flag = ints[1] != 0;
  all.m = a.dim(a.rank() - 2), all.n = a.dim(a.rank() - 1);
  all.k = c.num_inputs() > 1 ? c.input(1).dim(a.rank() - 1) : std::min(all.m, all.n);
  std::int64_t batch = 1;
  for (std::size_t i = 0; i + 2 < a.rank(); ++i) batch *= a.dim(i);
  std::array<std::size_t, 2> in_bytes{};
  std::array<std::size_t, 3> out_bytes{};
  const auto of_one = [&](const Tensor& t) { return batch == 0 ? 0 : t.bytes() / static_cast<std::size_t>(batch); };
  for (std::size_t i = 0; i < c.num_inputs(); ++i) all.in[i] = c.input(i).data(), in_bytes[i] = of_one(c.input(i));
  for (std::size_t i = 0; i < c.num_outputs(); ++i) {
    Tensor& out = result_tensor(c, i);
    all.out[i] = out.mutable_data(), out_bytes[i] = of_one(out);
  }
  const bool empty = all.m == 0 || all.n == 0;
  if (empty && all.what != Decomposition::determinant) {
    for (std::size_t i = 0; i < c.num_outputs(); ++i) fill_factor(result_tensor(c, i));
    return;
  }
  const LinalgModule& module = load_module<LinalgModule>();
  std::atomic<LinalgOutcome> outcome{LinalgOutcome::ok};
  const std::int64_t grain = 1 + 30'000 / (1 + all.m * all.n * std::min(all.m, all.n));
  in_parallel(batch, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) {
      LinalgRequest one = all;
      const auto at = static_cast<std::size_t>(b);
      for (std::size_t i = 0; i < 2; ++i) one.in[i] = static_cast<const std::byte*>(all.in[i]) + at * in_bytes[i];
      for (std::size_t i = 0; i < 3; ++i) one.out[i] = static_cast<std::byte*>(all.out[i]) + at * out_bytes[i];
      if (const LinalgOutcome got = module.run(&one); got != LinalgOutcome::ok) outcome = got;
    }
  });
  if (outcome != LinalgOutcome::ok) report(all.what, outcome);
}

void emit_decomposition(Emitter& e) { e.results<run_decomposition>("Decomposition", e.inputs(), {{"ints", e.params().ints}}); }

VmapResult decomposition_vmap(const VmapCall& c) {
  std::vector<array> inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.in_axes[i] >= 0) {
      inputs.push_back(moveaxis(c.inputs[i], c.in_axes[i], 0));
      continue;
    }
    Shape shape = c.inputs[i].shape();
    shape.insert(shape.begin(), c.batch);
    inputs.push_back(broadcast_to(c.inputs[i], shape));
  }
  std::vector<array> made = decompose(static_cast<Decomposition>(c.params.ints[0]), c.params.ints[1] != 0, std::move(inputs));
  std::vector<int> axes(made.size(), 0);
  return {std::move(made), std::move(axes)};
}

const Kind& kind_of(Decomposition what) {
  static const auto& kinds = *[] {
    auto* all = new std::array<Kind, kDecompositions>;
    for (int i = 0; i < kDecompositions; ++i) {
      const auto d = static_cast<Decomposition>(i);
      (*all)[static_cast<std::size_t>(i)] = {
          .name = name_of(d), .emit = emit_decomposition, .vjp = decomposition_vjp(d), .vmap = decomposition_vmap};
    }
    return all;
  }();
  return kinds[static_cast<std::size_t>(what)];
}

Dtype real_of(Dtype t) { return t == Dtype::complex64 ? Dtype::float32 : t == Dtype::complex128 ? Dtype::float64 : t; }
Dtype complex_of(Dtype t) { return t == Dtype::float32 ? Dtype::complex64 : t == Dtype::float64 ? Dtype::complex128 : t; }

}  // namespace

const char* name_of(Decomposition what) {
  static constexpr const char* kNames[] = {"cholesky", "inv", "tri_inv",   "solve", "solve_triangular",
                                           "slogdet",  "lu",  "lu_factor", "qr",    "eigh",
                                           "eigvalsh", "eig", "eigvals",   "svd",   "svdvals"};
  return kNames[static_cast<int>(what)];
}

std::vector<array> decompose(Decomposition what, bool flag, std::vector<array> inputs, const StreamOrDevice& s) {
  const array& a = inputs[0];
  const Dtype t = a.dtype();
  const std::int64_t m = a.shape(-2), n = a.shape(-1), k = std::min(m, n);
  const auto of = [&](std::initializer_list<std::int64_t> last) {
    Shape shape(a.shape().begin(), a.shape().end() - 2);
    shape.insert(shape.end(), last.begin(), last.end());
    return shape;
  };
  std::vector<std::pair<Dtype, Shape>> results;
  switch (what) {
    case Decomposition::cholesky:
    case Decomposition::inverse:
    case Decomposition::triangle_inverse: results = {{t, a.shape()}}; break;
    case Decomposition::solve:
    case Decomposition::solve_triangle: results = {{t, inputs[1].shape()}}; break;
    case Decomposition::determinant: results = {{t, of({})}, {real_of(t), of({})}, {t, of({})}}; break;
    case Decomposition::lu: results = {{Dtype::uint32, of({m})}, {t, of({m, k})}, {t, of({k, n})}}; break;
    case Decomposition::lu_packed: results = {{t, a.shape()}, {Dtype::uint32, of({k})}}; break;
    case Decomposition::qr: results = {{t, of({m, k})}, {t, of({k, n})}}; break;
    case Decomposition::eigh: results = {{real_of(t), of({n})}, {t, a.shape()}}; break;
    case Decomposition::eigvalsh: results = {{real_of(t), of({n})}}; break;
    case Decomposition::eig: results = {{complex_of(t), of({n})}, {complex_of(t), a.shape()}}; break;
    case Decomposition::eigvals: results = {{complex_of(t), of({n})}}; break;
    case Decomposition::svd: results = {{t, of({m, m})}, {real_of(t), of({k})}, {t, of({n, n})}}; break;
    case Decomposition::svdvals: results = {{real_of(t), of({k})}}; break;
  }
  Params params;
  params.ints = {static_cast<std::int64_t>(what), flag ? 1 : 0};
  return make_many(kind_of(what), std::move(results), std::move(inputs), std::move(params), s);
}

array adjoint(const array& a) { return is_complex(a.dtype()) ? conjugate(swapaxes(a, -1, -2)) : swapaxes(a, -1, -2); }

}  // namespace sdx::array::detail
