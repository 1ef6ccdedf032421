#pragma once
// The per-target transforms of winograd.cc; internal to the convolutions.

#include <cstdint>

namespace sdx::cpu {

struct WinogradKernels {
  int lanes;
  // B^T d B of `count` neighbouring tiles of one tile row. rows: t + 2 input rows, each as t phases of phase_width floats
  // (phase p, index q: the padded row's element q * t + p). Element e of tile i goes to out[e * ld + i]; up to lanes - 1 more
  // are written after them.
  void (*input)(int t, const float* rows, std::int64_t phase_width, std::int64_t count, float* out, std::int64_t ld);
  // Rows e (of `columns`, a multiple of nr = 2 lanes) of `tiles` into panels: [e][panel][nr] at v + e * e_step + panel *
  // panel_step, for e < elements.
  void (*spread)(const float* tiles, std::int64_t ld, std::int64_t elements, std::int64_t columns, float* v, std::int64_t e_step,
                 std::int64_t panel_step);
  // A^T m A of `count` tiles with element e of tile i at m[e * step + i]; output row r of tile i goes to
  // out[r * ld + i * t, + t). count is rounded up to lanes, in m and out.
  void (*output)(int t, const float* m, std::int64_t step, std::int64_t count, float* out, std::int64_t ld);
  // G g G^T of `count` filters, computed in double so that the result's rounding is the only one. Element k of filter i is
  // g[k * ld + i], element e of its transform goes to out[e * step + i]. Reads up to lanes - 1 more of g.
  void (*weights)(int t, const float* g, std::int64_t ld, std::int64_t count, float* out, std::int64_t step);
  // The filters of such transforms, up to rounding: element k of filter i goes to g[k * count + i]. A tap that is 0 beside others
  // stays 0.
  void (*filters)(int t, const float* u, std::int64_t step, std::int64_t count, float* g);
  // squares[i] = sum over c of x[c * step + i]^2 for i < n.
  void (*squares)(const float* x, std::int64_t step, std::int64_t channels, std::int64_t n, float* squares);
  // The least and the largest of `rows` rows of n elements, per column. Returns whether all elements are finite.
  bool (*extremes)(const float* x, std::int64_t rows, std::int64_t n, float* least, float* most);
  // Whether the largest of each `window` columns that begin with one of the first `lanes` is at most `times` the least of them.
  bool (*even)(const float* least, const float* most, int window, float times);
};

const WinogradKernels& winograd_kernels();

}  // namespace sdx::cpu
