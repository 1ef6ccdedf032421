// Grammars, regular expressions and JSON schemas out of random bytes (the first byte chooses), and texts that are matched against
// them. Errors are fine, everything else is not.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <sdx/error.hpp>
#include <string>
#include <string_view>

#include "text/grammar/grammar.h"

namespace {

using namespace sdx::text::grammar;

std::shared_ptr<const Vocabulary> vocabulary() {
  std::vector<std::string> tokens{""};
  for (int i = 0; i < 256; i++) tokens.emplace_back(1, static_cast<char>(i));
  for (const char* piece : {"{\"", "\": ", "\",", "[]", "true", "null", "12", "abc", "\xc5\x82", "\xf0\x9f", "\n  "})
    tokens.emplace_back(piece);
  return std::make_shared<const Vocabulary>(tokens, std::vector<std::int32_t>{0});
}

void walk(Grammar grammar, std::string_view choices) {
  static const auto tokens = vocabulary();
  Matcher matcher(std::move(grammar), tokens);
  for (const char choice : choices) {
    const auto mask = matcher.mask();
    std::int32_t token = -1;
    for (std::size_t i = 0, place = static_cast<unsigned char>(choice); i < tokens->size(); i++) {
      const std::size_t at = (place + i) % tokens->size();
      if (mask[at / 64] >> (at % 64) & 1) {
        token = static_cast<std::int32_t>(at);
        break;
      }
    }
    if (token == 0 || token < 0) return;
    if (!matcher.accept(token)) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string_view choices = text.substr(0, 40);
  try {
    switch (data[0] % 3) {
      case 0: walk(Grammar::from_gbnf(text), choices); break;
      case 1: walk(Grammar::from_regex(text), choices); break;
      default: walk(Grammar::from_json_schema(text), choices);
    }
  } catch (const sdx::Error&) {
  }
  return 0;
}
