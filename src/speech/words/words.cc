#include "speech/words/words.h"

#include <algorithm>
#include <string_view>

#include "base/text/ascii.h"
#include "base/text/utf8.h"
#include "speech/whisper/decode.h"
#include "speech/whisper/rules.h"
#include "speech/words/alignment.h"

namespace sdx::speech {
namespace {

// In the order of their numbers, because a run of them is looked for as it stands.
constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
constexpr std::string_view kBefore = "\"'“¿([{-", kBehind = "\"'.。,，!！?？:：”)]}、", kSentenceEnds = ".。!！?？";

bool contains(std::string_view all, std::string_view part) { return all.find(part) != std::string_view::npos; }

bool is_written_without_spaces(const std::string& language) {
  constexpr std::string_view kLanguages = " zh ja th lo my yue ";
  return contains(kLanguages, " " + language + " ");
}

// Runs of tokens that make whole characters.
std::vector<TimedWord> split_characters(const Tokenizer& tokenizer, std::span<const TokenId> tokens) {
  const std::string whole = tokenizer.decode(tokens);
  std::vector<TimedWord> runs;
  std::size_t begin = 0, offset = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string text = tokenizer.decode(tokens.subspan(begin, i + 1 - begin));
    const std::size_t unknown = text.find(kReplacementCharacter);
    // The text itself may have the character.
    const bool complete = unknown == std::string::npos || whole.compare(std::min(offset + unknown, whole.size()),
                                                                        kReplacementCharacter.size(), kReplacementCharacter) == 0;
    if (!complete && i + 1 < tokens.size()) continue;
    offset += text.size();
    runs.push_back({std::move(text), i + 1 - begin});
    begin = i + 1;
  }
  return runs;
}

void take_in(TimedWord& word, TimedWord& other) {
  word.tokens += other.tokens;
  other.text.clear();
  other.tokens = 0;
}

}  // namespace

std::vector<TimedWord> split_words(const Tokenizer& tokenizer, std::span<const TokenId> tokens, const std::string& language) {
  std::vector<TimedWord> runs = split_characters(tokenizer, tokens);
  if (is_written_without_spaces(language)) return runs;
  std::vector<TimedWord> words;
  for (TimedWord& run : runs) {
    const bool begins = words.empty() || run.text.starts_with(' ') || contains(kPunctuation, trimmed_text(run.text, kBlanks));
    if (begins) {
      words.push_back(std::move(run));
    } else {
      words.back().text += run.text;
      words.back().tokens += run.tokens;
    }
  }
  return words;
}

void time_words(std::vector<TimedWord>& words, const WhisperSettings& s, DecoderText& decoder, std::span<const TokenId> begin,
                std::span<const TokenId> text, std::int64_t frames) {
  std::vector<TokenId> tokens(begin.begin(), begin.end());
  tokens.push_back(s.no_timestamps);
  tokens.insert(tokens.end(), text.begin(), text.end());
  tokens.push_back(s.end);
  const AlignedText aligned = decoder.align(tokens);
  const auto first = static_cast<std::int64_t>(begin.size()), count = static_cast<std::int64_t>(text.size());
  const std::int64_t used = std::clamp<std::int64_t>(frames / 2, 1, s.source_positions);
  const Attention attention{aligned.attention.values<float>(), aligned.attention.dim(0), aligned.attention.dim(1),
                            aligned.attention.dim(2)};
  // The token at a place is said where the one before it looks; the last row is the end.
  const std::vector<std::int64_t> starts = path_starts(token_fit(attention, used, first, first + count + 1), count + 1, used);
  const std::span<const float> logits = aligned.logits.values<float>();
  const auto vocabulary = static_cast<std::size_t>(aligned.logits.dim(1));
  std::size_t at = 0;
  for (TimedWord& word : words) {
    word.start = s.seconds(2 * starts[at]);
    word.end = s.seconds(2 * starts[at + word.tokens]);
    for (std::size_t i = at; i < at + word.tokens; ++i) {
      const std::span<const float> row =
          logits.subspan((begin.size() + i) * vocabulary, std::min<std::size_t>(vocabulary, s.end));
      word.probability += std::exp(static_cast<double>(row[text[i]]) - log_sum(row)) / static_cast<double>(word.tokens);
    }
    at += word.tokens;
  }
}

void join_punctuation(std::vector<TimedWord>& words) {
  for (std::size_t next = words.size(), i = next; i-- > 0;) {
    TimedWord& word = words[i];
    const std::string_view mark = trimmed_text(word.text, kBlanks);
    if (next < words.size() && word.text.starts_with(' ') && contains(kBefore, mark)) {
      words[next].text = word.text + words[next].text;
      take_in(words[next], word);
    } else {
      next = i;
    }
  }
  for (std::size_t before = 0, i = 1; i < words.size(); ++i) {
    if (!words[before].text.ends_with(' ') && contains(kBehind, words[i].text)) {
      words[before].text += words[i].text;
      take_in(words[before], words[i]);
    } else {
      before = i;
    }
  }
}

double usual_duration(std::span<const TimedWord> words) {
  constexpr double kMost = 0.7;
  std::vector<double> durations;
  for (const TimedWord& word : words) {
    if (word.end != word.start) durations.push_back(word.end - word.start);
  }
  if (durations.empty()) return 0;
  std::sort(durations.begin(), durations.end());
  const std::size_t half = durations.size() / 2;
  return std::min(kMost, durations.size() % 2 == 1 ? durations[half] : (durations[half - 1] + durations[half]) / 2);
}

void shorten_at_sentences(std::vector<TimedWord>& words, double usual) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    TimedWord& word = words[i];
    if (word.end - word.start <= 2 * usual) continue;
    if (contains(kSentenceEnds, word.text)) {
      word.end = word.start + 2 * usual;
    } else if (contains(kSentenceEnds, words[i - 1].text)) {
      word.start = word.end - 2 * usual;
    }
  }
}

void fit_segment(SpeechSegment& segment, double usual, double spoken_until) {
  if (segment.words.empty()) return;
  const double most = 2 * usual;
  SpeechWord& first = segment.words.front();
  SpeechWord& last = segment.words.back();
  SpeechWord* const second = segment.words.size() > 1 ? &segment.words[1] : nullptr;
  // Behind a pause, the first words seem to begin in it.
  const bool long_start = first.end - first.start > most || (second != nullptr && second->end - first.start > 2 * most);
  if (first.end - spoken_until > 4 * usual && long_start) {
    if (second != nullptr && second->end - second->start > most) {
      first.end = second->start = std::max(second->end / 2, second->end - most);
    }
    first.start = std::max(0.0, first.end - most);
  }
  constexpr double kTrusted = 0.5;  // seconds by which a segment's own time is better than that of a long word
  if (segment.start < first.end && segment.start - kTrusted > first.start) {
    first.start = std::max(0.0, std::min(first.end - usual, segment.start));
  } else {
    segment.start = first.start;
  }
  if (segment.end > last.start && segment.end + kTrusted < last.end) {
    last.end = std::max(last.start + usual, segment.end);
  } else {
    segment.end = last.end;
  }
}

void add_words(std::span<SpeechSegment> segments, std::span<const std::vector<TokenId>> texts, std::vector<TimedWord> words,
               double at, double& spoken_until) {
  const double usual = usual_duration(words);
  shorten_at_sentences(words, usual);
  join_punctuation(words);
  std::size_t next = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    SpeechSegment& segment = segments[i];
    for (std::size_t taken = 0; next < words.size() && taken < texts[i].size(); ++next) {
      const TimedWord& word = words[next];
      taken += word.tokens;
      if (!word.text.empty()) segment.words.push_back({at + word.start, at + word.end, word.text, word.probability});
    }
    if (segment.words.empty()) continue;
    fit_segment(segment, usual, spoken_until);
    spoken_until = segment.end;
  }
}

}  // namespace sdx::speech
