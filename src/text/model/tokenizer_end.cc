#include "text/model/tokenizer_end.h"

#include <charconv>

#include "base/error.h"
#include "text/model/config_object.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A token is a text, or an object with its text under "content".
std::string text_of(const json& token) {
  const json* text = &token;
  if (token.is_object()) {
    const auto content = token.find("content");
    if (content == token.end()) return {};
    text = &*content;
  }
  return text->is_string() ? text->get<std::string>() : std::string();
}

json object_in(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return json::object();
  try {
    json out = read_json_file(file);
    if (out.is_object()) return out;
  } catch (const Error&) {
  }
  return json::object();
}

std::optional<TokenId> listed_id(const json& config, const std::string& token) {
  const auto listed = config.find("added_tokens_decoder");
  if (listed == config.end() || !listed->is_object()) return std::nullopt;
  for (const auto& [number, added] : listed->items()) {
    if (text_of(added) != token) continue;
    TokenId id = 0;
    const char* const end = number.data() + number.size();
    if (std::from_chars(number.data(), end, id).ptr == end) return id;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TokenizerEnd> read_tokenizer_end(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return std::nullopt;
  const json config = object_in(folder / "tokenizer_config.json");
  std::string token = text_of(config.value("eos_token", json()));
  if (token.empty()) token = text_of(object_in(folder / "special_tokens_map.json").value("eos_token", json()));
  if (token.empty()) return std::nullopt;
  return TokenizerEnd{token, listed_id(config, token)};
}

}  // namespace sdx::text
