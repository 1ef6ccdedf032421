#include "media/sound/sound.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/ascii.h"
#include "base/words.h"
#include "media/module_api.h"

namespace sdx::media {
namespace {

constexpr std::string_view kEndings = ".wav .wave .w64 .rf64 .aif .aiff .aifc .au .snd .flac .ogg .oga .opus .mp3";

// A frame header of MPEG's layer III.
bool is_mpeg_frame(std::string_view text) {
  if (text.size() < 4) return false;
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const bool sync = at(0) == 0xFF && (at(1) & 0xE0) == 0xE0 && (at(1) & 0x18) != 0x08 && (at(1) & 0x06) == 0x02;
  return sync && (at(2) & 0xF0) != 0xF0 && (at(2) & 0x0C) != 0x0C;
}

// Returns "" for data that is not sound.
std::string_view format_of(std::string_view text) {
  const std::string_view form = text.size() < 12 ? "" : text.substr(8, 4);
  if (text.starts_with("RIFF") && form == "WAVE") return "WAV";
  if (text.starts_with("RF64") && form == "WAVE") return "RF64";
  if (text.starts_with("riff\x2E\x91\xCF\x11")) return "Wave64";
  if (text.starts_with("FORM") && (form == "AIFF" || form == "AIFC")) return "AIFF";
  if (text.starts_with(".snd")) return "AU";
  if (text.starts_with("fLaC")) return "FLAC";
  if (text.starts_with("OggS")) return "Ogg";
  return text.starts_with("ID3") || is_mpeg_frame(text) ? "MP3" : "";
}

std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

[[noreturn]] void too_long() {
  fail(ErrorCode::out_of_memory, "the sound is too long: at most {} samples of a channel are read; divide it or lower its rate",
       kMostFrames);
}

struct Received : CallbackError {
  const SoundSink* sink = nullptr;
  std::int64_t most = 0;  // frames
  std::int64_t frames = 0;
  std::size_t channels = 1;
  std::vector<float> mixed;
};

bool on_facts(void* context, const ModuleSoundFacts* facts) {
  auto* r = static_cast<Received*>(context);
  return r->guarded([&] {
    if (facts->channels < 1 || facts->channels > kMaxChannels) {
      fail(ErrorCode::invalid_argument, "the sound has {} channels; expected 1 to {}", facts->channels, kMaxChannels);
    }
    if (facts->rate < kMinRate || facts->rate > kMaxRate) {
      fail(ErrorCode::invalid_argument, "the sound's rate of {} samples a second is out of range: {} to {}", facts->rate,
           kMinRate, kMaxRate);
    }
    if (facts->frames > r->most && facts->frames != INT64_MAX) too_long();
    r->channels = static_cast<std::size_t>(facts->channels);
    r->sink->begin(facts->rate, facts->channels);
  });
}

// Channels are averaged in the order in which stream_plain_wav() does it, and numbers limited as there.
bool on_frames(void* context, const float* samples, std::size_t count) {
  auto* r = static_cast<Received*>(context);
  return r->guarded([&] {
    r->frames += static_cast<std::int64_t>(count);
    if (r->frames > r->most) too_long();
    r->mixed.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      float sum = 0;
      for (std::size_t c = 0; c < r->channels; ++c) {
        const float v = samples[i * r->channels + c];
        sum += std::isfinite(v) ? std::clamp(v, -1e6F, 1e6F) : 0.0F;
      }
      r->mixed[i] = sum / static_cast<float>(r->channels);
    }
    r->sink->take(r->mixed);
  });
}

void stream_by_module(std::span<const std::byte> bytes, const SoundSink& to, std::int64_t most) {
  const SoundModule& module = load_module<SoundModule>();
  const std::string_view format = format_of(text_of(bytes));
  Received received;
  received.sink = &to;
  received.most = most;
  char message[256] = "";
  const ModuleSoundSink sink{&received, on_facts, on_frames};
  const Outcome outcome = module.read(bytes.data(), bytes.size(), &sink, {message, sizeof message});
  received.rethrow();
  if (outcome == Outcome::damaged) fail(ErrorCode::invalid_argument, "the {} sound is damaged: {}", format, message);
  if (outcome == Outcome::unsupported) {
    fail(ErrorCode::invalid_argument, "the {} sound is of a kind that is not supported: {}", format, message);
  }
  if (outcome != Outcome::ok) fail(ErrorCode::runtime_failure, "cannot read the {} sound: {}", format, message);
}

// Returns whether the file may be plain WAV. Throws for what is no sound.
bool may_be_plain(std::span<const std::byte> bytes) {
  const std::string_view format = format_of(text_of(bytes));
  if (format.empty()) {
    fail(ErrorCode::invalid_argument, "not a usable sound file: it does not begin as WAV, AIFF, AU, FLAC, Ogg or MP3 does");
  }
  return format == "WAV";
}

}  // namespace

bool is_sound(std::span<const std::byte> bytes) { return !format_of(text_of(bytes)).empty(); }

bool has_sound_ending(const std::filesystem::path& file) {
  const std::string ending = ascii_lower(file.extension().string());
  return has_word(kEndings, ending);
}

Sound decode_sound(std::span<const std::byte> bytes) {
  if (may_be_plain(bytes)) {
    if (std::optional<Sound> plain = decode_plain_wav(bytes)) return *std::move(plain);
  }
  Sound sound;
  const auto begin = [&](int rate, int channels) {
    sound.rate = rate;
    sound.channels = channels;
  };
  const auto take = [&](std::span<const float> s) { sound.samples.insert(sound.samples.end(), s.begin(), s.end()); };
  stream_by_module(bytes, {begin, take}, kMostFrames);
  return sound;
}

void stream_sound(std::span<const std::byte> bytes, const SoundSink& sink) {
  if (may_be_plain(bytes) && stream_plain_wav(bytes, sink)) return;
  stream_by_module(bytes, sink, INT64_MAX - 1);
}

Sound read_sound(const std::filesystem::path& file) {
  const auto mapped = MappedFile::open(file);
  try {
    return decode_sound(mapped->bytes());
  } catch (Error& e) {
    e.add_context("in file '" + file.string() + "'");
    throw;
  }
}

}  // namespace sdx::media
