#include "project/backends.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/errors.h"

namespace sdx {
namespace {

constexpr const char* kFile = R"(
backends:
  big: {provider: CUDAExecutionProvider, options: {device_id: 1, gpu_mem_limit: 2000}, description: the second card}
  small: {provider: cuda, options: {device_id: 0}}
  intel: {provider: openvino}
provider_priority: [cuda, openvino]
platform_defaults: {linux_amd: migraphx, linux_nvidia: cuda, darwin: coreml}
)";

Backends parse(const std::string& text) { return parse_backends(YamlDocument::parse(text, "backends.yaml")); }

std::string error_of(const std::string& text) {
  return testing::error_message([&] { parse(text); });
}

TEST(Backends, AreReadWithEveryKey) {
  const Backends b = parse(kFile);
  ASSERT_EQ(b.backends.size(), 3U);
  const Backend* big = b.find("big");
  ASSERT_NE(big, nullptr);
  EXPECT_EQ(big->provider, "cuda");
  EXPECT_EQ(big->options[0], (std::pair<std::string, std::string>("device_id", "1")));
  EXPECT_EQ(big->description, "the second card");
  EXPECT_EQ(b.find("nobody"), nullptr);
  EXPECT_EQ(b.provider_priority, (std::vector<std::string>{"cuda", "openvino"}));
  ASSERT_EQ(b.platform_defaults.size(), 3U);
  EXPECT_EQ(b.platform_defaults[1], (std::pair<std::string, std::string>("linux_nvidia", "cuda")));
  EXPECT_TRUE(parse("").backends.empty());
}

TEST(Backends, MistakesNameThePlace) {
  EXPECT_NE(error_of("backend: {}").find("did you mean 'backends'?"), std::string::npos);
  EXPECT_NE(error_of("backends:\n  a: {provider: cdua}").find("backends.yaml:2:17"), std::string::npos);
  EXPECT_NE(error_of("backends:\n  a: {provider: cdua}").find("did you mean 'cuda'?"), std::string::npos);
  EXPECT_NE(error_of("backends: {cuda: {provider: cuda}}").find("a provider's name"), std::string::npos);
  EXPECT_NE(error_of("backends: {a: {}}").find("'provider' is missing"), std::string::npos);
  EXPECT_NE(error_of("backends: {a: {provider: cpu, option: {}}}").find("did you mean 'options'?"), std::string::npos);
  EXPECT_NE(error_of("platform_defaults: {linux_nvida: cuda}").find("did you mean 'linux_nvidia'?"), std::string::npos);
  EXPECT_NE(error_of("provider_priority: [cdua]").find("did you mean 'cuda'?"), std::string::npos);
}

TEST(Backends, ReachTheSession) {
  const Backends b = parse(kFile);
  SessionOptions o;
  o.providers = {"big", "cpu"};
  o.provider_options = {{"cuda", {{"device_id", "3"}}}};
  apply_backends(b, o);
  EXPECT_EQ(o.providers, (std::vector<std::string>{"cuda", "cpu"}));
  ASSERT_EQ(o.provider_options.size(), 2U);
  EXPECT_EQ(o.provider_options[0].second[0].second, "1");
  EXPECT_EQ(o.provider_options[1].second[0].second, "3");  // later ones win
  EXPECT_EQ(o.provider_priority, b.provider_priority);
  EXPECT_EQ(o.platform_defaults, b.platform_defaults);

  SessionOptions own;
  own.provider_priority = {"openvino"};
  apply_backends(b, own);
  EXPECT_EQ(own.provider_priority, std::vector<std::string>{"openvino"});

  SessionOptions both;
  both.providers = {"big", "small"};
  EXPECT_THROW(apply_backends(b, both), Error);
}

}  // namespace
}  // namespace sdx
