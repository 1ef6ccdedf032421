#include "kernels/cpu/elements/tensors.h"

#include <array>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/elements/elementwise.h"

namespace sdx::cpu {
namespace {

// The number of elements that are worth a thread if each is a call of the C library.
constexpr std::int64_t kCallGrain = 2048;

// Extents and steps of all operands, outermost first. Axes of extent 1 are left out, and neighbours that all N operands step
// through evenly are merged.
template <int N>
struct Merged {
  std::vector<std::int64_t> extents;
  std::array<std::vector<std::int64_t>, N> steps;
};

template <int N>
Merged<N> merge(const Shape& out, const std::array<const Shape*, N>& shapes) {
  Merged<N> m;
  std::array<std::int64_t, N> dense{};
  dense.fill(1);
  const std::size_t rank = out.size();
  std::array<std::vector<std::int64_t>, N> steps;
  for (std::size_t k = 0; k < N; ++k) {
    const Shape& shape = *shapes[k];
    steps[k].assign(rank, 0);
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (shape[i] != 1) steps[k][rank - shape.size() + i] = dense[k];
      dense[k] *= shape[i];
    }
  }
  for (std::size_t i = 0; i < rank; ++i) {
    if (out[i] == 1) continue;
    bool merges = !m.extents.empty();
    for (std::size_t k = 0; merges && k < N; ++k) merges = m.steps[k].back() == steps[k][i] * out[i];
    if (merges) {
      m.extents.back() *= out[i];
    } else {
      m.extents.push_back(out[i]);
    }
    for (std::size_t k = 0; k < N; ++k) {
      if (merges) m.steps[k].pop_back();
      m.steps[k].push_back(steps[k][i]);
    }
  }
  return m;
}

// Calls part(plan, at, out) for each part of the output that has a plan. The elements of operand k begin at at[k], the output's
// at `out`.
template <int N, class F>
void for_parts(const Shape& out, const std::array<const Shape*, N>& shapes, F&& part) {
  if (element_count(out) == 0) return;
  const Merged<N> m = merge<N>(out, shapes);
  const int rank = static_cast<int>(m.extents.size());
  const int beyond = std::max(0, rank - kMaxBroadcastRank);
  std::array<const std::int64_t*, N> steps;
  for (std::size_t k = 0; k < N; ++k) steps[k] = m.steps[k].data() + beyond;
  const RowPlan<N> plan = plan_rows<N>(rank - beyond, m.extents.data() + beyond, steps);
  const std::int64_t block = plan.rows * plan.inner, blocks = element_count(out) / block;
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::array<std::int64_t, N> at{};
    std::int64_t rest = b;
    for (auto i = static_cast<std::size_t>(beyond); i-- > 0;) {
      for (std::size_t k = 0; k < N; ++k) at[k] += rest % m.extents[i] * m.steps[k][i];
      rest /= m.extents[i];
    }
    part(plan, at, b * block);
  }
}

// Return the address of element i.
const std::byte* from(const Tensor& t, std::int64_t i) {
  return static_cast<const std::byte*>(t.data()) + i * bit_width(t.dtype()) / 8;
}
std::byte* to(Tensor& t, std::int64_t i) { return static_cast<std::byte*>(t.mutable_data()) + i * bit_width(t.dtype()) / 8; }

}  // namespace

void apply(UnaryFn fn, const Tensor& x, Tensor& y) {
  const UnaryRow complex = complex_row(fn, x.dtype());
  if (complex == nullptr) return apply(fn, x.dtype(), x.data(), y.mutable_data(), x.size());
  parallel_for(x.size(), kCallGrain,
               [&](std::int64_t begin, std::int64_t end) { complex(from(x, begin), to(y, begin), end - begin); });
}

void apply(BinaryFn fn, const Tensor& a, const Tensor& b, Tensor& y) {
  const BinaryRow complex = complex_row(fn, a.dtype());
  for_parts<2>(y.shape(), {&a.shape(), &b.shape()},
               [&](const RowPlan<2>& plan, const std::array<std::int64_t, 2>& at, std::int64_t out) {
                 if (complex == nullptr) return apply(fn, a.dtype(), plan, from(a, at[0]), from(b, at[1]), to(y, out));
                 parallel_rows(plan, kCallGrain, [&](const std::int64_t(&row)[2], std::int64_t place, std::int64_t n) {
                   complex(from(a, at[0] + row[0]), plan.inner_step[0], from(b, at[1] + row[1]), plan.inner_step[1],
                           to(y, out + place), n);
                 });
               });
}

void select(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& y) {
  const int bytes = bit_width(y.dtype()) / 8;
  for_parts<3>(y.shape(), {&condition.shape(), &a.shape(), &b.shape()},
               [&](const RowPlan<3>& plan, const std::array<std::int64_t, 3>& at, std::int64_t out) {
                 select(bytes, plan, reinterpret_cast<const std::uint8_t*>(from(condition, at[0])), from(a, at[1]),
                        from(b, at[2]), to(y, out));
               });
}

}  // namespace sdx::cpu
