// Gated delta nets: Qwen3-Next and Qwen3.5. Source: Yang et al., arXiv:2412.06464.

#include "text/model/network/recurrent_layers.h"

namespace sdx::text {
namespace {

class Layer {
 public:
  Layer(WeightedGraph& w, StateGraph& states, const DecoderConfig& c, std::int64_t layer, std::string at, std::string of)
      : w_(w), states_(states), c_(c), d_(c.delta), layer_(layer), at_(std::move(at)), of_(std::move(of)) {}

  ValueId build(ValueId x) {
    GraphWriter& g = w_.writer();
    project(x);
    const ValueId mixed = w_.silu(at_ + "/conv/act_fn", state_convolution(w_, states_, layer_, at_ + "/conv", qkv_,
                                                                          of_ + "ssm_conv1d.weight", 2 * keys_ + values_));
    const ValueId y = states_.node("sdx.GatedDelta", at_ + "/GatedDelta",
                                   {mixed, alpha_, beta_, decays(), w_.vector(of_ + "ssm_dt.bias", d_.heads)},
                                   std::to_string(layer_) + ".delta", {d_.heads, d_.key_size, d_.value_size},
                                   {{"key_heads", d_.key_heads}, {"tiled", std::int64_t{d_.tiled ? 1 : 0}}});
    const ValueId normed = head_norms(w_, at_ + "/norm", y, of_ + "ssm_norm.weight", d_.heads, d_.value_size, c_.epsilon);
    const ValueId gated = g.node("Mul", at_ + "/gate/Mul", {normed, w_.silu(at_ + "/gate/act_fn", gate_)});
    return w_.linear(at_ + "/out_proj", gated, of_ + "ssm_out.weight", c_.width, values_);
  }

 private:
  void project(ValueId x) {
    if (w_.has(of_ + "ssm_in.weight")) {
      joint(x);
    } else {
      qkv_ = w_.linear(at_ + "/in_proj_qkv", x, of_ + "attn_qkv.weight", 2 * keys_ + values_, c_.width);
      gate_ = w_.linear(at_ + "/in_proj_z", x, of_ + "attn_gate.weight", values_, c_.width);
    }
    if (!w_.has(of_ + "ssm_ba.weight")) {
      beta_ = w_.linear(at_ + "/in_proj_b", x, of_ + "ssm_beta.weight", d_.heads, c_.width);
      alpha_ = w_.linear(at_ + "/in_proj_a", x, of_ + "ssm_alpha.weight", d_.heads, c_.width);
      return;
    }
    const ValueId both = w_.linear(at_ + "/in_proj_ba", x, of_ + "ssm_ba.weight", 2 * d_.heads, c_.width);
    const auto parts = groups(at_ + "/ba", both, {shared_, shared_});
    beta_ = joined(at_ + "/b", parts[0], d_.heads);
    alpha_ = joined(at_ + "/a", parts[1], d_.heads);
  }

  // Queries, keys, values and gates in one matrix: those of one key head, then of the next.
  void joint(ValueId x) {
    const ValueId all = w_.linear(at_ + "/in_proj_qkvz", x, of_ + "ssm_in.weight", 2 * keys_ + 2 * values_, c_.width);
    const std::int64_t own = shared_ * d_.value_size;
    const auto parts = groups(at_ + "/qkvz", all, {d_.key_size, d_.key_size, own, own});
    qkv_ = w_.writer().node(
        "Concat", at_ + "/qkv",
        {joined(at_ + "/q", parts[0], keys_), joined(at_ + "/k", parts[1], keys_), joined(at_ + "/v", parts[2], values_)},
        {{"axis", std::int64_t{-1}}});
    gate_ = joined(at_ + "/z", parts[3], values_);
  }
  std::vector<ValueId> groups(const std::string& name, ValueId x, const std::vector<std::int64_t>& sizes) {
    std::int64_t all = 0;
    for (const std::int64_t n : sizes) all += n;
    return w_.parts(name + "/Split", w_.reshape(name + "/groups", x, {0, 0, d_.key_heads, all}), sizes);
  }
  ValueId joined(const std::string& name, ValueId x, std::int64_t size) { return w_.reshape(name, x, {0, 0, size}); }

  ValueId decays() {
    const Tensor a = w_.values(of_ + "ssm_a", {d_.heads});
    return w_.writer().constant(of_ + "ssm_a", d_.log_decays ? decays_of_logarithms(a) : a);
  }

  WeightedGraph& w_;
  StateGraph& states_;
  const DecoderConfig& c_;
  const DeltaConfig& d_;
  std::int64_t layer_;
  std::string at_, of_;
  std::int64_t keys_ = d_.key_heads * d_.key_size, values_ = d_.heads * d_.value_size;
  std::int64_t shared_ = d_.heads / d_.key_heads;  // heads with the same keys
  ValueId qkv_ = kNoValue, gate_ = kNoValue, alpha_ = kNoValue, beta_ = kNoValue;
};

}  // namespace

ValueId gated_delta_layer(WeightedGraph& w, StateGraph& states, const DecoderConfig& c, std::int64_t layer, const std::string& at,
                          const std::string& of, ValueId x) {
  return Layer(w, states, c, layer, at, of).build(x);
}

}  // namespace sdx::text
