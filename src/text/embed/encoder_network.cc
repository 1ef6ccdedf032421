#include "text/embed/encoder_network.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"
#include "text/embed/encoder_files.h"
#include "text/embed/language_encoder.h"
#include "text/model/accuracy.h"
#include "text/model/network/decoder_config.h"
#include "text/model/network/decoder_graph.h"
#include "text/model/network/weighted_graph.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;

// Slopes that halve from head to head for 8 heads, and for other numbers a geometric series as well (arXiv:2108.12409).
std::vector<float> slopes_of(std::int64_t heads) {
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<float> slopes;
  for (std::int64_t h = 0; h < heads; ++h) {
    const double step = h < power ? static_cast<double>(h + 1) : static_cast<double>(2 * (h - power) + 1) / 2.0;
    slopes.push_back(static_cast<float>(std::exp2(-8.0 * step / static_cast<double>(power))));
  }
  return slopes;
}

class EncoderBuilder : WeightedGraph {
 public:
  EncoderBuilder(std::shared_ptr<const TensorFiles> file, const EncoderConfig& config, WeightStyle& style, TextOutput output)
      : WeightedGraph(std::move(file), style), c_(config), output_(output) {}

  Model build() {
    const auto input = [&](const char* name) { return g_.input(name, DataType::int64, {"batch_size", "sequence_length"}); };
    const ValueId ids = input("input_ids"), mask = input("attention_mask");
    lengths_ = g_.node("ReduceSum", "/mask/ReduceSum", {mask, integers("/mask/axis", {1})}, {{"keepdims", std::int64_t{0}}});
    if (!c_.distances) positions_ = input("position_ids");
    ValueId x = style_.rows(g_, "/embeddings/words", tensor("token_embd.weight", {-1, c_.width}), ids);
    if (has("token_types.weight")) {
      const ValueId types = input("token_type_ids");
      x = sum("/embeddings/types/Add", x,
              style_.rows(g_, "/embeddings/types", tensor("token_types.weight", {-1, c_.width}), types));
    }
    if (c_.rope_base > 0.0F) {
      angles("", c_.rope_base);
      if (c_.window > 0) angles(".local", c_.local_base);
    } else if (!c_.distances) {
      x = sum("/embeddings/positions/Add", x, position_vectors());
    }
    x = norm("/embeddings/LayerNorm", x, "token_embd_norm");
    for (std::int64_t i = 0; i < c_.layers; ++i) x = layer(i, x);
    if (c_.pre_norms) x = norm("/final_norm", x, "output_norm");
    if (output_ == TextOutput::scores) {
      scores(x, mask);
    } else if (output_ == TextOutput::words) {
      words(x, mask);
    } else {
      std::int64_t width = c_.width;
      if (output_ == TextOutput::short_vectors && has("linear.weight")) {
        width = tensor("linear.weight", {-1, c_.width}).shape[0];
        x = linear("/linear", x, "linear.weight", width, c_.width);
      }
      give(x, {Dim::symbol("batch_size"), Dim::symbol("sequence_length"), Dim(width)}, "last_hidden_state");
    }
    std::vector<std::string> others{"pooler.", "mlm"};  // before heads for classes, and heads for words
    if (c_.pre_norms) others.insert(others.end(), {"cls.weight", "cls.bias", "cls.norm."});
    refuse_unknown(c_.architecture, others);
    return std::move(g_.model());
  }

 private:
  void scores(ValueId x, ValueId mask) {
    const std::int64_t to_float = static_cast<std::int64_t>(DataType::float32);
    ValueId y = kNoValue;
    if (c_.mean_scores) {
      y = weighted_sum("/pool", x, g_.node("Cast", "/pool/mask", {mask}, {{"to", to_float}}));
      const ValueId count = g_.node("Cast", "/pool/count", {lengths_}, {{"to", to_float}});
      y = g_.node("Div", "/pool/Div", {y, g_.node("Unsqueeze", "/pool/column", {count, integers("/pool/axis", {1})})});
    } else {
      y = g_.node("Gather", "/pool/first", {x, g_.constant("/pool/zero", Tensor::scalar<std::int64_t>(0))},
                  {{"axis", std::int64_t{1}}});
    }
    const bool direct = !has("cls.output.weight") && has("cls.weight");  // one matrix alone
    const std::string dense = direct ? "" : has("cls.weight") ? "cls" : has("pooler.dense.weight") ? "pooler.dense" : "";
    if (!dense.empty()) {
      y = linear("/head/dense", y, dense + ".weight", c_.width, c_.width);
      y = g_.node(c_.pre_norms ? "Gelu" : "Tanh", "/head/act", {y});
    }
    if (!direct && has("cls.norm.weight")) y = norm("/head/norm", y, "cls.norm");
    const std::string out = direct ? "cls.weight" : "cls.output.weight";
    const std::int64_t classes = tensor(out, {-1, c_.width}).shape[0];
    give(linear("/classifier", y, out, classes, c_.width), {Dim::symbol("batch_size"), Dim(classes)}, "logits");
  }
  void words(ValueId x, ValueId mask) {
    const std::string dense = c_.pre_norms ? "cls" : "mlm", after = c_.pre_norms ? "cls.norm" : "mlm_norm";
    x = g_.node("Gelu", "/mlm/act", {linear("/mlm/dense", x, dense + ".weight", c_.width, c_.width)});
    x = norm("/mlm/norm", x, after);
    const std::string matrix = has("mlm_output.weight") ? "mlm_output.weight" : "token_embd.weight";
    const StoredTensor& all = tensor(matrix, {-1, c_.width});
    const std::int64_t count = all.shape[0];
    const ValueId bias = has("mlm_output.bias") ? vector("mlm_output.bias", count) : kNoValue;
    x = style_.product(g_, "/mlm/output", x, all, 0, count, bias);
    // Padding is never the largest.
    const ValueId one = number("/mlm/one", 1.0F), axis = integers("/mlm/axis", {1}), behind = integers("/mlm/behind", {2});
    const ValueId seen = g_.node("Cast", "/mlm/mask", {mask}, {{"to", static_cast<std::int64_t>(DataType::float32)}});
    const ValueId low = g_.node("Mul", "/mlm/low", {g_.node("Sub", "/mlm/Sub", {seen, one}), number("/mlm/least", 1e9F)});
    x = g_.node("Add", "/mlm/seen", {x, g_.node("Unsqueeze", "/mlm/column", {low, behind})});
    x = g_.node("Relu", "/mlm/Relu", {g_.node("ReduceMax", "/mlm/max", {x, axis}, {{"keepdims", std::int64_t{0}}})});
    x = g_.node("Log", "/mlm/Log", {g_.node("Add", "/mlm/Add", {x, one})});
    give(x, {Dim::symbol("batch_size"), Dim(count)}, "sentence_embedding");
  }
  void give(ValueId x, SymShape shape, const char* name) {
    g_.graph().value(x).type = g_.graph().value(x).declared = Type::tensor(DataType::float32, std::move(shape));
    g_.output(x, name);
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

  void angles(const std::string& end, float base) {
    const std::int64_t size = c_.width / c_.heads;
    check_angles(c_.context, size);
    RopeConfig rope;
    rope.base = base;
    Tensor cos(DataType::float32, {c_.context, size / 2}), sin(DataType::float32, {c_.context, size / 2});
    rope_rows(rope, size, c_.context, 0, c_.context, cos.mutable_values<float>().data(), sin.mutable_values<float>().data());
    cos_.push_back(g_.constant("cos_cache" + end, std::move(cos)));
    sin_.push_back(g_.constant("sin_cache" + end, std::move(sin)));
  }
  ValueId rotated(const std::string& name, ValueId x, bool local) {
    if (c_.rope_base == 0.0F) return x;
    const std::size_t kind = local ? 1 : 0;
    return g_.node("com.microsoft.RotaryEmbedding", name, {x, positions_, cos_[kind], sin_[kind]}, {{"num_heads", c_.heads}});
  }

  // Weights of a norm; ModernBERT's have no bias.
  ValueId norm(const std::string& name, ValueId x, const std::string& weight) {
    return g_.node("LayerNormalization", name, {x, vector(weight + ".weight", c_.width), bias_of(weight + ".weight", c_.width)},
                   {{"epsilon", c_.epsilon}, {"axis", std::int64_t{-1}}, {"stash_type", std::int64_t{1}}});
  }
  ValueId norm_of_sum(const std::string& name, ValueId x, ValueId y, const std::string& weight) {
    return g_.node("com.microsoft.SkipLayerNormalization", name,
                   {x, y, vector(weight + ".weight", c_.width), bias_of(weight + ".weight", c_.width)},
                   {{"epsilon", c_.epsilon}});
  }

  ValueId layer(std::int64_t i, ValueId x) {
    const std::string at = "/layers." + std::to_string(i), of = "blk." + std::to_string(i) + ".";
    const bool local = c_.window > 0 && i % c_.interval != 0;
    if (c_.pre_norms) {  // the first layer's input has its norm
      const ValueId before = has(of + "attn_norm.weight") ? norm(at + "/attn_norm", x, of + "attn_norm") : x;
      x = sum(at + "/attn/Add", x, attention(at + "/attn", of, before, local));
      return sum(at + "/mlp/Add", x, feed_forward(at + "/mlp", of, norm(at + "/mlp_norm", x, of + "ffn_norm")));
    }
    ValueId y = norm_of_sum(at + "/attn/LayerNorm", x, attention(at + "/attn", of, x, local), of + "attn_output_norm");
    if (has(of + "attn_norm_2.weight")) y = norm_of_sum(at + "/layer_norm_1", x, y, of + "attn_norm_2");
    return norm_of_sum(at + "/mlp/LayerNorm", y, feed_forward(at + "/mlp", of, y), of + "layer_output_norm");
  }

  // Queries, keys or values: from a matrix of their own, or from one with all three.
  ValueId part(const std::string& at, const std::string& of, ValueId x, int which) {
    const std::string name = std::string(1, "qkv"[which]), joined = of + "attn_qkv.weight";
    if (!has(joined)) {
      const ValueId y = linear(at + "/" + name, x, of + "attn_" + name + ".weight", c_.width, c_.width);
      const std::string own = of + "attn_" + name + "_norm";
      return has(own + ".weight") ? norm(at + "/" + name + "_norm", y, own) : y;
    }
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

  ValueId attention(const std::string& at, const std::string& of, ValueId x, bool local) {
    const ValueId q = rotated(at + "/q_rotary", part(at, of, x, 0), local),
                  k = rotated(at + "/k_rotary", part(at, of, x, 1), local);
    AttributeList a{{"q_num_heads", c_.heads}, {"kv_num_heads", c_.heads}, {"pads_behind", std::int64_t{1}}};
    if (local) a.insert(a.end(), {{"left_window_size", c_.window}, {"right_window_size", c_.window}});
    if (c_.distances) a.emplace_back("slopes", slopes_of(c_.heads));
    const ValueId y =
        g_.node("sdx.Attention", at + "/Attention", {q, k, part(at, of, x, 2), kNoValue, kNoValue, kNoValue, lengths_}, a);
    return linear(at + "/output", y, of + "attn_output.weight", c_.width, c_.width);
  }

  ValueId feed_forward(const std::string& at, const std::string& of, ValueId x) {
    ValueId y = kNoValue;
    if (c_.gated && !has(of + "ffn_gate.weight")) {
      // Both in one: the gate first, or, in JinaBERT for code, behind.
      const bool behind = has(of + "ffn_up_gate.weight");
      if (!behind && has(of + "attn_norm_2.weight"))
        fail(ErrorCode::not_implemented, "tensor '{}': it is not known which half is the gate", of + "ffn_up.weight");
      const StoredTensor& both = tensor(of + (behind ? "ffn_up_gate" : "ffn_up") + ".weight", {2 * c_.feed_forward, c_.width});
      const auto half = [&](const char* name, bool second) {
        return style_.product(g_, at + name, x, both, second ? c_.feed_forward : 0, c_.feed_forward, kNoValue);
      };
      y = gated(at, half("/gate", behind), half("/up", !behind));
    } else {
      y = linear(at + "/up", x, of + "ffn_up.weight", c_.feed_forward, c_.width);
      y = c_.gated ? gated(at, linear(at + "/gate", x, of + "ffn_gate.weight", c_.feed_forward, c_.width), y)
                   : g_.node("Gelu", at + "/act", {y});
    }
    return linear(at + "/down", y, of + "ffn_down.weight", c_.width, c_.feed_forward);
  }
  ValueId gated(const std::string& at, ValueId gate, ValueId up) {
    const ValueId active = c_.gelu ? g_.node("Gelu", at + "/act", {gate})
                                   : g_.node("Mul", at + "/act/Mul", {gate, g_.node("Sigmoid", at + "/act/Sigmoid", {gate})});
    return g_.node("Mul", at + "/Mul", {active, up});
  }

  const EncoderConfig& c_;
  TextOutput output_;
  ValueId lengths_ = kNoValue, positions_ = kNoValue;
  std::vector<ValueId> cos_, sin_;
};

}  // namespace

EncoderFacts read_encoder_facts(const fs::path& path) {
  if (is_language_network(path)) return read_language_facts(path);
  const EncoderConfig c = read_encoder_config(path);
  return {c.context, c.pooling, {}, {}};
}

Session open_encoder(const fs::path& path, const SessionOptions& options, const TextHead& head) {
  try {
    if (is_language_network(path)) return open_language_encoder(path, options, head);
    const EncoderConfig config = read_encoder_config(path);
    const auto files = open_encoder_files(path, config);
    const bool scores = head.output == TextOutput::scores;
    if (!scores && (config.ranks || files->find_tensor("cls.output.weight") != nullptr))
      fail(ErrorCode::invalid_argument, "the model is a reranker, which makes scores of pairs, not vectors of texts");
    if (scores && files->find_tensor("cls.output.weight") == nullptr && files->find_tensor("cls.weight") == nullptr)
      fail(ErrorCode::invalid_argument, "the model has no head for classes, as rerankers have it");
    const auto style = weights_in_place(files);
    Model model = EncoderBuilder(files, config, *style, head.output).build();
    set_accuracy_level(model.graph, head.accuracy_level);
    const MappedModel mapped = map_model(model, *files);
    return Session::from_bytes(std::as_bytes(std::span<const char>(mapped.bytes)), options, mapped.folder);
  } catch (Error& e) {
    throw e.add_context("in '" + path.string() + "'");
  }
}

}  // namespace sdx::text
