#pragma once
// The network of a language model as an ONNX graph, with names as onnxruntime-genai's exports have them:
//
//   input_ids int64[batch,sequence]; attention_mask int64[batch,total];
//   past_key_values.N.key|value float32[batch,kv_heads,past,head]  ->  present.N.key|value
//
// For our own sessions there are also rope_cos.K, rope_sin.K float32[positions,rotary/2] (K = 1: of Gemma 3's local layers), so
// that angles are made for as many positions as are used, and logits_indices int64[wanted]: places in the flattened batch whose
// logits are wanted; logits are float32[wanted,vocabulary]. For files the angles are constants, and logits are
// float32[batch,sequence,vocabulary].

#include <memory>
#include <vector>

#include "base/tools_api.h"
#include "graph/graph.h"
#include "tensor/gguf/tensor_files.h"
#include "text/model/network/decoder_config.h"
#include "text/model/network/weight_style.h"

namespace sdx::text {

// With `embeds`: inputs input_ids, attention_mask, position_ids int64[batch,sequence], without a past; texts are padded behind
// their tokens. The output is last_hidden_state float32[batch,sequence,width]; with `scores`, it is logits float32[batch,classes]
// of the last token, by the head for classes or, without one, by rows of the output matrix: that of the second of `answers` minus
// the first's, or that of the only one.
struct DecoderOptions {
  bool for_file = false;
  std::int64_t context = 0;  // with for_file or embeds: positions that angles are made for
  bool embeds = false, scores = false;
  std::vector<std::int64_t> answers{};
};

// `config.vocabulary` is set from the embedding. Throws Error(invalid_model) for tensors that are missing or of another shape,
// and Error(not_implemented) for unknown tensors.
Model build_decoder(const std::shared_ptr<const TensorFiles>& file, DecoderConfig& config, WeightStyle& style,
                    const DecoderOptions& options);

// Weights as they lie in the file: sdx.GgmlMatMul and sdx.GgmlGather.
SDX_TOOLS_API std::unique_ptr<WeightStyle> weights_in_place(std::shared_ptr<const TensorFiles> file);

// The bytes for Session::from_bytes() of a graph of weights_in_place(): references into the files in `folder`. All weights must
// be in files.
struct MappedModel {
  std::string bytes;
  std::filesystem::path folder;
};
MappedModel map_model(const Model& model, const TensorFiles& file);

}  // namespace sdx::text
