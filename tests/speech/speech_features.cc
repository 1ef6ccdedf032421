// Computes features for features.py: speech_features KIND SETTINGS < samples > numbers, both float32.
//   whisper FOLDER, nemo FOLDER: by the folder's preprocessor_config.json
//   fbank JSON, mfcc JSON: Kaldi's, with names as in KaldiSettings
//   resample FROM:TO

#include <fmt/format.h>

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sdx/error.hpp>
#include <string>

#include "media/sound/resample.h"
#include "speech/features/features.h"

namespace {

using namespace sdx;
using namespace sdx::speech;

std::vector<float> read_samples() {
  const std::string bytes{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  std::vector<float> samples(bytes.size() / sizeof(float));
  std::copy_n(bytes.data(), samples.size() * sizeof(float), reinterpret_cast<char*>(samples.data()));
  return samples;
}

KaldiSettings kaldi(const std::string& text) {
  const nlohmann::json j = nlohmann::json::parse(text);
  KaldiSettings s;
  s.rate = j.value("rate", s.rate);
  s.preemphasis = j.value("preemphasis", s.preemphasis);
  s.remove_mean = j.value("remove_mean", s.remove_mean);
  s.snip_edges = j.value("snip_edges", s.snip_edges);
  s.scale = j.value("scale", s.scale);
  s.bins = j.value("bins", s.bins);
  s.low = j.value("low", s.low);
  s.high = j.value("high", s.high);
  s.use_energy = j.value("use_energy", s.use_energy);
  s.coefficients = j.value("coefficients", s.coefficients);
  s.lifter = j.value("lifter", s.lifter);
  if (j.value("window", "povey") == "hamming") s.window = FrameWindow::hamming;
  return s;
}

std::vector<float> computed(const std::string& kind, const std::string& settings, const std::vector<float>& samples) {
  if (kind == "whisper") return whisper_features(samples, read_whisper_features(settings)).values;
  if (kind == "nemo") return nemo_features(samples, read_nemo_features(settings)).values;
  if (kind == "fbank") return kaldi_fbank(samples, kaldi(settings)).values;
  if (kind == "mfcc") return kaldi_mfcc(samples, kaldi(settings)).values;
  const std::size_t colon = settings.find(':');
  return media::resample(samples, std::stoi(settings.substr(0, colon)), std::stoi(settings.substr(colon + 1)));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  const std::vector<float> out = computed(argv[1], argv[2], read_samples());
  std::cout.write(reinterpret_cast<const char*>(out.data()), static_cast<std::streamsize>(out.size() * sizeof(float)));
  return 0;
} catch (const sdx::Error& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
