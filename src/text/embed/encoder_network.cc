#include "text/embed/encoder_network.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"
#include "text/embed/encoder_files.h"
#include "text/model/network/decoder_config.h"
#include "text/model/network/decoder_graph.h"
#include "text/model/network/weighted_graph.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;

class EncoderBuilder : WeightedGraph {
 public:
  EncoderBuilder(std::shared_ptr<const TensorFiles> file, const EncoderConfig& config, WeightStyle& style)
      : WeightedGraph(std::move(file), style), c_(config) {}

  Model build() {
    const auto input = [&](const char* name) { return g_.input(name, DataType::int64, {"batch_size", "sequence_length"}); };
    const ValueId ids = input("input_ids"), mask = input("attention_mask");
    positions_ = input("position_ids");
    mask_ = g_.node("Cast", "/mask/Cast", {mask}, {{"to", static_cast<std::int64_t>(DataType::int32)}});
    ValueId x = style_.rows(g_, "/embeddings/words", tensor("token_embd.weight", {-1, c_.width}), ids);
    if (has("token_types.weight")) {
      const ValueId types = input("token_type_ids");
      x = sum("/embeddings/types/Add", x,
              style_.rows(g_, "/embeddings/types", tensor("token_types.weight", {-1, c_.width}), types));
    }
    if (c_.rope_base > 0.0F) {
      angles();
    } else {
      x = sum("/embeddings/positions/Add", x, position_vectors());
    }
    x = g_.node("LayerNormalization", "/embeddings/LayerNorm",
                {x, vector("token_embd_norm.weight", c_.width), vector("token_embd_norm.bias", c_.width)}, norm_attributes());
    for (std::int64_t i = 0; i < c_.layers; ++i) x = layer(i, x);
    g_.graph().value(x).type = g_.graph().value(x).declared =
        Type::tensor(DataType::float32, {Dim::symbol("batch_size"), Dim::symbol("sequence_length"), Dim(c_.width)});
    g_.output(x, "last_hidden_state");
    refuse_unknown(c_.architecture, {"pooler."});
    return std::move(g_.model());
  }

 private:
  AttributeList norm_attributes() const {
    return {{"epsilon", c_.epsilon}, {"axis", std::int64_t{-1}}, {"stash_type", std::int64_t{1}}};
  }
  ValueId sum(const std::string& name, ValueId a, ValueId b) { return g_.node("Add", name, {a, b}); }

  ValueId position_vectors() {
    const Tensor all = values("position_embd.weight", {-1, c_.width});
    if (all.dim(0) < c_.first_position + c_.context)
      fail(ErrorCode::invalid_model, "{} positions have vectors, {} are needed", all.dim(0), c_.first_position + c_.context);
    const std::span<const float> from = all.values<float>().subspan(static_cast<std::size_t>(c_.first_position * c_.width));
    Tensor used(DataType::float32, {c_.context, c_.width});
    std::copy_n(from.begin(), static_cast<std::ptrdiff_t>(used.size()), used.mutable_values<float>().begin());
    return g_.node("Gather", "/embeddings/positions", {g_.constant("position_embd.weight", std::move(used)), positions_},
                   {{"axis", std::int64_t{0}}});
  }

  void angles() {
    const std::int64_t size = c_.width / c_.heads;
    RopeConfig rope;
    rope.base = c_.rope_base;
    Tensor cos(DataType::float32, {c_.context, size / 2}), sin(DataType::float32, {c_.context, size / 2});
    rope_rows(rope, size, c_.context, 0, c_.context, cos.mutable_values<float>().data(), sin.mutable_values<float>().data());
    cos_ = g_.constant("cos_cache", std::move(cos));
    sin_ = g_.constant("sin_cache", std::move(sin));
  }
  ValueId rotated(const std::string& name, ValueId x) {
    if (c_.rope_base == 0.0F) return x;
    return g_.node("com.microsoft.RotaryEmbedding", name, {x, positions_, cos_, sin_}, {{"num_heads", c_.heads}});
  }

  ValueId norm_of_sum(const std::string& name, ValueId x, ValueId y, const std::string& weight) {
    return g_.node("com.microsoft.SkipLayerNormalization", name,
                   {x, y, vector(weight + ".weight", c_.width), vector(weight + ".bias", c_.width)}, {{"epsilon", c_.epsilon}});
  }

  ValueId layer(std::int64_t i, ValueId x) {
    const std::string at = "/layers." + std::to_string(i), of = "blk." + std::to_string(i) + ".";
    x = norm_of_sum(at + "/attn/LayerNorm", x, attention(at + "/attn", of, x), of + "attn_output_norm");
    return norm_of_sum(at + "/mlp/LayerNorm", x, feed_forward(at + "/mlp", of, x), of + "layer_output_norm");
  }

  // Queries, keys or values: from a matrix of their own, or from one with all three.
  ValueId part(const std::string& at, const std::string& of, ValueId x, int which) {
    const std::string name = std::string(1, "qkv"[which]), joined = of + "attn_qkv.weight";
    if (!has(joined)) return linear(at + "/" + name, x, of + "attn_" + name + ".weight", c_.width, c_.width);
    const StoredTensor& all = tensor(joined, {3 * c_.width, c_.width});
    ValueId bias = kNoValue;
    if (has(of + "attn_qkv.bias")) {
      const Tensor three = values(of + "attn_qkv.bias", {3 * c_.width});
      Tensor one(DataType::float32, {c_.width});
      std::copy_n(three.values<float>().begin() + which * c_.width, c_.width, one.mutable_values<float>().begin());
      bias = g_.constant(of + name + ".bias", std::move(one));
    }
    return style_.product(g_, at + "/" + name, x, all, which * c_.width, c_.width, bias);
  }

  ValueId attention(const std::string& at, const std::string& of, ValueId x) {
    const ValueId q = rotated(at + "/q_rotary", part(at, of, x, 0)), k = rotated(at + "/k_rotary", part(at, of, x, 1));
    const ValueId y = g_.node("com.microsoft.MultiHeadAttention", at + "/MultiHeadAttention",
                              {q, k, part(at, of, x, 2), kNoValue, mask_}, {{"num_heads", c_.heads}});
    return linear(at + "/output", y, of + "attn_output.weight", c_.width, c_.width);
  }

  ValueId feed_forward(const std::string& at, const std::string& of, ValueId x) {
    ValueId y = linear(at + "/up", x, of + "ffn_up.weight", c_.feed_forward, c_.width);
    if (c_.gated) {
      const ValueId gate = linear(at + "/gate", x, of + "ffn_gate.weight", c_.feed_forward, c_.width);
      const ValueId active = g_.node("Mul", at + "/act/Mul", {gate, g_.node("Sigmoid", at + "/act/Sigmoid", {gate})});
      y = g_.node("Mul", at + "/Mul", {active, y});
    } else {
      y = g_.node("Gelu", at + "/act", {y});
    }
    return linear(at + "/down", y, of + "ffn_down.weight", c_.width, c_.feed_forward);
  }

  const EncoderConfig& c_;
  ValueId mask_ = kNoValue, positions_ = kNoValue, cos_ = kNoValue, sin_ = kNoValue;
};

}  // namespace

Session open_encoder(const fs::path& path, const SessionOptions& options) {
  try {
    const EncoderConfig config = read_encoder_config(path);
    const auto files = open_encoder_files(path, config);
    const auto style = weights_in_place(files);
    const MappedModel mapped = map_model(EncoderBuilder(files, config, *style).build(), *files);
    return Session::from_bytes(std::as_bytes(std::span<const char>(mapped.bytes)), options, mapped.folder);
  } catch (Error& e) {
    throw e.add_context("in '" + path.string() + "'");
  }
}

}  // namespace sdx::text
