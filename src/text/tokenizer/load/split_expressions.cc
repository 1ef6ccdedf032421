#include "text/tokenizer/load/split_expressions.h"

#include <algorithm>

#include "base/error.h"

namespace sdx::text {
namespace {

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[)"
    R"(\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n])"
    R"(+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?)"
    R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*)"
    R"([\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|')"
    R"(m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|')"
    R"(t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepseek =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S"
    "}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";
constexpr const char* kNumber = R"(\p{N})";
constexpr const char* kNumbers = R"(\p{N}{1,3})";
constexpr const char* kChineseJapanese = "[一-龥぀-ゟ゠-ヿ]+";
constexpr const char* kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

struct Entry {
  std::vector<std::string_view> names;
  SplitExpressions split;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {{"default"}, {{R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}}},
      {{"gpt-2", "gpt2", "mpt", "olmo", "jais", "trillion", "granite-docling", "phi-2", "jina-es", "jina-de", "gigachat",
        "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum", "modern-bert", "roberta-bpe", "exaone4", "whisper"},
       {{kGpt2}}},
      {{"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
       {{kLlama3}, true, true}},
      {{"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}, {{kLlama3}}},
      {{"qwen2", "stablelm2", "hunyuan", "megrez", "deepseek-r1-qwen", "kormo", "grok-2", "solar-open", "qwen"}, {{kQwen2}}},
      {{"deepseek-v3", "deepseek3", "hunyuan-dense", "joyai-llm"}, {{kNumbers, kChineseJapanese, kDeepseek}}},
      {{"deepseek-coder"}, {{"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[一-龥ࠀ-一가-\xED\x9F\xBF]+", kNumber}}},
      {{"falcon"}, {{R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"}}},
      {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"}, {{kNumber, kGpt2}}},
      {{"bloom", "poro-chat", "gpt3-finnish"}, {{kBloom}}},
      {{"viking"}, {{kBloom, kNumber}}},
      {{"tekken"}, {{kTekken}, true}},
      {{"gpt-4o", "llama4", "o200k", "minimax-m2"}, {{kGpt4o}}},
  };
  return all;
}

}  // namespace

const SplitExpressions& split_expressions(std::string_view name) {
  std::string names;
  for (const Entry& e : entries()) {
    if (std::find(e.names.begin(), e.names.end(), name) != e.names.end()) return e.split;
    for (const std::string_view n : e.names) names += (names.empty() ? "" : ", ") + std::string(n);
  }
  fail(ErrorCode::not_implemented, "the GGUF file splits text by '{}' (tokenizer.ggml.pre), which is unknown; known: {}", name,
       names);
}

}  // namespace sdx::text
