#include <gtest/gtest.h>

#include <algorithm>
#include <sdx/chat_template.hpp>
#include <sdx/error.hpp>
#include <sdx/tokenizer.hpp>
#include <thread>

#include "support/errors.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/token_bytes.h"

namespace sdx {
namespace {

using Ids = std::vector<std::uint32_t>;

// Byte-level BPE over all bytes with a few merges, GPT-2's expression, and two added tokens.
std::string byte_level_json(const std::string& extra = "") {
  std::string vocab;
  std::uint32_t id = 0;
  const auto add = [&](const std::string& token) {
    vocab += (vocab.empty() ? "\"" : ",\"") + token + "\":" + std::to_string(id++);
  };
  const auto utf8 = [](unsigned c) {
    std::string s;
    if (c < 0x80) {
      s += static_cast<char>(c);
    } else {
      s += static_cast<char>(0xC0 | (c >> 6));
      s += static_cast<char>(0x80 | (c & 0x3F));
    }
    return c == '"' || c == '\\' ? "\\" + s : s;
  };
  unsigned next = 256;
  for (unsigned b = 0; b < 256; ++b) {
    const bool shown = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    add(utf8(shown ? b : next++));
  }
  for (const char* token : {"he", "ll", "hell", "hello", "Ġw", "aa", "aaaa"}) add(token);
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[
      {"id":263,"content":"<end>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},
      {"id":264,"content":"<pad>","single_word":false,"lstrip":true,"rstrip":false,"normalized":false,"special":false}],
      "normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
      "post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
      "model":{"type":"BPE",)" +
         extra + R"("vocab":{)" + vocab +
         R"(},"merges":["h e","l l",["he","ll"],["hell","o"],["Ġ","w"],["a","a"],["aa","aa"]]}})";
}

TEST(Tokenizer, NamesOfSpecialTokensMayBeText) {
  const Tokenizer t = Tokenizer::from_json(byte_level_json());
  const std::string text = "a<end>b<end><pad>";
  EXPECT_EQ(t.special_places(text), (std::vector<std::size_t>{1, 7}));
  const Encoding plain = t.encode(text, std::vector<std::size_t>{1});
  EXPECT_EQ(std::count(plain.ids.begin(), plain.ids.end(), 263U), 1);
  EXPECT_EQ(t.decode(plain.ids, true), "a<end>b<pad>");
  EXPECT_EQ(t.decode(plain.ids, false), text);
  EXPECT_EQ(t.encode(text, std::vector<std::size_t>{}).ids, t.encode(text).ids);
}

TEST(Tokenizer, PromptsKeepTextsOfConversationsPlain) {
  const Tokenizer t = Tokenizer::from_json(byte_level_json());
  const ChatTemplate chat(
      "{% for m in messages %}{{ m.role }}:{{ m.content }}<end>{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}");
  ChatInput input;
  input.messages = R"([{"role": "user", "content": "x<end>y \ufdd0"}, {"role": "assistant", "content": "<end>"}])";
  input.tools = R"([{"name": "<end>"}])";
  const PlainPrompt prompt = chat.render_plain(input, t);
  EXPECT_EQ(prompt.text, chat.render(input));
  const std::vector<std::uint32_t> ids = t.encode(prompt.text, prompt.plain).ids;
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 263U), 2);  // the template's own
  EXPECT_EQ(t.decode(ids, false), prompt.text);
  const std::vector<std::uint32_t> all = t.encode(prompt.text).ids;
  EXPECT_EQ(std::count(all.begin(), all.end(), 263U), 5);
  input.messages = "{";  // what is wrong, the template's reader says
  EXPECT_THROW(chat.render_plain(input, t), Error);
}

TEST(Tokenizer, MergesInOrder) {
  const Tokenizer t = Tokenizer::from_json(byte_level_json());
  const Encoding e = t.encode("hello wé <pad>x<end>");
  EXPECT_EQ(e.tokens, (std::vector<std::string>{"hello", "Ġw", "Ã", "©", " <pad>", "x", "<end>"}));
  EXPECT_EQ(e.offsets, (std::vector<TextRange>{{0, 5}, {5, 7}, {7, 8}, {7, 8}, {8, 14}, {14, 15}, {15, 20}}));
  EXPECT_EQ(e.word_ids, (std::vector<std::int64_t>{0, 1, 1, 1, 2, 3, 4}));
  EXPECT_EQ(t.decode(e.ids, false), "hello wé<pad>x<end>");
  EXPECT_EQ(t.decode(e.ids, true), "hello wé<pad>x");
  EXPECT_EQ(t.vocabulary_size(), 265U);
  EXPECT_EQ(t.token_to_id("<end>"), 263U);
  EXPECT_EQ(t.id_to_token(259), "hello");
  EXPECT_FALSE(t.id_to_token(9999));
  EXPECT_TRUE(t.is_special(263));
}

// Each model cuts a megabyte of one character in time that grows with its length alone: a quadratic one takes hours.
TEST(Tokenizer, LongTextsTakeLinearTime) {
  const Tokenizer t = Tokenizer::from_json(byte_level_json());
  for (const char* unit : {"a", " ", "l", "é", "👍", "\u0301", "hello ", "<end>", "<", "'"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    const Encoding e = t.encode(text);
    EXPECT_EQ(t.decode(e.ids, false), text) << unit;
  }
}

// The trie of a vocabulary is made in time that grows with the vocabulary alone, also where all tokens are long and few bytes
// occur.
TEST(Tokenizer, HostileVocabulariesLoad) {
  std::string vocab = "\"[UNK]\":0";
  for (int i = 1; i < 200; ++i)
    vocab += ",\"" + std::string(2000, static_cast<char>('a' + i % 26)) + std::to_string(i) + "\":" + std::to_string(i);
  const Tokenizer t = Tokenizer::from_json(R"({"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",
      "max_input_chars_per_word":5000,"vocab":{)" +
                                           vocab + "}}}");
  EXPECT_EQ(t.encode(std::string(2000, 'b') + "1").ids, (Ids{1}));
  EXPECT_EQ(t.encode(std::string(1999, 'b') + "1").ids, (Ids{0}));
}

// A file may ask for a megabyte in place of each character, or for a table that goes round in circles.
TEST(Tokenizer, HostileNormalizersAreRefused) {
  const auto with = [](const std::string& normalizer) {
    std::string json = byte_level_json();
    const std::string none = R"("normalizer":null)";
    return Tokenizer::from_json(json.replace(json.find(none), none.size(), "\"normalizer\":" + normalizer));
  };
  const std::string replace = R"({"type":"Replace","pattern":{"String":"a"},"content":")" + std::string(1 << 20, 'b') + "\"}";
  testing::error_of(ErrorCode::out_of_memory, [&] { with(replace).encode(std::string(1 << 20, 'a')); });
  EXPECT_EQ(with(R"({"type":"Replace","pattern":{"String":"a"},"content":"bbbbbbbbbb"})").encode("aa").size(), 20U);
  // A double array whose 'a' leads back to itself: each place would be looked at as far as the text reaches.
  std::string table(4 + 4 * 256, '\0');
  table[1] = 4;
  table[4 + 4 * 0x61] = 'a';
  table[4 + 4 * 0x61 + 1] = static_cast<char>(0x84);  // 0x61 << 10
  table[4 + 4 * 0x61 + 2] = 1;
  const text::Charsmap circle(table);
  const std::string as(1 << 20, 'a');
  for (std::size_t at = 0; at < as.size(); ++at) ASSERT_FALSE(circle.longest(std::string_view(as).substr(at)));
  EXPECT_THROW(text::Charsmap(std::string((1 << 24) + 4, '\0')), Error);
}

TEST(Tokenizer, StreamsWholeCharacters) {
  const Tokenizer t = Tokenizer::from_json(byte_level_json());
  const std::string text = "hé👍 wörld <end> \xEF\xBF\xBD!";
  StreamDecoder stream(t, false);
  std::string all;
  for (const std::uint32_t id : t.encode(text).ids) {
    const std::string part = stream.add(id);
    EXPECT_EQ(t.encode(part).ids.empty(), part.empty());  // throws for half a character
    all += part;
  }
  EXPECT_EQ(all + stream.finish(), text);
  StreamDecoder broken(t, false);  // a lead byte without the rest
  EXPECT_EQ(broken.add(*t.token_to_id("Ã")), "");
  EXPECT_EQ(broken.finish(), "\xEF\xBF\xBD");
}

TEST(Tokenizer, ThreadsShareOne) {
  const Tokenizer t = Tokenizer::from_json(byte_level_json());
  const Ids expected = t.encode("hello world aaaaaaa").ids;
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int& w : wrong) {
    threads.emplace_back([&t, &expected, &w] {
      for (int i = 0; i < 500; ++i) w += t.encode("hello world aaaaaaa").ids == expected ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Tokenizer, DropoutStillReadsTheSame) {
  const Tokenizer t = Tokenizer::from_json(byte_level_json(R"("dropout":0.5,)"));
  std::size_t tokens = 0;
  for (int i = 0; i < 50; ++i) {
    const Encoding e = t.encode("hello hello");
    EXPECT_EQ(t.decode(e.ids), "hello hello");
    tokens += e.size();
  }
  EXPECT_GT(tokens, 50U * 3);
  EXPECT_EQ(Tokenizer::from_json(byte_level_json(R"("dropout":1.0,)")).encode("hello").size(), 5U);
}

TEST(Tokenizer, TruncatesAndPads) {
  const Tokenizer t = Tokenizer::from_json(byte_level_json());
  Truncation truncation;
  truncation.max_length = 4;
  truncation.stride = 1;
  const Encoding e = t.with_truncation(truncation).encode("xyzxyzxyz");
  EXPECT_EQ(e.tokens, (std::vector<std::string>{"x", "y", "z", "x"}));
  ASSERT_EQ(e.overflowing.size(), 2U);
  EXPECT_EQ(e.overflowing[1].tokens, (std::vector<std::string>{"x", "y", "z"}));
  truncation.stride = 9;
  EXPECT_THROW(t.with_truncation(truncation), Error);
  Padding padding;
  padding.multiple_of = 4;
  padding.direction = Side::left;
  const Encoding padded = t.with_padding(padding).encode("xyzxy");
  EXPECT_EQ(padded.attention_mask, (std::vector<std::uint8_t>{0, 0, 0, 1, 1, 1, 1, 1}));
}

TEST(Tokenizer, SaysWhatIsWrong) {
  const auto message = [](const std::string& json) -> std::string {
    try {
      Tokenizer::from_json(json);
    } catch (const Error& e) {
      return e.what();
    }
    return "nothing";
  };
  EXPECT_NE(message("{").find("line 1, column 2"), std::string::npos) << message("{");
  EXPECT_NE(message("{}").find("'model' is missing"), std::string::npos);
  EXPECT_NE(message(R"({"model":{"type":"BPX"}})").find("expected one of: BPE, WordPiece"), std::string::npos);
  EXPECT_NE(message(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}})").find("'b', which the vocabulary lacks"),
            std::string::npos);
  EXPECT_NE(message(R"({"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}})").find("expected a token's number"),
            std::string::npos);
  EXPECT_NE(message(std::string(1000, '[')).find("nested"), std::string::npos);
  EXPECT_THROW(Tokenizer::from_json(byte_level_json()).encode("a\xFFz"), Error);
  EXPECT_THROW(Tokenizer::load("/nowhere/tokenizer.json"), Error);
  EXPECT_THROW(Tokenizer::load("/"), Error);
}

TEST(Tokenizer, TokensAreAdded) {
  const Tokenizer t = Tokenizer::from_json(
      R"({"pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2}}})");
  std::size_t count = 0;
  const std::vector<TokenToAdd> tokens{
      {.content = "<x>"}, {.content = "b"}, {.content = "<y>", .special = true}, {.content = ""}};
  const Tokenizer more = t.with_tokens(tokens, &count);
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(more.encode("a<x>b<y>").ids, (std::vector<std::uint32_t>{1, 3, 2, 4}));
  EXPECT_TRUE(more.is_special(4));
  EXPECT_EQ(more.decode(std::vector<std::uint32_t>{1, 4}), "a");
  EXPECT_EQ(more.vocabulary_size(), 5U);
  EXPECT_EQ(t.vocabulary_size(), 3U);  // which has not changed
  EXPECT_FALSE(t.token_to_id("<x>"));
  const Tokenizer same = more.with_tokens(tokens, &count);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(same.vocabulary_size(), 5U);
  EXPECT_THROW(t.with_tokens(std::vector<TokenToAdd>{{.content = std::string(5000, 'x')}}), Error);
}

TEST(Tokenizer, InputsOfBatches) {
  const Tokenizer t =
      Tokenizer::from_json(
          R"({"pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2}}})")
          .with_padding(Padding{});
  const std::vector<TextInput> inputs{
      {.text = {"a b"}}, {.text = {"a"}, .pair = std::vector<std::string>{"b a"}}, {.text = {"a", "b"}, .words = true}};
  const std::vector<Encoding> batch = t.encode_batch(inputs);
  ASSERT_EQ(batch.size(), 3U);
  EXPECT_EQ(batch[0].ids, (std::vector<std::uint32_t>{1, 2, 0}));
  EXPECT_EQ(batch[1].ids, (std::vector<std::uint32_t>{1, 2, 1}));
  EXPECT_EQ(batch[1].type_ids, (std::vector<std::uint32_t>{0, 1, 1}));
  EXPECT_EQ(batch[2].word_ids, (std::vector<std::int64_t>{0, 1, -1}));
  EXPECT_THROW(t.encode(TextInput{.text = {"a", "b"}}), Error);
}

TEST(Tokenizer, APairMayBeALiteral) {
  const Tokenizer t = Tokenizer::from_json(
      R"({"pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2}}})");
  EXPECT_EQ(t.encode("a", "b a").ids, t.encode("a", std::string_view("b a")).ids);
  EXPECT_EQ(t.encode("a", "b a").type_ids, (std::vector<std::uint32_t>{0, 1, 1}));
}

TEST(Tokenizer, NumbersBeyondAllMeasureAreNotCountedUpTo) {
  const Tokenizer t = Tokenizer::from_json(R"({"model":{"type":"BPE","vocab":{"a":0,"b":4294967295},"merges":[]}})");
  EXPECT_THROW(text::token_bytes(t), Error);
  EXPECT_EQ(text::token_bytes(t, 4), (std::vector<std::string>{"a", "", "", ""}));
}

}  // namespace
}  // namespace sdx
