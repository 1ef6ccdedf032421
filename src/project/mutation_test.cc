// Project files, registries and backend lists with random damage: always an sdx::Error, never anything else. fuzz/fuzz_project.cc
// does the same with libFuzzer.

#include <gtest/gtest.h>

#include <random>
#include <sdx/registry.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "project/backends.h"
#include "project/config.h"

namespace sdx {
namespace {

constexpr const char* kProject = R"(name: mood
version: 1.2
model: {source: ./m.onnx, format: onnx, version: 3}
inputs:
  - {name: x, type: float, shape: [n, 3, -1, ~], max_length: 8, required: false, preprocessing: {custom: {mean: [1, 2, 3], std: .5}}}
outputs:
  y: {type: float32, labels: [no, yes], softmax: true, top_k: 1, threshold: 0.25, postprocessing: {axis: -1}}
runtime: &r
  gpu: {memory: 2GB, backend: cuda}
  providers: [cuda, cpu]
  provider_options: {cuda: {device_id: 0}}
  timeout: 500ms
  dimensions: {batch: 1}
serving: {port: 90, max_workers: 2, batch_size: 8}
preprocessing: {resize: [640, 480], crop: 224x224, normalize: custom, scale: 1/255, layout: nchw, sample_rate: 16000}
metadata: {a: {b: [1, x]}, c: *r, "d\u00e9": "${HOME:-x}"}
)";

constexpr const char* kRegistry = R"(models:
  resnet50: {path: models/resnet50.onnx, input_shapes: {input: [1, 3, 224, 224]}, dtype: float16, warmup: 50, tags: [vision]}
  bert-base:
    path: models/bert-base.onnx
    inputs: [{name: input_ids, shape: [1, 128], dtype: int64}]
)";

constexpr const char* kBackends = R"(backends:
  fast: {provider: tensorrt, options: {trt_fp16_enable: 1}, description: x}
  plain: {provider: cpu}
provider_priority: [tensorrt, cuda]
platform_defaults: {linux_nvidia: cuda, darwin: coreml}
)";

// Pieces that have meaning to YAML or to our readers.
const std::vector<std::string> kPieces{"{",
                                       "}",
                                       "[",
                                       "]",
                                       ":",
                                       ": ",
                                       "- ",
                                       "&a ",
                                       "*a",
                                       "<<: ",
                                       "|\n",
                                       ">",
                                       "!!str ",
                                       "!x ",
                                       "'",
                                       "\"",
                                       "\t",
                                       "#",
                                       "~",
                                       "nan",
                                       ".nan",
                                       "-.inf",
                                       "1e999",
                                       "-1",
                                       "99999999999999999999",
                                       "0x",
                                       "1/0",
                                       "\n  ",
                                       "\n",
                                       "---\n",
                                       "%YAML 9.9\n",
                                       "${",
                                       "}",
                                       "${X}",
                                       "\xff",
                                       "\xc3",
                                       std::string(1, '\0'),
                                       "name",
                                       "0",
                                       "1x",
                                       "..",
                                       "/"};

std::string damaged(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n)(random); };
  for (std::size_t i = below(6) + 1; i > 0; --i) {
    const std::size_t at = below(text.size());
    switch (below(4)) {
      case 0: text.insert(at, kPieces[below(kPieces.size() - 1)]); break;
      case 1: text.erase(at, below(12)); break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(below(255));
        break;
      case 3: text.insert(at, text.substr(below(text.size()), below(40))); break;
      default: text.resize(at); break;
    }
  }
  return text;
}

template <class Read>
void survive(const char* good, Read read) {
  read(good);
  std::mt19937 random(7);
  int accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = damaged(good, random);
    try {
      read(text);
      ++accepted;
    } catch (const Error& e) {
      EXPECT_NE(e.code(), ErrorCode::internal) << e.what() << "\n" << text;
      EXPECT_FALSE(e.message().empty());
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what() << "\n" << text;
    }
  }
  EXPECT_GT(accepted, 10);    // damage that hurts nobody, as in a comment
  EXPECT_LT(accepted, 3900);  // and the readers are strict
}

TEST(Mutation, ProjectFiles) {
  survive(kProject, [](const std::string& text) {
    YamlDocument document = YamlDocument::parse(text, "sdx.yml");
    document.expand_environment();
    session_options_of(parse_project(document, "/nowhere").config);
  });
}

TEST(Mutation, Registries) {
  survive(kRegistry, [](const std::string& text) {
    Registry registry = Registry::parse(text, "models.yaml");
    RegistryEntry entry;
    entry.name = "new";
    entry.path = "x.onnx";
    registry.add(entry);
    registry.remove("new");
  });
}

TEST(Mutation, Backends) {
  survive(kBackends, [](const std::string& text) { parse_backends(YamlDocument::parse(text, "backends.yaml")); });
}

}  // namespace
}  // namespace sdx
