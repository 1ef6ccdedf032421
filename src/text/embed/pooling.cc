#include "text/embed/pooling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"

namespace sdx::text {
namespace {

constexpr std::array kPoolings{std::pair("cls", Pooling::cls),
                               std::pair("max", Pooling::max),
                               std::pair("mean", Pooling::mean),
                               std::pair("mean_sqrt_len", Pooling::mean_sqrt_length),
                               std::pair("weightedmean", Pooling::weighted_mean),
                               std::pair("last", Pooling::last)};
constexpr std::array kActivations{std::pair("Identity", Activation::identity), std::pair("Tanh", Activation::tanh),
                                  std::pair("ReLU", Activation::relu),         std::pair("GELU", Activation::gelu),
                                  std::pair("Sigmoid", Activation::sigmoid),   std::pair("SiLU", Activation::silu)};

template <class Table>
auto by_name(const Table& table, std::string_view word, const char* what) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) {
    if (word == name) return value;
    names.emplace_back(name);
  }
  fail(ErrorCode::invalid_argument, "{} is one of {}; received '{}'", what, join(names), word);
}

using Rows = std::span<const float>;

void weighted_sum(Rows tokens, std::int64_t width, const TokenRange& range, bool by_place, std::span<float> out) {
  double weights = 0;
  for (std::int64_t t = range.first; t < range.first + range.count; ++t) {
    // The place counts from the first token of the text, even where those before `range` are left out.
    const float weight = by_place ? static_cast<float>(t + 1) : 1.0F;
    weights += static_cast<double>(weight);
    const Rows row = tokens.subspan(static_cast<std::size_t>(t * width), static_cast<std::size_t>(width));
    for (std::size_t i = 0; i < row.size(); ++i) out[i] += weight * row[i];
  }
  const auto scale = static_cast<float>(1.0 / weights);
  for (float& v : out) v *= scale;
}

void pool_one(Pooling mode, Rows tokens, std::int64_t width, const TokenRange& range, std::span<float> out) {
  const auto row = [&](std::int64_t t) {
    return tokens.subspan(static_cast<std::size_t>(t * width), static_cast<std::size_t>(width));
  };
  const auto copy = [&](Rows from) { std::copy(from.begin(), from.end(), out.begin()); };
  switch (mode) {
    case Pooling::cls: return copy(row(range.first));
    case Pooling::last: return copy(row(range.first + range.count - 1));
    case Pooling::max:
      copy(row(range.first));
      for (std::int64_t t = range.first + 1; t < range.first + range.count; ++t) {
        const Rows r = row(t);
        for (std::size_t i = 0; i < r.size(); ++i) out[i] = std::max(out[i], r[i]);
      }
      return;
    case Pooling::mean: return weighted_sum(tokens, width, range, false, out);
    case Pooling::weighted_mean: return weighted_sum(tokens, width, range, true, out);
    case Pooling::mean_sqrt_length:
      weighted_sum(tokens, width, range, false, out);
      for (float& v : out) v *= std::sqrt(static_cast<float>(range.count));
      return;
  }
}

float activate(Activation activation, float v) {
  switch (activation) {
    case Activation::identity: return v;
    case Activation::tanh: return std::tanh(v);
    case Activation::relu: return std::max(v, 0.0F);
    case Activation::gelu: return 0.5F * v * (1 + std::erf(v * 0.70710678F));
    case Activation::sigmoid: return 1 / (1 + std::exp(-v));
    case Activation::silu: return v / (1 + std::exp(-v));
  }
  return v;
}

void check_width(std::int64_t expected, std::size_t received, const char* layer) {
  if (expected != static_cast<std::int64_t>(received)) {
    fail(ErrorCode::invalid_argument, "{} takes vectors of {} numbers; received {}", layer, expected, received);
  }
}

void dense(const Layer& layer, std::vector<float>& vector) {
  check_width(layer.weight.dim(1), vector.size(), "a Dense module");
  const std::span<const float> weight = layer.weight.values<float>();
  std::vector<float> out(static_cast<std::size_t>(layer.weight.dim(0)));
  for (std::size_t o = 0; o < out.size(); ++o) {
    const float* row = weight.data() + o * vector.size();
    float sum = layer.bias.defined() ? layer.bias.values<float>()[o] : 0.0F;
    for (std::size_t i = 0; i < vector.size(); ++i) sum += row[i] * vector[i];
    out[o] = activate(layer.activation, sum);
  }
  vector = std::move(out);
}

void layer_norm(const Layer& layer, std::vector<float>& vector) {
  check_width(layer.weight.size(), vector.size(), "a LayerNorm module");
  double mean = 0, variance = 0;
  for (const float v : vector) mean += static_cast<double>(v);
  mean /= static_cast<double>(vector.size());
  for (const float v : vector) variance += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
  variance /= static_cast<double>(vector.size());
  const double scale = 1 / std::sqrt(variance + static_cast<double>(layer.epsilon));
  for (std::size_t i = 0; i < vector.size(); ++i) {
    const double normal = (static_cast<double>(vector[i]) - mean) * scale;
    vector[i] = static_cast<float>(normal) * layer.weight.values<float>()[i] +
                (layer.bias.defined() ? layer.bias.values<float>()[i] : 0.0F);
  }
}

void normalize(const Layer& layer, std::vector<float>& vector) {
  double squares = 0;
  for (const float v : vector) squares += static_cast<double>(v) * static_cast<double>(v);
  const double length = std::max(std::sqrt(squares), static_cast<double>(layer.epsilon));
  for (float& v : vector) v = static_cast<float>(static_cast<double>(v) / length);
}

}  // namespace

Pooling parse_pooling(std::string_view word) { return by_name(kPoolings, word, "pooling"); }

Activation parse_activation(std::string_view name) {
  return by_name(kActivations, name.substr(name.rfind('.') + 1), "the activation of a Dense module");
}

void pool(std::span<const Pooling> modes, std::span<const float> tokens, std::int64_t width, const TokenRange& range,
          std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0F);
  if (range.count <= 0) return;
  for (std::size_t m = 0; m < modes.size(); ++m) {
    pool_one(modes[m], tokens, width, range, out.subspan(m * static_cast<std::size_t>(width), static_cast<std::size_t>(width)));
  }
}

void apply_layer(const Layer& layer, std::vector<float>& vector) {
  switch (layer.kind) {
    case Layer::Kind::dense: return dense(layer, vector);
    case Layer::Kind::layer_norm: return layer_norm(layer, vector);
    case Layer::Kind::normalize: return normalize(layer, vector);
  }
}

}  // namespace sdx::text
