#pragma once
// What libsdx_text.so offers the command `sdx`, which loads it when a command of the product is called: a table of functions in
// C++ types, because both are of one build. Whoever adds a function adds it at the end and raises the version.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sdx/text.hpp>
#include <sdx/tokenizer.hpp>

namespace sdx::text {

inline constexpr int kToolsVersion = 2;

struct TokenizeRequest {
  std::filesystem::path model;
  std::string text;                                  // to be encoded
  std::optional<std::vector<std::uint32_t>> decode;  // to be decoded, instead
  bool special_tokens = true;                        // added to the text; kept in what is decoded
};

struct TokenizeResult {
  Encoding encoding;
  std::string text;  // what was decoded
};

struct Tools {
  int version;
  const char* product;  // SDX_VERSION of the build
  // Functions throw sdx::Error.
  TokenizeResult (*tokenize)(const TokenizeRequest& request);
  LanguageConversion (*convert)(const std::filesystem::path& model, const std::filesystem::path& folder,
                                const LanguageConvertOptions& options);
};

}  // namespace sdx::text

extern "C" {
// The library's only C symbol.
using SdxTextToolsFunction = const sdx::text::Tools* (*)();
}
