#include "media/sound/wav.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <string_view>

#include "base/error.h"
#include "base/thread_pool.h"

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

// Modified Bessel function of the first kind, order 0, by its power series.
double bessel_i0(double x) {
  double sum = 1;
  double term = 1;
  for (int k = 1; k < 64 && term > sum * 1e-17; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

double windowed_sinc(double t, double half_width) {
  constexpr double kBeta = 8.6;
  if (std::abs(t) >= half_width) return 0;
  const double ratio = t / half_width;
  const double window = bessel_i0(kBeta * std::sqrt(1 - ratio * ratio)) / bessel_i0(kBeta);
  const double x = std::numbers::pi * t;
  return window * (x == 0 ? 1 : std::sin(x) / x);
}

}  // namespace

std::optional<Sound> decode_plain_wav(std::span<const std::byte> bytes) {
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
      if (!is_plain(format)) return std::nullopt;
    }
    if (id == "data") {
      if (format.rate == 0) malformed("its data precede their format");
      const auto width = static_cast<std::size_t>(format.bits / 8);
      const std::size_t frame = width * static_cast<std::size_t>(format.channels);
      Sound sound{format.rate, format.channels, std::vector<float>(chunk.size() / frame)};
      for (std::size_t i = 0; i < sound.samples.size(); ++i) {
        float sum = 0;
        for (int c = 0; c < format.channels; ++c) {
          sum += sample_at(chunk.data() + i * frame + static_cast<std::size_t>(c) * width, format);
        }
        sound.samples[i] = sum / static_cast<float>(format.channels);
      }
      return sound;
    }
    at += std::min<std::size_t>(left, std::size_t{claimed} + (claimed & 1));  // chunks begin at even positions
  }
  malformed("it has no data");
}

Sound decode_wav(std::span<const std::byte> bytes) {
  if (std::optional<Sound> sound = decode_plain_wav(bytes)) return *std::move(sound);
  malformed("its encoding is not supported; expected PCM of 8, 16, 24 or 32 bits or floats");
}

std::vector<float> resample(std::span<const float> samples, int from, int to) {
  for (const int rate : {from, to}) {
    if (rate < kMinRate || rate > kMaxRate) {
      fail(ErrorCode::invalid_argument, "a sample rate of {} is out of range: {} to {}", rate, kMinRate, kMaxRate);
    }
  }
  if (from == to) return {samples.begin(), samples.end()};
  const std::int64_t common = std::gcd(from, to);
  const std::int64_t up = to / common;
  const std::int64_t down = std::max<std::int64_t>(1, from / common);
  const auto count = static_cast<std::int64_t>(samples.size());
  if (count > INT64_MAX / up - down) fail(ErrorCode::out_of_memory, "a sound of {} samples is too long", count);
  std::vector<float> out(static_cast<std::size_t>((count * up + down - 1) / down));
  const double cutoff = std::min(1.0, static_cast<double>(to) / from);
  constexpr double kCrossings = 16;
  const auto reach = static_cast<std::int64_t>(std::ceil(kCrossings / cutoff));
  const std::int64_t taps = 2 * reach;
  // One filter per phase; awkward pairs of rates (44101 to 48000) would need too many, so those are computed as they come.
  const bool tabled = up * taps <= (1 << 22);
  std::vector<float> table;
  const auto phase_filter = [&](std::int64_t phase, float* filter) {
    double sum = 0;
    for (std::int64_t k = 0; k < taps; ++k) {
      const double t = static_cast<double>(k - reach + 1) - static_cast<double>(phase) / static_cast<double>(up);
      const double v = windowed_sinc(t * cutoff, kCrossings);
      filter[k] = static_cast<float>(v);
      sum += v;
    }
    for (std::int64_t k = 0; k < taps; ++k) filter[k] = static_cast<float>(static_cast<double>(filter[k]) / sum);
  };
  if (tabled) {
    table.resize(static_cast<std::size_t>(up * taps));
    for (std::int64_t p = 0; p < up; ++p) phase_filter(p, table.data() + p * taps);
  }
  parallel_for(static_cast<std::int64_t>(out.size()), 4096, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> own(tabled ? 0 : static_cast<std::size_t>(taps));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t position = i * down;
      const std::int64_t phase = position % up;
      if (!tabled) phase_filter(phase, own.data());
      const float* filter = tabled ? table.data() + phase * taps : own.data();
      const std::int64_t first = position / up - reach + 1;
      float sum = 0;
      const std::int64_t low = std::max<std::int64_t>(0, -first);
      const std::int64_t high = std::min(taps, count - first);
      for (std::int64_t k = low; k < high; ++k) sum += filter[k] * samples[static_cast<std::size_t>(first + k)];
      out[static_cast<std::size_t>(i)] = sum;
    }
  });
  return out;
}

Tensor to_tensor(const Sound& sound, int rate) {
  const std::vector<float> changed = rate == 0 ? std::vector<float>() : resample(sound.samples, sound.rate, rate);
  const std::vector<float>& samples = rate == 0 ? sound.samples : changed;
  return Tensor::of<float>({1, static_cast<std::int64_t>(samples.size())}, std::span<const float>(samples));
}

}  // namespace sdx::media
