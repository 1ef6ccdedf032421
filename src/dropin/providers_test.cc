#include <cstdlib>

#include "dropin/objects.h"
#include "dropin/test_program.h"

namespace sdx::dropin {
namespace {

// The module of provider vulkan is another file, so that machines with a GPU answer as those without.
class DropinGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("SDX_VULKAN_LIB", "/nonexistent/vulkan.so", 1);
    EXPECT_OK(Slot::CreateSessionOptions, &options_);
  }
  void TearDown() override {
    the_api().call<void>(Slot::ReleaseSessionOptions, options_);
    ::unsetenv("SDX_VULKAN_LIB");
    ::unsetenv("SDX_DROPIN_GPU");
  }
  std::string append(const char* name) {
    return ask(Slot::SessionOptionsAppendExecutionProvider, options_, name, static_cast<const char* const*>(nullptr),
               static_cast<const char* const*>(nullptr), std::size_t{0});
  }

  OrtSessionOptions* options_ = nullptr;
};

TEST_F(DropinGpu, OtherValuesAreErrors) {
  ::setenv("SDX_DROPIN_GPU", "cuda", 1);
  EXPECT_EQ(append("CUDA"), std::to_string(ORT_INVALID_ARGUMENT) + ": SDX_DROPIN_GPU must be vulkan, received 'cuda'");
}

TEST_F(DropinGpu, RequestsGoToVulkan) {
  EXPECT_EQ(append("CUDA").find("/nonexistent"), std::string::npos);
  ::setenv("SDX_DROPIN_GPU", "vulkan", 1);
  for (const char* name : {"CUDA", "DML", "WebGPU", "CUDAExecutionProvider"}) {
    EXPECT_NE(append(name).find("/nonexistent/vulkan.so"), std::string::npos) << name;
  }
  EXPECT_EQ(append("OpenVINO").find("/nonexistent"), std::string::npos);
}

TEST_F(DropinGpu, OnlyWhatWorksIsListed) {
  ::setenv("SDX_DROPIN_GPU", "vulkan", 1);
  char** names = nullptr;
  int count = 0;
  EXPECT_OK(Slot::GetAvailableProviders, &names, &count);
  ASSERT_EQ(count, 1);
  EXPECT_STREQ(names[0], "CPUExecutionProvider");
  EXPECT_OK(Slot::ReleaseAvailableProviders, names, count);
}

}  // namespace
}  // namespace sdx::dropin
