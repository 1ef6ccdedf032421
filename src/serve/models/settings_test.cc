#include "serve/models/settings.h"

#include <gtest/gtest.h>

#include "serve/grpc_api.h"
#include "support/session.h"

namespace sdx::serve {
namespace {

using namespace sdx::testing;
using Strings = std::vector<std::string>;

ModelSettings of_text(std::string_view text, Strings& ignored) {
  return settings_of_json(load_module<GrpcModule>().read_config(text, ignored), ignored);
}
ModelSettings of_text(std::string_view text) {
  Strings ignored;
  ModelSettings out = of_text(text, ignored);
  EXPECT_EQ(ignored, Strings());
  return out;
}
std::string refusal(std::string_view text) {
  return error_of(ErrorCode::invalid_argument, [&] {
    Strings ignored;
    of_text(text, ignored);
  });
}

TEST(Settings, of_config_pbtxt) {
  const ModelSettings s = of_text(R"(
    name: "m"  # a comment
    platform: "onnxruntime_onnx"
    max_batch_size: 8
    input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] }, { name: "o", data_type: TYPE_STRING, dims: 1, optional: true } ]
    output { name: "y" data_type: TYPE_BF16 dims: [ 2 ] label_filename: "labels.txt" }
    version_policy: { specific { versions: [ 1, 3 ] } }
    instance_group [ { count: 2 kind: KIND_CPU }, { kind: KIND_CPU } ]
    dynamic_batching {
      preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100
      default_queue_policy { max_queue_size: 7 default_timeout_microseconds: 5000 }
    }
    default_model_filename: "other.onnx"
    parameters { key: "mask_input" value: { string_value: "attention_mask" } }
    model_warmup [ {
      name: "w" batch_size: 2 count: 3 inputs: { key: "x" value: { data_type: TYPE_FP32 dims: [ 4, 3 ] random_data: true } }
    } ]
  )");
  EXPECT_EQ(s.max_batch_size, 8);
  ASSERT_EQ(s.inputs.size(), 2U);
  EXPECT_EQ(s.inputs[0].dims, (std::vector<std::int64_t>{-1, 3}));
  EXPECT_EQ(s.inputs[1].dtype, DataType::string);
  EXPECT_TRUE(s.inputs[1].optional);
  EXPECT_EQ(s.outputs.at(0).label_file, "labels.txt");
  EXPECT_EQ(s.outputs.at(0).dtype, DataType::bfloat16);
  EXPECT_EQ(s.versions, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(s.instances, 3);
  EXPECT_EQ(s.preferred, (std::vector<std::int64_t>{4, 8}));
  EXPECT_EQ(s.max_queue_delay, std::chrono::microseconds(100));
  EXPECT_EQ(s.queue, 7);
  EXPECT_EQ(s.timeout, std::chrono::milliseconds(5));
  EXPECT_EQ(s.file, "other.onnx");
  EXPECT_EQ(s.mask_input, "attention_mask");
  ASSERT_EQ(s.warm_up.size(), 1U);
  EXPECT_EQ(s.warm_up[0].count, 3);
  EXPECT_TRUE(s.warm_up[0].inputs.at(0).random);
}

TEST(Settings, versions) {
  EXPECT_EQ(of_text("").newest, 1);
  EXPECT_EQ(of_text("version_policy { latest { num_versions: 3 } }").newest, 3);
  EXPECT_EQ(of_text("version_policy { all {} }").newest, 0);
  expect_parts(refusal("version_policy { specific {} }"), {"versions are needed"});
}

TEST(Settings, what_has_no_meaning_is_named) {
  Strings ignored;
  of_text("optimization { cuda { graphs: true } }\ninstance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]", ignored);
  ASSERT_EQ(ignored.size(), 3U);
  expect_parts(ignored[0], {"line 1", "optimization"});
  expect_parts(ignored[1], {"instance_group.gpus"});
  expect_parts(ignored[2], {"KIND_GPU"});
}

TEST(Settings, what_would_change_answers_is_refused) {
  expect_parts(refusal("max_batch_size: 1 sequence_batching { }\nbackend: 5"), {"line 2"});
  expect_parts(refusal("platform: \"tensorrt_plan\""), {"platform", "tensorrt_plan"});
  expect_parts(refusal("backend: \"python\""), {"backend", "python"});
  expect_parts(refusal("ensemble_scheduling { step { model_name: \"a\" } }"), {"ensembles"});
  expect_parts(refusal("sequence_batching { max_sequence_idle_microseconds: 5 }"), {"sequences"});
  expect_parts(refusal("input { name: \"x\" data_type: TYPE_FP32 dims: [1] reshape { shape: [1] } }"), {"reshap"});
  expect_parts(refusal("default_model_filename: \"../../x\""), {"name of a file"});
  expect_parts(refusal("max_batch_size: -1"), {"max_batch_size"});
  expect_parts(refusal("max_batch_size: \"8\""), {"line 1"});
  expect_parts(refusal("input { dims: 1 }"), {"expected a name"});
  expect_parts(refusal("model_transaction_policy { decoupled: true }"), {"several answers"});
}

TEST(Settings, of_json) {
  Strings ignored;
  const ModelSettings s = settings_of_json(R"({"max_batch_size": 0, "name": "m", "strange": {"a": 1}})", ignored);
  EXPECT_EQ(s.max_batch_size, 0);
  EXPECT_EQ(ignored, Strings{"strange"});
  for (const char* broken : {"", "[]", "{", "{\"input\": {}}", "{\"max_batch_size\": 1e9}", "{\"max_batch_size\": \"x\"}",
                             "{\"input\": [5]}", "{\"parameters\": {\"intra_op_thread_count\": {\"string_value\": \"x\"}}}"}) {
    error_of(ErrorCode::invalid_argument, [&] { settings_of_json(broken, ignored); });
  }
}

}  // namespace
}  // namespace sdx::serve
