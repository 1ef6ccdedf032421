#include <sdx/speech.hpp>

#include "speech/sound_rows.h"

namespace sdx {

struct VoiceDetector::Impl {
  speech::VoiceNetwork network;
};

namespace speech {

const VoiceNetwork& network_of(const VoiceDetector& detector) { return detector.impl_->network; }

namespace {

std::vector<SpeechInterval> detect(const VoiceNetwork& network, const SoundSource& source, const VoiceSettings& settings) {
  std::vector<SpeechInterval> intervals;
  for (const SampleRange& range : find_speech(source, network, settings, kVoiceRate, std::nullopt)) {
    constexpr double kRate = kVoiceRate;
    intervals.push_back({static_cast<double>(range.begin) / kRate, static_cast<double>(range.end) / kRate});
  }
  return intervals;
}

}  // namespace
}  // namespace speech

VoiceDetector::VoiceDetector(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

VoiceDetector VoiceDetector::load(const std::filesystem::path& file, const SessionOptions& options) {
  return VoiceDetector(std::make_shared<const Impl>(Impl{speech::VoiceNetwork(file, options)}));
}

std::vector<SpeechInterval> VoiceDetector::detect(const std::filesystem::path& sound, const VoiceSettings& settings) const {
  return speech::with_sound_file(sound, [&](std::span<const std::byte> bytes) { return detect_bytes(bytes, settings); });
}

std::vector<SpeechInterval> VoiceDetector::detect_bytes(std::span<const std::byte> sound, const VoiceSettings& settings) const {
  return speech::detect(impl_->network, speech::bytes_source(sound), settings);
}

std::vector<SpeechInterval> VoiceDetector::detect(std::span<const float> samples, int rate, const VoiceSettings& settings) const {
  return speech::detect(impl_->network, speech::samples_source(samples, rate), settings);
}

}  // namespace sdx
