// Mamba 2's selective scans: Granite 4, Mamba 2 and others. Source: Dao and Gu, arXiv:2405.21060.

#include <algorithm>
#include <cmath>

#include "text/model/network/recurrent_layers.h"

namespace sdx::text {
namespace {

class Layer {
 public:
  Layer(WeightedGraph& w, StateGraph& states, const DecoderConfig& c, std::int64_t layer, std::string at, std::string of)
      : w_(w), states_(states), c_(c), s_(c.scan), layer_(layer), at_(std::move(at)), of_(std::move(of)) {}

  ValueId build(ValueId x) {
    GraphWriter& g = w_.writer();
    ValueId all = w_.linear(at_ + "/in_proj", x, of_ + "ssm_in.weight", inner_ + mixed_ + s_.heads, c_.width);
    if (!s_.factors.empty()) all = g.node("Mul", at_ + "/in_proj/factors", {all, factors()});
    const auto parts = w_.parts(at_ + "/Split", all, {inner_, mixed_, s_.heads});
    const ValueId mixed = w_.silu(
        at_ + "/conv/act_fn", state_convolution(w_, states_, layer_, at_ + "/conv", parts[1], of_ + "ssm_conv1d.weight", mixed_));
    AttributeList attributes{{"groups", s_.groups}};
    if (s_.least_step > 0.0F) attributes.emplace_back("least_step", s_.least_step);
    if (std::isfinite(s_.most_step)) attributes.emplace_back("most_step", s_.most_step);
    ValueId y = states_.node(
        "sdx.SelectiveScan", at_ + "/SelectiveScan",
        {mixed, parts[2], of_heads("ssm_a", s_.log_decays), w_.vector(of_ + "ssm_dt.bias", s_.heads), of_heads("ssm_d", false)},
        std::to_string(layer_) + ".scan", {s_.heads, s_.state_size, s_.head_size}, attributes);
    const ValueId gate = w_.silu(at_ + "/gate/act_fn", parts[0]);
    if (s_.norm_first) y = normed(y);
    y = g.node("Mul", at_ + "/gate/Mul", {y, gate});
    if (!s_.norm_first) y = normed(y);
    y = w_.linear(at_ + "/out_proj", y, of_ + "ssm_out.weight", c_.width, inner_);
    return s_.out_scale == 1.0F ? y
                                : g.node("Mul", at_ + "/out_proj/scale", {y, w_.number(at_ + "/out_proj.scale", s_.out_scale)});
  }

 private:
  // Of gates, values, keys, queries and time steps.
  ValueId factors() {
    const std::int64_t keys = s_.groups * s_.state_size;
    Tensor values(DataType::float32, {inner_ + mixed_ + s_.heads});
    float* to = values.mutable_values<float>().data();
    std::size_t part = 0;
    for (const std::int64_t size : {inner_, inner_, keys, keys, s_.heads}) to = std::fill_n(to, size, s_.factors[part++]);
    return w_.writer().constant(at_ + "/in_proj.factors", std::move(values));
  }

  // [heads], which GGUF files have as [heads, 1].
  ValueId of_heads(const std::string& part, bool logarithms) {
    const StoredTensor* t = w_.files().find_tensor(of_ + part);
    const bool column = t != nullptr && t->shape.size() == 2;
    const Tensor values =
        w_.values(of_ + part, column ? std::vector<std::int64_t>{s_.heads, 1} : std::vector<std::int64_t>{s_.heads})
            .reshaped({s_.heads});
    return w_.writer().constant(of_ + part, logarithms ? decays_of_logarithms(values) : values);
  }

  // An RMS norm of each group, where there is one.
  ValueId normed(ValueId x) {
    const std::string name = of_ + "ssm_norm.weight";
    if (!w_.has(name)) return x;
    const std::int64_t size = inner_ / s_.groups;
    const bool grouped = w_.files().find_tensor(name)->shape.size() == 2;
    Tensor weight = w_.values(name, grouped ? std::vector<std::int64_t>{s_.groups, size} : std::vector<std::int64_t>{inner_});
    Tensor ones(DataType::float32, {size});
    std::ranges::fill(ones.mutable_values<float>(), 1.0F);
    GraphWriter& g = w_.writer();
    const ValueId split = w_.reshape(at_ + "/norm/split", x, {0, 0, s_.groups, size});
    const ValueId y =
        g.node("SimplifiedLayerNormalization", at_ + "/norm", {split, g.constant(at_ + "/norm.ones", std::move(ones))},
               {{"epsilon", c_.epsilon}, {"axis", std::int64_t{-1}}, {"stash_type", std::int64_t{1}}});
    return g.node("Mul", at_ + "/norm/Mul",
                  {w_.reshape(at_ + "/norm/join", y, {0, 0, inner_}), g.constant(name, weight.reshaped({inner_}))});
  }

  WeightedGraph& w_;
  StateGraph& states_;
  const DecoderConfig& c_;
  const ScanConfig& s_;
  std::int64_t layer_;
  std::string at_, of_;
  std::int64_t inner_ = s_.heads * s_.head_size, mixed_ = inner_ + 2 * s_.groups * s_.state_size;
};

}  // namespace

ValueId mamba2_layer(WeightedGraph& w, StateGraph& states, const DecoderConfig& c, std::int64_t layer, const std::string& at,
                     const std::string& of, ValueId x) {
  return Layer(w, states, c, layer, at, of).build(x);
}

}  // namespace sdx::text
