#pragma once
// LoRA: beside a frozen linear layer x W runs (alpha / rank) (x A) B, of which A and B are trained.
//
// For the weights `<W>` of MatMul and Gemm, [in, out], the new parameters are `<W>.lora_A` [in, rank], Gaussian with deviation
// 1/rank, and `<W>.lora_B` [rank, out], zeros; where Gemm has transB, `<W>.lora_A` [rank, in] and `<W>.lora_B` [out, rank], as
// PEFT has them. A layer of several nodes has one pair.
//
// Training and eval models say so in their metadata_props, one for each pair: key `sdx.lora:<W>`, value the factor alpha / rank
// (A and B have the names above). That is how the Trainer and merge_lora() find the pairs.

#include <span>
#include <string>
#include <vector>

#include <sdx/train/artifacts.hpp>

#include "graph/graph.h"

namespace sdx::train {

// Adds the branches, beside layers whose weights are not among `except`; returns the names of the new parameters. Types are
// inferred, and are afterwards. Throws Error(invalid_argument) where no layer is met.
std::vector<std::string> add_lora(Model& model, const LoraOptions& options, std::uint64_t seed,
                                  std::span<const std::string> except = {});

struct LoraPair {
  std::string weights, a, b;
  float factor = 1;
};
std::vector<LoraPair> lora_pairs(const Model& model);

// For a model for inference, whose parameters are constants: W becomes W + (alpha / rank) A B for layers that have a branch; the
// branches and the metadata are removed. Other readers of W keep the old one. Returns whether there was any. Types must be
// inferred again afterwards.
bool merge_lora(Model& model);

}  // namespace sdx::train
