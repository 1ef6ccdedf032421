#include "media/sound/resample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace sdx::media {
namespace {

std::vector<float> tone(int rate, double hertz, std::size_t count) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate));
  }
  return out;
}

constexpr std::pair<int, int> kRates[] = {{44100, 16000}, {8000, 16000},  {48000, 16000},
                                          {44101, 48000}, {16000, 44100}, {11025, 11025}};

TEST(Resampler, PiecesGiveWhatTheWholeGives) {
  std::mt19937 random(4);
  std::vector<float> x(9001);
  for (float& v : x) v = static_cast<float>(random() % 2001) / 1000 - 1;
  for (const auto& [from, to] : kRates) {
    const std::vector<float> whole = resample(x, from, to);
    EXPECT_EQ(whole.size(),
              (x.size() * static_cast<std::size_t>(to) + static_cast<std::size_t>(from) - 1) / static_cast<std::size_t>(from));
    for (const std::size_t piece : {std::size_t{1}, std::size_t{333}, std::size_t{4000}}) {
      Resampler resampler(from, to);
      std::vector<float> out;
      for (std::size_t at = 0; at < x.size(); at += piece)
        resampler.push(std::span(x).subspan(at, std::min(piece, x.size() - at)), out);
      resampler.finish(out);
      EXPECT_EQ(out, whole) << from << " to " << to << " in pieces of " << piece;
    }
  }
}

// Behind the ends, where the sound begins and stops suddenly.
double most(const std::vector<float>& x, std::size_t edge) {
  double found = 0;
  for (std::size_t i = edge; i + edge < x.size(); ++i) found = std::max(found, std::abs(static_cast<double>(x[i])));
  return found;
}

TEST(Resampler, LeavesNothingBeyondTheBand) {
  EXPECT_LT(most(resample(tone(44100, 8000, 20000), 44100, 16000), 1000), 3e-6);  // -110 dB
  EXPECT_LT(most(resample(tone(44100, 15000, 20000), 44100, 16000), 1000), 3e-6);
  EXPECT_LT(most(resample(tone(96000, 23000, 40000), 96000, 44100), 1000), 3e-6);
}

TEST(Resampler, KeepsTheBand) {
  for (const auto& [from, to] : kRates) {
    const double hertz = 0.9 * std::min(from, to) / 2;
    std::vector<float> out = resample(tone(from, hertz, 20000), from, to);
    const std::vector<float> expected = tone(to, hertz, out.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] -= expected[i];
    EXPECT_LT(most(out, 1000), 1.2e-3) << from << " to " << to;  // 0.01 dB
  }
}

TEST(Resampler, ShortSounds) {
  for (const auto& [from, to] : kRates) {
    for (std::size_t count = 0; count < 5; ++count) {
      const std::vector<float> out = resample(std::vector<float>(count, 0.25F), from, to);
      EXPECT_EQ(out.size(),
                (count * static_cast<std::size_t>(to) + static_cast<std::size_t>(from) - 1) / static_cast<std::size_t>(from));
      for (const float v : out) EXPECT_LT(std::abs(v), 1);
    }
  }
}

}  // namespace
}  // namespace sdx::media
