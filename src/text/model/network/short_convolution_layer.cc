// Short convolutions between two gates: LFM2.

#include "text/model/network/recurrent_layers.h"

namespace sdx::text {

ValueId short_convolution_layer(WeightedGraph& w, StateGraph& states, const DecoderConfig& c, std::int64_t layer,
                                const std::string& at, const std::string& of, ValueId x) {
  GraphWriter& g = w.writer();
  const ValueId all = w.linear(at + "/in_proj", x, of + "shortconv.in_proj.weight", 3 * c.width, c.width);
  const auto parts = w.parts(at + "/Split", all, {c.width, c.width, c.width});  // gate in front, gate behind, values
  const ValueId gated = g.node("Mul", at + "/Mul", {parts[0], parts[2]});
  const ValueId mixed = state_convolution(w, states, layer, at + "/conv", gated, of + "shortconv.conv.weight", c.width);
  const ValueId y = g.node("Mul", at + "/out/Mul", {parts[1], mixed});
  return w.linear(at + "/out_proj", y, of + "shortconv.out_proj.weight", c.width, c.width);
}

}  // namespace sdx::text
