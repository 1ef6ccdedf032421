#pragma once
// The flags of `sdx generate` and `sdx chat` that control how an answer is made.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "text/tools.h"

namespace sdx::cli {

struct GenerationFlags {
  std::string model;
  std::int64_t max_tokens = 256, top_k = 0;
  double temperature = 1, top_p = 1, min_p = 0, typical_p = 1, repetition_penalty = 1, presence_penalty = 0,
         frequency_penalty = 0;
  std::uint64_t seed = 0;
  int threads = 0;
  std::int64_t context = 0;
  bool greedy = false;
  std::string cache_type;
  int accuracy_level = 0;
  std::vector<std::string> stop, logit_bias, loras;
  std::string json_schema, grammar, regex;
  std::int64_t lookup = 0, draft_tokens = 4, beams = 1, keep = 0;
  double length_penalty = 1;
  bool no_early_stopping = false;
  std::string draft, overflow = "error";

  void add_to(const Command& command);
  std::unique_ptr<text::OpenModel> open() const;
  // The settings that the model's files recommend, overridden by typed flags. Throws UsageError.
  GenerationSettings settings(const text::OpenModel& model) const;
  // Throws UsageError for flags that exclude each other, before a model is loaded.
  void check() const;

 private:
  std::vector<std::pair<TokenId, float>> biases() const;
  void set_search(GenerationSettings& settings) const;
  bool typed(const char* flag) const { return command_.count(flag) > 0; }
  Command command_;
};

void add_accuracy_level(const Command& command, int& level);

// "PATH" or "PATH=SCALE", each. Throws UsageError.
std::vector<LoraAdapter> read_loras(const std::vector<std::string>& texts);

// A whole file, or standard input for "-". Throws Error(io), and Error(invalid_argument) beyond 1 GiB.
std::string read_text(const std::string& path);

}  // namespace sdx::cli
