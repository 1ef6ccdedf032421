#include "text/tokenizer/load/load.h"
#include "support/gguf_bytes.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>
#include <sdx/error.hpp>
#include <sdx/tokenizer.hpp>

namespace sdx::text {
namespace {

using Ids = std::vector<std::uint32_t>;

// A SentencePiece model of type 1 (unigram) or 2 (BPE).
std::string sentencepiece(int type) {
  std::string model;
  protozero::pbf_writer writer(model);
  const auto piece = [&](const char* text, float score, int kind) {
    std::string bytes;
    protozero::pbf_writer p(bytes);
    p.add_string(1, text);
    p.add_float(2, score);
    if (kind != 1) p.add_enum(3, kind);
    writer.add_message(1, bytes);
  };
  piece("<unk>", 0, 2);
  piece("<s>", 0, 3);
  piece("</s>", 0, 3);
  piece("<x>", 0, 4);
  float score = -1;
  for (const char* text : {"▁ab", "ab", "▁", "a", "b", "c"}) piece(text, score--, 1);
  std::string trainer;
  protozero::pbf_writer(trainer).add_enum(3, type);
  writer.add_message(2, trainer);
  return model;
}

// Encoders pair texts as transformers' classes do, whatever the kind of their vocabulary.
TEST(LoadTokenizer, PairsInGgufFiles) {
  const testing::TemporaryFolder folder;
  const auto pair = [&](const char* architecture, const char* kind, std::vector<std::uint32_t>* types) {
    test::GgufBytes g;
    g.text("general.architecture", architecture).text("tokenizer.ggml.model", kind);
    g.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "b"});
    g.numbers<std::int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 3, 1, 1}).texts("tokenizer.ggml.merges", {});
    g.numbers<float>("tokenizer.ggml.scores", 6, {0, 0, 0, -1, -1});
    g.flag("tokenizer.ggml.add_space_prefix", false).flag("tokenizer.ggml.add_bos_token", true);
    g.flag("tokenizer.ggml.add_eos_token", true).u32("tokenizer.ggml.unknown_token_id", 0);
    g.u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
    folder.write("m.gguf", g.bytes());
    const Encoding e = Tokenizer::load(folder.path() / "m.gguf").encode("a", std::string_view("b"));
    types->assign(e.type_ids.begin(), e.type_ids.end());
    return Ids(e.ids.begin(), e.ids.end());
  };
  std::vector<std::uint32_t> types;
  EXPECT_EQ(pair("modern-bert", "gpt2", &types), (Ids{1, 3, 2, 4, 2}));
  EXPECT_EQ(types, (Ids{0, 0, 0, 0, 0}));
  EXPECT_EQ(pair("bert", "gpt2", &types), (Ids{1, 3, 2, 2, 4, 2}));
  EXPECT_EQ(pair("bert", "t5", &types), (Ids{1, 3, 2, 2, 4, 2}));
  EXPECT_EQ(types, (Ids{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(pair("llama", "gpt2", &types), (Ids{1, 3, 2, 1, 4, 2}));
  EXPECT_EQ(types, (Ids{0, 0, 0, 1, 1, 1}));
}

TEST(LoadTokenizer, SentencePiece) {
  const testing::TemporaryFolder folder;
  for (const int type : {1, 2}) {
    folder.write("tokenizer.model", sentencepiece(type));
    const Tokenizer t = Tokenizer::load(folder.path() / "tokenizer.model");
    EXPECT_EQ(t.encode("  ab  abc<x>zz ").ids, (Ids{4, 4, 9, 3, 0})) << type;
    EXPECT_EQ(t.encode("ab").offsets, (std::vector<TextRange>{{0, 2}}));
    EXPECT_EQ(t.decode(Ids{1, 4, 4, 9, 2}), "ab abc");
    EXPECT_EQ(t.encode("<s>").ids, (Ids{6, 0})) << "a model alone finds no control symbols";
  }
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class":"LlamaTokenizer","bos_token":"<s>","eos_token":{"content":"</s>"},"add_eos_token":true})");
  const Tokenizer t = Tokenizer::load(folder.path());
  EXPECT_EQ(t.encode("ab").ids, (Ids{1, 4, 2}));
  EXPECT_EQ(t.encode("<s>ab", false).ids, (Ids{1, 4}));
  EXPECT_EQ(t.special_tokens().eos, "</s>");
  folder.write("tokenizer.model", sentencepiece(1).substr(0, 50));
  EXPECT_THROW(Tokenizer::load(folder.path()), Error);
  folder.write("tokenizer.model", sentencepiece(3));
  EXPECT_THROW(Tokenizer::load(folder.path()), Error);
}

TEST(LoadTokenizer, VocabTxt) {
  const testing::TemporaryFolder folder;
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhe\r\n##llo\nHe\n");
  EXPECT_EQ(Tokenizer::load(folder.path()).encode("Hello é").ids, (Ids{2, 4, 5, 1, 3}));
  folder.write("tokenizer_config.json", R"({"do_lower_case":false})");
  EXPECT_EQ(Tokenizer::load(folder.path()).encode("Hello").ids, (Ids{2, 6, 5, 3}));
  folder.write("vocab.txt", "a\nb\n");
  EXPECT_THROW(Tokenizer::load(folder.path()), Error);
}

TEST(LoadTokenizer, VocabAndMerges) {
  const testing::TemporaryFolder folder;
  folder.write("vocab.json", R"({"a":0,"b":1,"ab":2,"Ġ":3,"Ġab":4,"<s>":5})");
  folder.write("merges.txt", "#version: 0.2\na b\nĠ ab\n");
  folder.write("added_tokens.json", R"({"<new>":9})");
  const Tokenizer t = Tokenizer::load(folder.path());
  EXPECT_EQ(t.encode("ab ab<new>").ids, (Ids{2, 4, 9}));
  EXPECT_EQ(t.decode(Ids{2, 4}), "ab ab");
  folder.write("merges.txt", "a b c\n");
  EXPECT_THROW(Tokenizer::load(folder.path()), Error);
}

// ---- GGUF

std::string little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  return out;
}
std::string string(std::string_view s) { return little(s.size(), 8) + std::string(s); }
std::string text_value(std::string_view key, std::string_view s) { return string(key) + little(8, 4) + string(s); }
std::string texts_value(std::string_view key, const std::vector<std::string>& items) {
  std::string out = string(key) + little(9, 4) + little(8, 4) + little(items.size(), 8);
  for (const std::string& s : items) out += string(s);
  return out;
}
std::string gguf(const std::vector<std::string>& values) {
  std::string out = "GGUF" + little(3, 4) + little(0, 8) + little(values.size(), 8);
  for (const std::string& v : values) out += v;
  return out;
}

std::shared_ptr<const TokenizerPipeline> pipeline_of(const std::string& bytes) {
  return pipeline_of_gguf(GgufFile(std::as_bytes(std::span(bytes))));
}

TEST(LoadTokenizer, Gguf) {
  const testing::TemporaryFolder folder;
  const auto tokens = texts_value("tokenizer.ggml.tokens", {"<unk>", "<s>", "▁", "a", "b", "ab", "▁ab"});
  std::string types = string("tokenizer.ggml.token_type") + little(9, 4) + little(5, 4) + little(7, 8);
  for (const int type : {2, 3, 1, 1, 1, 1, 1}) types += little(static_cast<std::uint64_t>(type), 4);
  const std::string bos = string("tokenizer.ggml.bos_token_id") + little(4, 4) + little(1, 4);
  folder.write("m.gguf", gguf({text_value("tokenizer.ggml.model", "llama"), tokens, types, bos}));
  const Tokenizer t = Tokenizer::load(folder.path() / "m.gguf");
  EXPECT_EQ(t.encode("ab b").ids, (Ids{1, 6, 2, 4}));
  EXPECT_EQ(t.decode(Ids{1, 6, 2, 4}), "ab b");
}

TEST(LoadTokenizer, BrokenGguf) {
  const auto model = text_value("tokenizer.ggml.model", "gpt2");
  EXPECT_THROW(pipeline_of("GGU"), Error);
  EXPECT_THROW(pipeline_of("GGUF" + little(9, 4)), Error);
  EXPECT_THROW(pipeline_of(gguf({})), Error);
  EXPECT_THROW(pipeline_of(gguf({model})), Error);
  EXPECT_THROW(pipeline_of(gguf({model, texts_value("tokenizer.ggml.tokens", {"a"})})), Error);  // no merges
  EXPECT_THROW(pipeline_of(gguf({text_value("tokenizer.ggml.model", "rwkv"), texts_value("tokenizer.ggml.tokens", {"a"})})),
               Error);
  EXPECT_THROW(pipeline_of("GGUF" + little(3, 4) + little(0, 8) + little(~std::uint64_t{0}, 8)), Error);
  // Every length in turn promises more than there is.
  const std::string whole = gguf({model, texts_value("tokenizer.ggml.tokens", {"a", "b"})});
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_THROW(pipeline_of(whole.substr(0, size)), Error) << size;
  for (std::size_t at = 16; at + 8 <= whole.size(); ++at) {
    std::string changed = whole;
    changed.replace(at, 8, little(~std::uint64_t{0} - at, 8));
    EXPECT_THROW(pipeline_of(changed), Error) << at;
  }
}

}  // namespace
}  // namespace sdx::text
