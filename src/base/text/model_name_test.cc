#include "base/text/model_name.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

TEST(ModelNames, AreFolders) {
  EXPECT_EQ(model_folder_name("qwen3:0.6b"), "qwen3-0.6b");
  EXPECT_EQ(model_folder_name("qwen3:latest"), "qwen3");
  EXPECT_EQ(model_folder_name("qwen3"), "qwen3");
  EXPECT_EQ(model_folder_name("hf.co/USER/MODEL:Q4_K_M"), "hf.co-USER-MODEL-Q4_K_M");
  EXPECT_EQ(model_folder_name("../up"), "up");
  EXPECT_EQ(model_folder_name("\\\\host\\x"), "host-x");
  EXPECT_EQ(model_folder_name(""), "model");
  EXPECT_EQ(model_folder_name("..."), "model");
  EXPECT_EQ(model_folder_name(std::string(500, 'x')).size(), 128U);
}

}  // namespace
}  // namespace sdx
