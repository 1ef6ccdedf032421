// Encodings and decodings that the library `tokenizers` gave, in folders that are no part of the repository (SDX_TEST_MODELS).

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sdx/error.hpp>
#include <sdx/tokenizer.hpp>

#include "text/tokenizer/load/components.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path data_folder(const char* name) {
  const char* models = std::getenv("SDX_TEST_MODELS");
  return models == nullptr ? fs::path() : fs::path(models) / name;
}

std::vector<json> lines_of(const fs::path& path) {
  std::vector<json> all;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) all.push_back(json::parse(line));
  }
  return all;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Truncation truncation_of(const json& j) {
  Truncation t;
  t.max_length = j.at("max_length");
  t.stride = j.value("stride", 0);
  const std::string strategy = j.value("strategy", "longest_first"), direction = j.value("direction", "right");
  t.strategy = strategy == "only_first"    ? TruncationStrategy::only_first
               : strategy == "only_second" ? TruncationStrategy::only_second
                                           : TruncationStrategy::longest_first;
  t.direction = direction == "left" ? Side::left : Side::right;
  return t;
}

Padding padding_of(const json& j) {
  Padding p;
  if (j.contains("length") && !j["length"].is_null()) p.fixed_length = j["length"].get<std::size_t>();
  p.direction = j.value("direction", "right") == "left" ? Side::left : Side::right;
  if (j.contains("pad_to_multiple_of") && !j["pad_to_multiple_of"].is_null()) p.multiple_of = j["pad_to_multiple_of"];
  p.id = j.value("pad_id", 0U);
  p.type_id = j.value("pad_type_id", 0U);
  p.token = j.value("pad_token", "[PAD]");
  return p;
}

// The recorded parts of an encoding, and nothing else.
std::string difference(const Encoding& e, const json& expected) {
  json got;
  got["ids"] = e.ids;
  got["tokens"] = e.tokens;
  for (const TextRange& o : e.offsets) got["offsets"].push_back({o.begin, o.end});
  if (e.offsets.empty()) got["offsets"] = json::array();
  got["type_ids"] = e.type_ids;
  got["special_tokens_mask"] = e.special_tokens_mask;
  got["attention_mask"] = e.attention_mask;
  const auto nullable = [](const auto& values) {
    json list = json::array();
    for (const auto v : values) list.push_back(v < 0 ? json() : json(v));
    return list;
  };
  got["word_ids"] = nullable(e.word_ids);
  got["sequence_ids"] = nullable(e.sequence_ids());
  for (const auto& [key, value] : got.items()) {
    if (expected.contains(key) && expected[key] != value)
      return key + ": " + value.dump() + "\n  expected " + expected[key].dump();
  }
  if (expected.contains("overflowing_count") && expected["overflowing_count"] != e.overflowing.size()) {
    return "overflowing: " + std::to_string(e.overflowing.size());
  }
  if (expected.contains("overflowing")) {
    for (std::size_t i = 0; i < expected["overflowing"].size(); ++i) {
      if (std::string d = difference(e.overflowing.at(i), expected["overflowing"][i]); !d.empty()) return "overflowing " + d;
    }
  }
  return {};
}

Tokenizer with_settings(Tokenizer t, const json& c) {
  if (c.contains("truncation"))
    t = t.with_truncation(c["truncation"].is_null() ? std::nullopt : std::optional(truncation_of(c["truncation"])));
  if (c.contains("padding")) t = t.with_padding(c["padding"].is_null() ? std::nullopt : std::optional(padding_of(c["padding"])));
  return t;
}

std::string check_decoding(const Tokenizer& t, const std::vector<std::uint32_t>& ids, const json& c) {
  if (c.contains("decoded") && t.decode(ids, false) != c["decoded"].get<std::string>()) return "decoded: " + t.decode(ids, false);
  if (c.contains("decoded_skip_special") && t.decode(ids, true) != c["decoded_skip_special"].get<std::string>()) {
    return "decoded_skip_special: " + t.decode(ids, true);
  }
  return {};
}

std::string check_stream(const Tokenizer& t, const json& c) {
  const bool skip = c.at("skip_special_tokens");
  StreamDecoder stream(t, skip);
  std::string all;
  const std::vector<std::uint32_t> ids = c["stream_ids"];
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string part = stream.add(ids[i]);
    const json& expected = c["chunks"][i];
    if (part != (expected.is_null() ? "" : expected.get<std::string>())) return "chunk " + std::to_string(i) + ": " + part;
    all += part;
  }
  all += stream.finish();
  return all == t.decode(ids, skip) ? "" : "parts together: " + all;
}

Encoding encode(const Tokenizer& t, const json& c) {
  const bool special = c.value("add_special_tokens", true);
  if (c.contains("words")) return t.encode_words(c["words"].get<std::vector<std::string>>(), special);
  if (c.contains("pair")) return t.encode(c["text"].get<std::string>(), c["pair"].get<std::string>(), special);
  return t.encode(c["text"].get<std::string>(), special);
}

std::string check(const Tokenizer& plain, const json& c) {
  if (c.contains("stream_ids")) return check_stream(plain, c);
  if (c.contains("decode_ids")) return check_decoding(plain, c["decode_ids"], c);
  try {
    const Tokenizer t = with_settings(plain, c);
    if (c.contains("texts")) {
      const auto batch = t.encode_batch(c["texts"].get<std::vector<std::string>>(), c.value("add_special_tokens", true));
      for (std::size_t i = 0; i < batch.size(); ++i) {
        if (std::string d = difference(batch[i], c["encodings"][i]); !d.empty()) return d;
      }
      return {};
    }
    const Encoding e = encode(t, c);
    if (c.contains("error")) return "no error, but " + c["error"].get<std::string>();
    if (const std::string d = difference(e, c); !d.empty()) return d;
    return check_decoding(t, e.ids, c);
  } catch (const Error& e) {
    return c.contains("error") ? "" : e.what();
  }
}

void check_folder(const fs::path& folder) {
  const Tokenizer t = Tokenizer::load(folder / "tokenizer.json");
  int wrong = 0, all = 0;
  for (const json& c : lines_of(folder / "cases.jsonl")) {
    ++all;
    const std::string d = check(t, c);
    if (!d.empty() && ++wrong <= 3)
      ADD_FAILURE() << folder.filename() << ": " << c.dump().substr(0, 600) << "\n  " << d.substr(0, 1500);
  }
  EXPECT_EQ(wrong, 0) << "of " << all << " in " << folder;
  EXPECT_GT(all, 0);
}

TEST(RecordedTokenizers, Cases) {
  const fs::path folder = data_folder("tokenizers");
  if (!fs::exists(folder)) GTEST_SKIP() << "SDX_TEST_MODELS names no folder with tokenizers";
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == "cases.jsonl") check_folder(entry.path().parent_path());
  }
}

TEST(RecordedTokenizers, Malformed) {
  const fs::path folder = data_folder("tokenizers") / "malformed";
  if (!fs::exists(folder)) GTEST_SKIP() << "SDX_TEST_MODELS names no folder with tokenizers";
  for (const json& verdict : json::parse(read(folder / "verdicts.json"))) {
    const std::string name = verdict["file"];
    try {
      const Tokenizer t = Tokenizer::load(folder / name);
      EXPECT_EQ(verdict["load"], "ok") << name;
      for (const json& e : verdict.value("encode", json::array())) {
        try {
          const auto ids = t.encode(e["text"].get<std::string>()).ids;
          EXPECT_TRUE(e.contains("ids") && e["ids"].get<std::vector<std::uint32_t>>() == ids) << name << " " << e.dump();
        } catch (const Error& error) {
          EXPECT_TRUE(e.contains("error")) << name << ": " << error.what();
        }
      }
    } catch (const Error& error) {
      EXPECT_EQ(verdict["load"], "error") << name << ": " << error.what();
      EXPECT_EQ(error.code(), ErrorCode::invalid_model) << error.what();
    }
  }
}

TEST(RecordedTokenizers, Gguf) {
  const fs::path folder = data_folder("gguf_vocab");
  if (!fs::exists(folder)) GTEST_SKIP() << "SDX_TEST_MODELS names no folder with GGUF vocabularies";
  int all = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    const Tokenizer t = Tokenizer::load(entry.path() / "vocab.gguf");
    for (const json& c : lines_of(entry.path() / "cases.jsonl")) {
      ++all;
      const auto ids = t.encode(c["text"].get<std::string>(), c["add_special"].get<bool>()).ids;
      EXPECT_EQ(ids, c["ids"].get<std::vector<std::uint32_t>>()) << entry.path().filename() << " " << c["text"];
    }
  }
  EXPECT_GT(all, 100);
}

struct ComponentLine {
  json component, line;
};

// Lines under the component that they belong to.
std::vector<ComponentLine> component_lines(const char* file, const char* key) {
  std::vector<ComponentLine> all;
  json component;
  for (const json& line : lines_of(data_folder("tokenizers") / "components" / file)) {
    if (line.contains(key)) {
      component = line[key];
    } else {
      all.push_back({component, line});
    }
  }
  return all;
}

// f(part) is called with each new component, g(line) with each line of it; g returns what it got.
template <class F, class G>
void check_components(const char* file, const char* key, const F& parse, const G& run) {
  if (!fs::exists(data_folder("tokenizers"))) GTEST_SKIP() << "SDX_TEST_MODELS names no folder with tokenizers";
  json last;
  int wrong = 0;
  for (const auto& [component, line] : component_lines(file, key)) {
    if (component != last) {
      const JsonDocument document(component.dump());
      parse(Part(document.root(), key));
      last = component;
    }
    const auto [got, expected] = run(line);
    if (got != expected && ++wrong <= 5) {
      ADD_FAILURE() << component.dump().substr(0, 300) << "\n  " << line.dump().substr(0, 800) << "\n  "
                    << got.dump().substr(0, 800);
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(last.is_null());
}

TEST(RecordedTokenizers, Normalizers) {
  std::vector<NormalizerStep> steps;
  check_components(
      "normalizers.jsonl", "normalizer",
      [&](const Part& part) {
        steps.clear();
        parse_normalizer(part, steps);
      },
      [&](const json& line) {
        AlignedText text(line["text"].get<std::string>(), 0);
        normalize(steps, text);
        return std::pair<json, json>(text.text(), line["normalized"]);
      });
}

TEST(RecordedTokenizers, PreTokenizers) {
  std::vector<PreTokenizerStep> steps;
  check_components(
      "pre_tokenizers.jsonl", "pre_tokenizer",
      [&](const Part& part) {
        steps.clear();
        parse_pre_tokenizer(part, steps);
      },
      [&](const json& line) {
        const std::string text = line["text"];
        PreTokenized p;
        p.text = AlignedText(text, 0);
        if (!text.empty()) p.splits.push_back({{0, static_cast<std::uint32_t>(text.size())}});
        pre_tokenize(steps, false, p);
        json pieces = json::array();
        for (const Split& s : p.splits) {
          const Span origin = p.text.origin(s.range);
          pieces.push_back(
              {p.text.view(s.range), count_chars(text.substr(0, origin.begin)), count_chars(text.substr(0, origin.end))});
        }
        return std::pair<json, json>(pieces, line.at("pieces"));
      });
}

TEST(RecordedTokenizers, Decoders) {
  std::vector<DecoderStep> steps;
  check_components(
      "decoders.jsonl", "decoder",
      [&](const Part& part) {
        steps.clear();
        parse_decoder(part, steps);
      },
      [&](const json& line) {
        if (!line.contains("decoded")) return std::pair<json, json>();
        std::vector<std::string> tokens = line["tokens"];
        for (const DecoderStep& step : steps) decode(step, tokens);
        std::string all;
        for (const std::string& t : tokens) all += t;
        return std::pair<json, json>(all, line["decoded"]);
      });
}

}  // namespace
}  // namespace sdx::text
