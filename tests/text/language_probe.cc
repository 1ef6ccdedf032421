// What a language model makes of tokens, as JSON, for the Python tests: language_probe MODEL STEPS ID... prints the logits behind
// each given token, computed in two parts, and STEPS tokens that greedy choice adds. `-c N`, first: the context; `-l PATH SCALE`,
// behind it, any number of times: a LoRA adapter.
// language_probe --convert MODEL FOLDER [DTYPE] converts.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sdx/text.hpp>

int main(int argc, char** argv) {
  if (argc > 3 && std::strcmp(argv[1], "--convert") == 0) {
    try {
      const sdx::LanguageConversion done = sdx::convert_language_model(argv[2], argv[3], {argc > 4 ? argv[4] : "", 0});
      std::printf("{\"architecture\": \"%s\", \"context\": %lld}\n", done.architecture.c_str(),
                  static_cast<long long>(done.context));
      return 0;
    } catch (const sdx::Error& e) {
      std::fprintf(stderr, "error: %s\n", e.what());
      return 1;
    }
  }
  sdx::LanguageModelOptions options;
  options.accuracy_level = 1;  // expected numbers are those of float64
  int at = 1;
  if (argc > 2 && std::strcmp(argv[1], "-c") == 0) {
    options.max_context = std::atoll(argv[2]);
    at = 3;
  }
  for (; argc > at + 2 && std::strcmp(argv[at], "-l") == 0; at += 3) {
    options.loras.push_back({argv[at + 1], static_cast<float>(std::atof(argv[at + 2]))});
  }
  if (argc < at + 3) {
    std::fprintf(stderr, "usage: language_probe [-c CONTEXT] [-l PATH SCALE]... MODEL STEPS ID...\n");
    return 2;
  }
  try {
    const sdx::LanguageModel model = sdx::LanguageModel::load(argv[at], options);
    const int steps = std::atoi(argv[at + 1]);
    std::vector<sdx::TokenId> ids;
    for (int i = at + 2; i < argc; ++i) ids.push_back(static_cast<sdx::TokenId>(std::atoll(argv[i])));
    sdx::TextState state = model.new_state();
    const std::size_t first = (ids.size() + 1) / 2;
    std::printf("{\"logits\": [");
    const char* separator = "";
    for (const auto part : {std::span(ids).first(first), std::span(ids).subspan(first)}) {
      if (part.empty()) continue;
      const sdx::Tensor logits = state.append(part, true);
      for (std::int64_t r = 0; r < logits.dim(0); ++r) {
        std::printf("%s[", separator);
        for (std::int64_t i = 0; i < logits.dim(1); ++i) {
          std::printf("%s%.9g", i == 0 ? "" : ",",
                      static_cast<double>(logits.values<float>()[static_cast<std::size_t>(r * logits.dim(1) + i)]));
        }
        std::printf("]");
        separator = ",\n";
      }
    }
    sdx::GenerationSettings settings;
    settings.sampling.greedy = true;
    settings.max_tokens = steps > 0 ? steps : 1;
    settings.ignore_end = true;
    std::printf("], \"greedy\": [");
    if (steps > 0) {
      const sdx::Generation made = model.generate(ids, settings);
      for (std::size_t i = 0; i < made.choices[0].tokens.size(); ++i)
        std::printf("%s%u", i == 0 ? "" : ", ", made.choices[0].tokens[i]);
    }
    std::printf("]}\n");
  } catch (const sdx::Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
  return 0;
}
