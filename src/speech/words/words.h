#pragma once
// Words of a window's text, and when each is said. Source: openai-whisper's word times.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sdx/speech.hpp>
#include <sdx/tokenizer.hpp>

#include "speech/whisper/network.h"

namespace sdx::speech {

struct TimedWord {
  std::string text;  // with the space before it
  std::size_t tokens = 0;
  double start = 0, end = 0;  // seconds from the window's begin
  double probability = 0;     // mean of its tokens
};

// Cuts the text of tokens before spaces and punctuation; in a language that writes no spaces, between characters. Tokens without
// a whole character belong to one word.
std::vector<TimedWord> split_words(const Tokenizer& tokenizer, std::span<const TokenId> tokens, const std::string& language);

// Sets times and probabilities of words, which consist of `text`, behind the tokens `begin` of a window of `frames` frames.
void time_words(std::vector<TimedWord>& words, const WhisperSettings& settings, DecoderText& decoder,
                std::span<const TokenId> begin, std::span<const TokenId> text, std::int64_t frames);

// Punctuation becomes a part of the word before it, or, as an opening bracket, behind it; the word that it was stays, empty.
void join_punctuation(std::vector<TimedWord>& words);

// The median of the words' durations, 0.7 s at most; words without one do not count.
double usual_duration(std::span<const TimedWord> words);

// Shortens words at the ends of sentences that seem to last longer than twice the usual.
void shorten_at_sentences(std::vector<TimedWord>& words, double usual);

// The words of one segment, with its times and theirs made to fit each other. `spoken_until`: the end of the segment before it.
void fit_segment(SpeechSegment& segment, double usual, double spoken_until);

// Sets the words of a window's segments, whose tokens without times are `texts`, and from them the segments' times. `at`: the
// window's begin in seconds. `spoken_until` becomes the end of the last segment that has words.
void add_words(std::span<SpeechSegment> segments, std::span<const std::vector<TokenId>> texts, std::vector<TimedWord> words,
               double at, double& spoken_until);

}  // namespace sdx::speech
