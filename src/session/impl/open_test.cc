// Sessions that are opened and run with more than the public options.

#include "session/open.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/graph_text.h"
#include "support/session.h"

namespace sdx::session {
namespace {

using testing::elements;
using testing::floats;
using testing::Floats;

constexpr const char* kWeighted = "input x: float32[2]\nconstant w: float32[2] 1 2\ny = Add(x, w)\noutput y: float32[2]";

Floats result(const Session& session) { return elements(session.run({{"x", floats({2}, {1, 1})}}).tensor("y")); }

TEST(OpenInternally, TakesAModelThatWasBuilt) {
  const Session session = open(testing::parse_model(kWeighted), {});
  EXPECT_EQ(result(session), Floats({2, 3}));
}

TEST(OpenInternally, InitializersComeInPlaceOfTheModels) {
  InternalOptions internal;
  internal.initializers = {{"w", floats({2}, {10, 20})}, {"nobody", floats({1}, {0})}};
  EXPECT_EQ(result(open(testing::parse_model(kWeighted), {}, internal)), Floats({11, 21}));
  EXPECT_EQ(result(open(testing::parse_model(kWeighted), {})), Floats({2, 3}));  // of the next session they are not
  internal.initializers = {{"w", floats({1, 2}, {10, 20})}};
  const std::string error =
      testing::error_of(ErrorCode::invalid_argument, [&] { open(testing::parse_model(kWeighted), {}, internal); });
  testing::expect_parts(error, {"'w'", "float32[2]", "float32[1,2]", "in model '(memory)'"});
}

TEST(OpenInternally, GivenDataStandForFiles) {
  const std::string text = write_model(testing::parse_model(kWeighted), [](const Tensor&) { return FilePlace{"w.bin", 4}; });
  const ModelBytes bytes{std::as_bytes(std::span(text)), {}};
  testing::error_of(ErrorCode::invalid_model, [&] { open(bytes, {}); });
  GivenData data;
  const Floats file{0, 10, 20};
  data.files["w.bin"] = {std::as_bytes(std::span(file)), nullptr};
  InternalOptions internal;
  internal.data = &data;
  EXPECT_EQ(result(open(bytes, {}, internal)), Floats({11, 21}));
  data.tensors["w"] = floats({2}, {30, 40});
  EXPECT_EQ(result(open(bytes, {}, internal)), Floats({31, 41}));
}

TEST(OpenInternally, TheOptimisedModelMayBeMeasuredAlone) {
  SessionOptions options;
  options.optimized_model = std::filesystem::temp_directory_path() / "sdx_open_test_never_written.onnx";
  std::uint64_t bytes = 0;
  InternalOptions internal;
  internal.optimized_bytes = &bytes;
  open(testing::parse_model(kWeighted), options, internal);
  EXPECT_GT(bytes, 0U);
  EXPECT_FALSE(std::filesystem::exists(options.optimized_model));
}

TEST(RunInternally, StepsGoToTheProfileOfTheRunAlone) {
  SessionOptions options;
  options.profile = true;
  const Session session = open(testing::parse_model(kWeighted), options);
  const NamedValues inputs{{"x", floats({2}, {1, 1})}};
  const auto profiler = std::make_shared<plan::Profiler>();
  run(session, inputs, {}, {profiler});
  EXPECT_EQ(profiler->events().size(), 1U);
  EXPECT_TRUE(session.profile().empty());
  session.run(inputs);
  EXPECT_EQ(session.profile().size(), 1U);
  EXPECT_EQ(profiler->events().size(), 1U);
}

}  // namespace
}  // namespace sdx::session
