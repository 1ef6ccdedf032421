#pragma once
// Layers whose texts have states in place of keys and values: networks of docs/design/text-states.md.

#include <string>
#include <vector>

#include "text/model/network/weighted_graph.h"

namespace sdx::text {

// The inputs and outputs of states.
class StateGraph {
 public:
  explicit StateGraph(GraphWriter& g) : g_(g) {}

  // A node that takes and changes a state of this shape, called `state`: its first output. The node's last inputs are the pool of
  // these states and where each text's is.
  ValueId node(const std::string& op, const std::string& name, std::vector<ValueId> inputs, const std::string& state,
               const std::vector<std::int64_t>& shape, const AttributeList& attributes = {});
  void finish();

 private:
  GraphWriter& g_;
  ValueId starts_ = kNoValue, past_ = kNoValue, slots_ = kNoValue;
  struct Present {
    ValueId value;
    std::string name;
    Type type;
  };
  std::vector<Present> presents_;
};

// A convolution of each channel over the last tokens. `weight`: [channels, taps], or [channels, 1, taps]. With a bias where there
// is one.
ValueId state_convolution(WeightedGraph& w, StateGraph& states, std::int64_t layer, const std::string& name, ValueId x,
                          const std::string& weight, std::int64_t channels);
// RMS norms of each head's part of x, [1, tokens, heads * size].
ValueId head_norms(WeightedGraph& w, const std::string& name, ValueId x, const std::string& weight, std::int64_t heads,
                   std::int64_t size, float epsilon);

// What a state keeps of itself in a unit of time, as GGUF files have it: -exp() of what folders have.
Tensor decays_of_logarithms(const Tensor& logarithms);

// By the layer's tensors; `of`: "blk.0.".
bool is_recurrent_layer(const WeightedGraph& w, const std::string& of);
// What such a layer adds; `at`: the name of its nodes.
ValueId recurrent_layer(WeightedGraph& w, StateGraph& states, const DecoderConfig& c, std::int64_t layer, const std::string& at,
                        const std::string& of, ValueId x);

// One kind each, in a file of its own.
ValueId short_convolution_layer(WeightedGraph& w, StateGraph& states, const DecoderConfig& c, std::int64_t layer,
                                const std::string& at, const std::string& of, ValueId x);
ValueId mamba2_layer(WeightedGraph& w, StateGraph& states, const DecoderConfig& c, std::int64_t layer, const std::string& at,
                     const std::string& of, ValueId x);
ValueId gated_delta_layer(WeightedGraph& w, StateGraph& states, const DecoderConfig& c, std::int64_t layer, const std::string& at,
                          const std::string& of, ValueId x);

}  // namespace sdx::text
