#include "speech/whisper/weights_network.h"

#include <cmath>

#include "base/error.h"
#include "speech/whisper/cache_names.h"
#include "text/model/network/decoder_graph.h"
#include "text/model/network/safetensors_files.h"
#include "text/model/network/weighted_graph.h"

namespace sdx::speech {
namespace {

using Dims = std::vector<std::int64_t>;

constexpr auto kFloat = DataType::float32;

// What encoder and decoder share. x: [batch, length, width].
class WhisperGraph : protected text::WeightedGraph {
 protected:
  WhisperGraph(std::shared_ptr<const TensorFiles> weights, text::WeightStyle& style, const WhisperSettings& s, std::int64_t heads)
      : WeightedGraph(std::move(weights), style), s_(s), heads_(heads) {}

  // A product with a matrix of its own, for many rows at once.
  ValueId many_rows(const std::string& name, ValueId x, std::int64_t rows, std::int64_t k) {
    const ValueId matrix = g_.constant(name + ".weight", values(name + ".weight", {rows, k}));
    const ValueId turned = g_.node("Transpose", name + ".turned", {matrix}, {{"perm", Dims{1, 0}}});
    const ValueId y = g_.node("MatMul", name, {x, turned});
    const ValueId bias = bias_of(name + ".weight", rows);
    return bias == kNoValue ? y : g_.node("Add", name + ".sum", {y, bias});
  }
  ValueId norm(const std::string& name, ValueId x) {
    return g_.node("LayerNormalization", name, {x, vector(name + ".weight", s_.width), vector(name + ".bias", s_.width)},
                   {{"epsilon", 1e-5F}, {"axis", std::int64_t{-1}}});
  }
  ValueId add(const std::string& name, ValueId a, ValueId b) { return g_.node("Add", name, {a, b}); }
  std::int64_t inner(const std::string& name) { return tensor(name + ".fc1.weight", {-1, s_.width}).shape[0]; }

  ValueId in_heads(const std::string& name, ValueId x) {
    const ValueId split = reshape(name + ".heads", x, {0, 0, heads_, s_.width / heads_});
    return g_.node("Transpose", name + ".turned_heads", {split}, {{"perm", Dims{0, 2, 1, 3}}});
  }
  // `mask` may be kNoValue.
  ValueId attend(const std::string& name, ValueId q, ValueId k, ValueId v, ValueId mask) {
    const std::int64_t size = s_.width / heads_;
    const ValueId scaled =
        g_.node("Mul", name + ".scaled", {q, number(name + ".scale", 1 / std::sqrt(static_cast<float>(size)))});
    const ValueId keys = g_.node("Transpose", name + ".keys", {k}, {{"perm", Dims{0, 1, 3, 2}}});
    ValueId scores = g_.node("MatMul", name + ".scores", {scaled, keys});
    if (mask != kNoValue) scores = add(name + ".masked", scores, mask);
    const ValueId weights = g_.node("Softmax", name + ".weights", {scores}, {{"axis", std::int64_t{-1}}});
    const ValueId mixed = g_.node("MatMul", name + ".mixed", {weights, v});
    return reshape(name + ".joined", g_.node("Transpose", name + ".back", {mixed}, {{"perm", Dims{0, 2, 1, 3}}}),
                   {0, 0, s_.width});
  }

  const WhisperSettings& s_;
  std::int64_t heads_;
};

class Encoder : WhisperGraph {
 public:
  Encoder(std::shared_ptr<const TensorFiles> weights, text::WeightStyle& style, const WhisperSettings& s)
      : WhisperGraph(std::move(weights), style, s, s.encoder_heads) {}

  Model build() {
    const std::string frames = std::to_string(s_.window_frames()), bins = std::to_string(s_.features.bins);
    ValueId x = g_.input("input_features", kFloat, {"batch", bins, frames});
    x = convolution("encoder.conv1", x, s_.features.bins, 1);
    x = convolution("encoder.conv2", x, s_.width, 2);
    x = g_.node("Transpose", "encoder.rows", {x}, {{"perm", Dims{0, 2, 1}}});
    x = add(
        "encoder.positions", x,
        g_.constant("encoder.embed_positions.weight", values("encoder.embed_positions.weight", {s_.source_positions, s_.width})));
    for (std::int64_t i = 0; i < s_.encoder_layers; ++i) x = layer("encoder.layers." + std::to_string(i), x);
    x = norm("encoder.layer_norm", x);
    g_.output(x, "last_hidden_state");
    heads_ = s_.heads;
    for (std::int64_t i = 0; i < s_.layers; ++i) {
      const std::string at = "decoder.layers." + std::to_string(i) + ".encoder_attn";
      g_.output(in_heads(at + ".k", many_rows(at + ".k_proj", x, s_.width, s_.width)), cache_name(kPresent, i, "encoder", "key"));
      g_.output(in_heads(at + ".v", many_rows(at + ".v_proj", x, s_.width, s_.width)),
                cache_name(kPresent, i, "encoder", "value"));
    }
    return std::move(g_.model());
  }

 private:
  ValueId convolution(const std::string& name, ValueId x, std::int64_t channels, std::int64_t stride) {
    const ValueId weight = g_.constant(name + ".weight", values(name + ".weight", {s_.width, channels, 3}));
    const ValueId y = g_.node("Conv", name, {x, weight, vector(name + ".bias", s_.width)},
                              {{"pads", Dims{1, 1}}, {"strides", Dims{stride}}, {"kernel_shape", Dims{3}}});
    return g_.node("Gelu", name + ".gelu", {y});
  }
  ValueId layer(const std::string& at, ValueId x) {
    const std::string attention = at + ".self_attn";
    const ValueId y = norm(at + ".self_attn_layer_norm", x);
    const auto part = [&](const char* name) {
      return in_heads(attention + name, many_rows(attention + name, y, s_.width, s_.width));
    };
    const ValueId q = part(".q_proj"), k = part(".k_proj"), v = part(".v_proj");
    x = add(attention + ".add", x, many_rows(attention + ".out_proj", attend(attention, q, k, v, kNoValue), s_.width, s_.width));
    const std::int64_t width = inner(at);
    const ValueId z = g_.node("Gelu", at + ".gelu", {many_rows(at + ".fc1", norm(at + ".final_layer_norm", x), width, s_.width)});
    return add(at + ".add", x, many_rows(at + ".fc2", z, s_.width, width));
  }
};

class DecoderOfTokens : WhisperGraph {
 public:
  DecoderOfTokens(std::shared_ptr<const TensorFiles> weights, text::WeightStyle& style, const WhisperSettings& s)
      : WhisperGraph(std::move(weights), style, s, s.heads) {}

  Model build() {
    const ValueId ids = g_.input("input_ids", DataType::int64, {"batch", "length"});
    for (std::int64_t i = 0; i < s_.layers; ++i) {
      for (const char* side : {"decoder", "encoder"}) {
        for (const char* part : {"key", "value"}) pasts_.push_back(past(i, side, part));
      }
    }
    const ValueId places = positions(ids);
    const StoredTensor& words = tensor("decoder.embed_tokens.weight", {s_.vocabulary, s_.width});
    const ValueId all =
        g_.constant("decoder.embed_positions.weight", values("decoder.embed_positions.weight", {s_.positions, s_.width}));
    ValueId x = add("decoder.embedded", style_.rows(g_, "decoder.words", words, ids),
                    g_.node("Gather", "decoder.places", {all, places}, {{"axis", std::int64_t{0}}}));
    for (std::int64_t i = 0; i < s_.layers; ++i) x = layer(i, x);
    x = norm("decoder.layer_norm", x);
    const bool own = has("proj_out.weight");
    const StoredTensor& out = own ? tensor("proj_out.weight", {s_.vocabulary, s_.width}) : words;
    g_.output(style_.product(g_, "decoder.logits", x, out, 0, s_.vocabulary, kNoValue), "logits");
    for (const auto& [name, value] : presents_) g_.output(value, name);
    return std::move(g_.model());
  }

 private:
  ValueId past(std::int64_t layer, const char* side, const char* part) {
    return g_.input(
        cache_name(kPast, layer, side, part), kFloat,
        {"batch", std::to_string(s_.heads), std::string(side) == "decoder" ? "past" : std::to_string(s_.source_positions),
         std::to_string(s_.width / s_.heads)});
  }
  // The places of the new tokens; sets the mask that hides later ones.
  ValueId positions(ValueId ids) {
    const auto scalar = [&](const char* name, std::int64_t value) {
      return g_.constant(name, Tensor::scalar<std::int64_t>(value));
    };
    const auto extent = [&](const std::string& name, ValueId of, std::int64_t axis) {
      return g_.node("Gather", name, {g_.node("Shape", name + ".shape", {of}), scalar((name + ".axis").c_str(), axis)});
    };
    const ValueId before = extent("decoder.before", pasts_[0], 2), zero = scalar("decoder.zero", 0),
                  one = scalar("decoder.one", 1);
    const ValueId total = add("decoder.total", before, extent("decoder.length", ids, 1));
    const ValueId places = g_.node("Range", "decoder.range", {before, total, one});
    const ValueId seen = g_.node("Range", "decoder.seen", {zero, total, one});
    const ValueId column = g_.node("Unsqueeze", "decoder.column", {places, integers("decoder.column.axes", {1})});
    const ValueId row = g_.node("Unsqueeze", "decoder.row", {seen, integers("decoder.row.axes", {0})});
    const ValueId later = g_.node("Less", "decoder.later", {column, row});
    mask_ = g_.node("Mul", "decoder.mask",
                    {g_.node("Cast", "decoder.later.float", {later}, {{"to", static_cast<std::int64_t>(kFloat)}}),
                     number("decoder.least", -1e9F)});
    return places;
  }
  ValueId linear_of(const std::string& name, ValueId x, std::int64_t rows, std::int64_t k) {
    return linear(name, x, name + ".weight", rows, k);
  }
  ValueId square(const std::string& name, ValueId x) { return linear_of(name, x, s_.width, s_.width); }

  ValueId layer(std::int64_t i, ValueId x) {
    const std::string at = "decoder.layers." + std::to_string(i), self = at + ".self_attn", cross = at + ".encoder_attn";
    const ValueId* const held = &pasts_[static_cast<std::size_t>(4 * i)];
    const ValueId y = norm(at + ".self_attn_layer_norm", x);
    const auto grown = [&](ValueId before, const char* proj, const char* part) {
      const ValueId now = in_heads(self + proj, square(self + proj, y));
      const ValueId both = g_.node("Concat", self + proj + ".all", {before, now}, {{"axis", std::int64_t{2}}});
      presents_.emplace_back(cache_name(kPresent, i, "decoder", part), both);
      return both;
    };
    const ValueId q = in_heads(self + ".q_proj", square(self + ".q_proj", y));
    const ValueId k = grown(held[0], ".k_proj", "key"), v = grown(held[1], ".v_proj", "value");
    x = add(self + ".add", x, square(self + ".out_proj", attend(self, q, k, v, mask_)));
    const ValueId asked = in_heads(cross + ".q_proj", square(cross + ".q_proj", norm(at + ".encoder_attn_layer_norm", x)));
    x = add(cross + ".add", x, square(cross + ".out_proj", attend(cross, asked, held[2], held[3], kNoValue)));
    const std::int64_t width = inner(at);
    const ValueId z = g_.node("Gelu", at + ".gelu", {linear_of(at + ".fc1", norm(at + ".final_layer_norm", x), width, s_.width)});
    return add(at + ".add", x, linear_of(at + ".fc2", z, s_.width, width));
  }

  std::vector<ValueId> pasts_;  // of each layer: keys and values of the tokens, then of the sound
  std::vector<std::pair<std::string, ValueId>> presents_;
  ValueId mask_ = kNoValue;
};

}  // namespace

std::shared_ptr<const TensorFiles> open_whisper_weights(const std::filesystem::path& listing) {
  constexpr std::string_view kModel = "model.";
  auto files = std::make_shared<TensorFiles>();
  text::each_safetensor(listing, *files, [&](const std::string& name, const Tensor& tensor, std::size_t file) {
    StoredTensor t = text::stored_tensor(name, tensor, *files, file);
    t.name = name.starts_with(kModel) ? name.substr(kModel.size()) : name;
    if (!files->add_tensor(std::move(t))) fail(ErrorCode::invalid_model, "tensor '{}' occurs twice", name);
  });
  return files;
}

Model whisper_encoder(std::shared_ptr<const TensorFiles> weights, const WhisperSettings& settings) {
  if (settings.activation != "gelu")
    fail(ErrorCode::not_implemented, "config.json: activation_function = '{}' is not supported; expected 'gelu'",
         settings.activation);
  if (settings.scaled_words) fail(ErrorCode::not_implemented, "config.json: scale_embedding = true is not supported");
  const auto style = text::weights_in_place(weights);
  return Encoder(std::move(weights), *style, settings).build();
}

Model whisper_decoder(std::shared_ptr<const TensorFiles> weights, const WhisperSettings& settings) {
  const auto style = text::weights_in_place(weights);
  return DecoderOfTokens(std::move(weights), *style, settings).build();
}

}  // namespace sdx::speech
