#include "media/model_input.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "media/preprocess.h"
#include "media/sound/wav.h"
#include "support/temporary_folder.h"

namespace sdx::media {
namespace {

namespace fs = std::filesystem;

class ModelPicture : public ::testing::Test {
 protected:
  void SetUp() override {
    // Columns 0, 10, 20, …, 70; 4 high.
    Image image = Image::blank(8, 4);
    for (int y = 0; y < 4; ++y) {
      for (int i = 0; i < 24; ++i) image.row(y)[i] = static_cast<std::uint8_t>(i / 3 * 10);
    }
    write_image(file_, image);
  }

  ValueSpec spec(Shape shape, DataType dtype = DataType::float32) const {
    ValueSpec s;
    s.name = "x";
    s.dtype = dtype;
    s.has_shape = true;
    s.shape = std::move(shape);
    return s;
  }

  const testing::TemporaryFolder folder_;
  const fs::path file_ = folder_ / "picture.png";
};

TEST_F(ModelPicture, ShorterSideThenTheMiddle) {
  Preprocessing p;
  p.normalize = "none";
  p.shorter_side = 4;
  p.crop_width = p.crop_height = 2;
  p.color = Color::gray;
  const ValueSpec s = spec({1, 1, 2, 2});
  const Tensor t = read_picture(file_, &s, p);
  EXPECT_EQ(t.shape(), (Shape{1, 1, 2, 2}));
  EXPECT_EQ(t.values<float>()[0], 30);
  EXPECT_EQ(t.values<float>()[1], 40);
  p.crop_width = p.crop_height = 0;  // what the input declares
  EXPECT_EQ(read_picture(file_, &s, p).values<float>()[1], 40);
  const ValueSpec open = spec({1, 1, -1, -1});
  EXPECT_EQ(read_picture(file_, &open, p).shape(), (Shape{1, 1, 4, 8}));
}

TEST_F(ModelPicture, WhatIsLeftOpenFollowsFromTheInput) {
  const ValueSpec floats = spec({1, 4, 8, 3});
  EXPECT_FLOAT_EQ(read_picture(file_, &floats, {}).values<float>()[3], 10.0F / 255);
  EXPECT_TRUE(scales_unasked({}, &floats));
  const ValueSpec bytes = spec({3, 4, 8}, DataType::uint8);
  EXPECT_EQ(read_picture(file_, &bytes, {}).values<std::uint8_t>()[1], 10);
  EXPECT_FALSE(scales_unasked({}, &bytes));
  Preprocessing custom;
  custom.mean = {10};
  custom.deviation = {2};
  EXPECT_FLOAT_EQ(read_picture(file_, &floats, custom).values<float>()[6], 5);
  EXPECT_FALSE(scales_unasked(custom, &floats));
}

TEST_F(ModelPicture, UnreadableOnesAreErrors) {
  const ValueSpec s = spec({1, 3, 4, 8});
  EXPECT_THROW(read_picture("nowhere.png", &s, {}), Error);
  for (const char* content : {"", "x", "\x89PNG\r\n\x1a\n", "GIF89a"}) {
    write_file_atomically(file_, std::string(content));
    EXPECT_THROW(read_picture(file_, &s, {}), Error);
  }
}

TEST(ModelInput, SoundTakesTheInputsRankAndRate) {
  const testing::TemporaryFolder folder;
  const fs::path file = folder / "sound.wav";
  // 16-bit PCM at 8000 a second: 800 samples of 0.25.
  std::string wav("RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1F\0\0\0\0\0\0\0\0\x10\0data\x40\6\0\0", 44);
  for (int i = 0; i < 800; ++i) wav += std::string("\0\x20", 2);
  write_file_atomically(file, wav);
  ValueSpec s;
  s.has_shape = true;
  s.shape = {1, 1, -1};
  Preprocessing p;
  p.sample_rate = 16000;
  EXPECT_EQ(read_sound(file, &s, p).shape(), (Shape{1, 1, 1600}));
  EXPECT_EQ(read_sound(file, nullptr, {}).shape(), (Shape{1, 800}));
  fs::remove(file);
}

}  // namespace
}  // namespace sdx::media
