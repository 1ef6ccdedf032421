#include "text/model/network/decoder_graph.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <system_error>

#include "base/error.h"
#include "onnx/writer.h"

namespace sdx::text {
namespace {

class Builder {
 public:
  Builder(std::shared_ptr<const TensorFiles> file, DecoderConfig& config, WeightStyle& style, const DecoderOptions& options)
      : file_(std::move(file)), c_(config), style_(style), options_(options) {}

  Model build() {
    const StoredTensor& embedding = tensor("token_embd.weight", {-1, c_.width});
    c_.vocabulary = embedding.shape[0];
    inputs();
    ValueId x = style_.rows(g_, "/model/embed_tokens", embedding, ids_);
    if (c_.embedding_scale != 1.0F) {
      x = g_.node("Mul", "/model/embed_scale", {x, number("embed_scale", c_.embedding_scale)});
    }
    for (std::int64_t i = 0; i < c_.layers; ++i) x = layer(i, x);
    if (!options_.for_file) x = wanted_rows(x);
    finish(norm_after("/model/norm", x, "output_norm.weight").second, embedding);
    refuse_unknown();
    return std::move(g_.model());
  }

 private:
  const StoredTensor& tensor(const std::string& name, const std::vector<std::int64_t>& shape) {
    const StoredTensor* t = file_->find_tensor(name);
    if (t == nullptr) fail(ErrorCode::invalid_model, "the model lacks the tensor '{}'", file_->shown(name));
    used_.insert(name);
    bool fits = t->shape.size() == shape.size();
    for (std::size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] < 0 ? t->shape[i] > 0 : t->shape[i] == shape[i];
    if (!fits)
      fail(ErrorCode::invalid_model, "tensor '{}' is {}, expected {}", file_->shown(name), to_string(t->shape), to_string(shape));
    if (find_ggml(t->type) == nullptr) {
      const std::string_view type = ggml_type_name(t->type);
      fail(ErrorCode::not_implemented,
           "tensor '{}' is of type {}, which is not supported; those that are: F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K "
           "Q4_K Q5_K Q6_K IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4 NVFP4",
           name, type.empty() ? std::to_string(t->type) : std::string(type));
    }
    return *t;
  }
  bool has(const std::string& name) const { return file_->find_tensor(name) != nullptr; }

  // A vector's values, as float32.
  Tensor vector_values(const std::string& name, std::int64_t size) {
    const StoredTensor& t = tensor(name, {size});
    const GgmlFormat& format = *find_ggml(t.type);
    if (format.type == GgmlType::f32) {
      return Tensor::view(t.data.data(), DataType::float32, {size}, file_->owner(t.file)).aligned();
    }
    Tensor values(DataType::float32, {size});
    ggml_dequantize(format, t.data.data(), size / format.block, values.mutable_values<float>().data());
    return values;
  }
  ValueId vector(const std::string& name, std::int64_t size) {
    return g_.constant(name, with_type(vector_values(name, size), style_.type()));
  }
  ValueId number(const std::string& name, float value) {
    return g_.constant(name, with_type(Tensor::scalar(value), style_.type()));
  }
  // A norm's weights.
  ValueId gamma(const std::string& name, std::int64_t size) {
    Tensor values = vector_values(name, size);
    if (c_.norm_shift != 0.0F) {
      values = values.clone();
      for (float& v : values.mutable_values<float>()) v += c_.norm_shift;
    }
    return g_.constant(name, with_type(std::move(values), style_.type()));
  }

  void inputs() {
    ids_ = g_.input("input_ids", DataType::int64, {"batch_size", "sequence_length"});
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
    angles(0, c_.rope);
    if (std::find(c_.local.begin(), c_.local.end(), true) != c_.local.end() && c_.architecture == "gemma3")
      angles(1, c_.local_rope);
  }

  void angles(int kind, const RopeConfig& rope) {
    const std::string half = std::to_string(c_.rotary / 2), end = "." + std::to_string(kind);
    if (options_.for_file) {
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
    const ValueId weights = gamma(weight, c_.width);
    const AttributeList epsilon{{"epsilon", c_.epsilon}};
    if (pending_ == kNoValue) {
      AttributeList attributes = epsilon;
      attributes.emplace_back("axis", std::int64_t{-1});
      attributes.emplace_back("stash_type", std::int64_t{1});
      return {x, g_.node("SimplifiedLayerNormalization", name, {x, weights}, attributes)};
    }
    const auto out = g_.nodes("com.microsoft.SkipSimplifiedLayerNormalization", name, {x, pending_, weights},
                              {name + "/output_0", "", "", name + "/output_3"}, epsilon);
    pending_ = kNoValue;
    return {out[3], out[0]};
  }
  ValueId plain_norm(const std::string& name, ValueId x, const std::string& weight) {
    return g_.node("SimplifiedLayerNormalization", name, {x, gamma(weight, c_.width)},
                   {{"epsilon", c_.epsilon}, {"axis", std::int64_t{-1}}, {"stash_type", std::int64_t{1}}});
  }

  ValueId bias_of(const std::string& weight, std::int64_t size) {
    const std::string name = weight.substr(0, weight.rfind('.')) + ".bias";
    return has(name) ? vector(name, size) : kNoValue;
  }
  ValueId linear(const std::string& name, ValueId x, const std::string& weight, std::int64_t rows, std::int64_t k) {
    return style_.product(g_, name, x, tensor(weight, {rows, k}), 0, rows, bias_of(weight, rows));
  }

  ValueId layer(std::int64_t i, ValueId x) {
    const std::string at = "/model/layers." + std::to_string(i), of = "blk." + std::to_string(i) + ".";
    const auto [sum, normed] = norm_after(at + "/input_layernorm", x, of + "attn_norm.weight");
    ValueId attended = attention(i, at + "/attn", of, normed);
    if (c_.post_norms) attended = plain_norm(at + "/post_attention_layernorm", attended, of + "post_attention_norm.weight");
    pending_ = attended;
    // Files of gpt-oss name the norm before the feed-forward part by its place after attention.
    const bool named_after = c_.architecture == "gpt-oss" && !has(of + "ffn_norm.weight");
    const auto [second, fed] =
        norm_after(at + "/ffn_layernorm", sum, of + (named_after ? "post_attention_norm" : "ffn_norm") + ".weight");
    const bool routed = c_.experts.count > 0 && has(of + "ffn_gate_inp.weight");
    pending_ = routed ? mixture(at + "/moe", of, fed) : feed_forward(at + "/mlp", of, fed);
    if (c_.post_norms) pending_ = plain_norm(at + "/post_ffn_layernorm", pending_, of + "post_ffw_norm.weight");
    return second;
  }

  ValueId attention(std::int64_t i, const std::string& at, const std::string& of, ValueId x) {
    const std::int64_t q_rows = c_.heads * c_.head_size, kv_rows = c_.kv_heads * c_.head_size;
    ValueId q = kNoValue, k = kNoValue, v = kNoValue;
    if (has(of + "attn_qkv.weight")) {
      q = linear(at + "/qkv_proj", x, of + "attn_qkv.weight", q_rows + 2 * kv_rows, c_.width);
    } else {
      q = linear(at + "/q_proj", x, of + "attn_q.weight", q_rows, c_.width);
      k = linear(at + "/k_proj", x, of + "attn_k.weight", kv_rows, c_.width);
      v = linear(at + "/v_proj", x, of + "attn_v.weight", kv_rows, c_.width);
    }
    const auto layer = static_cast<std::size_t>(i);
    const std::string n = std::to_string(i), kv = std::to_string(c_.kv_heads), size = std::to_string(c_.head_size);
    const auto past = [&](const char* what) {
      return g_.input("past_key_values." + n + "." + what, style_.type(), {"batch_size", kv, "past_sequence_length", size});
    };
    const std::size_t angles = c_.local[layer] && cos_.size() > 1 ? 1 : 0;
    std::vector<ValueId> in{q, k, v, past("key"), past("value"), lengths_, total_, cos_[angles], sin_[angles]};
    AttributeList a{{"num_heads", c_.heads},
                    {"kv_num_heads", c_.kv_heads},
                    {"do_rotary", std::int64_t{1}},
                    {"rotary_interleaved", std::int64_t{c_.interleaved ? 1 : 0}}};
    if (c_.attention_scale != 0.0F) a.emplace_back("scale", c_.attention_scale);
    if (c_.attention_softcap != 0.0F) a.emplace_back("softcap", c_.attention_softcap);
    if (c_.windows[layer] != 0) a.emplace_back("local_window_size", c_.windows[layer]);
    if (has(of + "attn_q_norm.weight")) {
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
    return linear(at + "/o_proj", out[0], of + "attn_output.weight", c_.width, q_rows);
  }

  ValueId feed_forward(const std::string& at, const std::string& of, ValueId x) {
    ValueId gate = kNoValue, up = kNoValue;
    if (has(of + "ffn_gate.weight")) {
      gate = linear(at + "/gate_proj", x, of + "ffn_gate.weight", c_.feed_forward, c_.width);
      up = linear(at + "/up_proj", x, of + "ffn_up.weight", c_.feed_forward, c_.width);
    } else {  // both in one, the gate first
      const StoredTensor& both = tensor(of + "ffn_up.weight", {2 * c_.feed_forward, c_.width});
      gate = style_.product(g_, at + "/gate_proj", x, both, 0, c_.feed_forward, kNoValue);
      up = style_.product(g_, at + "/up_proj", x, both, c_.feed_forward, c_.feed_forward, kNoValue);
    }
    return linear(at + "/down_proj", gated(at, gate, up), of + "ffn_down.weight", c_.width, c_.feed_forward);
  }

  ValueId gated(const std::string& at, ValueId gate, ValueId up) {
    if (c_.gelu) {
      gate = g_.node("Gelu", at + "/act_fn", {gate}, {{"approximate", std::string("tanh")}});
    } else {
      gate = g_.node("Mul", at + "/act_fn/Mul", {gate, g_.node("Sigmoid", at + "/act_fn/Sigmoid", {gate})});
    }
    return g_.node("Mul", at + "/Mul", {gate, up});
  }

  // The experts that the router chooses, and one that all tokens go through, where there is one.
  ValueId mixture(const std::string& at, const std::string& of, ValueId x) {
    const std::int64_t f = c_.experts.feed_forward;
    const ValueId scores = linear(at + "/router", x, of + "ffn_gate_inp.weight", c_.experts.count, c_.width);
    ExpertTensors t;
    t.gate = expert_parts(of, "ffn_gate", f, c_.width);
    t.up = expert_parts(of, "ffn_up", f, c_.width);
    t.down = expert_parts(of, "ffn_down", c_.width, f);
    t.gate_bias = expert_bias(of + "ffn_gate_exps.bias", f);
    t.up_bias = expert_bias(of + "ffn_up_exps.bias", f);
    t.down_bias = expert_bias(of + "ffn_down_exps.bias", c_.width);
    if (t.gate_bias.defined() != t.up_bias.defined())
      fail(ErrorCode::invalid_model, "'{}' has a bias for gates or for what they multiply, not for both", of + "ffn_gate_exps");
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

  // `part`: "ffn_gate". One tensor for all experts, or one for each, as older files and folders have them.
  std::vector<StoredTensor> expert_parts(const std::string& of, const std::string& part, std::int64_t rows, std::int64_t k) {
    const std::int64_t count = c_.experts.count;
    if (!has(of + part + ".0.weight")) {
      StoredTensor all = tensor(of + part + "_exps.weight", {count, rows, k});
      all.shape = {count * rows, k};
      return {all};
    }
    std::vector<StoredTensor> parts;
    for (std::int64_t e = 0; e < count; ++e) {
      parts.push_back(tensor(of + part + "." + std::to_string(e) + ".weight", {rows, k}));
      if (parts.back().type != parts.front().type) {
        fail(ErrorCode::not_implemented, "tensor '{}' is of another type than those of the other experts",
             file_->shown(parts.back().name));
      }
    }
    return parts;
  }
  Tensor expert_bias(const std::string& name, std::int64_t rows) {
    if (!has(name)) return {};
    const StoredTensor& t = tensor(name, {c_.experts.count, rows});
    const GgmlFormat& format = *find_ggml(t.type);
    Tensor values(DataType::float32, t.shape);
    ggml_dequantize(format, t.data.data(), t.elements() / format.block, values.mutable_values<float>().data());
    return values;
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
  }
  void declare(ValueId v, SymShape shape) {
    g_.graph().value(v).type = g_.graph().value(v).declared = Type::tensor(style_.type(), std::move(shape));
  }

  // A tensor that is left out would make another model of it.
  void refuse_unknown() const {
    for (const StoredTensor& t : file_->tensors()) {
      const bool angles = t.name == "rope_freqs.weight" || t.name.starts_with("rope_factors_");
      if (used_.contains(t.name) || angles) continue;
      fail(ErrorCode::not_implemented, "tensor '{}' is not known to architecture '{}'", t.name, c_.architecture);
    }
  }

  std::shared_ptr<const TensorFiles> file_;
  DecoderConfig& c_;
  WeightStyle& style_;
  const DecoderOptions& options_;
  GraphWriter g_;
  std::set<std::string> used_;
  ValueId ids_ = kNoValue, lengths_ = kNoValue, total_ = kNoValue;
  ValueId pending_ = kNoValue;  // still to be added to the stream of values
  std::vector<ValueId> cos_, sin_, presents_;
};

class InPlace : public WeightStyle {
 public:
  explicit InPlace(std::shared_ptr<const TensorFiles> file) : file_(std::move(file)) {}

  ValueId product(GraphWriter& g, const std::string& name, ValueId x, const StoredTensor& weight, std::int64_t first,
                  std::int64_t rows, ValueId bias) override {
    return g.node("sdx.GgmlMatMul", name + "/MatMul", {x, bytes_of(g, weight, first, rows), bias}, attributes(weight));
  }
  ValueId rows(GraphWriter& g, const std::string& name, const StoredTensor& weight, ValueId indices) override {
    return g.node("sdx.GgmlGather", name + "/Gather", {bytes_of(g, weight, 0, weight.shape[0]), indices}, attributes(weight));
  }

  ValueId experts(GraphWriter& g, const std::string& name, ValueId x, ValueId scores, const ExpertTensors& t,
                  const ExpertConfig& c) override {
    const auto bias = [&](const char* of, const Tensor& values) {
      return values.defined() ? g.constant(name + of, values) : kNoValue;
    };
    std::vector<ValueId> in{x, scores, bias(".gate_bias", t.gate_bias), bias(".up_bias", t.up_bias),
                            bias(".down_bias", t.down_bias)};
    for (const auto* parts : {&t.gate, &t.up, &t.down}) {
      for (const StoredTensor& w : *parts) in.push_back(bytes_of(g, w, 0, w.shape[0]));
    }
    const auto type = [](const std::vector<StoredTensor>& parts) { return std::string(find_ggml(parts[0].type)->name); };
    AttributeList a{{"experts", c.count},        {"top_k", c.used},
                    {"K", t.gate[0].shape[1]},   {"F", t.down[0].shape[1]},
                    {"gate_type", type(t.gate)}, {"up_type", type(t.up)},
                    {"down_type", type(t.down)}, {"normalize_routing_weights", std::int64_t{c.normalize ? 1 : 0}}};
    if (c.scale != 1.0F) a.emplace_back("routing_scale", c.scale);
    if (c.alpha != 1.0F) a.emplace_back("activation_alpha", c.alpha);
    if (c.beta != 0.0F) a.emplace_back("activation_beta", c.beta);
    if (std::isfinite(c.limit)) a.emplace_back("swiglu_limit", c.limit);
    return g.node("sdx.GgmlExperts", name, in, a);
  }

 private:
  static AttributeList attributes(const StoredTensor& weight) {
    return {{"type", std::string(find_ggml(weight.type)->name)}, {"K", weight.shape[1]}};
  }
  ValueId bytes_of(GraphWriter& g, const StoredTensor& weight, std::int64_t first, std::int64_t rows) const {
    const std::string name = rows == weight.shape[0] ? weight.name : weight.name + "/" + std::to_string(first);
    if (const auto known = g.graph().find(name)) return *known;
    const std::int64_t row_bytes = find_ggml(weight.type)->row_bytes(weight.shape[1]);
    return g.constant(name, Tensor::view(weight.data.data() + first * row_bytes, DataType::uint8, {rows, row_bytes},
                                         file_->owner(weight.file)));
  }

  std::shared_ptr<const TensorFiles> file_;
};

}  // namespace

Model build_decoder(const std::shared_ptr<const TensorFiles>& file, DecoderConfig& config, WeightStyle& style,
                    const DecoderOptions& options) {
  return Builder(file, config, style, options).build();
}

std::unique_ptr<WeightStyle> weights_in_place(std::shared_ptr<const TensorFiles> file) {
  return std::make_unique<InPlace>(std::move(file));
}

MappedModel map_model(const Model& model, const TensorFiles& file) {
  namespace fs = std::filesystem;
  std::vector<fs::path> resolved;
  for (const fs::path& path : file.paths()) {
    std::error_code error;
    resolved.push_back(fs::canonical(path, error));
    if (error) fail(ErrorCode::io, "cannot open '{}': {}", path.string(), error.message());
    if (resolved.back().parent_path() != resolved.front().parent_path()) {
      fail(ErrorCode::not_implemented, "the parts of a split model must be in one folder; '{}' is not beside '{}'",
           resolved.back().string(), resolved.front().string());
    }
  }
  const auto place = [&](const Tensor& t) -> std::optional<FilePlace> {
    const auto* at = static_cast<const std::byte*>(t.data());
    for (std::size_t i = 0; i < resolved.size(); ++i) {
      const auto bytes = file.bytes(i);
      if (at < bytes.data() || at >= bytes.data() + bytes.size()) continue;
      return FilePlace{resolved[i].filename().string(), static_cast<std::uint64_t>(at - bytes.data())};
    }
    return std::nullopt;
  };
  return {write_model(model, place), resolved.front().parent_path()};
}

}  // namespace sdx::text
