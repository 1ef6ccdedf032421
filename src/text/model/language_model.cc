#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <sdx/embedding.hpp>
#include <sdx/text.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"
#include "text/calls/constrain.h"
#include "text/generation/generation.h"
#include "text/model/constraint.h"
#include "text/model/decoder.h"
#include "text/model/open.h"
#include "text/model/tokenizer_end.h"

namespace sdx {

using namespace text;

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

SamplingSettings defaults_of(const SamplingDefaults& d) {
  SamplingSettings s;
  s.greedy = d.sample.has_value() && !*d.sample;
  s.temperature = d.temperature.value_or(s.temperature);
  s.top_k = d.top_k.value_or(s.top_k);
  s.top_p = d.top_p.value_or(s.top_p);
  s.min_p = d.min_p.value_or(s.min_p);
  s.typical_p = d.typical_p.value_or(s.typical_p);
  s.repetition_penalty = d.repetition_penalty.value_or(s.repetition_penalty);
  return s;
}

}  // namespace

struct TextState::Impl : TextBody {
  using TextBody::TextBody;
};

TextState::TextState(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextState::~TextState() = default;
TextState::TextState(TextState&&) noexcept = default;
TextState& TextState::operator=(TextState&&) noexcept = default;

Tensor TextState::append(std::span<const TokenId> tokens, bool all_logits, const RunOptions& options) {
  return impl_->append(tokens, all_logits, options);
}

void TextState::rewind(std::size_t count) {
  if (count > impl_->tokens.size()) {
    fail(ErrorCode::invalid_argument, "the state holds only {} tokens, so {} cannot be kept", impl_->tokens.size(), count);
  }
  impl_->rewind(count);
}

const std::vector<TokenId>& TextState::tokens() const { return impl_->tokens; }
std::size_t TextState::cache_bytes() const { return impl_->state.cache_bytes(); }

struct LanguageModel::Impl {
  OpenedModel model;
  LanguageModelInfo info;
  mutable std::mutex mutex;
  std::filesystem::path path;
  mutable std::unique_ptr<const Tokenizer> tokenizer;        // guarded by `mutex` until it is there
  mutable std::unique_ptr<const ChatTemplate> chat;          // the same
  mutable std::shared_ptr<const TextEmbedder> embedder;      // guarded by `mutex`
  mutable std::shared_ptr<const grammar::Vocabulary> words;  // for grammars; guarded by `mutex`
  // The same with the marks of a format of calls.
  mutable std::map<std::pair<ToolCallFormat, std::string>, std::shared_ptr<const grammar::Vocabulary>> call_words;
};

namespace {

// Fine-tunes name the end of a turn in their tokenizer alone.
void add_tokenizer_end(const OpenedModel& model, LanguageModelInfo& info, std::unique_ptr<const Tokenizer>& tokenizer) {
  auto end = read_tokenizer_end(model.tokenizer);
  if (!end) return;
  try {
    if (!end->id) {
      tokenizer = std::make_unique<const Tokenizer>(Tokenizer::load(model.tokenizer));
      end->id = tokenizer->token_to_id(end->token);
    }
  } catch (const Error&) {
    return;  // said when the tokenizer is needed
  }
  const bool known = end->id && (info.vocabulary <= 0 || static_cast<std::int64_t>(*end->id) < info.vocabulary);
  if (known && std::find(info.eos.begin(), info.eos.end(), *end->id) == info.eos.end()) info.eos.push_back(*end->id);
}

}  // namespace

LanguageModel::LanguageModel(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

LanguageModel LanguageModel::load(const std::filesystem::path& path, const LanguageModelOptions& options) {
  const auto start = Clock::now();
  if (options.max_context < 0) {
    fail(ErrorCode::invalid_argument, "max_context must be 0 (the model's own) or greater, received {}", options.max_context);
  }
  auto impl = std::make_shared<Impl>();
  impl->path = model_place(path);
  impl->model =
      open_model(impl->path, {options.session, options.max_context, options.cache_type, options.loras, options.accuracy_level});
  const OpenedModel& m = impl->model;
  LanguageModelInfo& info = impl->info;
  info.format = m.format;
  info.architecture = m.architecture;
  info.tokenizer = m.tokenizer;
  info.context = m.decoder->context;
  info.vocabulary = m.decoder->vocabulary;
  info.layers = m.decoder->layers;
  info.kv_heads = m.decoder->kv_heads;
  info.head_size = m.decoder->head_size;
  info.bos = m.bos;
  info.pad = m.pad;
  info.eos = m.eos;
  add_tokenizer_end(m, info, impl->tokenizer);
  info.defaults = defaults_of(m.sampling);
  info.load_ms = ms_since(start);
  return LanguageModel(std::move(impl));
}

const LanguageModelInfo& LanguageModel::info() const { return impl().info; }
std::shared_ptr<const Decoder> LanguageModel::decoder() const { return impl().model.decoder; }
Report LanguageModel::report() const { return impl().model.decoder->session->report(); }
TextState LanguageModel::new_state() const { return TextState(std::make_unique<TextState::Impl>(impl().model.decoder)); }

const Tokenizer& LanguageModel::tokenizer() const {
  const std::lock_guard lock(impl().mutex);
  if (!impl_->tokenizer) impl_->tokenizer = std::make_unique<const Tokenizer>(Tokenizer::load(impl_->info.tokenizer));
  return *impl_->tokenizer;
}

const ChatTemplate& LanguageModel::chat_template() const {
  const std::lock_guard lock(impl().mutex);
  if (!impl_->chat) impl_->chat = std::make_unique<const ChatTemplate>(ChatTemplate::load(impl_->path));
  return *impl_->chat;
}

namespace {

// Passes the notes to the caller if it asks for them; otherwise logs a warning.
void tell(const std::vector<std::string>& unenforced, std::vector<std::string>* to) {
  if (to != nullptr) {
    *to = unenforced;
  } else if (!unenforced.empty()) {
    log::warning("answers may not meet these conditions of the JSON schema: {}", join(unenforced));
  }
}

}  // namespace

TokenMaskMaker LanguageModel::constrain(OutputFormat format, std::string_view text, std::vector<std::string>* unenforced) const {
  const Tokenizer& words = tokenizer();
  std::shared_ptr<const grammar::Vocabulary> vocabulary;
  {
    const std::lock_guard lock(impl_->mutex);
    if (!impl_->words) impl_->words = grammar_vocabulary(words, impl_->info.eos, impl_->info.vocabulary);
    vocabulary = impl_->words;
  }
  grammar::Grammar grammar = grammar::Grammar::from_output(format, text);
  tell(grammar.unenforced(), unenforced);
  return mask_maker(std::move(grammar), std::move(vocabulary));
}

TokenMaskMaker LanguageModel::constrain_calls(const AnswerFormat& format, std::string_view tools, const ToolChoice& choice,
                                              std::string_view prompt, std::vector<std::string>* unenforced) const {
  AnswerConstraint all;
  all.format = format;
  all.calls = AnswerConstraint::Calls::required;
  all.tools = tools;
  all.choice = choice;
  all.prompt = prompt;
  return constrain_answer(all, unenforced);
}

TokenMaskMaker LanguageModel::constrain_answer(const AnswerConstraint& of, std::vector<std::string>* unenforced) const {
  grammar::Grammar grammar = grammar_of_answer(of);
  tell(grammar.unenforced(), unenforced);
  const Tokenizer& words = tokenizer();
  std::shared_ptr<const grammar::Vocabulary> vocabulary;
  {
    const std::lock_guard lock(impl_->mutex);
    auto& known = impl_->call_words[{of.format.calls, of.format.reasoning_end}];
    if (!known) known = grammar_vocabulary(words, impl_->info.eos, impl_->info.vocabulary, kept_tokens(words, of.format));
    vocabulary = known;
  }
  return mask_maker(std::move(grammar), std::move(vocabulary), of.begun);
}

Generation LanguageModel::generate(std::string_view prompt, const GenerationSettings& settings, const OnToken& on_token) const {
  TextState state = new_state();
  return generate(state, prompt, settings, on_token);
}

Generation LanguageModel::generate(TextState& state, std::string_view prompt, const GenerationSettings& settings,
                                   const OnToken& on_token) const {
  const Tokenizer& words = tokenizer();
  // Only a new text gets special tokens at its beginning.
  const Encoding encoding = words.encode(prompt, state.tokens().empty());
  GenerationSettings with = settings;
  prepare_answer(with);
  return generate(state, encoding.ids, with, on_token);
}

Generation LanguageModel::generate(std::span<const TokenId> prompt, const GenerationSettings& settings,
                                   const OnToken& on_token) const {
  TextState state = new_state();
  return generate(state, prompt, settings, on_token);
}

Generation LanguageModel::generate(TextState& state, std::span<const TokenId> prompt, const GenerationSettings& settings,
                                   const OnToken& on_token) const {
  if (state.impl_->state.decoder() != impl().model.decoder.get()) {
    fail(ErrorCode::invalid_argument, "the state belongs to another model");
  }
  return generate_answers(*this, *state.impl_, prompt, settings, on_token);
}

Generation LanguageModel::generate(const ChatInput& messages, const GenerationSettings& settings, const OnToken& on_token) const {
  TextState state = new_state();
  return generate(state, messages, settings, on_token);
}

Generation LanguageModel::generate(TextState& state, const ChatInput& messages, const GenerationSettings& settings,
                                   const OnToken& on_token) const {
  ChatInput input = messages;
  input.add_generation_prompt = true;
  const PlainPrompt prompt =
      settings.control_tokens ? PlainPrompt{chat_template().render(input), {}} : chat_template().render_plain(input, tokenizer());
  const std::vector<TokenId> ids = tokenizer().encode(prompt.text, prompt.plain, false).ids;
  GenerationSettings with = settings;
  if (!input.tools.empty()) prepare_answer(with, answer_format(chat_template()));
  prepare_answer(with);
  const std::size_t common = keep_common(state, ids);
  Generation out = generate(state, std::span(ids).subspan(common), with, on_token);
  out.cached_tokens = static_cast<std::int64_t>(common);
  return out;
}

void LanguageModel::prepare_answer(GenerationSettings& settings) const {
  if (settings.detokenize) return;
  settings.detokenize = [words = tokenizer()](std::span<const TokenId> ids) { return words.decode(ids); };
}

void LanguageModel::prepare_answer(GenerationSettings& settings, const AnswerFormat& format, bool calls) const {
  if (!settings.detokenize) settings.detokenize = answer_detokenizer(tokenizer(), format);
  if (!calls) return;
  const std::vector<TokenId> ends = answer_ends(tokenizer(), format);
  settings.stop_tokens.insert(settings.stop_tokens.end(), ends.begin(), ends.end());
}

AnswerParser LanguageModel::prepare_answer(GenerationSettings& settings, std::string_view tools, std::string_view prompt) const {
  const AnswerFormat format = answer_format(chat_template());
  prepare_answer(settings, format);
  return AnswerParser(format, tools, prompt);
}

Tensor LanguageModel::embed(std::span<const std::string> texts) const {
  std::shared_ptr<const TextEmbedder> embedder;
  {
    const std::lock_guard lock(impl().mutex);
    try {
      if (!impl_->embedder) impl_->embedder = std::make_shared<const TextEmbedder>(TextEmbedder::load(impl_->path));
    } catch (const Error& e) {
      fail(ErrorCode::not_implemented,
           "'{}' returns no text vectors, only logits: use TextEmbedder (`sdx embed`) with the folder of an embedding model "
           "({})",
           impl_->path.string(), e.what());
    }
    embedder = impl_->embedder;
  }
  return embedder->embed(texts);
}

void LanguageModel::unload() { impl_.reset(); }
ModelState LanguageModel::state() const { return impl_ ? ModelState::loaded : ModelState::unloaded; }

const LanguageModel::Impl& LanguageModel::impl() const {
  if (!impl_) fail(ErrorCode::invalid_argument, "the model was unloaded");
  return *impl_;
}

}  // namespace sdx
