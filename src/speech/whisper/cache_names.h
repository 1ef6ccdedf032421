#pragma once
// Names of keys and values in Whisper's decoders, as optimum gives them: "past_key_values.0.encoder.key",
// "present.0.decoder.value".

#include <cstdint>
#include <string>
#include <string_view>

namespace sdx::speech {

inline constexpr std::string_view kPast = "past_key_values.", kPresent = "present.";

// `kind`: kPast or kPresent; `side`: "encoder" or "decoder"; `part`: "key" or "value".
inline std::string cache_name(std::string_view kind, std::int64_t layer, const char* side, const char* part) {
  return std::string(kind) + std::to_string(layer) + "." + side + "." + part;
}
// Whether these are keys or values of the sound.
inline bool is_encoder_cache(std::string_view name) { return name.find(".encoder.") != std::string_view::npos; }

}  // namespace sdx::speech
