#pragma once
// A decoder that returns its attention to the sound, which exported models keep to themselves.

#include "graph/graph.h"
#include "speech/whisper/settings.h"

namespace sdx::speech {

inline constexpr const char* kAttentionOutput = "sdx.attention";

// A decoder for first steps, or one with both branches, as one for first steps whose outputs are "logits" and kAttentionOutput:
// float32[alignment heads, tokens, positions of the sound]. Cross-attention is found by what it computes: a Softmax of products
// with something that depends on "encoder_hidden_states", or keys of the sound, alone, or the operator Attention. Throws
// Error(not_implemented) where there are fewer such places than layers.
Model with_attention_outputs(Model decoder, const WhisperSettings& settings);

}  // namespace sdx::speech
