#pragma once
// Small changes to graphs that artifacts are made of.

#include <string>

#include "graph/edit.h"

namespace sdx::train {

// ONNX Runtime 1.19 reads no newer ones, and gradients are emitted in this opset.
inline constexpr int kTrainingOpset = 21;
inline constexpr std::int64_t kTrainingIrVersion = 10;

// Turns a constant into an input of the same name and type, the last one. ValueIds of the constant become invalid: returns the
// input's.
ValueId constant_to_input(Graph& graph, ValueId constant);

// Gives the value this name; another value that has it gets another name.
void take_name(Graph& graph, ValueId value, const std::string& name);

}  // namespace sdx::train
