#pragma once
// States of texts that each token changes and reads: matrices (gated deltas, selective scans), and the last rows of a
// convolution.

#include <cstdint>
#include <vector>

namespace sdx::cpu {

// The tokens [begin, end) of a text. `from` may be `to`; null: zeros.
struct StateText {
  std::int64_t begin, end;
  const float* from;
  float* to;
};

// For each head and text a matrix S [rows, columns]: S = decay S + k d', d = rate (v - decay S' k) with `corrects`, else rate v;
// out = S' q + skip v. Keys and queries of head h are those of head h % key_heads (tiled), or neighbours share them.
struct LinearStateArgs {
  std::int64_t heads = 0, key_heads = 0, rows = 0, columns = 0;
  bool corrects = false, tiled = false;
  const float *q = nullptr, *k = nullptr, *v = nullptr;  // of token 0
  std::int64_t key_row = 0, value_row = 0;               // from token to token
  const float *decay = nullptr, *rate = nullptr;         // [tokens, heads]
  const float* skip = nullptr;                           // [heads]; null: none
  float* out = nullptr;                                  // [tokens, heads, columns]
  std::vector<StateText> texts;                          // states [heads, rows, columns]
};

// Memory of a state is read once by a text's first token and written once by its last as far as a few columns of a head fit into
// the first cache. Results do not depend on threads, nor on other texts.
void linear_state_f32(const LinearStateArgs& args);

// y[t] = bias + the sum of weights[i] x[t - taps + 1 + i]; what lies before a text's tokens are the rows of its state
// [taps - 1, channels], which becomes the last such rows.
struct StateConvolutionArgs {
  std::int64_t channels = 0, taps = 0;
  const float *x = nullptr, *weights = nullptr, *bias = nullptr;  // weights [taps, channels]; bias null: none
  float* out = nullptr;
  std::vector<StateText> texts;
};
void state_convolution_f32(const StateConvolutionArgs& args);

}  // namespace sdx::cpu
