#include "session/observe/ort_trace.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/system/process.h"

namespace sdx::session {
namespace {

nlohmann::json written(const std::vector<ProfileEvent>& events, const std::optional<Opening>& opening) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("sdx_ort_trace_" + std::to_string(process_id()));
  write_ort_trace(path, events, opening);
  std::ifstream in(path);
  nlohmann::json out = nlohmann::json::parse(in);
  std::filesystem::remove(path);
  return out;
}

std::vector<std::string> names(const nlohmann::json& trace) {
  std::vector<std::string> out;
  for (const auto& event : trace) out.push_back(event.at("name"));
  return out;
}

TEST(OrtTrace, HasTheEventsAndKeysOfOnnxRuntime) {
  const std::vector<ProfileEvent> events{{"mm", "MatMul", "gemm", "cpu", 5000, 2000, 77, 1, {}, {}},
                                         {"say \"y\"", "Erf", "erf", "ort:cuda", 8000, 1000, 78, 1, {}, {}},
                                         {"mm", "MatMul", "gemm", "cpu", 20000, 400, 77, 2, {}, {}}};
  const nlohmann::json trace = written(events, Opening{false, 1.5, 2.0});
  ASSERT_TRUE(trace.is_array());
  EXPECT_EQ(names(trace), (std::vector<std::string>{"model_loading_array", "session_initialization", "mm_kernel_time",
                                                    "say \"y\"_kernel_time", "SequentialExecutor::Execute", "model_run",
                                                    "mm_kernel_time", "SequentialExecutor::Execute", "model_run"}));
  for (const auto& event : trace) {
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_EQ(event.at("pid"), process_id());
    for (const char* key : {"cat", "tid", "dur", "ts", "args"}) EXPECT_TRUE(event.contains(key)) << key;
  }
  EXPECT_EQ(trace[1].at("ts"), 1500);
  EXPECT_EQ(trace[1].at("dur"), 2000);
  const nlohmann::json& erf = trace[3].at("args");
  EXPECT_EQ(trace[3].at("cat"), "Node");
  EXPECT_EQ(erf.at("op_name"), "Erf");
  EXPECT_EQ(erf.at("provider"), "CUDAExecutionProvider");
  EXPECT_EQ(erf.at("node_index"), "1");
  EXPECT_EQ(trace[6].at("args").at("node_index"), "0");
  EXPECT_NE(trace[2].at("tid"), trace[3].at("tid"));
  EXPECT_EQ(trace[5].at("ts"), 5);
  EXPECT_EQ(trace[5].at("dur"), 4);
}

TEST(OrtTrace, StepsHaveShapesAndSizes) {
  ProfileEvent e{"mm", "MatMul", "gemm", "cpu", 0, 1000, 1, 1, {}, {}};
  e.inputs = {
      {DataType::float32, {2, 4}, 32, false}, {}, {DataType::float16, {4, 3}, 24, true}, {DataType::boolean, {}, 1, false}};
  e.outputs = {{DataType::float64, {2, 3}, 48, false}, {DataType::int64, {0}, 0, false}};
  const nlohmann::json args = written({e}, std::nullopt).at(0).at("args");
  EXPECT_EQ(args.at("input_type_shape"), nlohmann::json::parse(R"([{"float": [2, 4]}, {"float16": [4, 3]}, {"bool": []}])"));
  EXPECT_EQ(args.at("output_type_shape"), nlohmann::json::parse(R"([{"double": [2, 3]}, {"int64": [0]}])"));
  EXPECT_EQ(args.at("parameter_size"), "24");
  EXPECT_EQ(args.at("activation_size"), "33");
  EXPECT_EQ(args.at("output_size"), "48");
}

TEST(OrtTrace, NamesOfAnyBytesAreWritten) {
  EXPECT_EQ(written({{"a\xFF\n", "Erf", "erf", "cpu", 0, 1, 1, 1, {}, {}}}, std::nullopt).size(), 3U);
}

TEST(OrtTrace, WithoutRunsOrOpeningIsAnEmptyList) {
  EXPECT_EQ(written({}, std::nullopt), nlohmann::json::array());
  EXPECT_EQ(names(written({}, Opening{})).front(), "model_loading_uri");
}

}  // namespace
}  // namespace sdx::session
