// Texts that a grammar lets through, made of random tokens. Requests from standard input, one JSON object a line: {"kind":
// "schema" | "regex" | "gbnf" | "json" | "object", "text": …, "seed": …, "count": …, "try": […]}; writes {"texts": […], "fit":
// […], "unenforced": […]} or {"error": …} for each; "fit" says which texts of "try" match. What the tests with Python's own
// checkers drive.

#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <sdx/error.hpp>
#include <string>

#include "text/grammar/grammar.h"

namespace {

using nlohmann::ordered_json;
using namespace sdx::text::grammar;

constexpr std::int32_t end_token = 0;

// All bytes, and pieces that real vocabularies have: across quotes, brackets, digits, blanks and characters' bytes.
std::shared_ptr<const Vocabulary> vocabulary() {
  std::vector<std::string> tokens{""};
  for (int i = 0; i < 256; i++) tokens.emplace_back(1, static_cast<char>(i));
  for (const char* piece : {"{\"",
                            "\":",
                            "\": ",
                            "\",",
                            "\", \"",
                            "\"}",
                            "[]",
                            "{}",
                            "[[",
                            "]]",
                            "}}",
                            "},",
                            "\"}]",
                            " \"",
                            "true",
                            "false",
                            "null",
                            "nul",
                            "l,",
                            "12",
                            "123",
                            "00",
                            "0.",
                            ".5",
                            "e+",
                            "-1",
                            "1e",
                            "ab",
                            "abc",
                            "name",
                            "the",
                            " the",
                            "\\n",
                            "\\u",
                            "\\\"",
                            "\\\\",
                            "\xc5\x82",
                            "\xc3",
                            "\xe6\x97\xa5",
                            "\xf0\x9f",
                            "\x99\x82",
                            "\n  ",
                            "\n",
                            "  ",
                            "-0",
                            "2026-",
                            "10:",
                            "http",
                            "://",
                            "@",
                            "..",
                            "aaaaaaaa",
                            "\xe6\x97\xa5\xe6\x9c\xac"}) {
    tokens.emplace_back(piece);
  }
  return std::make_shared<const Vocabulary>(tokens, std::vector<std::int32_t>{end_token});
}

Grammar grammar_of(const std::string& kind, const std::string& text) {
  if (kind == "schema") return Grammar::from_json_schema(text);
  if (kind == "regex") return Grammar::from_regex(text);
  if (kind == "gbnf") return Grammar::from_gbnf(text);
  return kind == "json" ? Grammar::any_json() : Grammar::json_object();
}

// Random tokens; the longer the text, the more those that close something are preferred, so that it ends.
std::string sample(Matcher& matcher, const Vocabulary& tokens, std::mt19937& random) {
  std::string text;
  matcher.restart();
  for (int step = 0; step < 3000; step++) {
    const auto mask = matcher.mask();
    std::vector<std::int32_t> allowed, closing;
    for (std::size_t i = 0; i < tokens.size(); i++) {
      if (!(mask[i / 64] >> (i % 64) & 1)) continue;
      allowed.push_back(static_cast<std::int32_t>(i));
      const std::string_view bytes = tokens.bytes(i);
      if (i == end_token || bytes.find_first_of("]}\"") != std::string_view::npos)
        closing.push_back(static_cast<std::int32_t>(i));
    }
    if (allowed.empty()) throw sdx::Error(sdx::ErrorCode::internal, "no token is allowed after: " + text);
    const bool hurry = step > 20 && random() % 4 != 0 && !closing.empty();
    const auto& from = hurry ? closing : allowed;
    std::int32_t token = from[random() % from.size()];
    if (step > 60 && (mask[0] & 1)) token = end_token;
    if (!matcher.accept(token))
      throw sdx::Error(sdx::ErrorCode::internal, "the mask allows what accept() refuses after: " + text);
    if (token == end_token) return text;
    text += tokens.bytes(static_cast<std::size_t>(token));
  }
  throw sdx::Error(sdx::ErrorCode::runtime_failure, "unfinished");
}

ordered_json answer(const ordered_json& request, const std::shared_ptr<const Vocabulary>& tokens) {
  try {
    const Grammar grammar = grammar_of(request["kind"], request["text"]);
    Matcher matcher(grammar, tokens);
    std::mt19937 random(request["seed"].get<unsigned>());
    ordered_json texts = ordered_json::array();
    std::size_t unfinished = 0;
    for (int i = 0; i < request["count"].get<int>(); i++) {
      try {
        texts.push_back(sample(matcher, *tokens, random));
      } catch (const sdx::Error& error) {
        if (error.code() != sdx::ErrorCode::runtime_failure) throw;
        unfinished++;
      }
    }
    ordered_json fit = ordered_json::array();
    for (const ordered_json& text : request.value("try", ordered_json::array())) {
      matcher.restart();
      fit.push_back(matcher.accept_text(text.get<std::string>()) && matcher.can_end());
    }
    return {{"texts", texts}, {"unfinished", unfinished}, {"fit", fit}, {"unenforced", grammar.unenforced()}};
  } catch (const sdx::Error& error) {
    return {{"error", error.what()}, {"code", static_cast<int>(error.code())}};
  }
}

}  // namespace

int main() {
  const auto tokens = vocabulary();
  for (std::string line; std::getline(std::cin, line);)
    std::cout << answer(ordered_json::parse(line), tokens).dump(-1, ' ', true) << '\n';
}
