#include "media/sound/wav.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace sdx::media {
namespace {

[[noreturn]] void malformed(const std::string& why) { fail(ErrorCode::invalid_argument, "not a usable WAV file: {}", why); }

struct Format {
  int code = 0;  // 1 PCM, 3 float
  int channels = 0;
  int rate = 0;
  int bits = 0;
};

std::uint32_t number(std::span<const std::byte> bytes, std::size_t at, std::size_t width) {
  std::uint32_t value = 0;
  for (std::size_t i = width; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

Format read_format(std::span<const std::byte> chunk) {
  if (chunk.size() < 16) malformed("its format chunk is too short");
  Format f;
  f.code = static_cast<int>(number(chunk, 0, 2));
  f.channels = static_cast<int>(number(chunk, 2, 2));
  const std::uint32_t rate = number(chunk, 4, 4);
  f.bits = static_cast<int>(number(chunk, 14, 2));
  // WAVE_FORMAT_EXTENSIBLE: the code is the beginning of a GUID
  if (f.code == 0xFFFE && chunk.size() >= 26) f.code = static_cast<int>(number(chunk, 24, 2));
  if (f.channels < 1 || f.channels > kMaxChannels) {
    malformed("it has " + std::to_string(f.channels) + " channels; expected 1 to 64");
  }
  if (rate < kMinRate || rate > kMaxRate) malformed("its rate of " + std::to_string(rate) + " samples a second is out of range");
  f.rate = static_cast<int>(rate);
  return f;
}

bool is_plain(const Format& f) {
  const bool pcm = f.code == 1 && (f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32);
  return pcm || (f.code == 3 && (f.bits == 32 || f.bits == 64));
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float sample_at(const std::byte* at, const Format& f) {
  if (f.code == 3) {
    const double v = f.bits == 32 ? static_cast<double>(load<float>(at)) : load<double>(at);
    return std::isfinite(v) ? static_cast<float>(std::clamp(v, -1e6, 1e6)) : 0.0F;
  }
  switch (f.bits) {
    case 8: return static_cast<float>(static_cast<int>(load<std::uint8_t>(at)) - 128) / 128.0F;
    case 16: return static_cast<float>(load<std::int16_t>(at)) / 32768.0F;
    case 32: return static_cast<float>(load<std::int32_t>(at)) / 2147483648.0F;
    default: break;
  }
  const std::uint32_t raw = static_cast<std::uint32_t>(load<std::uint16_t>(at)) | static_cast<std::uint32_t>(at[2]) << 16;
  const std::int32_t value = static_cast<std::int32_t>(raw << 8) >> 8;
  return static_cast<float>(value) / 8388608.0F;
}

// Of whole frames.
void stream_samples(std::span<const std::byte> data, const Format& f, const SoundSink& sink) {
  constexpr std::size_t kPiece = 16384;
  const auto width = static_cast<std::size_t>(f.bits / 8);
  const std::size_t frame = width * static_cast<std::size_t>(f.channels), count = data.size() / frame;
  std::vector<float> samples;
  for (std::size_t at = 0; at < count; at += samples.size()) {
    samples.resize(std::min(kPiece, count - at));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      float sum = 0;
      for (int c = 0; c < f.channels; ++c) {
        sum += sample_at(data.data() + (at + i) * frame + static_cast<std::size_t>(c) * width, f);
      }
      samples[i] = sum / static_cast<float>(f.channels);
    }
    sink.take(samples);
  }
}

}  // namespace

bool stream_plain_wav(std::span<const std::byte> bytes, const SoundSink& sink) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() < 12 || !text.starts_with("RIFF") || text.substr(8, 4) != "WAVE")
    malformed("it does not begin with a WAVE header");
  Format format;
  std::size_t at = 12;
  while (bytes.size() - at >= 8) {
    const std::string_view id = text.substr(at, 4);
    const std::uint32_t claimed = number(bytes, at + 4, 4);
    at += 8;
    const std::size_t left = bytes.size() - at;
    const bool open_ended = id == "data" && (claimed == 0xFFFFFFFF || (claimed == 0 && left > 0));
    if (!open_ended && claimed > left) malformed("its '" + std::string(id == "data" ? "data" : "header") + "' chunk is cut off");
    const std::span<const std::byte> chunk = bytes.subspan(at, open_ended ? left : claimed);
    if (id == "fmt ") {
      format = read_format(chunk);
      if (!is_plain(format)) return false;
    }
    if (id == "data") {
      if (format.rate == 0) malformed("its data precede their format");
      sink.begin(format.rate, format.channels);
      stream_samples(chunk, format, sink);
      return true;
    }
    at += std::min<std::size_t>(left, std::size_t{claimed} + (claimed & 1));  // chunks begin at even positions
  }
  malformed("it has no data");
}

std::optional<Sound> decode_plain_wav(std::span<const std::byte> bytes) {
  Sound sound;
  const auto begin = [&](int rate, int channels) {
    sound.rate = rate;
    sound.channels = channels;
  };
  const auto take = [&](std::span<const float> s) { sound.samples.insert(sound.samples.end(), s.begin(), s.end()); };
  if (!stream_plain_wav(bytes, {begin, take})) return std::nullopt;
  return sound;
}

Sound decode_wav(std::span<const std::byte> bytes) {
  if (std::optional<Sound> sound = decode_plain_wav(bytes)) return *std::move(sound);
  malformed("its encoding is not supported; expected PCM of 8, 16, 24 or 32 bits or floats");
}

Tensor to_tensor(const Sound& sound, int rate) {
  const std::vector<float> changed = rate == 0 ? std::vector<float>() : resample(sound.samples, sound.rate, rate);
  const std::vector<float>& samples = rate == 0 ? sound.samples : changed;
  return Tensor::of<float>({1, static_cast<std::int64_t>(samples.size())}, std::span<const float>(samples));
}

}  // namespace sdx::media
