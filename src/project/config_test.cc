#include "project/config.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/system/process.h"
#include "session/options/option_table.h"
#include "support/errors.h"

namespace sdx {
namespace {

ProjectConfig parse(const std::string& text) {
  YamlDocument d = YamlDocument::parse(text, "sdx.yml");
  d.expand_environment();
  return parse_project(d, ".").config;
}

std::string complaint(const std::string& more) {
  return testing::error_text([&] { parse("name: n\nmodel: {source: m.onnx}\n" + more); });
}

TEST(ProjectConfig, ReadsEverySection) {
  const ProjectConfig c = parse(
      "name: mood\nversion: 1.2\nmodel: {source: ./m.onnx, format: onnx, version: 3}\n"
      "inputs:\n  - {name: x, type: float, shape: [n, 3], max_length: 8, required: false}\n"
      "outputs:\n  y: {type: float32, labels: [no, yes], softmax: true, top_k: 1}\n"
      "runtime: {gpu: {memory: 2GB, backend: cuda}, timeout: 500ms, threads: 2, fallback: strict, batch_size: 4,\n"
      "  select: measured, start_on: cpu, provider_timeout: 2s, provider_retry: 0, tune: true, reject_nan: true, telemetry: "
      "stderr,\n"
      "  thread_affinity: auto, memory_limit: 1GiB, provider_options: {cuda: {device_id: 1}}, dimensions: {n: 4}}\n"
      "serving: {port: 90, max_workers: 2, batch_size: 8}\n"
      "preprocessing: {resize: [640, 480], normalize: imagenet, layout: nchw}\nmetadata: {a: {b: [1, x]}}\n");
  EXPECT_EQ(c.version, "1.2");
  ASSERT_EQ(c.inputs.size(), 1u);
  EXPECT_EQ(c.inputs[0].dtype, DataType::float32);
  EXPECT_EQ(*c.inputs[0].shape, (std::vector<std::int64_t>{-1, 3}));
  EXPECT_FALSE(c.inputs[0].required);
  EXPECT_EQ(c.inputs[0].preprocessing.width, 640);
  EXPECT_EQ(c.outputs[0].postprocessing.activation, Activation::softmax);
  EXPECT_EQ(c.outputs[0].postprocessing.labels[1], "yes");
  EXPECT_EQ(c.runtime.timeout->count(), 500);
  EXPECT_EQ(c.serving.workers, 2);
  EXPECT_EQ(c.serving.max_batch_size, 8);
  EXPECT_EQ(c.metadata[1], (std::pair<std::string, std::string>("a.b[1]", "x")));
  const SessionOptions o = session_options_of(c);
  EXPECT_EQ(o.providers, std::vector<std::string>{"cuda"});
  EXPECT_TRUE(o.strict);
  EXPECT_EQ(o.select, Select::measured);
  EXPECT_EQ(o.start_on, "cpu");
  EXPECT_EQ(o.provider_timeout.count(), 2000);
  EXPECT_EQ(o.provider_retry.count(), 0);
  EXPECT_TRUE(o.tune);
  EXPECT_EQ(o.thread_affinity, "auto");
  EXPECT_EQ(o.memory_limit, std::size_t{1} << 30);
  EXPECT_EQ(o.dimensions, (session::DimensionValues{{"n", 4}}));
  EXPECT_TRUE(o.reject_nan);
  EXPECT_EQ(o.telemetry, "stderr");
  EXPECT_EQ(o.provider_options[0],
            (session::ProviderOptions::value_type("cuda", {{"device_id", "1"}, {"gpu_mem_limit", "2000000000"}})));
}

TEST(ProjectConfig, SaysWhereAndWhat) {
  EXPECT_NE(complaint("runtme: {}").find("sdx.yml:3:1: unknown key 'runtme', did you mean 'runtime'?"), std::string::npos);
  EXPECT_NE(complaint("postprocessing: {threshold: .nan}").find("3:29: postprocessing.threshold: expected a finite"),
            std::string::npos);
  EXPECT_NE(complaint("runtime: {gpu: {memory: 2}}").find("with its unit"), std::string::npos);
  EXPECT_NE(complaint("runtime: {providers: [cdua]}").find("did you mean 'cuda'?"), std::string::npos);
  EXPECT_NE(complaint("runtime: {select: mesured}").find("sdx.yml:3:19: runtime.select: expected one of order, measured"),
            std::string::npos);
  EXPECT_NE(complaint("runtime: {fallback: strct}").find("did you mean 'strict'?"), std::string::npos);
  EXPECT_NE(complaint("runtime: {threads: -1}").find("runtime.threads: expected an integer from 0 to 4096"), std::string::npos);
  EXPECT_NE(complaint("runtime: {provider_retry: -1s}").find("runtime.provider_retry: expected a time"), std::string::npos);
  EXPECT_NE(complaint("runtime: {memory_limit: lots}").find("runtime.memory_limit: expected a size"), std::string::npos);
  EXPECT_NE(complaint("runtime: {provider_options: {cdua: {}}}").find("did you mean 'cuda'?"), std::string::npos);
  EXPECT_NE(complaint("runtime: {telemetry: {a: b}}").find("expected text, found a map"), std::string::npos);
  EXPECT_NE(complaint("runtime: {start_on: cup}").find("did you mean 'cpu'?"), std::string::npos);
  EXPECT_NE(complaint("preprocessing: {resize: [0, 2]}").find("preprocessing.resize[0]"), std::string::npos);
  EXPECT_NE(complaint("preprocessing: {std: [1, 0, 1]}").find("dividing by 0"), std::string::npos);
  EXPECT_NE(complaint("inputs: {x: {type: flaot32}}").find("did you mean 'float32'?"), std::string::npos);
  EXPECT_NE(complaint("inputs: [{name: x}, {name: x}]").find("listed twice"), std::string::npos);
  EXPECT_NE(complaint("outputs: {y: {softmax: true, sigmoid: true}}").find("exclude each other"), std::string::npos);
  EXPECT_NE(complaint("outputs: {y: {labels: missing.txt}}").find("sdx.yml:3:"), std::string::npos);
  EXPECT_NE(complaint("metadata: ${SDX_TEST_UNSET_VARIABLE}").find("is not set"), std::string::npos);
}

TEST(ProjectConfig, ExpandsTheEnvironment) {
  set_environment("SDX_TEST_FOLDER", "models");
  EXPECT_EQ(parse("name: n\nmodel: {source: '${SDX_TEST_FOLDER}/${SDX_TEST_NONE:-m}.onnx'}").model_source, "models/m.onnx");
}

}  // namespace
}  // namespace sdx
