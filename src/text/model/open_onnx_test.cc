// Folders of optimum's and transformers.js's layouts, with networks that are easy to foresee.

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "support/graph_text.h"
#include "support/temporary_folder.h"
#include "text/model/open.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<TokenId>;

// The logit of token t behind a token: t, plus the sum of all tokens so far, and 1000 where there is a cache already.
constexpr const char* kMerged = R"(
  opset 17
  input input_ids: int64[b,s]
  input attention_mask: int64[b,t]
  input use_cache_branch: boolean[1]
  input past_key_values.0.key: float32[b,1,p,1]
  input past_key_values.0.value: float32[b,1,p,1]
  constant axes: int64[2] 1 3
  constant all: int64[2] 2 3
  constant row: float32[1,1,4] 0 1 2 3
  constant thousand: float32[1] 1000
  constant back: int64[3] 1 -1 1
  constant zero: int64[1] 0
  four = Unsqueeze(input_ids, axes)
  new = Cast(four) {to=1}
  present.0.key = Concat(past_key_values.0.key, new) {axis=2}
  present.0.value = Identity(present.0.key)
  constant two: int64[] 2
  running = CumSum(present.0.key, two)
  shape = Shape(input_ids)
  one = Constant() {value=int64[1](1)}
  length = Gather(shape, one)
  negative = Neg(length)
  constant end: int64[1] 9999
  constant axis2: int64[1] 2
  last = Slice(running, negative, end, axis2)
  column = Reshape(last, back)
  flag = Cast(use_cache_branch) {to=1}
  bonus = Mul(flag, thousand)
  sums = Add(column, row)
  logits = Add(sums, bonus)
  output logits: float32[b,s,4]
  output present.0.key: float32[b,1,n,1]
  output present.0.value: float32[b,1,n,1]
)";

constexpr const char* kWithoutCache = R"(
  opset 17
  input input_ids: int64[b,s]
  constant row: float32[1,1,4] 0 1 2 3
  constant back: int64[3] 1 -1 1
  constant one: int64[] 1
  floats = Cast(input_ids) {to=1}
  running = CumSum(floats, one)
  column = Reshape(running, back)
  logits = Add(column, row)
  output logits: float32[b,s,4]
)";

float at(const Tensor& logits, std::int64_t row, std::int64_t column) {
  return logits.values<float>()[static_cast<std::size_t>(row * logits.dim(1) + column)];
}

TEST(OnnxFolders, MergedWithACacheBranch) {
  const testing::TemporaryFolder folder;
  folder.write("onnx/decoder_model_merged_quantized.onnx", testing::model_bytes(kMerged));
  folder.write("config.json",
               R"({"model_type": "tiny", "eos_token_id": [3], "bos_token_id": 1, "max_position_embeddings": 9, "x": 1})");
  folder.write("generation_config.json", R"({"do_sample": true, "temperature": 0.5, "top_k": 7, "eos_token_id": 2})");
  const OpenedModel model = open_model(folder.path(), {});
  EXPECT_EQ(model.architecture, "tiny");
  EXPECT_EQ(model.eos, (Ids{2}));
  EXPECT_EQ(model.bos, 1U);
  EXPECT_EQ(model.sampling.sample, true);
  EXPECT_EQ(model.sampling.top_k, 7);
  EXPECT_FALSE(model.decoder->in_place);
  EXPECT_EQ(model.decoder->context, 9);
  EXPECT_EQ(model.decoder->vocabulary, 4);
  DecoderState state(model.decoder);
  const Tensor first = state.append(Ids{1, 2, 3}, true);
  EXPECT_EQ(at(first, 0, 3), 4.0F);
  EXPECT_EQ(at(first, 2, 0), 6.0F);
  EXPECT_EQ(at(state.append(Ids{2}), 0, 1), 1009.0F);
  state.rewind(2);
  EXPECT_EQ(at(state.append(Ids{1}), 0, 0), 1004.0F);
  EXPECT_EQ(state.size(), 3);
  EXPECT_THROW(state.append(Ids(7, 1)), Error);
  EXPECT_EQ(at(state.append(Ids(6, 1)), 0, 0), 1010.0F);
}

TEST(OnnxFolders, WithoutACacheAllIsComputedAnew) {
  const testing::TemporaryFolder folder;
  folder.write("decoder_model.onnx", testing::model_bytes(kWithoutCache));
  const OpenedModel model = open_model(folder.path(), {});
  DecoderState state(model.decoder);
  EXPECT_EQ(at(state.append(Ids{1, 2}), 0, 0), 3.0F);
  EXPECT_EQ(at(state.append(Ids{3}), 0, 1), 7.0F);
  const Tensor both = state.append(Ids{1, 1}, true);
  EXPECT_EQ(both.dim(0), 2);
  EXPECT_EQ(at(both, 0, 0), 7.0F);
  EXPECT_EQ(at(both, 1, 0), 8.0F);
  state.rewind(1);
  EXPECT_EQ(at(state.append(Ids{3}), 0, 0), 4.0F);
}

std::string later_steps(const std::string& ids) {
  std::string text = kMerged;
  const auto put = [&](const std::string& from, const std::string& to) { text.replace(text.find(from), from.size(), to); };
  put("  input use_cache_branch: boolean[1]\n", "  constant use_cache_branch: float32[1] 1\n");
  put("Cast(use_cache_branch) {to=1}", "Identity(use_cache_branch)");
  put("input_ids: int64[b,s]", "input_ids: " + ids);
  return text;
}

// Fine-tunes name the end of a turn there alone.
TEST(OnnxFolders, TheTokenizersEndIsAnEndToo) {
  const testing::TemporaryFolder folder;
  folder.write("decoder_model.onnx", testing::model_bytes(kWithoutCache));
  folder.write("config.json", R"({"model_type": "tiny", "vocab_size": 4})");
  folder.write("generation_config.json", R"({"eos_token_id": 2})");
  const auto ends = [&] { return LanguageModel::load(folder.path()).info().eos; };
  EXPECT_EQ(ends(), (Ids{2}));
  folder.write("tokenizer_config.json",
               R"({"eos_token": {"content": "<|im_end|>"}, "added_tokens_decoder": {"3": {"content": "<|im_end|>"}}})");
  EXPECT_EQ(ends(), (Ids{2, 3}));
  folder.write("generation_config.json", R"({"eos_token_id": [3, 1]})");
  EXPECT_EQ(ends(), (Ids{3, 1}));
  // Found by its name in the vocabulary; numbers that the network does not predict are no tokens.
  folder.write("tokenizer_config.json", "{}");
  folder.write("special_tokens_map.json", R"({"eos_token": "c"})");
  folder.write("tokenizer.json",
               R"({"model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1, "c": 2, "d": 9}}})");
  EXPECT_EQ(ends(), (Ids{3, 1, 2}));
  folder.write("special_tokens_map.json", R"({"eos_token": "d"})");
  EXPECT_EQ(ends(), (Ids{3, 1}));
  folder.write("tokenizer.json", "broken");
  EXPECT_EQ(ends(), (Ids{3, 1}));
}

TEST(OnnxFolders, PairsForFirstAndLaterSteps) {
  const testing::TemporaryFolder folder;
  folder.write("decoder_model.onnx", testing::model_bytes(kWithoutCache));
  folder.write("decoder_with_past_model.onnx", testing::model_bytes(later_steps("int64[b,s]")));
  {
    const OpenedModel model = open_model(folder.path(), {});
    DecoderState state(model.decoder);
    EXPECT_EQ(at(state.append(Ids{1, 2}), 0, 0), 1003.0F);
    EXPECT_EQ(at(state.append(Ids{3}), 0, 1), 1007.0F);
  }
  folder.write("decoder_with_past_model.onnx", testing::model_bytes(later_steps("int64[b,1]")));
  const OpenedModel model = open_model(folder.path(), {});
  EXPECT_FALSE(model.decoder->has_cache);
  DecoderState state(model.decoder);
  EXPECT_EQ(at(state.append(Ids{1, 2}), 0, 0), 3.0F);
  EXPECT_EQ(at(state.append(Ids{3}), 0, 1), 7.0F);
}

TEST(OnnxFolders, WhatIsMissingOrUnknownIsNamed) {
  const testing::TemporaryFolder folder;
  const auto message = [&] {
    try {
      open_model(folder.path(), {});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message().find("contains no language model"), std::string::npos) << message();
  std::string other = kWithoutCache;
  other.replace(other.find("input input_ids: int64[b,s]"), 0, "input encoder_hidden_states: float32[b,1]\n  ");
  folder.write("model.onnx", testing::model_bytes(other));
  EXPECT_NE(message().find("'encoder_hidden_states'"), std::string::npos) << message();
  folder.write("model.onnx", testing::model_bytes("opset 17\ninput x: float32[1]\ny = Neg(x)\noutput y: float32[1]\n"));
  EXPECT_NE(message().find("'input_ids'"), std::string::npos) << message();
}

TEST(OnnxFolders, HeadsBeyondAllMeasureAreRefused) {
  const testing::TemporaryFolder folder;
  for (const std::string shape : {"float32[b,4000000000000,p,1]", "float32[b,1,p,4611686018427387904]"}) {
    std::string text = kWithoutCache;
    for (const std::string what : {"key", "value"}) {
      text += "  input past_key_values.0." + what + ": " + shape + "\n  present.0." + what + " = Identity(past_key_values.0." +
              what + ")\n  output present.0." + what + ": " + shape + "\n";
    }
    folder.write("model.onnx", testing::model_bytes(text));
    std::string message;
    try {
      open_model(folder.path(), {});
    } catch (const Error& e) {
      message = e.what();
    }
    EXPECT_NE(message.find("1048576 heads"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace sdx::text
