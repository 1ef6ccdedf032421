#pragma once
// Experts as folders of gpt-oss have them: gates and what they multiply in turn, columns before rows in floats, codes and scales
// apart in MXFP4. They are put into the order of GGUF files, in memory of their own.

#include <map>
#include <string>
#include <string_view>

#include <sdx/tensor.hpp>

#include "tensor/gguf/tensor_files.h"
#include "text/model/network/decoder_config.h"

namespace sdx::text {

// Whether a layer's tensor is one of these: "mlp.experts.gate_up_proj_blocks".
bool is_joined_expert(std::string_view name);

// `given`: by those names. Adds the tensors with GGUF's names after `prefix` ("blk.0."). Throws Error(invalid_model) naming what
// is missing or of another shape.
void add_joined_experts(const std::map<std::string, Tensor>& given, const std::string& prefix, const DecoderConfig& config,
                        TensorFiles& to);

}  // namespace sdx::text
