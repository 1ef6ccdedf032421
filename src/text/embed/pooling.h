#pragma once
// Combines the vectors of tokens into one for each text, as sentence-transformers' modules Pooling, Dense, LayerNorm and
// Normalize do (sentence_transformers/models/).

#include <cstdint>
#include <span>
#include <vector>

#include <sdx/tensor.hpp>

namespace sdx::text {

enum class Pooling { cls, max, mean, mean_sqrt_length, weighted_mean, last };

// "cls", "max", "mean", "mean_sqrt_len", "weightedmean", "last". Throws Error(invalid_argument) that lists them.
Pooling parse_pooling(std::string_view word);

// The tokens of a text that count.
struct TokenRange {
  std::int64_t first = 0, count = 0;
};

// `tokens`: float32[length, width] of one text, with padding; `range` is inside. Writes `modes.size() * width` numbers, one
// mode after the other. A range without tokens gives zeros.
void pool(std::span<const Pooling> modes, std::span<const float> tokens, std::int64_t width, const TokenRange& range,
          std::span<float> out);

enum class Activation { identity, tanh, relu, gelu, sigmoid, silu };
// Parses the last part of PyTorch's name ("torch.nn.modules.activation.Tanh"). Throws Error(invalid_argument).
Activation parse_activation(std::string_view name);

// The steps after pooling, in order; each takes float32[width] and replaces it.
struct Layer {
  enum class Kind { dense, layer_norm, normalize } kind = Kind::normalize;
  Tensor weight{};  // dense: float32[out, in]; layer_norm: float32[width]
  Tensor bias{};    // may be undefined
  Activation activation = Activation::identity;
  float epsilon = 1e-12F;
};

// Applies the layer to `vector`. Throws Error(invalid_argument) if its size does not fit.
void apply_layer(const Layer& layer, std::vector<float>& vector);

}  // namespace sdx::text
