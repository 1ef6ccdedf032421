#pragma once
// Operations with dedicated kernels: normalisation, rotary positions, attention. Floating types; float16 and bfloat16 are
// computed in float32. Names, arguments and defaults are those of `mlx.core.fast` 0.32.

#include <optional>
#include <string>
#include <variant>

#include <sdx/array/array.hpp>

namespace sdx::array::fast {

// Over the last axis: (x - mean) / sqrt(variance + eps) * weight + bias; weight and bias are vectors.
SDX_API array layer_norm(const array& x, const std::optional<array>& weight, const std::optional<array>& bias, float eps,
                         StreamOrDevice s = {});
// x / sqrt(mean(x * x) + eps) * weight
SDX_API array rms_norm(const array& x, const std::optional<array>& weight, float eps, StreamOrDevice s = {});

// Rotates pairs of the first `dims` elements of the last axis by angles that grow with the position along the last axis but one:
// (offset + position) * scale / base^(2 i / dims), or / freqs[i]. Pairs are side by side (`traditional`), else half of `dims`
// apart. Exactly one of `base` and `freqs` is given. `offset`: a number, or one for each element of the first axis.
SDX_API array rope(const array& a, int dims, bool traditional, std::optional<float> base, float scale, const array& offset,
                   const std::optional<array>& freqs = std::nullopt, StreamOrDevice s = {});
SDX_API array rope(const array& a, int dims, bool traditional, std::optional<float> base, float scale, int offset,
                   const std::optional<array>& freqs = std::nullopt, StreamOrDevice s = {});

// Nothing, "causal" (the last query sees the last key), an array of bool (where a query sees a key), or one that is added to
// scores.
using Mask = std::variant<std::monostate, std::string, array>;
// softmax(scale * q @ k.T + mask) @ v. q [B, heads, queries, D], k and v [B, heads of keys, keys, D]; heads are a multiple of
// those of keys. `sinks`: for each head the score of a key without a value.
SDX_API array scaled_dot_product_attention(const array& q, const array& k, const array& v, float scale, const Mask& mask = {},
                                           const std::optional<array>& sinks = std::nullopt, StreamOrDevice s = {});

// logsumexp(logits) - logits[target], over the last axis, in float32.
SDX_API array cross_entropy(const array& logits, const array& targets, StreamOrDevice s = {});

}  // namespace sdx::array::fast
