#pragma once
// The inputs of speech models, as transformers, NeMo and Kaldi define them.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "speech/features/spectrum.h"

namespace sdx::speech {

// Rows of numbers, a row for each frame.
struct Features {
  std::int64_t bins = 0;
  std::vector<float> values;

  std::int64_t frames() const { return bins == 0 ? 0 : static_cast<std::int64_t>(values.size()) / bins; }
};

// Of WhisperFeatureExtractor.
struct WhisperFeatureSettings {
  std::int64_t bins = 80, rate = 16000, hop = 160, fft = 400, chunk_seconds = 30;

  std::int64_t chunk_frames() const { return chunk_seconds * rate / hop; }
};
// Reads preprocessor_config.json. Throws Error(io | invalid_model) naming it and the key.
WhisperFeatureSettings read_whisper_features(const std::filesystem::path& folder);

using TakeRows = std::function<void(std::span<const float> rows)>;

// Whisper's features before their range is limited: logarithms to base 10 of mel energies, a row for each hop.
class WhisperFrames {
 public:
  explicit WhisperFrames(const WhisperFeatureSettings& settings);
  void push(std::span<const float> samples, const TakeRows& take);
  // Call it once, last. Sounds shorter than a chunk get silence behind them, and so a chunk's rows.
  void finish(const TakeRows& take);
  // Of the sound itself, without that silence.
  std::int64_t sound_frames() const { return samples_ / settings_.hop; }

 private:
  WhisperFeatureSettings settings_;
  MelFrames mel_;
  std::int64_t samples_ = 0, rows_ = 0;
};

// The number that the model sees for one of WhisperFrames' in a sound whose greatest is `most`.
inline float whisper_range(float value, float most) { return (std::max(value, most - 8.0F) + 4.0F) / 4.0F; }

// A whole sound, as transformers' extractor gives it, but with frames as rows.
Features whisper_features(std::span<const float> samples, const WhisperFeatureSettings& settings);

// NeMo's AudioToMelSpectrogramPreprocessor, which Parakeet and Canary use: each filter's logarithms have mean 0 and deviation 1
// over the sound.
struct NemoFeatureSettings {
  std::int64_t bins = 80, rate = 16000, length = 400, hop = 160, fft = 512;
  double preemphasis = 0.97;
  bool normalize = true;
};
// Reads preprocessor_config.json (ParakeetFeatureExtractor). Throws as read_whisper_features().
NemoFeatureSettings read_nemo_features(const std::filesystem::path& folder);
Features nemo_features(std::span<const float> samples, const NemoFeatureSettings& settings);

// Kaldi's filter banks and cepstral coefficients, as kaldi-native-fbank computes them.
struct KaldiSettings {
  double rate = 16000, length_ms = 25, hop_ms = 10;
  double preemphasis = 0.97;
  bool remove_mean = true, snip_edges = true;
  FrameWindow window = FrameWindow::povey;
  double scale = 1;  // 32768 for models that were trained on 16-bit numbers
  std::int64_t bins = 80;
  double low = 20, high = 0;       // Hz; a high of 0 or less counts from half the rate
  bool use_energy = false;         // a column before the others; of MFCC, in place of the first
  std::int64_t coefficients = 13;  // of MFCC
  double lifter = 22;              // of MFCC; 0: none
};
Features kaldi_fbank(std::span<const float> samples, const KaldiSettings& settings);
Features kaldi_mfcc(std::span<const float> samples, const KaldiSettings& settings);

}  // namespace sdx::speech
