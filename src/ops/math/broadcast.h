#pragma once
// Multidirectional (numpy-style) broadcasting. Source: ONNX docs/Broadcasting.md.

#include <array>
#include <cstdint>
#include <vector>

#include <sdx/tensor.hpp>

#include "graph/dim.h"
#include "ops/context.h"

namespace sdx::ops {

// Throws Error(runtime_failure) naming both shapes when they do not fit.
Shape broadcast_shapes(const Shape& a, const Shape& b);
// The same before run time: an extent that cannot be decided is unknown. Throws Error(invalid_model).
SymShape broadcast_shapes(const SymShape& a, const SymShape& b);

// Broadcasts the shapes of inputs [first, last) and sets output 0 to `elem` with the result; unknown rank when one is unknown.
void infer_broadcast(InferContext& c, std::size_t first, std::size_t last, DataType elem);

// Calls fn(const std::array<int64_t, N>& offsets, const std::array<int64_t, N>& steps, int64_t out_offset, int64_t count) for
// runs that cover the output in order: operand k's elements of the run are offsets[k] + i * steps[k], steps 0 or 1.
template <std::size_t N, class F>
void for_each_broadcast(const std::array<Shape, N>& shapes, const Shape& out, F&& fn) {
  std::int64_t total = 1;
  for (const std::int64_t d : out) total *= d;
  if (total == 0) return;
  // Per axis, each operand's stride (0 where it is broadcast); neighbouring axes that all operands step alike are merged.
  std::vector<std::int64_t> extents;
  std::vector<std::array<std::int64_t, N>> strides;
  std::array<std::int64_t, N> run{};
  run.fill(1);
  for (std::size_t axis = out.size(); axis-- > 0;) {
    const std::int64_t extent = out[axis];
    std::array<std::int64_t, N> stride{};
    for (std::size_t k = 0; k < N; ++k) {
      const std::size_t pad = out.size() - shapes[k].size();
      const std::int64_t d = axis < pad ? 1 : shapes[k][axis - pad];
      stride[k] = d == 1 ? 0 : run[k];
      run[k] *= d;
    }
    if (extent == 1) continue;
    if (!extents.empty()) {
      bool merges = true;
      for (std::size_t k = 0; k < N; ++k) merges = merges && stride[k] == strides.back()[k] * extents.back();
      if (merges) {
        extents.back() *= extent;
        continue;
      }
    }
    extents.push_back(extent);
    strides.push_back(stride);
  }
  if (extents.empty()) {
    extents.push_back(1);
    strides.push_back({});
  }
  // extents[0] is the innermost axis.
  std::array<std::int64_t, N> offsets{};
  std::vector<std::int64_t> index(extents.size(), 0);
  for (std::int64_t done = 0; done < total; done += extents[0]) {
    fn(offsets, strides[0], done, extents[0]);
    for (std::size_t axis = 1; axis < extents.size(); ++axis) {
      for (std::size_t k = 0; k < N; ++k) offsets[k] += strides[axis][k];
      if (++index[axis] < extents[axis]) break;
      for (std::size_t k = 0; k < N; ++k) offsets[k] -= strides[axis][k] * extents[axis];
      index[axis] = 0;
    }
  }
}

// out[i] = fn(a[i], b[i]) with broadcasting; `out` has broadcast_shapes(a, b).
template <class A, class B, class O, class F>
void broadcast_binary(const Tensor& a, const Tensor& b, Tensor& out, F&& fn) {
  const auto* pa = static_cast<const A*>(a.data());
  const auto* pb = static_cast<const B*>(b.data());
  auto* po = static_cast<O*>(out.mutable_data());
  for_each_broadcast<2>({a.shape(), b.shape()}, out.shape(),
                        [&](const auto& at, const auto& step, std::int64_t o, std::int64_t n) {
                          const A* x = pa + at[0];
                          const B* y = pb + at[1];
                          O* z = po + o;
                          // Constant steps let the compiler vectorise.
                          if (step[0] == 1 && step[1] == 1) {
                            for (std::int64_t i = 0; i < n; ++i) z[i] = fn(x[i], y[i]);
                          } else if (step[0] == 1) {
                            for (std::int64_t i = 0; i < n; ++i) z[i] = fn(x[i], y[0]);
                          } else {
                            for (std::int64_t i = 0; i < n; ++i) z[i] = fn(x[0], y[i * step[1]]);
                          }
                        });
}

}  // namespace sdx::ops
