#pragma once
// What a Whisper model's files say besides its weights.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sdx/tokenizer.hpp>

#include "speech/features/features.h"

namespace sdx::speech {

using TokenId = std::uint32_t;

// A head of the decoder whose attention follows the sound.
struct AlignmentHead {
  std::int64_t layer = 0, head = 0;
  bool operator==(const AlignmentHead&) const = default;
};

struct WhisperSettings {
  WhisperFeatureSettings features;
  std::int64_t vocabulary = 0, positions = 448, max_length = 448;
  std::int64_t source_positions = 1500;           // of the encoder, which halves the frames
  std::int64_t layers = 0, heads = 0, width = 0;  // of the decoder
  std::int64_t encoder_layers = 0, encoder_heads = 0;
  bool scaled_words = false;  // the embedding is multiplied by the root of its width
  std::string activation;

  TokenId start = 0, end = 0, no_timestamps = 0;
  std::optional<TokenId> previous, no_speech, transcribe, translate;
  std::vector<std::pair<std::string, TokenId>> languages;  // "en"; none: the model has one language
  std::vector<TokenId> suppress, suppress_at_begin;
  std::optional<std::int64_t> most_initial_timestamp;  // in steps

  std::vector<AlignmentHead> alignment_heads;  // none that files name: all of the upper half of the layers

  TokenId timestamps() const { return no_timestamps + 1; }  // the first, of 0 seconds
  std::int64_t window_frames() const { return 2 * source_positions; }
  double seconds(std::int64_t frames) const {
    return static_cast<double>(frames * features.hop) / static_cast<double>(features.rate);
  }
};

// Reads config.json, generation_config.json and preprocessor_config.json; what the second lacks comes from the tokenizer's names.
// Throws Error(io | invalid_model | not_implemented) naming file and key.
WhisperSettings read_whisper_settings(const std::filesystem::path& folder, const Tokenizer& tokenizer);

}  // namespace sdx::speech
