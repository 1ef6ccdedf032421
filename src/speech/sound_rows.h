#pragma once
// A sound as rows of features, in pieces: the whole, or its speech alone.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "media/sound/sound.h"
#include "speech/features/features.h"
#include "speech/voice/intervals.h"
#include "speech/voice/voice_network.h"

namespace sdx::speech {

// Gives a sound to a sink, as often as it is asked to.
using SoundSource = std::function<void(const media::SoundSink&)>;

// The bytes of a file.
SoundSource bytes_source(std::span<const std::byte> sound);
// What `use` makes of a file's bytes; errors name the file.
template <class Use>
auto with_sound_file(const std::filesystem::path& sound, const Use& use) {
  const auto file = MappedFile::open(sound);
  try {
    return use(file->bytes());
  } catch (Error& e) {
    throw e.add_context("in file '" + sound.string() + "'");
  }
}
// Samples of one channel; numbers that are none become silence.
SoundSource samples_source(std::span<const float> samples, int rate);

// What the first pass over a sound finds.
struct SoundFacts {
  double seconds = 0;        // of the sound
  double heard_seconds = 0;  // of what is heard of it
  std::int64_t frames = 0;
  float most = -std::numeric_limits<float>::infinity();
  std::vector<float> rows;  // all, where they are few
  bool kept = true;
};

// `speech`: the ranges of samples at the features' rate that are heard; nothing: all.
SoundFacts find_facts(const SoundSource& source, const WhisperFeatureSettings& settings,
                      const std::optional<std::vector<SampleRange>>& speech);

// `take` receives the rows.
void run_rows(const SoundSource& source, const WhisperFeatureSettings& settings,
              const std::optional<std::vector<SampleRange>>& speech, const TakeRows& take);

// Where somebody speaks: ranges of samples at `rate`.
std::vector<SampleRange> find_speech(const SoundSource& source, const VoiceNetwork& network, const VoiceSettings& settings,
                                     std::int64_t rate, const std::optional<CancelToken>& cancel);

}  // namespace sdx::speech
