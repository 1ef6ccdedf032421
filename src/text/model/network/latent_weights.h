#pragma once
// The matrices of latent attention. Older GGUF files and folders have one, attn_kv_b, which makes keys and values of latent
// vectors; the network wants the keys' part of each head transposed (attn_k_b), and the values' part (attn_v_b).

#include "tensor/gguf/tensor_files.h"
#include "text/model/network/decoder_config.h"

namespace sdx::text {

bool lacks_latent_parts(const DecoderConfig& config, const TensorFiles& files);
// Adds both parts of each layer that lacks them, in memory of their own. Throws Error(invalid_model) for matrices of another
// shape.
void add_latent_parts(const DecoderConfig& config, TensorFiles& files);

}  // namespace sdx::text
