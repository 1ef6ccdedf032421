#pragma once
// The text of one window of sound.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/speech.hpp>

#include "speech/whisper/network.h"

namespace sdx::speech {

// What separates words.
inline constexpr std::string_view kBlanks = " \t\r\n";

// Tokens of text: without times and special ones.
std::vector<TokenId> text_tokens(const WhisperSettings& settings, std::span<const TokenId> tokens);

struct WindowAnswer {
  std::vector<TokenId> tokens;  // without the prompt and the end
  std::string text;
  double temperature = 0, log_probability = 0, compression_ratio = 0, no_speech = 0;
};

// The prompt: previous text, behind <|startofprev|>, then `begin`, which starts with <|startoftranscript|>.
std::vector<TokenId> prompt_of(const WhisperSettings& settings, std::span<const TokenId> previous,
                               std::span<const TokenId> begin);

struct DecodeRequest {
  std::vector<TokenId> prompt;
  bool timestamps = true;
  double temperature = 0;
  std::uint64_t seed = 0;
};

// Decodes at one temperature.
WindowAnswer decode_window(const WhisperSettings& settings, const Tokenizer& tokenizer, DecoderText& text,
                           const DecodeRequest& request);

// At the settings' temperatures in turn, until the answer is good enough; else the most probable one. Answers in silence are
// empty.
WindowAnswer decode_with_fallback(const WhisperSettings& settings, const Tokenizer& tokenizer, DecoderText& text,
                                  DecodeRequest request, const TranscribeSettings& wanted);

// The size of a text divided by its size behind zlib; 0 for an empty one.
double compression_ratio(const std::string& text);

}  // namespace sdx::speech
