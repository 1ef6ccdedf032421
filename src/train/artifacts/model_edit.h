#pragma once
// Small changes to graphs that artifacts are made of.

#include <string>

#include "graph/edit.h"

namespace sdx::train {

// ONNX Runtime 1.19 reads no newer ones, and gradients are emitted in this opset.
inline constexpr int kTrainingOpset = 21;
inline constexpr std::int64_t kTrainingIrVersion = 10;

// A constant becomes an input of the same name and type, the last one. ValueIds of the constant are no longer used: returns the
// input's.
ValueId constant_to_input(Graph& graph, ValueId constant);

// The name, which another value may have now: that one gets another.
void take_name(Graph& graph, ValueId value, const std::string& name);

}  // namespace sdx::train
