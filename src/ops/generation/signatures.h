#pragma once
// Searches with a decoder as subgraph: attributes.

#include "ops/signature.h"

namespace sdx::ops {

// BeamSearch, WhisperBeamSearch, GreedySearch, Sampling.
struct SearchAttrs {
  std::int64_t eos_token_id = 0, pad_token_id = 0, decoder_start_token_id = -1;
  std::int64_t model_type = 0;  // ModelKind
  std::int64_t no_repeat_ngram_size = 0, vocab_size = -1;
  bool early_stopping = false;  // of beams

  void fields(auto& f, const OpId& op) {
    f.required("eos_token_id", eos_token_id);
    f.required("pad_token_id", pad_token_id);
    f("decoder_start_token_id", decoder_start_token_id);
    if (op.name == "WhisperBeamSearch") model_type = 2;
    f("model_type", model_type);
    f("no_repeat_ngram_size", no_repeat_ngram_size);
    f("vocab_size", vocab_size);
    if (op.name.ends_with("BeamSearch")) f("early_stopping", early_stopping);
  }
};

// WhisperBeamSearch; -1: no such token.
struct WhisperAttrs {
  std::int64_t translate_token_id = -1, no_speech_token_id = -1, transcribe_token_id = -1, start_of_lm_token_id = -1,
               no_timestamps_token_id = -1, beginning_timestamp_token_id = -1;

  void fields(auto& f) {
    f.unread("decoder_output_cross_qk", AttrKind::i);
    f("translate_token_id", translate_token_id);
    f("no_speech_token_id", no_speech_token_id);
    f("transcribe_token_id", transcribe_token_id);
    f("start_of_lm_token_id", start_of_lm_token_id);
    f("no_timestamps_token_id", no_timestamps_token_id);
    f("beginning_timestamp_token_id", beginning_timestamp_token_id);
  }
};

struct SamplingAttrs {
  float temperature = 1, top_p = 0, filter_value = -1e20F, presence_penalty = 0;
  std::int64_t min_tokens_to_keep = 0;
  bool custom = false;

  void fields(auto& f) {
    f("temperature", temperature);
    f("top_p", top_p);
    f("filter_value", filter_value);
    f("presence_penalty", presence_penalty);
    f("min_tokens_to_keep", min_tokens_to_keep);
    f("custom", custom);
  }
};

}  // namespace sdx::ops
