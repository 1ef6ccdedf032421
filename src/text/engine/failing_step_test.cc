// The effect of a failing request on a step that it shares with others.

#include <gtest/gtest.h>

#include <filesystem>
#include <sdx/generation_engine.hpp>

#include "base/error.h"
#include "support/graph_text.h"
#include "support/temporary_folder.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;

// Foretells 32 tokens, but has an embedding for 16 of them alone.
constexpr const char* kNetwork = R"(
  opset 21
  opset com.microsoft 1
  input input_ids: int64[b,s]
  input attention_mask: int64[b,t]
  input past_key_values.0.key: float32[b,1,p,8]
  input past_key_values.0.value: float32[b,1,p,8]
  constant embedding: float32[16,8] 1
  constant packed: float32[8,24] 1
  constant head: float32[8,32] 1
  constant one: int64[1] 1
  constant index: int64[] 1
  x = Gather(embedding, input_ids)
  qkv = MatMul(x, packed)
  sum = ReduceSum(attention_mask, one) {keepdims=0}
  less = Sub(sum, one)
  lengths = Cast(less) {to=6}
  shape = Shape(attention_mask)
  extent = Gather(shape, index)
  total = Cast(extent) {to=6}
  a, present.0.key, present.0.value = com.microsoft.GroupQueryAttention(qkv, _, _, past_key_values.0.key, past_key_values.0.value, lengths, total) {num_heads=1, kv_num_heads=1}
  logits = MatMul(a, head)
  output logits: float32[b,s,32]
  output present.0.key: float32[b,1,q,8]
  output present.0.value: float32[b,1,q,8]
)";

TEST(FailingSteps, OneRequestsErrorIsNotTheOthers) {
  const testing::TemporaryFolder folder;
  folder.write("model.onnx", testing::model_bytes(kNetwork));
  {
    LanguageModelOptions options;
    options.session.threads = 1;
    GenerationEngine engine(LanguageModel::load(folder.path(), options));
    EXPECT_TRUE(engine.status().batches) << engine.status().why_not;
    const auto submit = [&](std::vector<TokenId> prompt) {
      GenerationRequest r;
      r.prompt = std::move(prompt);
      r.settings.sampling.greedy = true;
      r.settings.ignore_end = true;
      r.settings.max_tokens = 300;
      return engine.submit(std::move(r));
    };
    const GenerationTask first = submit({1, 2, 3}), second = submit({4, 5});
    for (int i = 0; i < 5; ++i) {
      const GenerationTask bad = submit({7, 20});
      EXPECT_THROW(bad.wait(), Error);
    }
    EXPECT_EQ(first.wait().choices.at(0).tokens.size(), 300U);
    EXPECT_EQ(second.wait().choices.at(0).tokens.size(), 300U);
    EXPECT_EQ(engine.status().failed, 5U);
    EXPECT_EQ(engine.status().cache_in_use, 0U);
  }
}

}  // namespace
}  // namespace sdx::text
