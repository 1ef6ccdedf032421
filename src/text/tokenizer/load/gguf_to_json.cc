#include "text/tokenizer/load/gguf_to_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/json_text.h"
#include "text/tokenizer/load/gguf_source.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

json split_step(const std::string& expression) {
  return {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
}
json sequence(const char* of, json steps) { return {{"type", "Sequence"}, {of, std::move(steps)}}; }

json added_json(std::uint32_t id, const AddedToken& t) {
  return {{"id", id},           {"content", t.content},       {"single_word", t.single_word}, {"lstrip", t.lstrip},
          {"rstrip", t.rstrip}, {"normalized", t.normalized}, {"special", t.special}};
}

// The tokens that are added to each text.
json template_json(const GgufSource& s, std::optional<std::uint32_t> bos, std::optional<std::uint32_t> eos) {
  if (!bos && !eos) return nullptr;
  json single = json::array(), pair = json::array(), specials = json::object();
  for (const int type : {0, 1}) {
    const char* const name = type == 0 ? "A" : "B";
    const auto special = [&](std::optional<std::uint32_t> id) {
      if (!id) return;
      const std::string token(s.tokens[*id]);
      const json piece{{"SpecialToken", {{"id", token}, {"type_id", type}}}};
      if (type == 0) single.push_back(piece);
      pair.push_back(piece);
      specials[token] = {{"id", token}, {"ids", json::array({*id})}, {"tokens", json::array({token})}};
    };
    special(bos);
    const json text{{"Sequence", {{"id", name}, {"type_id", type}}}};
    if (type == 0) single.push_back(text);
    pair.push_back(text);
    special(eos);
  }
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", specials}};
}

json bpe_json(json vocabulary, json merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

json vocabulary_json(const GgufSource& s) {
  json vocabulary = json::object();
  // Not operator[]: an ordered object looks through all that it has.
  auto& entries = vocabulary.get_ref<json::object_t&>();
  static_cast<json::object_t::Container&>(entries).reserve(s.tokens.size());
  Vocabulary last;  // of a token that stands there twice the last number counts
  for (std::size_t i = 0; i < s.tokens.size(); ++i) last.add(s.tokens[i], static_cast<std::uint32_t>(i));
  last.finish();
  last.for_each([&](std::string_view token, std::uint32_t id) {
    static_cast<json::object_t::Container&>(entries).emplace_back(std::string(token), id);
  });
  return vocabulary;
}

struct Parts {
  json normalizer = nullptr, pre_tokenizer = nullptr, post_processor = nullptr, decoder = nullptr, model, added = json::array();
  bool adds_bos = false, adds_eos = false;
};

Parts byte_level(const GgufSource& s) {
  const ByteLevelSource source = byte_level_of(s);
  Parts p;
  json steps = json::array();
  for (const std::string& expression : source.split->expressions) steps.push_back(split_step(expression));
  steps.push_back(
      {{"type", "ByteLevel"}, {"add_prefix_space", source.add_prefix_space}, {"trim_offsets", true}, {"use_regex", false}});
  p.pre_tokenizer = sequence("pretokenizers", std::move(steps));
  p.decoder = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  json merges = json::array();
  for (const auto& [left, right] : source.merges) merges.push_back(std::string(left) + " " + std::string(right));
  p.model = bpe_json(vocabulary_json(s), std::move(merges));
  p.model["ignore_merges"] = source.split->ignore_merges;
  for (const auto& [id, token] : added_tokens_of(s)) p.added.push_back(added_json(id, token));
  p.post_processor = template_json(s, source.bos, source.eos);
  p.adds_bos = source.bos.has_value(), p.adds_eos = source.eos.has_value();
  return p;
}

Parts pieces(const GgufSource& s, const PieceVocabulary& v) {
  Parts p;
  const bool prefix = v.rules.add_dummy_prefix;
  json steps = json::array();
  if (prefix) steps.push_back({{"type", "Prepend"}, {"prepend", "▁"}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}});
  p.normalizer = sequence("normalizers", std::move(steps));
  steps = json::array(
      {{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}}, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (prefix) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  p.decoder = sequence("decoders", std::move(steps));
  Vocabulary vocabulary;
  for (std::size_t i = 0; i < s.tokens.size(); ++i) vocabulary.add(s.tokens[i], static_cast<std::uint32_t>(i));
  vocabulary.finish();
  const bool spaces = std::any_of(s.tokens.begin(), s.tokens.end(), [](std::string_view t) { return t.find(' ') != t.npos; });
  json merges = json::array();
  for (const Bpe::RankedMerge& m : merges_of(v.pieces, vocabulary)) {
    const std::string left(s.tokens[m.left]), right(s.tokens[m.right]);
    merges.push_back(spaces ? json::array({left, right}) : json(left + " " + right));
  }
  p.model = bpe_json(vocabulary_json(s), std::move(merges));
  if (v.unk) p.model["unk_token"] = std::string(s.tokens[*v.unk]);
  p.model["fuse_unk"] = true;
  p.model["byte_fallback"] = v.byte_fallback;
  for (auto& [id, token] : added_tokens_of(s)) {
    // A normalized token is searched in normalized text, where spaces are replaced; but a prefix would then precede the token
    // itself.
    token.normalized = !token.special && !prefix;
    p.added.push_back(added_json(id, token));
  }
  const auto bos = v.add_bos ? v.bos : std::nullopt, eos = v.add_eos ? v.eos : std::nullopt;
  p.post_processor = template_json(s, bos, eos);
  p.adds_bos = bos.has_value(), p.adds_eos = eos.has_value();
  return p;
}

void put_special(const SpecialTokens& special, json& to) {
  const auto put = [&](const char* key, const std::optional<std::string>& token) {
    if (token) to[key] = *token;
  };
  put("bos_token", special.bos);
  put("eos_token", special.eos);
  put("unk_token", special.unk);
  put("pad_token", special.pad);
}

}  // namespace

TokenizerFiles tokenizer_files(const GgufFile& file, std::int64_t context) {
  const auto kind = file.text("tokenizer.ggml.model");
  if (!kind) return {{}, "the file has none"};
  if (*kind != "gpt2" && *kind != "llama") return {{}, fmt::format("its kind is '{}', not gpt2 or llama", *kind)};
  const GgufSource source = read_gguf_source(file);
  Parts p;
  if (*kind == "gpt2") {
    p = byte_level(source);
  } else {
    const PieceVocabulary v = pieces_of(source, false);
    if (!v.charsmap.empty() || v.rules.remove_extra_whitespaces) return {{}, "it changes characters as only SentencePiece does"};
    p = pieces(source, v);
  }
  const json tokenizer{{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", std::move(p.added)},
                       {"normalizer", p.normalizer},
                       {"pre_tokenizer", p.pre_tokenizer},
                       {"post_processor", p.post_processor},
                       {"decoder", p.decoder},
                       {"model", std::move(p.model)}};
  json config{{"add_bos_token", p.adds_bos},
              {"add_eos_token", p.adds_eos},
              {"clean_up_tokenization_spaces", false},
              {"model_max_length", context},
              {"tokenizer_class", "PreTrainedTokenizerFast"}};
  json map = json::object();
  put_special(source.special(), config);
  put_special(source.special(), map);
  if (const auto chat = file.text("tokenizer.chat_template")) {
    const auto tool_use = file.text("tokenizer.chat_template.tool_use");
    const auto named = [](const char* name, std::string_view text) {
      return json{{"name", name}, {"template", std::string(text)}};
    };
    config["chat_template"] =
        tool_use ? json::array({named("default", *chat), named("tool_use", *tool_use)}) : json(std::string(*chat));
  }
  const auto text = [](const json& j, int indent) { return dump_json(j, indent) + "\n"; };
  return {{{"tokenizer.json", text(tokenizer, -1)},
           {"tokenizer_config.json", text(config, 2)},
           {"special_tokens_map.json", text(map, 2)}},
          ""};
}

TokenizerFiles tokenizer_files(const fs::path& folder) {
  constexpr std::size_t kMost = std::size_t{256} << 20;
  TokenizerFiles found;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                           "tokenizer.model", "vocab.json", "merges.txt", "chat_template.jinja", "chat_template.json"}) {
    std::error_code none;
    if (fs::is_regular_file(folder / name, none)) found.files.emplace_back(name, read_file(folder / name, kMost));
  }
  return found;
}

}  // namespace sdx::text
