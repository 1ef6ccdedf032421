#pragma once
// Settings of language models apart from their files.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/text.hpp>

namespace sdx::serve {

// What is missing has the model's or the engine's own value.
struct LanguageSettings {
  std::int64_t context = 0;                     // most tokens of prompt and answer
  DataType cache_type = DataType::undefined;    // of keys and values
  std::vector<LoraAdapter> loras{};             // applied together
  std::filesystem::path chat_template{};        // a file in Jinja, instead of the model's
  std::optional<std::uint64_t> prompt_cache{};  // bytes of keys and values kept for later prompts; 0: none are
  int parallel = 0;                             // answers that are computed together
  int accuracy_level = 0;                       // of products with weights in blocks
  bool control_tokens = false;                  // names of special tokens in a conversation's texts are these tokens
};

// The parameters of a model's configuration that language_settings() reads. lora: FILE or FILE=SCALE.
inline constexpr std::string_view kLanguageParameters =
    "context cache_type lora chat_template prompt_cache parallel accuracy_level allow_control_tokens";
// `given`, with these over it. `folder`: the model's in the repository, which its files must be in. Throws
// Error(invalid_argument) naming the parameter.
LanguageSettings language_settings(LanguageSettings given, const std::vector<std::pair<std::string, std::string>>& parameters,
                                   const std::filesystem::path& folder);

}  // namespace sdx::serve
