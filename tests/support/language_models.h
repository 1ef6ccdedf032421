#pragma once
// Recorded language models for unit tests: where they are, how they are opened and asked.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sdx/text.hpp>

namespace sdx::text {

// SDX_TEST_MODELS; "" where it is not set.
inline std::filesystem::path models() {
  const char* folder = std::getenv("SDX_TEST_MODELS");
  return folder == nullptr ? std::filesystem::path() : std::filesystem::path(folder);
}

inline nlohmann::json json_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

// Recorded answers are those of float32: rounding activations to 8 bits changes logits by some tenths.
inline LanguageModel load_exact(const std::filesystem::path& path, int threads) {
  LanguageModelOptions options;
  options.session.threads = threads;
  options.accuracy_level = 1;
  return LanguageModel::load(path, options);
}

inline LanguageModel load(const std::filesystem::path& path, int threads) {
  LanguageModelOptions options;
  options.session.threads = threads;
  return LanguageModel::load(path, options);
}

// So many of the likeliest tokens, whichever they are.
inline GenerationSettings greedy(std::size_t count) {
  GenerationSettings s;
  s.sampling.greedy = true;
  s.max_tokens = static_cast<std::int64_t>(count);
  s.ignore_end = true;
  return s;
}

}  // namespace sdx::text
