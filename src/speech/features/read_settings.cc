#include <nlohmann/json.hpp>

#include "base/error.h"
#include "speech/features/features.h"
#include "text/model/config_object.h"

namespace sdx::speech {
namespace {

using text::ConfigObject;

// A whole number of the file, from 1 to `most`.
void read(ConfigObject& o, const char* key, std::int64_t most, std::int64_t& to) {
  const auto n = o.integer(key);
  if (n && (*n < 1 || *n > most)) fail(ErrorCode::invalid_model, "{} must be from 1 to {}, received {}", o.shown(key), most, *n);
  to = n.value_or(to);
}

constexpr std::int64_t kMostSamples = 1 << 14;  // of a frame

void check_kind(ConfigObject& o, const std::string& expected) {
  const std::string kind = o.text("feature_extractor_type").value_or(expected);
  if (kind != expected)
    fail(ErrorCode::not_implemented, "{} = '{}' is not supported; expected '{}'", o.shown("feature_extractor_type"), kind,
         expected);
}

// What all extractors have.
template <class Settings>
void read_frames(ConfigObject& o, Settings& s) {
  read(o, "feature_size", 1024, s.bins);
  read(o, "sampling_rate", 384000, s.rate);
  read(o, "hop_length", kMostSamples, s.hop);
  read(o, "n_fft", kMostSamples, s.fft);
}

}  // namespace

WhisperFeatureSettings read_whisper_features(const std::filesystem::path& folder) {
  const nlohmann::json file = text::read_json_file(folder / "preprocessor_config.json");
  ConfigObject o(file, "preprocessor_config.json: ");
  check_kind(o, "WhisperFeatureExtractor");
  WhisperFeatureSettings s;
  read_frames(o, s);
  read(o, "chunk_length", 600, s.chunk_seconds);
  return s;
}

NemoFeatureSettings read_nemo_features(const std::filesystem::path& folder) {
  const nlohmann::json file = text::read_json_file(folder / "preprocessor_config.json");
  ConfigObject o(file, "preprocessor_config.json: ");
  check_kind(o, "ParakeetFeatureExtractor");
  NemoFeatureSettings s;
  read_frames(o, s);
  read(o, "win_length", kMostSamples, s.length);
  s.preemphasis = o.number("preemphasis").value_or(s.preemphasis);
  if (!(s.preemphasis >= 0 && s.preemphasis < 1))
    fail(ErrorCode::invalid_model, "{} must be from 0 to below 1, received {}", o.shown("preemphasis"), s.preemphasis);
  return s;
}

}  // namespace sdx::speech
