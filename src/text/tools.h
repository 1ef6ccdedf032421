#pragma once
// The interface of libsdx_text.so for the command `sdx`, which loads it when a command of the product is called: a table of
// functions in C++ types, because both are of one build.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sdx/chat_template.hpp>
#include <sdx/embedding.hpp>
#include <sdx/text.hpp>
#include <sdx/tokenizer.hpp>

#include "base/module/module.h"

namespace sdx::text {

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

// An AnswerParser.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  virtual std::vector<AnswerEvent> add(std::string_view text) = 0;
  virtual std::vector<AnswerEvent> finish() = 0;
  virtual const ParsedAnswer& answer() const = 0;
};

// A model that is open, for one thread.
class OpenModel {
 public:
  virtual ~OpenModel() = default;
  virtual const LanguageModelInfo& info() const = 0;
  virtual TokenMaskMaker constrain(OutputFormat format, std::string_view text) const = 0;
  virtual std::string token(TokenId id) const = 0;  // its text

  // Answers the whole `text`. `special_tokens`: the tokenizer adds its own. The prefix that it shares with the previous text is
  // not computed again: `cached` receives its number of tokens. Answers have texts whether or not settings.detokenize is set.
  virtual Generation generate(std::string_view text, bool special_tokens, const GenerationSettings& settings,
                              const OnToken& on_token, std::int64_t& cached) = 0;
  // The same for a conversation's prompt.
  virtual Generation generate(const PlainPrompt& prompt, const GenerationSettings& settings, const OnToken& on_token,
                              std::int64_t& cached) = 0;
  // The prompt of a conversation. `control_tokens`: names of special tokens in its texts are these tokens.
  virtual PlainPrompt render(const ChatInput& input, bool control_tokens) const = 0;
  // The model, for settings.draft of another one.
  virtual std::shared_ptr<const LanguageModel> model() const = 0;
  // Reads the answer to a conversation with tools, in the format of the model's template; `settings` get what that needs.
  virtual std::unique_ptr<AnswerReader> read_answer(std::string_view tools, std::string_view prompt,
                                                    GenerationSettings& settings) const = 0;
  virtual Perplexity perplexity(std::string_view text, const PerplexitySettings& settings) const = 0;
};

struct EmbedRequest {
  std::filesystem::path model;
  EmbedderOptions options;
  std::string prompt;
  std::vector<std::string> texts;
};

struct RerankRequest {
  std::filesystem::path model;
  EmbedderOptions options;
  std::string query;
  std::vector<std::string> documents;
};

struct Tools {
  static constexpr ModuleName kModule{"libsdx_text.so.0", "sdx_text_tools", "SDX_TEXT_LIB", "this command"};

  ModuleHead head;
  // Functions throw sdx::Error.
  TokenizeResult (*tokenize)(const TokenizeRequest& request);
  LanguageConversion (*convert)(const std::filesystem::path& model, const std::filesystem::path& folder,
                                const LanguageConvertOptions& options);
  std::unique_ptr<OpenModel> (*open)(const std::filesystem::path& model, const LanguageModelOptions& options);
  // Renders with the template of the model's folder or file.
  std::string (*render)(const std::filesystem::path& model, const ChatInput& input);
  Tensor (*embed)(const EmbedRequest& request);
  std::vector<float> (*rerank)(const RerankRequest& request);  // the logits, which Reranker::score_of() makes scores of
  double (*score_of)(float logit);
  // With options of these kinds.
  std::vector<SparseVector> (*embed_sparse)(const EmbedRequest& request);
  std::vector<Tensor> (*embed_tokens)(const EmbedRequest& request);
};

}  // namespace sdx::text
