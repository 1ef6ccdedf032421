#include "media/sound/sound.h"
#include "base/system/process.h"
#include "support/errors.h"

#include <gtest/gtest.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <random>
#include <string>
#include <vector>

extern "C" {
// Of the leak sanitizer; null without it.
__attribute__((weak)) void __lsan_disable();
__attribute__((weak)) void __lsan_enable();
}

namespace sdx::media {
namespace {

// Debian's libsndfile forgets a vorbis_info when the headers of an Ogg file are damaged.
struct LeaksAllowed {
  LeaksAllowed() {
    if (__lsan_disable != nullptr) __lsan_disable();
  }
  ~LeaksAllowed() {
    if (__lsan_enable != nullptr) __lsan_enable();
  }
};

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span<const char>(s)); }

struct Out {
  std::string bytes;
  sf_count_t at = 0;
};

sf_count_t length(void* o) { return static_cast<sf_count_t>(static_cast<Out*>(o)->bytes.size()); }
sf_count_t tell(void* o) { return static_cast<Out*>(o)->at; }
sf_count_t seek(sf_count_t offset, int from, void* o) {
  return static_cast<Out*>(o)->at = offset + (from == SEEK_CUR ? tell(o) : from == SEEK_END ? length(o) : 0);
}
sf_count_t copy(void* to, sf_count_t count, void* context) {
  auto* o = static_cast<Out*>(context);
  const sf_count_t n = std::clamp<sf_count_t>(length(o) - o->at, 0, count);
  std::memcpy(to, o->bytes.data() + o->at, static_cast<std::size_t>(n));
  o->at += n;
  return n;
}
sf_count_t write(const void* from, sf_count_t count, void* context) {
  auto* o = static_cast<Out*>(context);
  const auto end = static_cast<std::size_t>(o->at + count);
  if (o->bytes.size() < end) o->bytes.resize(end);
  std::memcpy(o->bytes.data() + o->at, from, static_cast<std::size_t>(count));
  o->at += count;
  return count;
}

constexpr int kRate = 48000;  // one of Opus's
constexpr int kFrames = 9600;

float tone(int i) { return static_cast<float>(0.5 * std::sin(2 * std::numbers::pi * 440 * i / kRate)); }

// The left channel is the tone, the right one silence.
std::string encoded(int format, int channels = 2) {
  Out out;
  SF_VIRTUAL_IO io{length, seek, copy, write, tell};
  SF_INFO info{};
  info.samplerate = kRate;
  info.channels = channels;
  info.format = format;
  SNDFILE* const file = sf_open_virtual(&io, SFM_WRITE, &info, &out);
  EXPECT_NE(file, nullptr) << sf_strerror(nullptr);
  if (file == nullptr) return "";
  std::vector<float> samples(static_cast<std::size_t>(kFrames * channels));
  for (int i = 0; i < kFrames; ++i) samples[static_cast<std::size_t>(i) * static_cast<std::size_t>(channels)] = tone(i);
  EXPECT_EQ(sf_writef_float(file, samples.data(), kFrames), kFrames);
  sf_close(file);
  return out.bytes;
}

struct Case {
  const char* name;
  int format;
  double tolerance;
};
constexpr Case kCases[] = {
    {"flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 1e-4}, {"vorbis", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 0.05},
    {"opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, 0.05},    {"mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 0.05},
    {"aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_24, 1e-4}, {"au", SF_FORMAT_AU | SF_FORMAT_PCM_16, 1e-4},
    {"w64", SF_FORMAT_W64 | SF_FORMAT_FLOAT, 1e-6},    {"mu-law", SF_FORMAT_WAV | SF_FORMAT_ULAW, 0.02},
};

// The greatest difference to the mixed tone, wherever the encoder lets it begin.
double difference(const std::vector<float>& samples) {
  double best = 1;
  for (int shift = 0; shift < 2400; ++shift) {
    double worst = 0;
    for (int i = 2000; i < 6000 && worst < best; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) + static_cast<std::size_t>(shift);
      worst = std::max(worst, at < samples.size() ? std::abs(static_cast<double>(samples[at] - tone(i) / 2)) : 1.0);
    }
    best = std::min(best, worst);
  }
  return best;
}

TEST(Sound, ReadsEveryFormat) {
  for (const Case& c : kCases) {
    const std::string file = encoded(c.format);
    EXPECT_TRUE(is_sound(bytes_of(file))) << c.name;
    const Sound sound = decode_sound(bytes_of(file));
    EXPECT_EQ(sound.rate, kRate) << c.name;
    EXPECT_EQ(sound.channels, 2) << c.name;
    EXPECT_GE(sound.samples.size(), static_cast<std::size_t>(kFrames)) << c.name;
    EXPECT_LT(difference(sound.samples), c.tolerance) << c.name;
  }
}

TEST(Sound, PlainWavGivesTheSameAsLibsndfile) {
  const std::string file = encoded(SF_FORMAT_WAV | SF_FORMAT_PCM_16), other = encoded(SF_FORMAT_W64 | SF_FORMAT_PCM_16);
  EXPECT_EQ(decode_sound(bytes_of(file)).samples, decode_wav(bytes_of(file)).samples);
  EXPECT_EQ(decode_sound(bytes_of(file)).samples, decode_sound(bytes_of(other)).samples);
}

TEST(Sound, KnowsWhatIsNoSound) {
  for (const char* text :
       {"", "RIFF", "RIFF....WEBP", "\x89PNG\r\n\x1A\n", "\xFF\xD8\xFF\xE0....", "\xFF\xFEt", "[1, 2]", "\x93NUMPY"}) {
    EXPECT_FALSE(is_sound(bytes_of(text))) << text;
    EXPECT_THROW(decode_sound(bytes_of(text)), Error);
  }
  EXPECT_TRUE(has_sound_ending("a/b.FLAC"));
  EXPECT_FALSE(has_sound_ending("a/b.png"));
}

TEST(Sound, RefusesWhatIsTooLong) {
  std::string file = encoded(SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  file[21] = static_cast<char>(file[21] | 0x0F);  // the number of frames, of which the header says 36 bits
  testing::expect_error(ErrorCode::out_of_memory, [&] { decode_sound(bytes_of(file)); }, {"too long"});
}

TEST(Sound, RefusesFilesThatAreCutOff) {
  const LeaksAllowed allowed;
  const std::string file = encoded(SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  EXPECT_THROW(decode_sound(bytes_of(file.substr(0, file.size() / 2))), Error);
  EXPECT_THROW(decode_sound(bytes_of(file.substr(0, 10))), Error);
  EXPECT_THROW(decode_sound(bytes_of(encoded(SF_FORMAT_OGG | SF_FORMAT_VORBIS).substr(0, 100))), Error);
}

TEST(Sound, SurvivesDamagedFiles) {
  const LeaksAllowed allowed;
  std::mt19937 random(5);
  const auto attempt = [](const std::string& file) {
    try {
      const Sound sound = decode_sound(bytes_of(file));
      EXPECT_TRUE(std::all_of(sound.samples.begin(), sound.samples.end(), [](float v) { return std::isfinite(v); }));
    } catch (const Error&) {
    }
  };
  for (const Case& c : kCases) {
    const std::string good = encoded(c.format);
    for (std::size_t cut = 0; cut < good.size(); cut += 1 + good.size() / 40) attempt(good.substr(0, cut));
    for (int round = 0; round < 60; ++round) {
      std::string file = good;
      const std::size_t reach = round % 2 == 0 ? std::min<std::size_t>(file.size(), 200) : file.size();  // headers more often
      for (unsigned n = random() % 4 + 1; n > 0; --n) file[random() % reach] = static_cast<char>(random() & 0xFF);
      attempt(file);
    }
  }
}

// In a process of its own: a library that has been loaded stays.
TEST(SoundDeathTest, ALibraryThatIsMissingIsNamedWithItsPackage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto refused = [] {
    set_environment("SDX_SNDFILE_LIB", "/nowhere/libsdx_sndfile.so");
    try {
      decode_sound(bytes_of("fLaC"));
    } catch (const Error& e) {
      const bool named = std::string_view(e.what()).find("Debian's package libsndfile1") != std::string_view::npos;
      std::exit(named && e.code() == ErrorCode::io ? 7 : 8);
    }
    std::exit(9);
  };
  EXPECT_EXIT(refused(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace sdx::media
