#pragma once
// The types behind the opaque ones of sdx/custom_op.h, and the table of functions that libraries get.

#include <deque>
#include <string>
#include <vector>

#include <sdx/custom_op.h>

#include "ops/context.h"
#include "ops/custom.h"

namespace sdx::ops {

struct RegistryState {
  std::vector<OpDef> defs;
  std::vector<sdx_op_definition> functions;  // parallel to defs
};

struct AttributesState {
  explicit AttributesState(const Node& n) : node(n) {}
  const Node& node;
  std::deque<Tensor> aligned;  // copies of tensor attributes that lie unaligned in the file
};

struct CallState {
  OpContext& context;
  const OpDef& def;
  std::vector<bool> made;  // by output
};

struct InferenceState {
  InferContext& context;
  AttributesState attributes;
};

struct GradientState {
  const GradientNames& names;
  AttributesState attributes;
  GradientNodes result;
};

template <class Opaque, class State>
Opaque* opaque(State& state) {
  return reinterpret_cast<Opaque*>(&state);
}

// Unchanging; one for the process.
const sdx_op_api& custom_api();

// The message of the last api->fail() on this thread; taking it clears it.
std::string take_custom_message();

}  // namespace sdx::ops
