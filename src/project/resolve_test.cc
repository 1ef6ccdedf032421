#include "project/resolve.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/process.h"
#include "session/options/option_table.h"
#include "support/graph_text.h"

namespace sdx::project {
namespace {

namespace fs = std::filesystem;

class Resolve : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("sdx_resolve_" + std::to_string(process_id()));
    fs::remove_all(root_);
    put("work/net.onnx", sdx::testing::model_bytes("opset 17\ninput x: float32[2]\ny = Add(x, x)\noutput y: float32[2]\n"));
    places_ = {root_ / "work", root_ / "home"};
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& name, const std::string& content) {
    fs::create_directories((root_ / name).parent_path());
    write_file_atomically(root_ / name, content);
  }

  fs::path root_;
  Places places_;
};

// As a command line with these options.
Asked asked(std::initializer_list<std::pair<std::string_view, std::string_view>> options) {
  Asked out;
  for (const auto& [name, text] : options) {
    session::set_from_text(session::session_option(name), out.session.values, text);
    out.session.typed.push_back(name);
  }
  return out;
}

Asked halves() {
  Asked out = asked({{"cache", "false"}});
  out.dtype = DataType::float16;
  return out;
}

TEST_F(Resolve, AModelFileIsNothingButItself) {
  const std::string file = (root_ / "work/net.onnx").string();
  const ResolvedModel m = resolve(file, {}, places_);
  EXPECT_EQ(m.name, file);
  EXPECT_EQ(m.source, file);
  EXPECT_EQ(m.model, file);
  EXPECT_EQ(m.config(), nullptr);
  EXPECT_EQ(m.entry, nullptr);
}

TEST_F(Resolve, AProjectBringsItsSettings) {
  put("work/sdx.yml", "name: mine\nmodel: net.onnx\nruntime: {threads: 3}\n");
  const ResolvedModel m = resolve("mine", {}, places_);
  EXPECT_EQ(m.source, root_ / "work/net.onnx");
  ASSERT_NE(m.config(), nullptr);
  EXPECT_EQ(m.config()->name, "mine");
  EXPECT_EQ(m.options.threads, 3);
}

TEST_F(Resolve, WhatWasTypedOverridesAProjectsSettings) {
  put("work/sdx.yml", "name: mine\nmodel: net.onnx\nruntime: {threads: 3, mmap: false, providers: [cuda, cpu]}\n");
  Asked line = asked({{"providers", "cpu"}, {"threads", "5"}});
  line.session.values.telemetry = "stderr";
  const ResolvedModel m = resolve("mine", line, places_);
  EXPECT_EQ(m.options.threads, 5);
  EXPECT_EQ(m.options.providers, std::vector<std::string>{"cpu"});
  EXPECT_FALSE(m.options.mmap);
  EXPECT_EQ(m.options.telemetry, "");  // a default of who asks: the project's come before it
  EXPECT_EQ(options_for(line.session, nullptr).telemetry, "stderr");
}

TEST_F(Resolve, ATypedRuntimeAndAProjectsChainDoNotMeet) {
  put("work/sdx.yml", "name: mine\nmodel: net.onnx\nruntime: {providers: [cuda, cpu]}\n");
  const ResolvedModel native = resolve("mine", asked({{"runtime", "native"}}), places_);
  EXPECT_TRUE(native.options.providers.empty());
  put("work/sdx.yml", "name: mine\nmodel: net.onnx\nruntime: {runtime: native}\n");
  const ResolvedModel chain = resolve("mine", asked({{"providers", "cuda"}}), places_);
  EXPECT_EQ(chain.options.runtime, Runtime::automatic);
}

TEST_F(Resolve, BackendsBringTheirOptionsOverAProjects) {
  put("work/backends.yaml", "backends:\n  second: {provider: cuda, options: {device_id: 1}}\nprovider_priority: [openvino]\n");
  put("work/sdx.yml", "name: mine\nmodel: net.onnx\nruntime: {provider_options: {cuda: {device_id: 0}}}\n");
  Asked line = asked({{"providers", "second"}});
  line.session = with_backends(line.session, places_);
  const ResolvedModel m = resolve("mine", line, places_);
  EXPECT_EQ(m.options.providers, std::vector<std::string>{"cuda"});
  ASSERT_FALSE(m.options.provider_options.empty());
  EXPECT_EQ(m.options.provider_options.back().second.back(), std::pair(std::string("device_id"), std::string("1")));
  EXPECT_EQ(m.options.provider_priority, std::vector<std::string>{"openvino"});
}

TEST_F(Resolve, AnEntryOfTheRegistryBringsItself) {
  put("work/models.yaml", "models:\n  short: {path: net.onnx, warmup: 4}\n");
  const ResolvedModel m = resolve("short", {}, places_);
  EXPECT_EQ(m.source, root_ / "work/net.onnx");
  ASSERT_NE(m.entry, nullptr);
  EXPECT_EQ(m.entry->warmup, 4);
}

TEST_F(Resolve, ABuildWithoutItsProjectIsTheBuiltModel) {
  put("work/.sdx/model_info.json", R"({"name": "gone", "compiled": "model-1.onnx"})");
  EXPECT_THROW(resolve("gone", {}, places_), Error);  // incomplete: it does not say what it was built from
  put("work/.sdx/model_info.json",
      R"({"name": "gone", "compiled": "model-1.onnx", "files": [{"name": "net.onnx", "bytes": 1, "modified_ns": 1, "hash": "0"}]})");
  const ResolvedModel m = resolve("gone", {}, places_);
  EXPECT_EQ(m.source, root_ / "work/.sdx/model-1.onnx");
  EXPECT_TRUE(m.built);
  EXPECT_THROW(resolve("other", {}, places_), Error);
}

TEST_F(Resolve, AConvertedModelLivesAsLongAsItIsInUse) {
  fs::path converted;
  {
    ResolvedModel m = resolve((root_ / "work/net.onnx").string(), halves(), places_);
    EXPECT_TRUE(convert(m));
    EXPECT_EQ(m.source, root_ / "work/net.onnx");
    EXPECT_NE(m.model, m.source);
    EXPECT_EQ(Session::open(m.model, {}).inputs()[0].dtype, DataType::float16);
    converted = m.model;
  }
  EXPECT_FALSE(fs::exists(converted));
}

TEST_F(Resolve, AProjectsInputsKeepTheirTypes) {
  put("work/sdx.yml", "name: mine\nmodel: net.onnx\n");
  ResolvedModel m = resolve("mine", halves(), places_);
  EXPECT_TRUE(convert(m));
  EXPECT_EQ(Session::open(m.model, {}).inputs()[0].dtype, DataType::float32);
}

}  // namespace
}  // namespace sdx::project
