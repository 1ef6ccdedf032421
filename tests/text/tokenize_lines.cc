// Encodes and decodes what standard input asks for, a JSON object a line, and answers likewise: for differential_tokenizers.py.
//   {"load": PATH} or {"json": TEXT}      -> {"loaded": true}
//   {"write": GGUF, "to": FOLDER}         -> {"without": why no tokenizer files were written, ""}
//   {"text": …, "pair": …, "special": …}  -> the encoding, and what decoding makes of it
//   {"ids": […]}                          -> {"decoded", "decoded_skip", "stream"}
// Errors: {"error": …}.

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sdx/error.hpp>
#include <sdx/tokenizer.hpp>

#include "base/system/mapped_file.h"
#include "text/tokenizer/load/gguf_to_json.h"

namespace {

using nlohmann::json;

json describe(const sdx::Encoding& e) {
  json out;
  out["ids"] = e.ids;
  out["tokens"] = e.tokens;
  out["offsets"] = json::array();
  for (const sdx::TextRange& o : e.offsets) out["offsets"].push_back({o.begin, o.end});
  out["type_ids"] = e.type_ids;
  out["special_tokens_mask"] = e.special_tokens_mask;
  out["attention_mask"] = e.attention_mask;
  out["word_ids"] = e.word_ids;
  out["sequence_ids"] = e.sequence_ids();
  out["overflowing"] = json::array();
  for (const sdx::Encoding& part : e.overflowing) out["overflowing"].push_back(describe(part));
  return out;
}

json decode(const sdx::Tokenizer& t, const std::vector<std::uint32_t>& ids) {
  sdx::StreamDecoder stream(t, false);
  std::string all;
  for (const std::uint32_t id : ids) all += stream.add(id);
  all += stream.finish();
  return {{"decoded", t.decode(ids, false)}, {"decoded_skip", t.decode(ids, true)}, {"stream", all}};
}

json answer(const json& line, std::optional<sdx::Tokenizer>& t) {
  if (line.contains("load")) {
    t = sdx::Tokenizer::load(line["load"].get<std::string>());
    return {{"loaded", true}};
  }
  if (line.contains("json")) {
    t = sdx::Tokenizer::from_json(line["json"].get<std::string>());
    return {{"loaded", true}};
  }
  if (line.contains("write")) {
    const std::filesystem::path from = line["write"].get<std::string>(), to = line.at("to").get<std::string>();
    const sdx::text::TokenizerFiles made = sdx::text::tokenizer_files(sdx::GgufFile::open(from), 2048);
    for (const auto& [name, content] : made.files) sdx::write_file_atomically(to / name, content);
    return {{"without", made.missing}};
  }
  if (!t) throw sdx::Error(sdx::ErrorCode::invalid_argument, "no tokenizer is loaded");
  if (line.contains("ids")) return decode(*t, line["ids"]);
  const std::string text = line.at("text");
  const bool special = line.value("special", true);
  return describe(line.contains("pair") ? t->encode(text, line["pair"].get<std::string>(), special) : t->encode(text, special));
}

}  // namespace

int main() {
  std::optional<sdx::Tokenizer> tokenizer;
  for (std::string line; std::getline(std::cin, line);) {
    json out;
    try {
      out = answer(json::parse(line), tokenizer);
    } catch (const std::exception& e) {
      out = {{"error", e.what()}};
    }
    std::cout << out.dump() << std::endl;
  }
}
