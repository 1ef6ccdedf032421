#include "speech/features/features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/errors.h"

namespace sdx::speech {
namespace {

// The sound of tests/speech/record_features.py.
std::vector<float> recorded_sound() {
  std::vector<float> x(4000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = (static_cast<float>((i * i * 7 + i * 13) % 1001) / 1001.0F - 0.5F) * 0.5F;
  return x;
}

struct Recorded {
  const char* kind;
  std::int64_t frame, column;
  float value;
};
// By transformers 4.44.2 (WhisperFeatureExtractor) and kaldi-native-fbank 1.23.0, with tests/speech/record_features.py.
constexpr Recorded kRecorded[] = {
    {"whisper80", 0, 0, 0.887762F},
    {"whisper80", 0, 79, 0.755550F},
    {"whisper80", 3, 10, 0.529342F},
    {"whisper80", 7, 40, 0.699539F},
    {"whisper80", 12, 64, 0.663479F},
    {"whisper80", 20, 5, 0.782415F},
    {"whisper80", 22, 79, 0.725832F},
    {"whisper80", 26, 3, -0.009701F},
    {"whisper80", 2999, 79, -1.051196F},
    {"whisper128", 0, 0, 0.812002F},
    {"whisper128", 0, 79, 0.851020F},
    {"whisper128", 3, 10, 0.726364F},
    {"whisper128", 7, 40, 0.856868F},
    {"whisper128", 12, 64, 0.608062F},
    {"whisper128", 20, 5, 0.730672F},
    {"whisper128", 22, 79, 0.451787F},
    {"whisper128", 26, 3, -0.030396F},
    {"whisper128", 2999, 79, -1.017066F},
    {"fbank", 0, 0, -7.210054F},
    {"fbank", 0, 79, 3.572042F},
    {"fbank", 3, 10, -3.882523F},
    {"fbank", 7, 40, 0.974033F},
    {"fbank", 12, 64, 3.541232F},
    {"fbank", 20, 5, -5.250820F},
    {"fbank", 22, 79, 4.187263F},
    {"fbank, mirrored", 0, 0, -5.271336F},
    {"fbank, mirrored", 0, 79, 4.562356F},
    {"fbank, mirrored", 3, 10, -4.552875F},
    {"fbank, mirrored", 7, 40, 1.452693F},
    {"fbank, mirrored", 12, 64, 3.178072F},
    {"fbank, mirrored", 20, 5, -3.857951F},
    {"fbank, mirrored", 22, 79, 4.683654F},
    {"mfcc", 0, 0, 2.194093F},
    {"mfcc", 0, 12, -3.619165F},
    {"mfcc", 3, 10, -2.108847F},
    {"mfcc", 7, 12, -0.639969F},
    {"mfcc", 12, 12, -4.000933F},
    {"mfcc", 20, 5, -2.609946F},
    {"mfcc", 22, 12, 2.921727F},
};

Features computed(std::string_view kind) {
  const std::vector<float> x = recorded_sound();
  WhisperFeatureSettings whisper;
  KaldiSettings kaldi;
  if (kind == "whisper128") whisper.bins = 128;
  if (kind.starts_with("whisper")) return whisper_features(x, whisper);
  if (kind == "fbank, mirrored") kaldi.snip_edges = false;
  if (kind != "mfcc") return kaldi_fbank(x, kaldi);
  kaldi.bins = 23;
  kaldi.use_energy = true;  // as the package does by itself
  return kaldi_mfcc(x, kaldi);
}

TEST(Features, AreThoseOfThePackages) {
  std::string kind;
  Features f;
  for (const Recorded& r : kRecorded) {
    if (kind != r.kind) f = computed(kind = r.kind);
    ASSERT_LT(r.frame, f.frames()) << kind;
    ASSERT_LT(r.column, f.bins) << kind;
    EXPECT_NEAR(f.values[static_cast<std::size_t>(r.frame * f.bins + r.column)], r.value, 1e-4)
        << kind << r.frame << ' ' << r.column;
  }
  EXPECT_EQ(computed("whisper80").frames(), 3000);
  EXPECT_EQ(computed("fbank").frames(), 23);
  EXPECT_EQ(computed("fbank, mirrored").frames(), 25);
}

// Frames do not depend on the pieces in which a sound comes.
TEST(Features, StreamsGiveTheSame) {
  std::mt19937 random(2);
  std::vector<float> x(70000);
  for (float& v : x) v = static_cast<float>(random() % 2001) / 1000 - 1;
  for (const FrameEdges edges : {FrameEdges::reflected, FrameEdges::silent, FrameEdges::inside, FrameEdges::mirrored}) {
    for (const std::size_t length :
         {std::size_t{1}, std::size_t{150}, std::size_t{399}, std::size_t{400}, std::size_t{5000}, x.size()}) {
      FrameSettings s;
      s.edges = edges;
      s.sound_preemphasis = 0.97;
      const auto all = [&](std::size_t piece) {
        std::vector<double> out;
        const TakeEnergies take = [&](std::span<const double> e, std::span<const double>) {
          out.insert(out.end(), e.begin(), e.end());
        };
        MelFrames frames(s, {});
        for (std::size_t at = 0; at < length; at += piece)
          frames.push(std::span(x).subspan(at, std::min(piece, length - at)), take);
        frames.finish(take);
        EXPECT_EQ(static_cast<std::int64_t>(out.size()), frames.count(static_cast<std::int64_t>(length)) * 80);
        return out;
      };
      const std::vector<double> whole = all(length);
      for (const std::size_t piece : {std::size_t{1}, std::size_t{77}, std::size_t{160}, std::size_t{4096}}) {
        if (piece == 1 && length > 5000) continue;
        EXPECT_EQ(all(piece), whole) << length << " samples in pieces of " << piece;
      }
    }
  }
}

TEST(Features, NemoNormalisesEachFilter) {
  const Features f = nemo_features(recorded_sound(), {});
  ASSERT_EQ(f.frames(), 25);
  for (std::int64_t b = 0; b < f.bins; ++b) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < f.frames(); ++i) {
      const double v = static_cast<double>(f.values[static_cast<std::size_t>(i * f.bins + b)]);
      sum += v;
      squares += v * v;
    }
    EXPECT_NEAR(sum, 0, 1e-3);
    EXPECT_NEAR(squares / 24, 1, 1e-3);
  }
}

TEST(Features, EmptyAndTinySounds) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    const std::vector<float> x(length, 0.5F);
    EXPECT_EQ(whisper_features(x, {}).frames(), 3000);
    EXPECT_EQ(nemo_features(x, {}).frames(), 0);
    EXPECT_EQ(kaldi_fbank(x, {}).frames(), 0);
    for (const float v : whisper_features(x, {}).values) ASSERT_TRUE(std::isfinite(v));
  }
}

TEST(Features, RefusesImpossibleSettings) {
  KaldiSettings s;
  s.high = 9000;
  testing::expect_error(ErrorCode::invalid_argument, [&] { kaldi_fbank({}, s); }, {"from 20 to 9000 Hz are impossible"});
  s = {};
  s.length_ms = 0;
  testing::expect_error(ErrorCode::invalid_argument, [&] { kaldi_fbank({}, s); }, {"frames of 0 samples"});
  s = {};
  s.coefficients = 81;
  testing::expect_error(ErrorCode::invalid_argument, [&] { kaldi_mfcc({}, s); }, {"81 cepstral coefficients of 80 filters"});
}

}  // namespace
}  // namespace sdx::speech
