#pragma once
// The decoder (and encoder) subgraphs of BeamSearch, GreedySearch and Sampling (com.microsoft 1): what goes into them and how the
// results of one step become the inputs of the next. Inputs are told apart by their names, as the operators prescribe them.

#include <cstdint>
#include <vector>

#include "ops/context.h"
#include "ops/generation/decoding.h"

namespace sdx::ops {

enum class ModelKind : std::uint8_t {
  decoder_only,
  encoder_decoder,
  speech
};  // attribute model_type 0 (GPT-2), 1 (T5), 2 (Whisper)

// Throws Error(invalid_model) for other numbers, and for kinds that `op` does not take.
ModelKind model_kind(const Node& node);

// Infers all subgraphs of the node. The types of their inputs are as declared; extents without a number may change from step to
// step.
void infer_decoders(InferContext& c, ModelKind kind);

struct DecoderOptions {
  ModelKind kind = ModelKind::decoder_only;
  std::int64_t batch = 0, beams = 1, max_length = 0;
  std::int32_t pad = 0;
};

// Runs one step after another. Not thread-safe.
class DecoderFeeds {
 public:
  DecoderFeeds(OpContext& c, const DecoderOptions& options);

  // The first step of a model without encoder. `prompt`: int32[batch, length]; `mask` of the same shape, or null: pads are
  // masked.
  void start(const Tensor& prompt, const Tensor* mask);
  // Runs the encoder, which may give the scores of the first token as well. `prefix`: the first tokens of the output, alike for
  // all beams of a batch entry. `mask`: int32[batch, length] or null.
  void encode(const Tensor& input, const Tensor* mask, const std::vector<Tokens>& prefix);

  // The scores [batch * beams, vocab] of the next token, widened to float; at most `most` of the vocabulary where that is
  // positive.
  std::vector<float> scores(std::int64_t most);
  std::int64_t vocab() const { return vocab_; }

  // Goes on: `next` tokens after those of `parents`; `sequences` holds all tokens up to and with them.
  void append(const Tokens& next, const std::vector<std::int64_t>& parents, const std::vector<Tokens>& sequences);

 private:
  struct Slot {
    std::size_t index = 0;
    bool present = false;
  };

  Slot slot(std::size_t graph, std::string_view name) const;
  void feed(std::string_view name, Tensor value);
  Tensor empty_past(std::size_t input, std::int64_t rows) const;
  void feed_steps(std::int64_t past);

  OpContext& c_;
  DecoderOptions options_;
  std::size_t decoder_ = 0;
  std::size_t first_graph_ = 0;
  std::vector<Value> feeds_;
  std::vector<std::size_t> pasts_;  // inputs of the decoder that hold caches
  std::size_t own_pasts_ = 0;       // how many of them grow (the rest belong to the encoder)
  std::vector<Value> results_;
  bool ready_ = false;  // results_ hold scores already
  bool shared_ = false;
  std::int64_t vocab_ = 0;
  std::vector<std::int32_t> positions_;
};

}  // namespace sdx::ops
