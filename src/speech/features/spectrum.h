#pragma once
// Sound into the energies of mel filters, frame after frame, in memory that does not grow with the sound.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "speech/features/mel_filters.h"

namespace sdx::speech {

enum class FrameWindow { hann_periodic, hann, hamming, povey };

// Where frames lie, and what stands for samples beyond the sound.
enum class FrameEdges {
  reflected,  // frame i is centred on sample i * hop; the sound is mirrored at its first and its last sample
  silent,     // the same, with zeros
  inside,     // frame i begins at sample i * hop; only frames that are whole count (Kaldi's snip_edges)
  mirrored,   // frame i is centred on sample (i + 1/2) * hop, mirrored between samples (Kaldi without snip_edges)
};

struct FrameSettings {
  double rate = 16000;
  std::int64_t length = 400, hop = 160, fft = 400;  // samples
  FrameWindow window = FrameWindow::hann_periodic;
  FrameEdges edges = FrameEdges::reflected;
  double scale = 1;              // of all samples
  bool remove_mean = false;      // of each frame
  double preemphasis = 0;        // of each frame, in Kaldi's way
  double sound_preemphasis = 0;  // of the sound as a whole, in NeMo's way
};

// Rows of `bins` energies, and the logarithm of each whole frame's energy before the window.
using TakeEnergies = std::function<void(std::span<const double> energies, std::span<const double> log_energies)>;

// Not thread-safe.
class MelFrames {
 public:
  // Throws Error(invalid_argument) for settings out of range.
  MelFrames(const FrameSettings& frames, const MelSettings& mel);
  ~MelFrames();
  MelFrames(MelFrames&&) noexcept;

  // Calls `take` with the frames that are complete, if there are any.
  void push(std::span<const float> samples, const TakeEnergies& take);
  // The rest. Call it once, last.
  void finish(const TakeEnergies& take);

  // Frames of a sound of `samples` samples.
  std::int64_t count(std::int64_t samples) const;

 private:
  class Transform;
  std::int64_t begin(std::int64_t frame) const;
  bool ready(std::int64_t frame) const;
  void make(std::int64_t end, const TakeEnergies& take);

  FrameSettings settings_;
  std::unique_ptr<const Transform> transform_;
  std::vector<double> held_;  // samples from `first_` on
  std::int64_t first_ = 0, received_ = 0, made_ = 0;
  double last_ = 0;  // the last sample before `sound_preemphasis`
};

}  // namespace sdx::speech
