#include <gtest/gtest.h>

#include <filesystem>
#include <sdx/project.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/process.h"
#include "support/errors.h"
#include "support/graph_text.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

class Build : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("sdx_build_" + std::to_string(process_id()));
    fs::remove_all(root_);
    fs::create_directories(root_);
    put_model("Relu");
    put("sdx.yml", "name: net\nmodel: {source: net.onnx}\nruntime: {dimensions: {n: 2}, providers: [cpu]}\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& name, const std::string& content) { write_file_atomically(root_ / name, content); }
  void put_model(const std::string& op) {
    put("net.onnx", sdx::testing::model_bytes("opset 17\ninput x: float32[n]\ny = " + op + "(x)\noutput y: float32[n]\n"));
  }
  Project open() const { return Project::open(root_ / "sdx.yml"); }
  BuildState::Kind state() const { return open().build_state(open().options()).kind; }

  fs::path root_;
};

TEST_F(Build, IsUsedWhileNothingChanged) {
  EXPECT_EQ(state(), BuildState::Kind::none);
  const BuildReport report = open().build();
  EXPECT_TRUE(report.optimized) << report.not_optimized;
  EXPECT_TRUE(fs::is_regular_file(report.compiled));
  EXPECT_EQ(state(), BuildState::Kind::fresh);
  const Session session = open().session();
  EXPECT_EQ(session.report().model, report.compiled.string());
  EXPECT_EQ(session.inputs().front().shape, Shape{2});  // the dimension is fixed
  const NamedValues out = session.run({{"x", Tensor::of<float>({2}, {-1, 3})}});
  EXPECT_EQ(out.tensor("y").values<float>()[1], 3);
}

TEST_F(Build, IsStaleOnceTheModelOrItsSettingsChange) {
  open().build();
  const auto time = fs::last_write_time(root_ / "net.onnx");
  fs::last_write_time(root_ / "net.onnx", time + std::chrono::seconds(5));
  EXPECT_EQ(state(), BuildState::Kind::fresh);  // the same bytes
  put_model("Sign");
  EXPECT_EQ(state(), BuildState::Kind::stale);
  EXPECT_EQ(open().session().report().model, (root_ / "net.onnx").string());
  open().build();
  EXPECT_EQ(state(), BuildState::Kind::fresh);
  put("sdx.yml", "name: net\nmodel: {source: net.onnx}\nruntime: {dimensions: {n: 3}, providers: [cpu]}\n");
  EXPECT_EQ(state(), BuildState::Kind::stale);
}

TEST_F(Build, StandsAsideForOptionsThatItIsNotMadeFor) {
  open().build();
  SessionOptions options = open().options();
  options.optimize = false;
  EXPECT_EQ(open().build_state(options).kind, BuildState::Kind::other);
  options = open().options();
  options.providers = {"ort:cpu"};
  EXPECT_EQ(open().build_state(options).kind, BuildState::Kind::other);
}

TEST_F(Build, LeavesNothingBehindAndSurvivesDamage) {
  open().build();
  put_model("Sign");
  const BuildReport second = open().build();
  std::size_t models = 0;
  for (const auto& entry : fs::directory_iterator(root_ / ".sdx")) {
    models += entry.path().filename().string().starts_with("model-") ? 1 : 0;
    EXPECT_NE(entry.path().filename(), ".build");
  }
  EXPECT_EQ(models, 1U);
  fs::remove(second.compiled);
  EXPECT_EQ(state(), BuildState::Kind::stale);
  for (const char* damage : {"", "[]", "{", R"({"compiled": "../../x", "files": [{}]})", R"({"compiled": 1, "files": 2})"}) {
    put(".sdx/model_info.json", damage);
    EXPECT_EQ(state(), BuildState::Kind::none) << damage;
  }
}

TEST_F(Build, ContradictionsNameTheirPlace) {
  const auto error_of = [&](const std::string& rest) -> std::string {
    put("sdx.yml", "name: net\nmodel: {source: net.onnx}\n" + rest);
    return testing::error_message([&] { open().validate(); });
  };
  EXPECT_NE(error_of("inputs:\n  x: {type: int64}\n").find("sdx.yml:4:6: inputs.x: type: float32[n] in the model"),
            std::string::npos)
      << error_of("inputs:\n  x: {type: int64}\n");
  EXPECT_NE(error_of("inputs: {x: {shape: [1, 2]}}").find("shape: float32[n] in the model, [1,2] in the file"),
            std::string::npos);
  EXPECT_NE(error_of("inputs: {x: {}, z: {}}").find("the model has no input 'z'"), std::string::npos);
  EXPECT_NE(error_of("outputs: {y: {softmax: true, postprocessing: {axis: 3}}}").find("no axis 3"), std::string::npos);
  EXPECT_EQ(error_of("inputs: {other: {shape: [n]}}\noutputs: {y: {labels: [a]}}"), "");  // the only input, by another name
  fs::remove(root_ / "net.onnx");
  EXPECT_NE(error_of("").find("there is no model file"), std::string::npos);
}

TEST_F(Build, InitWritesWhatReadsBack) {
  for (const std::string name : {"net", "a: b", "- x", "#", "\"", "{", "é", "y"}) {
    InitOptions options;
    options.name = name;
    options.folder = root_;
    put("new.yml", project_text(root_ / "net.onnx", options));
    EXPECT_EQ(Project::open(root_ / "new.yml").config().name, name);
    EXPECT_TRUE(Project::open(root_ / "new.yml").validate().empty());
  }
}

}  // namespace
}  // namespace sdx
