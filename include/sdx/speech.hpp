#pragma once
// Speech to text. Link libsdx_speech (CMake: sardonyx::speech).
//
//   const sdx::Transcriber transcriber = sdx::Transcriber::load("whisper-tiny");
//   for (const sdx::SpeechSegment& s : transcriber.transcribe("talk.flac").segments) std::cout << s.text << '\n';
//
// docs/speech/speech.md says which models and files are read. Texts are UTF-8. All functions throw sdx::Error.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sdx/export.hpp>
#include <sdx/session.hpp>

namespace sdx {

// How speech is told from silence. Source: faster-whisper's VadOptions.
struct VoiceSettings {
  double threshold = 0.5;                                       // of the probability: from here on somebody speaks
  std::optional<double> silence_threshold;                      // below it nobody does; no value: threshold - 0.15, at least 0.01
  double min_speech = 0;                                        // seconds; shorter speech is left out
  double max_speech = std::numeric_limits<double>::infinity();  // longer speech is cut, at a short pause where there is one
  double min_silence = 2;                                       // seconds; a shorter pause belongs to the speech
  double padding = 0.4;                                         // seconds of silence kept on each side
};

// Seconds of a sound.
struct SpeechInterval {
  double start = 0, end = 0;
};

class VoiceDetector;
namespace speech {
class VoiceNetwork;
const VoiceNetwork& network_of(const VoiceDetector& detector);
}  // namespace speech

// Says when somebody speaks. Copies share the network; any number of threads may use it at once.
class SDX_API VoiceDetector {
 public:
  // The file of Silero's VAD in ONNX, version 4 to 6, as the packages silero-vad and faster-whisper contain it. Throws
  // Error(io | invalid_model | not_implemented) naming the file.
  static VoiceDetector load(const std::filesystem::path& file, const SessionOptions& options = {});

  // In order. The sound: as for Transcriber. Throws Error(invalid_argument) for impossible settings.
  std::vector<SpeechInterval> detect(const std::filesystem::path& sound, const VoiceSettings& settings = {}) const;
  std::vector<SpeechInterval> detect_bytes(std::span<const std::byte> sound, const VoiceSettings& settings = {}) const;
  std::vector<SpeechInterval> detect(std::span<const float> samples, int rate, const VoiceSettings& settings = {}) const;

  struct Impl;

 private:
  friend const speech::VoiceNetwork& speech::network_of(const VoiceDetector& detector);
  explicit VoiceDetector(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

struct TranscribeSettings {
  std::string language;          // "de"; empty: heard from the first window
  bool translate = false;        // into English
  bool word_timestamps = false;  // also of words: SpeechSegment::words; takes the decoder's weights once more
  bool timestamps = true;        // false: one segment for each window, without the model's own times
  std::string prompt;            // a text that comes before the first window: names, spelling, style
  // Each window sees the text before it, as long as that was decoded below a temperature of 0.5.
  bool condition_on_previous = true;
  // Tried in order until an answer is neither repetitive nor improbable; 0: the most likely tokens, above: sampling.
  std::vector<double> temperatures = {0.0, 0.2, 0.4, 0.6, 0.8, 1.0};
  std::optional<double> compression_ratio = 2.4;  // a text that zlib makes smaller than this is repetitive
  std::optional<double> log_probability = -1.0;   // a lower mean of the tokens is improbable
  std::optional<double> no_speech = 0.6;          // a window with a higher probability of silence, and improbable text, has none
  std::uint64_t seed = 0;                         // of sampling
  std::optional<VoiceDetector> voice;             // only what it hears is transcribed
  VoiceSettings voice_settings;
  std::optional<CancelToken> cancel;
};

struct SpeechWord {
  double start = 0, end = 0;  // seconds
  std::string text;           // with the space before it and punctuation behind it
  double probability = 0;     // mean of its tokens
};

struct SpeechSegment {
  double start = 0, end = 0;  // seconds
  std::string text;
  std::vector<std::uint32_t> tokens;  // with those of timestamps
  // Of the window that it comes from.
  double temperature = 0, log_probability = 0, compression_ratio = 0, no_speech = 0;
  std::vector<SpeechWord> words = {};  // with TranscribeSettings::word_timestamps
};

struct Transcript {
  std::string language;             // "en"
  double language_probability = 1;  // below 1 where it was heard
  double duration = 0;              // seconds
  std::string text;
  std::vector<SpeechSegment> segments;
};

// Called as soon as a segment is known; false ends the transcription there.
using OnSegment = std::function<bool(const SpeechSegment&)>;

// A speech model. Copies share it; any number of threads may use it at once.
class SDX_API Transcriber {
 public:
  // A folder with a Whisper model: transformers' own with .safetensors, or as optimum or transformers.js export it. Throws
  // Error(io | invalid_model | not_implemented) naming the file.
  static Transcriber load(const std::filesystem::path& folder, const SessionOptions& options = {});

  // A file in any format that `sdx` reads, of any length: memory does not grow with it. Throws Error(invalid_argument) for files
  // that are no sound, and languages that the model lacks.
  Transcript transcribe(const std::filesystem::path& sound, const TranscribeSettings& settings = {},
                        const OnSegment& on_segment = {}) const;
  // The bytes of such a file.
  Transcript transcribe_bytes(std::span<const std::byte> sound, const TranscribeSettings& settings = {},
                              const OnSegment& on_segment = {}) const;
  // Samples of one channel, from -1 to 1.
  Transcript transcribe(std::span<const float> samples, int rate, const TranscribeSettings& settings = {},
                        const OnSegment& on_segment = {}) const;

  // Codes of the languages that the model knows: "en", "de", …; one of a model for a single language.
  const std::vector<std::string>& languages() const;
  // Samples a second, of sound that needs no resampling.
  int rate() const;

  struct Impl;

 private:
  explicit Transcriber(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace sdx
