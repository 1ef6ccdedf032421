#include <algorithm>
#include <cmath>
#include <sdx/speech.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/ascii.h"
#include "speech/sound_rows.h"
#include "speech/whisper/decode.h"
#include "speech/whisper/rules.h"
#include "speech/whisper/segments.h"
#include "speech/words/words.h"

namespace sdx {

struct Transcriber::Impl {
  Impl(const std::filesystem::path& folder, const SessionOptions& options)
      : tokenizer(Tokenizer::load(folder)),
        settings(speech::read_whisper_settings(folder, tokenizer)),
        network(folder, settings, options) {
    for (const auto& [code, id] : settings.languages) languages.push_back(code);
  }

  Tokenizer tokenizer;
  speech::WhisperSettings settings;
  speech::WhisperNetwork network;
  std::vector<std::string> languages;
};

namespace speech {
namespace {

struct Stopped {};  // thrown where the caller wants no more segments

// Windows of a sound, whose rows come one after another.
class Windows {
 public:
  // `times`: of the sound, where only its speech is heard; may be null.
  Windows(const Transcriber::Impl& model, const TranscribeSettings& wanted, const OnSegment& on_segment, const SoundFacts& facts,
          const SpeechTimes* times)
      : model_(model), s_(model.settings), wanted_(wanted), on_segment_(on_segment), facts_(facts), times_(times) {
    out_.duration = facts.seconds;
    timestamps_ = wanted.timestamps && static_cast<std::int64_t>(s_.timestamps()) < s_.vocabulary;
    if (!wanted.prompt.empty())
      previous_ = model.tokenizer.encode(" " + std::string(trimmed_text(wanted.prompt, kBlanks)), false).ids;
  }

  void add(std::span<const float> rows) {
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    const std::int64_t window = s_.window_frames();
    while (at_ < facts_.frames && first_ + held() >= at_ + window) {
      one_window();
      drop();
    }
  }
  void finish() {
    while (at_ < facts_.frames) one_window();
  }

  Transcript take() {
    if (out_.language.empty()) out_.language = s_.languages.empty() ? "en" : wanted_.language;
    return std::move(out_);
  }

 private:
  std::int64_t held() const { return static_cast<std::int64_t>(rows_.size()) / s_.features.bins; }
  // Once in a while, because what is left moves.
  void drop() {
    const std::int64_t unneeded = std::clamp<std::int64_t>(at_ - first_, 0, held());
    if (unneeded < held() / 2) return;
    rows_.erase(rows_.begin(), rows_.begin() + unneeded * s_.features.bins);
    first_ += unneeded;
  }

  // The window as the model sees it; zeros behind what there is.
  Tensor features() const {
    const std::int64_t window = s_.window_frames(), bins = s_.features.bins;
    const std::int64_t there = std::clamp<std::int64_t>(first_ + held() - at_, 0, window);
    Tensor t(DataType::float32, {1, bins, window});
    float* const to = t.mutable_values<float>().data();
    std::fill_n(to, bins * window, 0.0F);
    const float* const from = rows_.data() + (at_ - first_) * bins;
    for (std::int64_t i = 0; i < there; ++i) {
      for (std::int64_t b = 0; b < bins; ++b) to[b * window + i] = whisper_range(from[i * bins + b], facts_.most);
    }
    return t;
  }

  // <|startoftranscript|>, language and task.
  void choose_begin(DecoderText& text) {
    begin_ = {s_.start};
    if (!s_.languages.empty()) {
      begin_.push_back(language(text));
      const std::optional<TokenId> task = wanted_.translate ? s_.translate : s_.transcribe;
      if (wanted_.translate && !task) fail(ErrorCode::invalid_argument, "the model does not translate");
      if (task) begin_.push_back(*task);
    } else {
      if (wanted_.translate) fail(ErrorCode::invalid_argument, "the model knows one language, and does not translate");
      out_.language = "en";
    }
    if (!timestamps_) begin_.push_back(s_.no_timestamps);
  }

  TokenId language(DecoderText& text) {
    if (!wanted_.language.empty()) {
      out_.language = wanted_.language;
      return std::find_if(s_.languages.begin(), s_.languages.end(), [&](const auto& l) { return l.first == wanted_.language; })
          ->second;
    }
    text.clear();
    const Tensor logits = text.append(std::span(&s_.start, 1));
    const std::span<const float> all = logits.values<float>();
    std::vector<float> chosen;
    for (const auto& [code, id] : s_.languages) chosen.push_back(all[id]);
    const auto best = std::max_element(chosen.begin(), chosen.end());
    const auto& [code, id] = s_.languages[static_cast<std::size_t>(best - chosen.begin())];
    out_.language = code;
    out_.language_probability = std::exp(static_cast<double>(*best) - log_sum(chosen));
    return id;
  }

  void one_window() {
    const std::int64_t frames = std::min(s_.window_frames(), facts_.frames - at_);
    DecoderText text(model_.network, model_.network.encode(features(), wanted_.cancel), wanted_.cancel);
    if (begin_.empty()) choose_begin(text);
    DecodeRequest request;
    request.prompt = prompt_of(s_, previous_, begin_);
    request.timestamps = timestamps_;
    request.seed = wanted_.seed + static_cast<std::uint64_t>(at_) * 64;
    const WindowAnswer answer = decode_with_fallback(s_, model_.tokenizer, text, std::move(request), wanted_);
    CutWindow cut = cut_window(s_, answer.tokens, frames);
    cut.advance = std::min(cut.advance, frames);
    std::vector<SpeechSegment> segments;
    for (CutSegment& segment : cut.segments) segments.push_back(segment_of(std::move(segment), answer));
    if (wanted_.word_timestamps) {
      add_times_of_words(text, segments, frames);
      if (const std::int64_t end = last_frame(segments); !cut.ends && end > at_) cut.advance = std::min(end - at_, frames);
    }
    for (SpeechSegment& segment : segments) publish(std::move(segment));
    constexpr double kHot = 0.5;
    if (!wanted_.condition_on_previous || answer.temperature > kHot) previous_.clear();
    const auto most = static_cast<std::size_t>(s_.positions);
    if (previous_.size() > most) previous_.erase(previous_.begin(), previous_.end() - static_cast<std::ptrdiff_t>(most));
    at_ += cut.advance;
  }

  SpeechSegment segment_of(CutSegment segment, const WindowAnswer& answer) const {
    SpeechSegment out;
    out.text = model_.tokenizer.decode(text_tokens(s_, segment.tokens));
    out.start = s_.seconds(at_ + segment.start);
    out.end = s_.seconds(at_ + segment.end);
    out.tokens = std::move(segment.tokens);
    out.temperature = answer.temperature;
    out.log_probability = answer.log_probability;
    out.compression_ratio = answer.compression_ratio;
    out.no_speech = answer.no_speech;
    return out;
  }

  void add_times_of_words(DecoderText& decoder, std::vector<SpeechSegment>& segments, std::int64_t frames) {
    std::vector<std::vector<TokenId>> texts;
    std::vector<TokenId> all, begin;
    std::copy_if(begin_.begin(), begin_.end(), std::back_inserter(begin), [&](TokenId t) { return t != s_.no_timestamps; });
    for (const SpeechSegment& segment : segments) {
      texts.push_back(text_tokens(s_, segment.tokens));
      all.insert(all.end(), texts.back().begin(), texts.back().end());
    }
    constexpr std::size_t kOthers = 2;  // <|notimestamps|> and the end
    all.resize(std::min(all.size(), static_cast<std::size_t>(s_.positions) - begin.size() - kOthers));
    if (all.empty()) return;
    std::vector<TimedWord> words = split_words(model_.tokenizer, all, out_.language);
    time_words(words, s_, decoder, begin, all, frames);
    add_words(segments, texts, std::move(words), s_.seconds(at_), spoken_until_);
  }

  // At which the last word ends, or without words the last segment.
  std::int64_t last_frame(std::span<const SpeechSegment> segments) const {
    const auto rate = static_cast<double>(s_.features.rate) / static_cast<double>(s_.features.hop);
    const auto spoken = std::find_if(segments.rbegin(), segments.rend(), [](const SpeechSegment& s) { return !s.words.empty(); });
    if (spoken != segments.rend()) return std::llround(spoken->words.back().end * rate);
    return segments.empty() ? 0 : std::llround(segments.back().end * rate);
  }

  // Segments without text or length say nothing. None ends behind the sound.
  void publish(SpeechSegment segment) {
    if (segment.start >= segment.end || trimmed_text(segment.text, kBlanks).empty()) return;
    previous_.insert(previous_.end(), segment.tokens.begin(), segment.tokens.end());
    segment.end = std::min(segment.end, std::max(segment.start, facts_.heard_seconds));
    if (times_ != nullptr) times_->restore(segment);
    out_.text += segment.text;
    out_.segments.push_back(std::move(segment));
    if (on_segment_ && !on_segment_(out_.segments.back())) throw Stopped();
  }

  const Transcriber::Impl& model_;
  const WhisperSettings& s_;
  const TranscribeSettings& wanted_;
  const OnSegment& on_segment_;
  const SoundFacts& facts_;
  const SpeechTimes* times_;
  Transcript out_;
  std::vector<TokenId> begin_, previous_;
  std::vector<float> rows_;  // from frame `first_` on
  std::int64_t first_ = 0, at_ = 0;
  double spoken_until_ = 0;  // seconds
  bool timestamps_ = true;
};

void check(const Transcriber::Impl& model, const TranscribeSettings& wanted) {
  if (wanted.temperatures.empty()) fail(ErrorCode::invalid_argument, "no temperature is given");
  for (const double t : wanted.temperatures) {
    if (!(t >= 0 && t <= 10)) fail(ErrorCode::invalid_argument, "a temperature of {} is impossible; expected 0 to 10", t);
  }
  if (wanted.language.empty()) return;
  if (model.languages.empty()) {
    if (wanted.language != "en") fail(ErrorCode::invalid_argument, "the model knows English alone, not '{}'", wanted.language);
  } else if (std::find(model.languages.begin(), model.languages.end(), wanted.language) == model.languages.end()) {
    fail(ErrorCode::invalid_argument, "the model does not know the language '{}'; it knows {}", wanted.language,
         join(model.languages));
  }
}

Transcript transcribe(const Transcriber::Impl& model, const SoundSource& source, const TranscribeSettings& wanted,
                      const OnSegment& on_segment) {
  check(model, wanted);
  const WhisperFeatureSettings& features = model.settings.features;
  std::optional<std::vector<SampleRange>> speech;
  std::optional<SpeechTimes> times;
  if (wanted.voice) {
    speech = find_speech(source, network_of(*wanted.voice), wanted.voice_settings, features.rate, wanted.cancel);
    times.emplace(*speech, features.rate);
  }
  const SoundFacts facts = find_facts(source, features, speech);
  Windows windows(model, wanted, on_segment, facts, times ? &*times : nullptr);
  try {
    if (facts.kept) {
      windows.add(facts.rows);
    } else {
      run_rows(source, features, speech, [&](std::span<const float> rows) { windows.add(rows); });
    }
    windows.finish();
  } catch (const Stopped&) {
  }
  return windows.take();
}

}  // namespace
}  // namespace speech

Transcriber::Transcriber(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Transcriber Transcriber::load(const std::filesystem::path& folder, const SessionOptions& options) {
  try {
    return Transcriber(std::make_shared<const Impl>(folder, options));
  } catch (Error& e) {
    throw e.add_context("in '" + folder.string() + "'");
  }
}

Transcript Transcriber::transcribe_bytes(std::span<const std::byte> sound, const TranscribeSettings& settings,
                                         const OnSegment& on_segment) const {
  return speech::transcribe(*impl_, speech::bytes_source(sound), settings, on_segment);
}

Transcript Transcriber::transcribe(const std::filesystem::path& sound, const TranscribeSettings& settings,
                                   const OnSegment& on_segment) const {
  return speech::with_sound_file(sound,
                                 [&](std::span<const std::byte> bytes) { return transcribe_bytes(bytes, settings, on_segment); });
}

Transcript Transcriber::transcribe(std::span<const float> samples, int rate, const TranscribeSettings& settings,
                                   const OnSegment& on_segment) const {
  return speech::transcribe(*impl_, speech::samples_source(samples, rate), settings, on_segment);
}

const std::vector<std::string>& Transcriber::languages() const {
  static const std::vector<std::string> kEnglish{"en"};
  return impl_->languages.empty() ? kEnglish : impl_->languages;
}

int Transcriber::rate() const { return static_cast<int>(impl_->settings.features.rate); }

}  // namespace sdx
