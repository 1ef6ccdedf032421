#include "text/model/network/recurrent_layers.h"

#include <cmath>

#include "base/error.h"
#include "text/model/paged/paged_graph.h"

namespace sdx::text {

ValueId StateGraph::node(const std::string& op, const std::string& name, std::vector<ValueId> inputs, const std::string& state,
                         const std::vector<std::int64_t>& shape, const AttributeList& attributes) {
  if (starts_ == kNoValue) {
    starts_ = g_.input(kStarts, DataType::int64, {"sequences_and_one"});
    past_ = g_.input(kPastLengths, DataType::int64, {"sequences"});
    slots_ = g_.input(kSlots, DataType::int32, {"sequences", "2"});
  }
  std::vector<std::string> extents{"slots"};
  for (const std::int64_t n : shape) extents.push_back(std::to_string(n));
  inputs.insert(inputs.end(), {g_.input(kPastStates + state, DataType::float32, extents), starts_, past_, slots_});
  const auto out = g_.nodes(op, name, std::move(inputs), {name + "/output_0", kPresentStates + state}, attributes);
  SymShape pool{Dim::symbol("slots")};
  for (const std::int64_t n : shape) pool.push_back(Dim(n));
  presents_.push_back({out[1], kPresentStates + state, Type::tensor(DataType::float32, std::move(pool))});
  return out[0];
}

void StateGraph::finish() {
  for (const Present& p : presents_) {
    g_.graph().value(p.value).type = g_.graph().value(p.value).declared = p.type;
    g_.output(p.value, p.name);
  }
}

ValueId state_convolution(WeightedGraph& w, StateGraph& states, std::int64_t layer, const std::string& name, ValueId x,
                          const std::string& weight, std::int64_t channels) {
  const StoredTensor* t = w.files().find_tensor(weight);
  const bool squeezed = t == nullptr || t->shape.size() == 2;
  const Tensor given =
      w.values(weight, squeezed ? std::vector<std::int64_t>{channels, -1} : std::vector<std::int64_t>{channels, 1, -1});
  const std::int64_t taps = given.shape().back();
  Tensor rows(DataType::float32, {taps, channels});
  const float* from = given.values<float>().data();
  float* to = rows.mutable_values<float>().data();
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t i = 0; i < taps; ++i) to[i * channels + c] = from[c * taps + i];
  }
  return states.node("sdx.StateConvolution", name, {x, w.writer().constant(weight, std::move(rows)), w.bias_of(weight, channels)},
                     std::to_string(layer) + ".convolution", {taps - 1, channels});
}

ValueId head_norms(WeightedGraph& w, const std::string& name, ValueId x, const std::string& weight, std::int64_t heads,
                   std::int64_t size, float epsilon) {
  const ValueId y = w.writer().node("SimplifiedLayerNormalization", name,
                                    {w.reshape(name + "/split", x, {0, 0, heads, size}), w.vector(weight, size)},
                                    {{"epsilon", epsilon}, {"axis", std::int64_t{-1}}, {"stash_type", std::int64_t{1}}});
  return w.reshape(name + "/join", y, {0, 0, heads * size});
}

Tensor decays_of_logarithms(const Tensor& logarithms) {
  Tensor decays = logarithms.clone();
  for (float& v : decays.mutable_values<float>()) v = -std::exp(v);
  return decays;
}

bool is_recurrent_layer(const WeightedGraph& w, const std::string& of) {
  return w.has(of + "ssm_conv1d.weight") || w.has(of + "shortconv.conv.weight");
}

ValueId recurrent_layer(WeightedGraph& w, StateGraph& states, const DecoderConfig& c, std::int64_t layer, const std::string& at,
                        const std::string& of, ValueId x) {
  if (w.has(of + "shortconv.conv.weight")) return short_convolution_layer(w, states, c, layer, at + "/conv", of, x);
  if (c.delta.heads > 0) return gated_delta_layer(w, states, c, layer, at + "/delta", of, x);
  if (c.scan.heads > 0) return mamba2_layer(w, states, c, layer, at + "/mamba", of, x);
  fail(ErrorCode::not_implemented, "tensor '{}' is not known to architecture '{}'", of + "ssm_conv1d.weight", c.architecture);
}

}  // namespace sdx::text
