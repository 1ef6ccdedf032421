// Model files that are written to while sessions are open.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sdx/sdx.hpp>

#include "base/system/process.h"
#include "support/errors.h"
#include "support/graph_text.h"

namespace sdx::session {
namespace {

Tensor filled(std::int64_t extent) {
  Tensor t(DataType::float32, {extent});
  const auto values = t.mutable_values<float>();
  std::fill(values.begin(), values.end(), 1.0F);
  return t;
}

// Weights that kernels use where they lie in the mapped file.
class ModelFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write(file_, aligned_model([](const std::string& w) {
            return "input x: float32[1]\nconstant " + w + ": float32[2000000] 3\ny = Add(x, " + w + ")\noutput y\n";
          }));
  }
  // The model's bytes, in which the first weights (3) are aligned: a name makes the file's head longer, until they are.
  template <class Text>
  static std::string aligned_model(Text&& text) {
    const std::string first_weights("\0\0\x40\x40\0\0\x40\x40", 8);
    std::string bytes, name = "w";
    do {
      bytes = testing::model_bytes(text(name));
      name += 'w';
    } while (bytes.find(first_weights) % 4 != 0);
    return bytes;
  }
  void TearDown() override { std::filesystem::remove(file_); }
  static void write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  static float last(const Session& s, const Tensor& x) { return s.run({{"x", x}}).tensor("y").values<float>().back(); }

  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("sdx_model_file_" + std::to_string(process_id()) + ".onnx");
  const Tensor one_ = Tensor::of<float>({1}, {1});
};

TEST_F(ModelFileTest, CutShortWhileASessionIsOpenIsAnErrorOfItsRuns) {
  const Session s = Session::open(file_);
  EXPECT_EQ(last(s, one_), 4);
  std::filesystem::resize_file(file_, 100);
  const std::string text = testing::error_of(ErrorCode::io, [&] { last(s, one_); });
  EXPECT_NE(text.find("was written to while in use"), std::string::npos) << text;
  testing::error_of(ErrorCode::io, [&] { last(s, filled(2000000)); });  // compiles once more
}

TEST_F(ModelFileTest, CutShortItIsWhatItWasWhereItWasCopied) {
  SessionOptions options;
  options.mmap = false;
  const Session s = Session::open(file_, options);
  std::filesystem::resize_file(file_, 100);
  EXPECT_EQ(last(s, one_), 4);
  EXPECT_EQ(last(s, filled(2000000)), 4);  // compiles once more
}

// Runs do not read them there: one byte that is read may map 2 MB of the file.
TEST_F(ModelFileTest, SmallConstantsOfALargeOneAreCopied) {
  write(file_, aligned_model([](const std::string& w) {
          return "input x: float32[1]\nconstant " + w + ": float32[16000] 3\nconstant unread: float32[2000000] 1\ny = Add(x, " +
                 w + ")\noutput y\n";
        }));
  const Session s = Session::open(file_);
  EXPECT_EQ(last(s, one_), 4);
  std::filesystem::resize_file(file_, 100);
  EXPECT_EQ(last(s, one_), 4);
}

TEST_F(ModelFileTest, ReplacedByRenameItIsLeftAlone) {
  const Session s = Session::open(file_);
  const std::filesystem::path other = file_.string() + ".new";
  write(other, "something else");
  std::filesystem::rename(other, file_);
  EXPECT_EQ(last(s, one_), 4);
}

TEST_F(ModelFileTest, ASmallOneMayBeCutShort) {
  write(file_, testing::model_bytes("input x: float32[1]\nconstant w: float32[10000] 3\ny = Add(x, w)\noutput y\n"));
  const Session s = Session::open(file_);
  std::filesystem::resize_file(file_, 0);
  EXPECT_EQ(last(s, one_), 4);
  EXPECT_EQ(last(s, filled(10000)), 4);
}

}  // namespace
}  // namespace sdx::session
