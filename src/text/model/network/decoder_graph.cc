#include "text/model/network/decoder_graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/words.h"
#include "text/model/network/expert_weights.h"
#include "text/model/network/recurrent_layers.h"
#include "text/model/network/weighted_graph.h"

namespace sdx::text {
namespace {

class Builder : WeightedGraph {
 public:
  Builder(std::shared_ptr<const TensorFiles> file, DecoderConfig& config, WeightStyle& style, const DecoderOptions& options)
      : WeightedGraph(std::move(file), style), c_(config), options_(options) {}

  Model build() {
    const StoredTensor& embedding = tensor("token_embd.weight", {-1, c_.width});
    c_.vocabulary = embedding.shape[0];
    inputs();
    ValueId x = style_.rows(g_, "/model/embed_tokens", embedding, ids_);
    if (c_.embedding_scale != 1.0F) {
      x = g_.node("Mul", "/model/embed_scale", {x, number("embed_scale", c_.embedding_scale)});
    }
    for (std::int64_t i = 0; i < c_.layers; ++i) x = layer(i, x);
    if (options_.embeds) {
      x = norm_after("/model/norm", x, last_norm()).second;
      if (options_.scores) {
        scores(x, embedding);
      } else {
        declare(x, {Dim::symbol("batch_size"), Dim::symbol("sequence_length"), Dim(c_.width)});
        g_.output(x, "last_hidden_state");
      }
      refuse_unknown(c_.architecture, {"rope_freqs.weight", "rope_factors_", "output.weight", "dense_"});
      return std::move(g_.model());
    }
    if (!options_.for_file) x = wanted_rows(x);
    finish(norm_after("/model/norm", x, last_norm()).second, embedding);
    std::vector<std::string> others{"rope_freqs.weight", "rope_factors_"};
    for (std::int64_t i = c_.layers; i < c_.layers + c_.spare_layers; ++i) {
      others.push_back(fmt::format("blk.{}.", i));
      others.push_back(fmt::format("model.layers.{}.", i));  // what GGUF files have no name for
    }
    refuse_unknown(c_.architecture, others);
    return std::move(g_.model());
  }

 private:
  // LFM2 names it after the embedding.
  std::string last_norm() const { return has("token_embd_norm.weight") ? "token_embd_norm.weight" : "output_norm.weight"; }

  // A norm's weights.
  ValueId gamma(const std::string& name, std::int64_t size) {
    Tensor values = WeightedGraph::values(name, {size});
    if (c_.norm_shift != 0.0F) {
      values = values.clone();
      for (float& v : values.mutable_values<float>()) v += c_.norm_shift;
    }
    return g_.constant(name, with_type(std::move(values), style_.type()));
  }

  void inputs() {
    ids_ = g_.input("input_ids", DataType::int64, {"batch_size", "sequence_length"});
    if (options_.embeds) return text_inputs();
    const ValueId mask = g_.input("attention_mask", DataType::int64, {"batch_size", "total_sequence_length"});
    const auto ints = [&](const char* name, std::vector<std::int64_t> values) {
      const auto n = static_cast<std::int64_t>(values.size());
      return g_.constant(name, Tensor::of<std::int64_t>({n}, std::span<const std::int64_t>(values)));
    };
    const ValueId one = ints("/model/one", {1});
    const ValueId sum = g_.node("ReduceSum", "/model/attn_mask/ReduceSum", {mask, one}, {{"keepdims", std::int64_t{0}}});
    const ValueId last = g_.node("Sub", "/model/attn_mask/Sub", {sum, one});
    const std::int64_t int32 = static_cast<std::int64_t>(DataType::int32);
    lengths_ = g_.node("Cast", "/model/attn_mask/Cast", {last}, {{"to", int32}});
    const ValueId shape = g_.node("Shape", "/model/attn_mask/Shape", {mask});
    const ValueId index = g_.constant("/model/one_scalar", Tensor::scalar<std::int64_t>(1));
    const ValueId total = g_.node("Gather", "/model/attn_mask/Gather", {shape, index}, {{"axis", std::int64_t{0}}});
    total_ = g_.node("Cast", "/model/attn_mask/total", {total}, {{"to", int32}});
    all_angles();
    if (c_.norm_after_rotation || c_.query_growth != 0.0F) {
      positions_ = g_.input("position_ids", DataType::int64, {"batch_size", "sequence_length"});
    }
    if (c_.query_growth != 0.0F) query_scale_ = query_scale();
  }

  void text_inputs() {
    const ValueId mask = g_.input("attention_mask", DataType::int64, {"batch_size", "sequence_length"});
    lengths_ =
        g_.node("ReduceSum", "/model/attn_mask/ReduceSum", {mask, integers("/model/one", {1})}, {{"keepdims", std::int64_t{0}}});
    positions_ = g_.input("position_ids", DataType::int64, {"batch_size", "sequence_length"});
    all_angles();
    if (c_.query_growth != 0.0F) query_scale_ = query_scale();
  }

  // Scores of classes, from the last token.
  void scores(ValueId x, const StoredTensor& embedding) {
    const ValueId one = integers("/score/one", {1});
    const ValueId last = g_.node("Unsqueeze", "/score/column", {g_.node("Sub", "/score/last", {lengths_, one}), one});
    const ValueId is_last = g_.node("Equal", "/score/Equal", {positions_, last});
    x = weighted_sum("/score/pool", x,
                     g_.node("Cast", "/score/Cast", {is_last}, {{"to", static_cast<std::int64_t>(DataType::float32)}}));
    std::int64_t classes = 1;
    if (has("score.weight")) {
      classes = tensor("score.weight", {-1, c_.width}).shape[0];
      x = linear("/score", x, "score.weight", classes, c_.width);
    } else if (has("cls.output.weight")) {  // in GGUF files "yes" comes first
      const StoredTensor& head = tensor("cls.output.weight", {-1, c_.width});
      classes = head.shape[0];
      x = classes == 2 ? difference(x, head, 1, 0) : linear("/score", x, "cls.output.weight", classes, c_.width);
      if (classes == 2) classes = 1;
    } else {
      if (options_.answers.empty() || options_.answers.size() > 2)
        fail(ErrorCode::invalid_argument, "the model has no head for classes, and its vocabulary has no answers 'yes' and 'no'");
      const StoredTensor& head = has("output.weight") ? tensor("output.weight", {c_.vocabulary, c_.width}) : embedding;
      for (const std::int64_t id : options_.answers) {
        if (id < 0 || id >= c_.vocabulary) fail(ErrorCode::invalid_model, "token {} has no row in the output matrix", id);
      }
      x = options_.answers.size() == 2 ? difference(x, head, options_.answers[0], options_.answers[1])
                                       : style_.product(g_, "/score/only", x, head, options_.answers[0], 1, kNoValue);
    }
    declare(x, {Dim::symbol("batch_size"), Dim(classes)});
    g_.output(x, "logits");
  }
  // By how much the product with row `second` is larger than that with row `first`.
  ValueId difference(ValueId x, const StoredTensor& matrix, std::int64_t first, std::int64_t second) {
    const ValueId no = style_.product(g_, "/score/first", x, matrix, first, 1, kNoValue);
    return g_.node("Sub", "/score/Sub", {style_.product(g_, "/score/second", x, matrix, second, 1, kNoValue), no});
  }

  // [batch, sequence, 1]: 1 + growth * log(1 + floor(position / original context)).
  ValueId query_scale() {
    const std::string at = "/model/query_scale";
    const ValueId axis = g_.constant(at + ".axis", Tensor::of<std::int64_t>({1}, {-1}));
    const ValueId one = number(at + ".one", 1.0F);
    const ValueId column = g_.node("Unsqueeze", at + "/Unsqueeze", {positions_, axis});
    const ValueId whole = g_.constant(at + ".context", Tensor::of<std::int64_t>({1}, {c_.rope.original_context}));
    const ValueId times = g_.node("Cast", at + "/Cast", {g_.node("Div", at + "/Div", {column, whole})},
                                  {{"to", static_cast<std::int64_t>(style_.type())}});
    const ValueId log = g_.node("Log", at + "/Log", {g_.node("Add", at + "/Add", {times, one})});
    return g_.node("Add", at, {g_.node("Mul", at + "/Mul", {log, number(at + ".growth", c_.query_growth)}), one});
  }

  void all_angles() {
    angles(0, c_.rope);
    if (c_.two_ropes && std::find(c_.local.begin(), c_.local.end(), true) != c_.local.end()) angles(1, c_.local_rope);
  }
  void angles(int kind, const RopeConfig& rope) {
    const std::string half = std::to_string(c_.rotary / 2), end = "." + std::to_string(kind);
    if (options_.for_file || options_.embeds) {
      check_angles(options_.context, c_.rotary);
      Tensor cos(DataType::float32, {options_.context, c_.rotary / 2}), sin(DataType::float32, {options_.context, c_.rotary / 2});
      rope_rows(rope, c_.rotary, options_.context, 0, options_.context, cos.mutable_values<float>().data(),
                sin.mutable_values<float>().data());
      cos_.push_back(g_.constant("cos_cache" + end, with_type(std::move(cos), style_.type())));
      sin_.push_back(g_.constant("sin_cache" + end, with_type(std::move(sin), style_.type())));
    } else {
      cos_.push_back(g_.input("rope_cos" + end, DataType::float32, {"positions", half}));
      sin_.push_back(g_.input("rope_sin" + end, DataType::float32, {"positions", half}));
    }
  }

  // Adds the pending term to the sum, and returns the sum and its norm.
  std::pair<ValueId, ValueId> norm_after(const std::string& name, ValueId x, const std::string& weight) {
    if (pending_ == kNoValue) return {x, plain_norm(name, x, weight, c_.width)};
    const std::string op =
        c_.layer_norm ? "com.microsoft.SkipLayerNormalization" : "com.microsoft.SkipSimplifiedLayerNormalization";
    const auto out = g_.nodes(op, name, {x, pending_, gamma(weight, c_.width), norm_bias(weight, c_.width)},
                              {name + "/output_0", "", "", name + "/output_3"}, {{"epsilon", c_.epsilon}});
    pending_ = kNoValue;
    return {out[3], out[0]};
  }
  ValueId plain_norm(const std::string& name, ValueId x, const std::string& weight, std::int64_t size) {
    return normalized(name, x, gamma(weight, size), norm_bias(weight, size));
  }
  ValueId normalized(const std::string& name, ValueId x, ValueId weight, ValueId bias) {
    return g_.node(c_.layer_norm ? "LayerNormalization" : "SimplifiedLayerNormalization", name, {x, weight, bias},
                   {{"epsilon", c_.epsilon}, {"axis", std::int64_t{-1}}, {"stash_type", std::int64_t{1}}});
  }
  ValueId norm_bias(const std::string& weight, std::int64_t size) {
    return c_.norm_bias ? vector(weight.substr(0, weight.rfind('.')) + ".bias", size) : kNoValue;
  }
  // The sum with its pending term.
  ValueId settled(const std::string& name, ValueId x) {
    if (pending_ == kNoValue) return x;
    return g_.node("Add", name, {x, std::exchange(pending_, kNoValue)});
  }

  ValueId layer(std::int64_t i, ValueId x) {
    const std::string at = "/model/layers." + std::to_string(i), of = "blk." + std::to_string(i) + ".";
    const auto [sum, normed] = norm_before(at + "/input_layernorm", x, of + "attn_norm.weight");
    if (c_.single_parts) {
      const bool feeds = !has(of + "attn_q.weight") && !is_recurrent_layer(*this, of);
      pending_ = feeds ? fed(at, of, normed) : mixed(i, at, of, normed);
      return sum;
    }
    ValueId added = mixed(i, at, of, normed);
    if (c_.post_norms) added = plain_norm(at + "/post_attention_layernorm", added, of + "post_attention_norm.weight", c_.width);
    added = scaled(at + "/attn/residual", added);
    if (c_.parallel) {
      pending_ = g_.node("Add", at + "/parallel", {added, fed(at, of, normed)});
      return sum;
    }
    pending_ = added;
    // Files of gpt-oss and Seed-OSS name the norm before the feed-forward part by its place after attention.
    const bool named_after =
        has_word("gpt-oss seed_oss glm4moe qwen3next qwen35 qwen35moe", c_.architecture) && !has(of + "ffn_norm.weight");
    const auto [second, second_normed] =
        norm_before(at + "/ffn_layernorm", sum, of + (named_after ? "post_attention_norm" : "ffn_norm") + ".weight");
    pending_ = fed(at, of, second_normed);
    return second;
  }
  std::pair<ValueId, ValueId> norm_before(const std::string& name, ValueId x, const std::string& weight) {
    if (c_.pre_norms) return norm_after(name, x, weight);
    const ValueId sum = settled(name + "/Add", x);
    return {sum, sum};
  }
  // What the feed-forward part adds.
  ValueId fed(const std::string& at, const std::string& of, ValueId x) {
    const bool routed = c_.experts.count > 0 && has(of + "ffn_gate_inp.weight");
    ValueId y = routed ? mixture(at + "/moe", of, x) : feed_forward(at + "/mlp", of, x);
    if (c_.post_norms) y = plain_norm(at + "/post_ffn_layernorm", y, of + "post_ffw_norm.weight", c_.width);
    return scaled(at + "/mlp/residual", y);
  }
  ValueId scaled(const std::string& name, ValueId x) { return times(name, x, c_.residual_scale); }
  ValueId times(const std::string& name, ValueId x, float factor) {
    return factor == 1.0F ? x : g_.node("Mul", name, {x, number(name + ".scale", factor)});
  }

  // Attention without a past.
  ValueId text_attention(std::int64_t i, const std::string& at, const std::string& of, ValueId x) {
    const std::int64_t q_rows = c_.heads * c_.head_size, kv_rows = c_.kv_heads * c_.head_size;
    const auto layer = static_cast<std::size_t>(i);
    if (has(of + "attn_qkv.weight") || has(of + "attn_sinks.weight"))
      fail(ErrorCode::not_implemented, "architecture '{}' is not supported for vectors of texts", c_.architecture);
    ValueId q = linear(at + "/q_proj", x, of + "attn_q.weight", q_rows, c_.width);
    ValueId k = linear(at + "/k_proj", x, of + "attn_k.weight", kv_rows, c_.width);
    const ValueId v = linear(at + "/v_proj", x, of + "attn_v.weight", kv_rows, c_.width);
    bool rotated = c_.unrotated.empty() || !c_.unrotated[layer];
    const std::size_t angles = c_.local[layer] && cos_.size() > 1 ? 1 : 0;
    prepare_heads(at, of, q, k, rotated, angles);
    if (rotated) {
      q = rotate(at + "/q_rotary", q, c_.heads, angles);
      k = rotate(at + "/k_rotary", k, c_.kv_heads, angles);
    }
    AttributeList a{{"q_num_heads", c_.heads},
                    {"kv_num_heads", c_.kv_heads},
                    {"pads_behind", std::int64_t{1}},
                    {"is_causal", std::int64_t{c_.bidirectional ? 0 : 1}}};
    if (c_.attention_scale != 0.0F) a.emplace_back("scale", c_.attention_scale);
    if (c_.attention_softcap != 0.0F) a.emplace_back("softcap", c_.attention_softcap);
    if (const std::int64_t window = c_.windows[layer]; window != 0) {  // counts both sides, or the query itself
      a.emplace_back("left_window_size", c_.bidirectional ? window / 2 : window - 1);
      if (c_.bidirectional) a.emplace_back("right_window_size", window / 2);
    }
    const ValueId y = g_.node("sdx.Attention", at + "/Attention", {q, k, v, kNoValue, kNoValue, kNoValue, lengths_}, a);
    return linear(at + "/o_proj", y, of + "attn_output.weight", c_.width, q_rows);
  }

  // The product of each head's part of x with its own matrix.
  ValueId of_heads(const std::string& name, ValueId x, const std::string& weight, std::int64_t rows, std::int64_t k) {
    const bool stacked = file_->find_tensor(weight) != nullptr && file_->find_tensor(weight)->shape.size() == 3;
    StoredTensor t =
        tensor(weight, stacked ? std::vector<std::int64_t>{c_.heads, rows, k} : std::vector<std::int64_t>{c_.heads * rows, k});
    t.shape = {c_.heads * rows, k};
    return style_.grouped(g_, name, x, t, c_.heads);
  }
  ValueId with_heads(const std::string& name, ValueId x, std::int64_t size) { return reshape(name, x, {0, 0, c_.heads, size}); }
  ValueId without_heads(const std::string& name, ValueId x, std::int64_t size) {
    return reshape(name, x, {0, 0, c_.heads * size});
  }

  // Attention to latent vectors: queries are multiplied by the matrices that keys would be made with, sums by those of values.
  ValueId latent_attention(std::int64_t i, const std::string& at, const std::string& of, ValueId x) {
    const LatentConfig& l = c_.latent;
    const std::int64_t query = l.plain + c_.rotary, last = -1;
    ValueId q = x;
    if (l.queries > 0) {
      q = linear(at + "/q_a_proj", q, of + "attn_q_a.weight", l.queries, c_.width);
      q = plain_norm(at + "/q_a_norm", q, of + "attn_q_a_norm.weight", l.queries);
      q = linear(at + "/q_b_proj", q, of + "attn_q_b.weight", c_.heads * query, l.queries);
    } else {
      q = linear(at + "/q_proj", q, of + "attn_q.weight", c_.heads * query, c_.width);
    }
    if (has(of + "attn_kv_b.weight"))
      tensor(of + "attn_kv_b.weight", {c_.heads * (l.plain + l.value), l.size});  // in two parts now
    const auto q_parts = parts(at + "/q_split", with_heads(at + "/q_heads", q, query), {l.plain, c_.rotary});
    const ValueId plain = without_heads(at + "/q_plain", q_parts[0], l.plain);
    const ValueId absorbed = of_heads(at + "/q_latent", plain, of + "attn_k_b.weight", l.size, l.plain);
    q = g_.node("Concat", at + "/q_concat", {q_parts[1], with_heads(at + "/q_latent_heads", absorbed, l.size)}, {{"axis", last}});
    q = without_heads(at + "/q", q, c_.head_size);
    const ValueId kv = linear(at + "/kv_a_proj", x, of + "attn_kv_a_mqa.weight", l.size + c_.rotary, c_.width);
    const auto kv_parts = parts(at + "/kv_split", kv, {l.size, c_.rotary});
    const ValueId latent = plain_norm(at + "/kv_a_norm", kv_parts[0], of + "attn_kv_a_norm.weight", l.size);
    const ValueId k = g_.node("Concat", at + "/k", {kv_parts[1], latent}, {{"axis", last}});
    const ValueId y = query_attention(i, at, q, k, k, {cos_[0], sin_[0]});
    const auto y_parts = parts(at + "/y_split", with_heads(at + "/y_heads", y, c_.head_size), {c_.rotary, l.size});
    const ValueId summed = without_heads(at + "/y_latent", y_parts[1], l.size);
    const ValueId values = of_heads(at + "/values", summed, of + "attn_v_b.weight", l.value, l.size);
    return linear(at + "/o_proj", values, of + "attn_output.weight", c_.width, c_.heads * l.value);
  }
  ValueId query_attention(std::int64_t i, const std::string& at, ValueId q, ValueId k, ValueId v,
                          const std::vector<ValueId>& angles) {
    const std::string n = std::to_string(i), kv = std::to_string(c_.kv_heads), size = std::to_string(c_.head_size);
    const auto past = [&](const char* what) {
      return g_.input("past_key_values." + n + "." + what, style_.type(), {"batch_size", kv, "past_sequence_length", size});
    };
    std::vector<ValueId> in{q, k, v, past("key"), past("value"), lengths_, total_};
    in.insert(in.end(), angles.begin(), angles.end());
    const auto out = g_.nodes("com.microsoft.GroupQueryAttention", at + "/GroupQueryAttention", in,
                              {at + "/output_0", "present." + n + ".key", "present." + n + ".value"},
                              {{"num_heads", c_.heads},
                               {"kv_num_heads", c_.kv_heads},
                               {"do_rotary", std::int64_t{1}},
                               {"rotary_interleaved", std::int64_t{c_.interleaved ? 1 : 0}},
                               {"scale", c_.attention_scale}});
    presents_.insert(presents_.end(), {out[1], out[2]});
    return out[0];
  }

  // What a layer has before its feed-forward part.
  ValueId mixed(std::int64_t i, const std::string& at, const std::string& of, ValueId x) {
    const bool recurrent = is_recurrent_layer(*this, of);
    if (!recurrent) return attended(i, at, of, x);
    if (options_.embeds || options_.for_file) {
      fail(ErrorCode::not_implemented, "architecture '{}' is not supported for {}", c_.architecture,
           options_.embeds ? "vectors of texts" : "ONNX files, because texts have recurrent states");
    }
    const ValueId y = recurrent_layer(*this, states_, c_, i, at, of, x);
    return has(of + "attn_q.weight") ? g_.node("Add", at + "/mixed", {attended(i, at, of, x), y}) : y;
  }
  ValueId attended(std::int64_t i, const std::string& at, const std::string& of, ValueId x) {
    return times(at + "/attn/scale", attention(i, at + "/attn", of, x), c_.attention_out_scale);
  }

  ValueId attention(std::int64_t i, const std::string& at, const std::string& of, ValueId x) {
    if (c_.latent.size > 0) {
      if (options_.embeds)
        fail(ErrorCode::not_implemented, "architecture '{}' is not supported for vectors of texts", c_.architecture);
      return latent_attention(i, at, of, x);
    }
    if (options_.embeds) return text_attention(i, at, of, x);
    const std::int64_t q_rows = c_.heads * c_.head_size, kv_rows = c_.kv_heads * c_.head_size;
    ValueId q = kNoValue, k = kNoValue, v = kNoValue;
    if (has(of + "attn_qkv.weight")) {
      q = linear(at + "/qkv_proj", x, of + "attn_qkv.weight", q_rows + 2 * kv_rows, c_.width);
    } else {
      q = linear(at + "/q_proj", x, of + "attn_q.weight", c_.gated_attention ? 2 * q_rows : q_rows, c_.width);
      k = linear(at + "/k_proj", x, of + "attn_k.weight", kv_rows, c_.width);
      v = linear(at + "/v_proj", x, of + "attn_v.weight", kv_rows, c_.width);
    }
    ValueId gate = kNoValue;
    if (c_.gated_attention) {  // each head's query, then its gate
      const auto both = parts(at + "/q_split", with_heads(at + "/q_heads", q, 2 * c_.head_size), {c_.head_size, c_.head_size});
      q = without_heads(at + "/q", both[0], c_.head_size);
      gate = without_heads(at + "/gate", both[1], c_.head_size);
    }
    const auto layer = static_cast<std::size_t>(i);
    // Layers with attention are counted.
    const std::string n = std::to_string(presents_.size() / 2), kv = std::to_string(c_.kv_heads),
                      size = std::to_string(c_.head_size);
    const auto past = [&](const char* what) {
      return g_.input("past_key_values." + n + "." + what, style_.type(), {"batch_size", kv, "past_sequence_length", size});
    };
    const std::size_t angles = c_.local[layer] && cos_.size() > 1 ? 1 : 0;
    bool rotated = c_.unrotated.empty() || !c_.unrotated[layer];
    prepare_heads(at, of, q, k, rotated, angles);
    std::vector<ValueId> in{q, k, v, past("key"), past("value"), lengths_, total_};
    if (rotated) in.insert(in.end(), {cos_[angles], sin_[angles]});
    AttributeList a{{"num_heads", c_.heads},
                    {"kv_num_heads", c_.kv_heads},
                    {"do_rotary", std::int64_t{rotated ? 1 : 0}},
                    {"rotary_interleaved", std::int64_t{c_.interleaved ? 1 : 0}}};
    if (c_.attention_scale != 0.0F) a.emplace_back("scale", c_.attention_scale);
    if (c_.attention_softcap != 0.0F) a.emplace_back("softcap", c_.attention_softcap);
    if (c_.windows[layer] != 0) a.emplace_back("local_window_size", c_.windows[layer]);
    if (has(of + "attn_q_norm.weight") && !c_.norm_after_rotation && norms_heads(of)) {
      in.resize(14, kNoValue);
      in.push_back(gamma(of + "attn_q_norm.weight", c_.head_size));
      in.push_back(gamma(of + "attn_k_norm.weight", c_.head_size));
      a.emplace_back("qk_norm_epsilon", c_.epsilon);
    }
    if (has(of + "attn_sinks.weight")) {
      in.resize(std::max<std::size_t>(in.size(), 12), kNoValue);
      in[11] = vector(of + "attn_sinks.weight", c_.heads);
    }
    const auto out = g_.nodes("com.microsoft.GroupQueryAttention", at + "/GroupQueryAttention", in,
                              {at + "/output_0", "present." + n + ".key", "present." + n + ".value"}, a);
    presents_.push_back(out[1]);
    presents_.push_back(out[2]);
    ValueId y = out[0];
    if (gate != kNoValue) y = g_.node("Mul", at + "/gate/Mul", {y, g_.node("Sigmoid", at + "/gate/Sigmoid", {gate})});
    return linear(at + "/o_proj", y, of + "attn_output.weight", c_.width, q_rows);
  }

  // Whether the norm of queries is that of GroupQueryAttention: one vector for each head.
  bool norms_heads(const std::string& of) const {
    const StoredTensor* t = file_->find_tensor(of + "attn_q_norm.weight");
    return !c_.layer_norm && (t->shape.size() != 1 || t->shape[0] == c_.head_size);
  }

  // What is done to queries and keys before attention, where it has no input for it.
  void prepare_heads(const std::string& at, const std::string& of, ValueId& q, ValueId& k, bool& rotated, std::size_t angles) {
    const bool normed = has(of + "attn_q_norm.weight");
    const bool apart = normed && (options_.embeds || c_.norm_after_rotation || !norms_heads(of));
    if (!apart && query_scale_ == kNoValue) return;
    if (k == kNoValue)
      fail(ErrorCode::not_implemented, "tensor '{}' is not supported for architecture '{}'", of + "attn_qkv.weight",
           c_.architecture);
    if (c_.norm_after_rotation && rotated) {
      q = rotate(at + "/q_rotary", q, c_.heads, angles);
      k = rotate(at + "/k_rotary", k, c_.kv_heads, angles);
      rotated = false;
    }
    if (apart) {
      q = head_norm(at + "/q_norm", q, of + "attn_q_norm.weight", c_.heads);
      k = head_norm(at + "/k_norm", k, of + "attn_k_norm.weight", c_.kv_heads);
    }
    if (query_scale_ != kNoValue) q = g_.node("Mul", at + "/q_scale", {q, query_scale_});
  }
  ValueId rotate(const std::string& name, ValueId x, std::int64_t heads, std::size_t angles) {
    return g_.node("com.microsoft.RotaryEmbedding", name, {x, positions_, cos_[angles], sin_[angles]},
                   {{"num_heads", heads},
                    {"rotary_embedding_dim", c_.rotary == c_.head_size ? std::int64_t{0} : c_.rotary},
                    {"interleaved", std::int64_t{c_.interleaved ? 1 : 0}}});
  }
  // A norm over all heads together (Olmo 2), or over each, with one vector (Hunyuan) or one for each head (Command R+).
  ValueId head_norm(const std::string& name, ValueId x, const std::string& weight, std::int64_t heads) {
    const StoredTensor* t = file_->find_tensor(weight);
    if (!c_.layer_norm && t != nullptr && t->shape.size() == 1 && t->shape[0] != c_.head_size)
      return plain_norm(name, x, weight, heads * c_.head_size);
    const auto shape = [&](const char* end, std::vector<std::int64_t> extents) {
      const auto n = static_cast<std::int64_t>(extents.size());
      return g_.constant(name + end, Tensor::of<std::int64_t>({n}, std::span<const std::int64_t>(extents)));
    };
    ValueId y = g_.node("Reshape", name + "/split", {x, shape(".split", {0, 0, heads, c_.head_size})});
    if (c_.layer_norm) {
      const StoredTensor& w = tensor(weight, {heads, c_.head_size});
      Tensor values(DataType::float32, {heads, c_.head_size});
      const GgmlFormat& format = *find_ggml(w.type);
      ggml_dequantize(format, w.data.data(), w.elements() / format.block, values.mutable_values<float>().data());
      Tensor ones(DataType::float32, {c_.head_size});
      std::ranges::fill(ones.mutable_values<float>(), 1.0F);
      y = normalized(name, y, g_.constant(name + ".ones", with_type(std::move(ones), style_.type())), kNoValue);
      y = g_.node("Mul", name + "/Mul", {y, g_.constant(weight, with_type(std::move(values), style_.type()))});
    } else {
      y = plain_norm(name, y, weight, c_.head_size);
    }
    return g_.node("Reshape", name + "/join", {y, shape(".join", {0, 0, heads * c_.head_size})});
  }

  ValueId feed_forward(const std::string& at, const std::string& of, ValueId x) {
    ValueId gate = kNoValue, up = kNoValue;
    if (!c_.gated) {
      const ValueId y = activated(at, linear(at + "/up_proj", x, of + "ffn_up.weight", c_.feed_forward, c_.width));
      return linear(at + "/down_proj", y, of + "ffn_down.weight", c_.width, c_.feed_forward);
    }
    if (has(of + "ffn_gate.weight")) {
      gate = linear(at + "/gate_proj", x, of + "ffn_gate.weight", c_.feed_forward, c_.width);
      up = linear(at + "/up_proj", x, of + "ffn_up.weight", c_.feed_forward, c_.width);
    } else {  // both in one, the gate first
      const StoredTensor& both = tensor(of + "ffn_up.weight", {2 * c_.feed_forward, c_.width});
      gate = style_.product(g_, at + "/gate_proj", x, both, 0, c_.feed_forward, kNoValue);
      up = style_.product(g_, at + "/up_proj", x, both, c_.feed_forward, c_.feed_forward, kNoValue);
    }
    gate = times(at + "/gate_proj/scale", gate, c_.gate_scale);
    const ValueId y = linear(at + "/down_proj", gated(at, gate, up), of + "ffn_down.weight", c_.width, c_.feed_forward);
    return times(at + "/down_proj/scale", y, c_.down_scale);
  }

  ValueId gated(const std::string& at, ValueId gate, ValueId up) {
    return g_.node("Mul", at + "/Mul", {activated(at, gate), up});
  }
  ValueId activated(const std::string& at, ValueId x) {
    switch (c_.activation) {
      case NetworkActivation::gelu: return g_.node("Gelu", at + "/act_fn", {x}, {{"approximate", std::string("tanh")}});
      case NetworkActivation::relu_squared: {
        const ValueId y = g_.node("Relu", at + "/act_fn/Relu", {x});
        return g_.node("Mul", at + "/act_fn/Mul", {y, y});
      }
      case NetworkActivation::silu: break;
    }
    return g_.node("Mul", at + "/act_fn/Mul", {x, g_.node("Sigmoid", at + "/act_fn/Sigmoid", {x})});
  }

  // The experts that the router chooses, and one that all tokens go through, where there is one.
  ValueId mixture(const std::string& at, const std::string& of, ValueId x) {
    const ValueId scores = linear(at + "/router", x, of + "ffn_gate_inp.weight", c_.experts.count, c_.width);
    const ExpertTensors t = expert_tensors(*this, of, c_.experts, c_.width);
    const ValueId chosen = style_.experts(g_, at + "/experts", x, scores, t, c_.experts);
    if (!has(of + "ffn_gate_shexp.weight")) return chosen;
    return g_.node("Add", at + "/Add", {chosen, shared_expert(at + "/shared_expert", of, x)});
  }

  ValueId shared_expert(const std::string& at, const std::string& of, ValueId x) {
    const std::int64_t f = tensor(of + "ffn_gate_shexp.weight", {-1, c_.width}).shape[0];
    const ValueId gate = linear(at + "/gate_proj", x, of + "ffn_gate_shexp.weight", f, c_.width);
    const ValueId up = linear(at + "/up_proj", x, of + "ffn_up_shexp.weight", f, c_.width);
    const ValueId y = linear(at + "/down_proj", gated(at, gate, up), of + "ffn_down_shexp.weight", c_.width, f);
    const std::string share = of + "ffn_gate_inp_shexp.weight";
    if (!has(share)) return y;
    const bool flat = file_->find_tensor(share)->shape.size() == 1;  // in GGUF files
    StoredTensor row = tensor(share, flat ? std::vector<std::int64_t>{c_.width} : std::vector<std::int64_t>{1, c_.width});
    row.shape = {1, c_.width};
    const ValueId logit = style_.product(g_, at + "/gate", x, row, 0, 1, kNoValue);
    return g_.node("Mul", at + "/gate/Mul", {y, g_.node("Sigmoid", at + "/gate/Sigmoid", {logit})});
  }

  // The requested rows of the last norm's input: of the sum, and of the pending term.
  ValueId wanted_rows(ValueId x) {
    const ValueId wanted = g_.input("logits_indices", DataType::int64, {"wanted"});
    const ValueId flat = g_.constant("/model/flat", Tensor::of<std::int64_t>({2}, {-1, c_.width}));
    const auto pick = [&](const std::string& name, ValueId v) {
      return g_.node("Gather", name, {g_.node("Reshape", name + "/Reshape", {v, flat}), wanted}, {{"axis", std::int64_t{0}}});
    };
    pending_ = pick("/model/wanted_pending", pending_);
    return pick("/model/wanted", x);
  }

  void finish(ValueId x, const StoredTensor& embedding) {
    const StoredTensor& head = has("output.weight") ? tensor("output.weight", {c_.vocabulary, c_.width}) : embedding;
    const ValueId bias = has("output.bias") ? vector("output.bias", c_.vocabulary) : kNoValue;
    ValueId logits = style_.product(g_, "/lm_head", x, head, 0, c_.vocabulary, bias);
    if (c_.logit_scale != 1.0F) logits = g_.node("Mul", "/lm_head/scale", {logits, number("logit_scale", c_.logit_scale)});
    if (c_.logit_softcap != 0.0F) {
      const ValueId cap = number("logit_softcap", c_.logit_softcap);
      logits = g_.node("Mul", "/lm_head/cap",
                       {g_.node("Tanh", "/lm_head/Tanh", {g_.node("Div", "/lm_head/Div", {logits, cap})}), cap});
    }
    declare(logits, options_.for_file ? SymShape{Dim::symbol("batch_size"), Dim::symbol("sequence_length"), Dim(c_.vocabulary)}
                                      : SymShape{Dim::symbol("wanted"), Dim(c_.vocabulary)});
    g_.output(logits, "logits");
    for (std::size_t i = 0; i < presents_.size(); ++i) {
      declare(presents_[i],
              {Dim::symbol("batch_size"), Dim(c_.kv_heads), Dim::symbol("present_sequence_length"), Dim(c_.head_size)});
      g_.output(presents_[i], "present." + std::to_string(i / 2) + (i % 2 == 0 ? ".key" : ".value"));
    }
    states_.finish();
  }
  void declare(ValueId v, SymShape shape) {
    g_.graph().value(v).type = g_.graph().value(v).declared = Type::tensor(style_.type(), std::move(shape));
  }

  DecoderConfig& c_;
  const DecoderOptions& options_;
  ValueId ids_ = kNoValue, lengths_ = kNoValue, total_ = kNoValue, positions_ = kNoValue, query_scale_ = kNoValue;
  ValueId pending_ = kNoValue;  // still to be added to the stream of values
  std::vector<ValueId> cos_, sin_, presents_;
  StateGraph states_{g_};
};

}  // namespace

Model build_decoder(const std::shared_ptr<const TensorFiles>& file, DecoderConfig& config, WeightStyle& style,
                    const DecoderOptions& options) {
  return Builder(file, config, style, options).build();
}

}  // namespace sdx::text
