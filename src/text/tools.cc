#include "text/tools.h"

#include <algorithm>
#include <utility>

#include "text/generation/generation.h"

namespace sdx::text {
namespace {

TokenizeResult tokenize(const TokenizeRequest& request) {
  const Tokenizer tokenizer = Tokenizer::load(request.model);
  TokenizeResult result;
  if (request.decode) {
    result.text = tokenizer.decode(*request.decode, !request.special_tokens);
  } else {
    result.encoding = tokenizer.encode(request.text, request.special_tokens);
  }
  return result;
}

class Reader final : public AnswerReader {
 public:
  explicit Reader(AnswerParser parser) : parser_(std::move(parser)) {}
  std::vector<AnswerEvent> add(std::string_view text) override { return parser_.add(text); }
  std::vector<AnswerEvent> finish() override { return parser_.finish(); }
  const ParsedAnswer& answer() const override { return parser_.answer(); }

 private:
  AnswerParser parser_;
};

class Opened final : public OpenModel {
 public:
  explicit Opened(LanguageModel model) : model_(std::move(model)), state_(model_.new_state()) {}

  const LanguageModelInfo& info() const override { return model_.info(); }
  TokenMaskMaker constrain(OutputFormat format, std::string_view text) const override { return model_.constrain(format, text); }
  std::string token(TokenId id) const override { return model_.tokenizer().decode(std::span(&id, 1), false); }

  Generation generate(std::string_view text, bool special_tokens, const GenerationSettings& settings, const OnToken& on_token,
                      std::int64_t& cached) override {
    return generate(model_.tokenizer().encode(text, special_tokens).ids, settings, on_token, cached);
  }
  Generation generate(const PlainPrompt& prompt, const GenerationSettings& settings, const OnToken& on_token,
                      std::int64_t& cached) override {
    return generate(model_.tokenizer().encode(prompt.text, prompt.plain, false).ids, settings, on_token, cached);
  }
  PlainPrompt render(const ChatInput& input, bool control_tokens) const override {
    if (control_tokens) return {model_.chat_template().render(input), {}};
    return model_.chat_template().render_plain(input, model_.tokenizer());
  }

  std::shared_ptr<const LanguageModel> model() const override { return std::make_shared<const LanguageModel>(model_); }

  std::unique_ptr<AnswerReader> read_answer(std::string_view tools, std::string_view prompt,
                                            GenerationSettings& settings) const override {
    return std::make_unique<Reader>(model_.prepare_answer(settings, tools, prompt));
  }

  Perplexity perplexity(std::string_view text, const PerplexitySettings& settings) const override {
    return model_.perplexity(text, settings);
  }

 private:
  Generation generate(const std::vector<TokenId>& ids, const GenerationSettings& settings, const OnToken& on_token,
                      std::int64_t& cached) {
    const std::size_t common = keep_common(state_, ids);
    cached = static_cast<std::int64_t>(common);
    GenerationSettings with = settings;
    model_.prepare_answer(with);
    return model_.generate(state_, std::span(ids).subspan(common), with, on_token);
  }

  LanguageModel model_;
  TextState state_;
};

std::unique_ptr<OpenModel> open(const std::filesystem::path& model, const LanguageModelOptions& options) {
  return std::make_unique<Opened>(LanguageModel::load(model, options));
}

std::string render(const std::filesystem::path& model, const ChatInput& input) { return ChatTemplate::load(model).render(input); }

Tensor embed(const EmbedRequest& request) {
  return TextEmbedder::load(request.model, request.options).embed(request.texts, request.prompt);
}

std::vector<SparseVector> embed_sparse(const EmbedRequest& request) {
  return TextEmbedder::load(request.model, request.options).embed_sparse(request.texts, request.prompt);
}

std::vector<Tensor> embed_tokens(const EmbedRequest& request) {
  return TextEmbedder::load(request.model, request.options).embed_tokens(request.texts, request.prompt);
}

std::vector<float> rerank(const RerankRequest& request) {
  return Reranker::load(request.model, request.options).logits(request.query, request.documents);
}

constexpr Tools kTools = {module_head<Tools>(SDX_VERSION),
                          &tokenize,
                          &convert_language_model,
                          &open,
                          &render,
                          &embed,
                          &rerank,
                          &Reranker::score_of,
                          &embed_sparse,
                          &embed_tokens};

}  // namespace
}  // namespace sdx::text

extern "C" SDX_API const sdx::ModuleHead* sdx_text_tools() { return &sdx::text::kTools.head; }
