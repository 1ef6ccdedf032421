// Small models of weights alone, made here: what ends an answer, what files recommend, which file a folder means.

#include <gtest/gtest.h>

#include <filesystem>
#include <sdx/text.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "support/errors.h"
#include "support/gguf_bytes.h"
#include "support/temporary_folder.h"
#include "tensor/gguf/gguf_names.h"
#include "text/model/network/decoder_config.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<TokenId>;
constexpr std::int32_t kNormal = 1, kControl = 3, kUserDefined = 4;

struct Word {
  std::string text;
  std::int32_t type = kNormal;
};

// One layer, all zeros: every token is as likely as the others, and the first comes first.
test::GgufBytes tiny(const std::vector<Word>& words, const std::string& architecture = "llama") {
  test::GgufBytes g;
  g.text("general.architecture", architecture);
  const auto key = [&](const char* name) { return architecture + "." + name; };
  for (const auto& [name, value] :
       {std::pair("context_length", 32), std::pair("embedding_length", 32), std::pair("block_count", 1),
        std::pair("feed_forward_length", 32), std::pair("attention.head_count", 2), std::pair("attention.head_count_kv", 1)}) {
    g.u32(key(name), static_cast<std::uint32_t>(value));
  }
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  for (const Word& w : words) {
    tokens.push_back(w.text);
    types.push_back(w.type);
  }
  g.text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", tokens).numbers("tokenizer.ggml.token_type", 5, types);
  g.texts("tokenizer.ggml.merges", {});
  const auto floats = [&](const std::string& name, const std::vector<std::uint64_t>& extents) {
    std::uint64_t count = 4;
    for (const std::uint64_t e : extents) count *= e;
    g.tensor(name + ".weight", 0, extents, std::string(count, '\0'));
  };
  floats("token_embd", {32, words.size()});
  floats("output_norm", {32});
  for (const char* norm : {"attn_norm", "ffn_norm"}) floats(std::string("blk.0.") + norm, {32});
  if (architecture == "phi3") {
    floats("blk.0.attn_qkv", {32, 64});
    floats("blk.0.ffn_up", {32, 64});
  } else {
    floats("blk.0.attn_q", {32, 32});
    for (const char* part : {"attn_k", "attn_v"}) floats(std::string("blk.0.") + part, {32, 16});
    for (const char* part : {"ffn_gate", "ffn_up"}) floats(std::string("blk.0.") + part, {32, 32});
  }
  for (const char* part : {"attn_output", "ffn_down"}) floats(std::string("blk.0.") + part, {32, 32});
  return g;
}

class WeightsModels : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& bytes) const { return temporary_.write(name, bytes); }
  static LanguageModel load(const fs::path& path) {
    LanguageModelOptions options;
    options.session.threads = 1;
    return LanguageModel::load(path, options);
  }
  Ids ends_of(const test::GgufBytes& g) const { return load(write("model.gguf", g.bytes())).info().eos; }

  const testing::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
};

TEST_F(WeightsModels, ControlTokensOfKnownTextsEndAnAnswer) {
  for (const std::string& text :
       split_list("<|eot_id|>,<|im_end|>,<|end|>,<|return|>,<|call|>,<end_of_turn>,<|endoftext|>,<|eom_id|>,<EOT>,_<EOT>,"
                  "[EOT],[EOS],</s>,<|end_of_text|>,<end_of_utterance>,<|end_of_turn|>,<turn|>,<|eot|>,<|eom|>,"
                  "<｜end▁of▁sentence｜>,<|EOT|>,<|END_OF_TURN_TOKEN|>,[|endofturn|]")) {
    EXPECT_EQ(ends_of(tiny({{"a"}, {"b"}, {text, kControl}})), (Ids{2})) << text;
  }
  // Converters that forget to say so: such a text is nothing else.
  EXPECT_EQ(ends_of(tiny({{"a"}, {"<end_of_turn>", kUserDefined}, {"<|end|>", kNormal}})), (Ids{1, 2}));
  // A piece of a page, and control tokens that begin something.
  EXPECT_EQ(ends_of(tiny({{"</s>", kNormal}, {"<s>", kControl}, {"<|im_start|>", kControl}, {"<pad>", kControl}})), Ids{});
  // Settings in the file come first.
  EXPECT_EQ(ends_of(tiny({{"<|end|>", kControl}, {"a"}, {"b", kControl}}).u32("tokenizer.ggml.eos_token_id", 2)), (Ids{2, 0}));
  // Between Harmony's messages.
  EXPECT_EQ(ends_of(tiny({{"<|end|>", kControl}, {"<|return|>", kControl}, {"<|call|>", kControl}})), (Ids{1, 2}));
}

TEST_F(WeightsModels, AnAnswerEndsThere) {
  const LanguageModel model = load(write("model.gguf", tiny({{"<|end|>", kNormal}, {"a"}, {"b"}}).bytes()));
  GenerationSettings s;
  s.sampling.greedy = true;
  s.max_tokens = 9;
  const Generation g = model.generate("ab", s);
  EXPECT_EQ(g.choices[0].tokens, (Ids{0}));
  EXPECT_EQ(g.choices[0].finish_reason, "stop");
  EXPECT_EQ(g.choices[0].text, "");
  EXPECT_EQ(model.tokenizer().encode("a<|end|>b", false).ids, (Ids{1, 0, 2}));
}

TEST_F(WeightsModels, ReportsSayWhyActivationsAreNotRounded) {
  const fs::path path = write("model.gguf", tiny({{"a"}, {"b"}}).bytes());
  LanguageModelOptions options;
  const auto why = [&] {
    std::string all;
    for (const NodeReport& n : LanguageModel::load(path, options).report().nodes) {
      if (n.op != "sdx.GgmlMatMul") continue;
      EXPECT_EQ(n.kernel, "matmul-f32");
      for (const std::string& reason : n.refused) all += reason + "\n";
    }
    return all;
  };
  EXPECT_NE(why().find("matmul-ggml-int8: weights of type f32 are multiplied as floats"), std::string::npos) << why();
  options.accuracy_level = 1;
  EXPECT_NE(why().find("accuracy_level 1 asks for more than 8 bits"), std::string::npos) << why();
  options.accuracy_level = 4;
  EXPECT_EQ(why().find("accuracy_level"), std::string::npos);
  for (const int level : {-1, 5}) {
    options.accuracy_level = level;
    EXPECT_THROW(LanguageModel::load(path, options), Error) << level;
  }
}

TEST_F(WeightsModels, FilesRecommendHowToSample) {
  test::GgufBytes g = tiny({{"a"}, {"b"}});
  g.number<std::int32_t>("general.sampling.top_k", 5, 1).f32("general.sampling.top_p", 0.5F).f32("general.sampling.min_p", 0.25F);
  g.f32("general.sampling.temp", 0.75F).f32("general.sampling.penalty_repeat", 1.5F);
  const SamplingSettings s = load(write("model.gguf", g.bytes())).info().defaults;
  EXPECT_EQ(s.top_k, 1);
  EXPECT_EQ(s.top_p, 0.5F);
  EXPECT_EQ(s.min_p, 0.25F);
  EXPECT_EQ(s.temperature, 0.75F);
  EXPECT_EQ(s.repetition_penalty, 1.5F);
  EXPECT_FALSE(s.greedy);
  const SamplingSettings none = load(write("none.gguf", tiny({{"a"}}).bytes())).info().defaults;
  EXPECT_EQ(none.top_k, 0);
  EXPECT_EQ(none.temperature, 1.0F);
  const auto wrong = [&](const char* key, float value) {
    EXPECT_THROW(load(write("wrong.gguf", tiny({{"a"}}).f32(key, value).bytes())), Error) << key;
  };
  wrong("general.sampling.min_p", 2.0F);
  wrong("general.sampling.penalty_repeat", 0.0F);
}

TEST_F(WeightsModels, ToolsHaveATemplateOfTheirOwn) {
  test::GgufBytes g = tiny({{"a"}, {"b"}});
  g.text("tokenizer.chat_template", "plain").text("tokenizer.chat_template.tool_use", "{{ tools | length }}<tool_call>");
  const fs::path file = write("model.gguf", g.bytes());
  const ChatTemplate chat = ChatTemplate::load(file);
  ChatInput input;
  input.messages = R"([{"role": "user", "content": "x"}])";
  EXPECT_EQ(chat.render(input), "plain");
  input.tools = R"([{"type": "function", "function": {"name": "f"}}])";
  EXPECT_EQ(chat.render(input), "1<tool_call>");
  EXPECT_EQ(chat.source(), "plain");
  EXPECT_EQ(answer_format(chat).calls, ToolCallFormat::hermes);
  // The folder that it is converted to has both.
  convert_language_model(file, folder_ / "converted");
  EXPECT_EQ(ChatTemplate::load(folder_ / "converted").render(input), "1<tool_call>");
}

TEST_F(WeightsModels, ZeroMeansNone) {
  test::GgufBytes g = tiny({{"a"}, {"b"}}, "phi3");
  g.u32("phi3.attention.sliding_window", 0).u32("phi3.expert_count", 0).u32("phi3.rope.scaling.original_context_length", 0);
  g.f32("phi3.rope.scaling.factor", 0.0F);
  EXPECT_EQ(load(write("model.gguf", g.bytes())).info().context, 32);
}

TEST_F(WeightsModels, AFolderMayMeanItsFile) {
  const std::string bytes =
      tiny({{"a"}, {"<|end|>", kControl}}).text("tokenizer.chat_template", "{{ messages[0].content }}").bytes();
  write("one/model.gguf", bytes);
  write("one/mmproj-model-f16.gguf", "no language model");
  EXPECT_EQ(load(folder_ / "one").info().eos, (Ids{1}));
  EXPECT_TRUE(ChatTemplate::has(folder_ / "one"));
  EXPECT_EQ(ChatTemplate::load(folder_ / "one").source(), "{{ messages[0].content }}");
  EXPECT_EQ(Tokenizer::load(folder_ / "one").vocabulary_size(), 2U);
  write("one/other.gguf", bytes);
  testing::expect_error([&] { load(folder_ / "one"); }, {"'model.gguf', 'other.gguf'"});
}

TEST(GgufNames, PartsAndProjectors) {
  EXPECT_TRUE(is_whole_gguf("a/x.gguf"));
  EXPECT_TRUE(is_whole_gguf("x-00001-of-00002.gguf"));
  EXPECT_FALSE(is_whole_gguf("x-00002-of-00002.gguf"));
  EXPECT_FALSE(is_whole_gguf("mmproj-F16.gguf"));
  EXPECT_FALSE(is_whole_gguf("Qwen.mmProj-f16.gguf"));
  EXPECT_FALSE(is_whole_gguf("x.onnx"));
  EXPECT_EQ(model_name_of("a/x-00001-of-00002.gguf"), "x");
  EXPECT_EQ(model_name_of("x-1-of-2.gguf"), "x-1-of-2");
  EXPECT_EQ(model_name_of("-00001-of-00002.gguf"), "-00001-of-00002");
  EXPECT_FALSE(gguf_part("x-00003-of-00002.gguf"));
  EXPECT_EQ(gguf_parts("a/x-00001-of-00002.gguf"), (std::vector<fs::path>{"a/x-00001-of-00002.gguf", "a/x-00002-of-00002.gguf"}));
  EXPECT_EQ(gguf_parts("x.gguf"), (std::vector<fs::path>{"x.gguf"}));
}

TEST(RopeRows, TablesOfAnglesHaveALimit) {
  EXPECT_NO_THROW(check_angles(kMostTextTokens, 256));
  EXPECT_THROW(check_angles(kMostTextTokens, 4096), Error);
  EXPECT_NO_THROW(check_angles(0, 4096));
}

}  // namespace
}  // namespace sdx::text
