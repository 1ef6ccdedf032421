#include "media/sound/wav.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace sdx::media {
namespace {

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span<const char>(s)); }

std::string little(std::uint32_t value, int width) {
  std::string out;
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

std::string wav(int code, int channels, int rate, int bits, const std::string& data, bool streamed = false) {
  const std::string format = little(static_cast<std::uint32_t>(code), 2) + little(static_cast<std::uint32_t>(channels), 2) +
                             little(static_cast<std::uint32_t>(rate), 4) + little(0, 4) + little(0, 2) +
                             little(static_cast<std::uint32_t>(bits), 2);
  return "RIFF" + little(0, 4) + "WAVE" + "LIST" + little(3, 4) + "abc" + std::string(1, '\0') + "fmt " + little(16, 4) + format +
         "data" + little(streamed ? 0xFFFFFFFF : static_cast<std::uint32_t>(data.size()), 4) + data;
}

TEST(Wav, ReadsEveryEncoding) {
  EXPECT_EQ(decode_wav(bytes_of(wav(1, 1, 8000, 8, std::string("\x00\x80\xC0", 3)))).samples, (std::vector<float>{-1, 0, 0.5F}));
  EXPECT_EQ(decode_wav(bytes_of(wav(1, 1, 8000, 16, little(0x8000, 2) + little(0x4000, 2)))).samples,
            (std::vector<float>{-1, 0.5F}));
  EXPECT_EQ(decode_wav(bytes_of(wav(1, 1, 8000, 24, little(0x800000, 3) + little(0x400000, 3)))).samples,
            (std::vector<float>{-1, 0.5F}));
  EXPECT_EQ(decode_wav(bytes_of(wav(1, 1, 8000, 32, little(0x80000000, 4) + little(0x40000000, 4)))).samples,
            (std::vector<float>{-1, 0.5F}));
  EXPECT_EQ(decode_wav(bytes_of(wav(3, 1, 8000, 32, little(0x3F000000, 4) + little(0x7FC00000, 4)))).samples,
            (std::vector<float>{0.5F, 0}));
  EXPECT_EQ(decode_wav(bytes_of(wav(3, 1, 8000, 64, little(0, 4) + little(0x3FE00000, 4)))).samples, (std::vector<float>{0.5F}));
}

TEST(Wav, MixesChannels) {
  const Sound s =
      decode_wav(bytes_of(wav(1, 2, 44100, 16, little(0x4000, 2) + little(0, 2) + little(0xC000, 2) + little(0xC000, 2))));
  EXPECT_EQ(s.rate, 44100);
  EXPECT_EQ(s.channels, 2);
  EXPECT_EQ(s.samples, (std::vector<float>{0.25F, -0.5F}));
}

TEST(Wav, ReadsStreamedFiles) {
  EXPECT_EQ(decode_wav(bytes_of(wav(1, 1, 8000, 16, little(0x4000, 2), true))).samples.size(), 1U);
}

TEST(Wav, RefusesWhatItCannotRead) {
  for (const std::string& file :
       {std::string(), std::string("RIFF"), wav(1, 0, 8000, 16, "ab"), wav(1, 1, 0, 16, "ab"), wav(1, 1, 8000, 12, "ab"),
        wav(7, 1, 8000, 8, "ab"), wav(1, 1, 8000, 16, "ab").substr(0, 40), wav(1, 1, 2000000000, 16, "ab")}) {
    EXPECT_THROW(decode_wav(bytes_of(file)), Error);
  }
}

TEST(Wav, SurvivesDamagedFiles) {
  const std::string good = wav(1, 2, 44100, 24, std::string(60, 'x'));
  std::mt19937 random(7);
  int thrown = 0;
  const auto attempt = [&](const std::string& file) {
    try {
      decode_wav(bytes_of(file));
    } catch (const Error&) {
      ++thrown;
    }
  };
  for (std::size_t cut = 0; cut < good.size(); ++cut) attempt(good.substr(0, cut));
  EXPECT_EQ(thrown, static_cast<int>(good.size()));
  for (int round = 0; round < 5000; ++round) {
    std::string file = good;
    for (unsigned n = random() % 3 + 1; n > 0; --n) file[random() % file.size()] = static_cast<char>(random() & 0xFF);
    attempt(file);
  }
}

std::vector<float> tone(int rate, double hertz, double seconds) {
  std::vector<float> out(static_cast<std::size_t>(rate * seconds));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate));
  }
  return out;
}

TEST(Resample, KeepsTonesInBand) {
  for (const auto& [from, to] : {std::pair{44100, 16000}, {8000, 16000}, {16000, 8000}, {44101, 48000}}) {
    const std::vector<float> out = resample(tone(from, 440, 0.2), from, to);
    const std::vector<float> expected = tone(to, 440, 0.2);
    ASSERT_NEAR(static_cast<double>(out.size()), static_cast<double>(expected.size()), 1);
    for (std::size_t i = 200; i + 200 < expected.size(); ++i) ASSERT_NEAR(out[i], expected[i], 2e-3) << from << " to " << to;
  }
}

TEST(Resample, RemovesWhatWouldAlias) {
  const std::vector<float> out = resample(tone(44100, 12000, 0.2), 44100, 16000);
  for (std::size_t i = 200; i + 200 < out.size(); ++i) ASSERT_LT(std::abs(out[i]), 1e-3);
}

TEST(Resample, ChecksRates) {
  const std::vector<float> one{1};
  EXPECT_EQ(resample(one, 16000, 16000), one);
  EXPECT_THROW(resample(one, 0, 16000), Error);
  EXPECT_THROW(resample(one, 16000, -1), Error);
  EXPECT_TRUE(resample({}, 8000, 16000).empty());
}

}  // namespace
}  // namespace sdx::media
