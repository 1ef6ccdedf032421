#pragma once
// Language models: tokens in, tokens out. Link libsdx_text (CMake: sardonyx::text).
//
//   const sdx::LanguageModel model = sdx::LanguageModel::load("SmolLM2-135M-Instruct.Q4_1.gguf");
//   const sdx::Generation answer = model.generate("The capital of France is", {.max_tokens = 64});
//   std::cout << answer.choices[0].text;
//
// docs/language-models.md says which files are read. Texts are UTF-8. All functions throw sdx::Error.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/chat_template.hpp>
#include <sdx/export.hpp>
#include <sdx/session.hpp>
#include <sdx/tensor.hpp>
#include <sdx/tokenizer.hpp>
#include <sdx/tool_calls.hpp>

namespace sdx {

using TokenId = std::uint32_t;

class GenerationEngine;
namespace text {
struct Decoder;
}

// How the next token is chosen. Of the logits, in this order: repetition_penalty, presence and frequency penalties, logit_bias;
// then the likeliest token where `greedy` is set or the temperature is 0; else division by temperature, and of the tokens' shares
// top_k, typical_p, top_p, min_p, each over what the one before left.
struct SamplingSettings {
  bool greedy = false;
  float temperature = 1.0F;         // >= 0
  std::int64_t top_k = 0;           // the likeliest tokens; 0: all
  float top_p = 1.0F;               // (0, 1]: the likeliest that together have this share
  float min_p = 0.0F;               // [0, 1]: at least this much of the likeliest one's share
  float typical_p = 1.0F;           // (0, 1]: those whose information is nearest to the expected one, with this share
                                    // (arXiv:2202.00666)
  float repetition_penalty = 1.0F;  // > 0: logits of tokens in prompt and answer are divided by it, negative ones multiplied
                                    // (arXiv:1909.05858)
  float presence_penalty = 0.0F;    // taken from the logits of tokens in the answer
  float frequency_penalty = 0.0F;   // the same, for each time
  std::vector<std::pair<TokenId, float>> logit_bias;  // added to the logits
  // The same seed gives the same tokens with the same model, settings, instruction set and number of threads. Nothing: a random
  // one.
  std::optional<std::uint64_t> seed;
};

// Which tokens an answer may have at each place. One object serves one answer, from one thread at a time.
class SDX_API TokenMask {
 public:
  virtual ~TokenMask();
  // A bit for each token: token i may come if bit i % 64 of word i / 64 is set; tokens beyond may not. Valid until the next call.
  virtual std::span<const std::uint64_t> allowed() = 0;
  // Takes the token that was chosen, one that ends the answer too; false where it does not fit.
  virtual bool accept(TokenId id) = 0;
  // Nothing but the end can follow.
  virtual bool complete() const = 0;
};
using TokenMaskMaker = std::function<std::unique_ptr<TokenMask>()>;

// What a text that constrains answers is: a JSON schema, a grammar in llama.cpp's notation, a regular expression that the whole
// answer fits; `json` and `json_object` need no text. docs/constrained-output.md says what is accepted of each.
enum class OutputFormat { json_schema, gbnf, regex, json, json_object };

class LanguageModel;

// What happens where an answer, or its prompt, does not fit into the model's context.
enum class ContextOverflow {
  error,  // prompts are refused, answers end with "length"
  slide,  // the first `keep` tokens stay, of the others the older half goes; the rest is computed anew
};

struct GenerationSettings {
  std::int64_t max_tokens = 256;  // of an answer; the model's context may end it sooner
  std::int64_t min_tokens = 0;    // so many tokens come before one that ends the answer
  SamplingSettings sampling;
  int n = 1;                         // answers; the prompt is computed once
  int logprobs = -1;                 // >= 0: logarithms of the chosen tokens' shares, and of this many likeliest ones
  std::vector<TokenId> stop_tokens;  // besides the model's own
  bool ignore_end = false;           // the model's own do not end the answer
  std::vector<std::string> stop;     // texts that end it; they are no part of `text`. Needs `detokenize`
  // The text of tokens; empty: `text` stays empty. Called from the thread that generates.
  std::function<std::string(std::span<const TokenId>)> detokenize;
  // Makes what each answer is held to (LanguageModel::constrain); empty: nothing. Tokens that it does not allow get the logit
  // -infinity behind penalties and biases. Error(runtime_failure) where it allows none. Not together with ignore_end.
  TokenMaskMaker mask;

  // Guessed tokens are computed together with the last one, and kept as far as the model chooses the same: fewer steps, the same
  // answers up to rounding, whatever the other settings are. Either of these:
  int lookup = 0;  // up to this many (64 at most) that followed the last tokens where they stood in the text before; 0: none
  std::shared_ptr<const LanguageModel> draft;  // a smaller model's greedy choice; its vocabulary must be the same
  int draft_tokens = 4;                        // of each guess of `draft`, 1 to 64

  // > 1: beam search, as transformers and onnxruntime-genai define it: this many (64 at most) texts grow at once, and the n (at
  // most `beams`) best ended ones are the answers, by the sum of their tokens' logarithms divided by length to the power of
  // length_penalty. Tokens are told at the end. Of the sampling settings none counts; penalties other than 1 and 0, logit_bias,
  // logprobs, stop, mask, lookup, draft and slide are refused.
  int beams = 1;
  float length_penalty = 1.0F;
  bool early_stopping = true;  // ends with the first `beams` ended texts; else when none that grows can become better

  ContextOverflow overflow = ContextOverflow::error;
  std::int64_t keep = 0;  // with slide: fewer than the context has, less two
  RunOptions run;         // timeout of each step, cancelling
};

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0.0F;  // natural logarithm, of the model's own distribution: before penalties and temperature
};

// One token as it comes.
struct GeneratedToken {
  int choice = 0;  // which of n answers
  TokenId id = 0;
  std::string text;  // what it adds to the text that is certain by now: no part of a character, nor of a stop text
  std::optional<TokenLogprob> logprob;
  std::vector<TokenLogprob> top;  // likeliest first
};

struct Choice {
  std::vector<TokenId> tokens;  // with the one that ended the answer
  std::string text;
  std::string finish_reason;  // "stop", "length", "cancelled" (the callback returned false)
  std::string stop;           // the stop text that ended it
  double score = 0;           // of beam search
  std::vector<TokenLogprob> logprobs;
  std::vector<std::vector<TokenLogprob>> top_logprobs;
};

struct Generation {
  std::vector<Choice> choices;
  std::int64_t prompt_tokens = 0, completion_tokens = 0;
  std::int64_t cached_tokens = 0;                        // of the prompt's: not computed again
  std::int64_t drafted_tokens = 0, accepted_tokens = 0;  // guessed ones (lookup, draft), and those of them that were kept
  std::int64_t slides = 0;                               // how often the context was full (ContextOverflow::slide)
  double first_token_ms = 0, prompt_tokens_per_s = 0, tokens_per_s = 0;
};

// Returning false ends the answer.
using OnToken = std::function<bool(const GeneratedToken&)>;

struct PerplexitySettings {
  std::int64_t window = 0;  // tokens that the model sees at once, 2 at least; 0: the model's context, 2048 at most
  std::int64_t stride = 0;  // tokens from one window to the next, at most `window`; 0: half of it
  std::function<void(std::int64_t done, std::int64_t all)> progress;  // tokens; behind each window
  RunOptions run;
};

// How well a model foretells a text: each token but the first counts once, from the tokens before it in its window. Windows are
// those of Hugging Face's "Perplexity of fixed-length models": the first counts whole, each other one the tokens that are new in
// it.
struct Perplexity {
  std::int64_t tokens = 0, scored = 0, windows = 0;
  double nll = 0;                        // mean negative natural logarithm of the scored tokens' shares
  double perplexity = 0;                 // e to the power of nll
  double seconds = 0, tokens_per_s = 0;  // of all tokens that were computed, those that windows share more than once
};

// A LoRA adapter: a folder as PEFT writes it (adapter_config.json, adapter_model.safetensors), or a GGUF file of kind "adapter".
struct LoraAdapter {
  std::filesystem::path path;
  float scale = 1.0F;  // of what the adapter adds
};

struct LanguageModelOptions {
  SessionOptions session;
  std::int64_t max_context = 0;  // tokens; 0: the model's own
  // Of keys and values: float32, float16, bfloat16 or int8 (with a scale for each row); undefined: the model's own. load() throws
  // Error(invalid_argument) where the network cannot have another. docs/language-models.md says what it does to results.
  DataType cache_type = DataType::undefined;
  // Each weight W acts as W + scale * alpha / rank * B * A, computed as two products beside W's own, which stays as it is stored.
  // For models whose network is built here (.gguf files); load() throws Error(not_implemented) for others, naming what it cannot
  // apply.
  std::vector<LoraAdapter> loras;
};

struct LanguageModelInfo {
  std::string format;               // "gguf", "safetensors", "genai", "onnx"
  std::string architecture;         // "llama"; "" where the files do not say
  std::filesystem::path tokenizer;  // the file or folder that the vocabulary is in
  std::int64_t context = 0;         // 0: not known
  std::int64_t vocabulary = 0, layers = 0, kv_heads = 0, head_size = 0;
  std::optional<TokenId> bos, pad;
  std::vector<TokenId> eos;
  SamplingSettings defaults;  // what the files recommend
  double load_ms = 0;
};

// One text in a model: its tokens, and what the model keeps of them. Memory grows with use (docs/language-models.md).
// Movable. Not thread-safe; any number of them may be used at once. Keeps the model alive.
class SDX_API TextState {
 public:
  ~TextState();
  TextState(TextState&&) noexcept;
  TextState& operator=(TextState&&) noexcept;

  // Computes the tokens. Returns float32 logits for what follows: [1, vocabulary] behind the last one, or [tokens, vocabulary]
  // behind each. Throws Error(invalid_argument) for none, for tokens outside the vocabulary, and beyond the model's context; then
  // the state is as it was.
  Tensor append(std::span<const TokenId> tokens, bool all_logits = false, const RunOptions& options = {});
  // Keeps the first `count` tokens. Throws Error(invalid_argument) for more than there are.
  void rewind(std::size_t count);

  const std::vector<TokenId>& tokens() const;
  std::size_t cache_bytes() const;

 private:
  friend class LanguageModel;
  struct Impl;
  explicit TextState(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

enum class ModelState { loaded, unloaded };

// A loaded model. Copies share it; all members may be called from any number of threads.
class SDX_API LanguageModel {
 public:
  // A .gguf file, or a folder: with genai_config.json, as optimum and transformers.js export it, or as transformers writes it
  // (config.json, model.safetensors). Throws Error: io, invalid_model, not_implemented (naming what is not supported),
  // out_of_memory.
  static LanguageModel load(const std::filesystem::path& path, const LanguageModelOptions& options = {});

  const LanguageModelInfo& info() const;
  TextState new_state() const;

  // Answers to a prompt, which must not be empty. Throws Error(invalid_argument) for settings out of range, and for a prompt that
  // leaves no room in the context.
  Generation generate(std::span<const TokenId> prompt, const GenerationSettings& settings = {},
                      const OnToken& on_token = {}) const;
  // The same behind what `state` holds, whose tokens count as the prompt's. It ends with the last answer in it, up to its last
  // token, which is not computed; behind beam search, with the prompt.
  Generation generate(TextState& state, std::span<const TokenId> prompt, const GenerationSettings& settings = {},
                      const OnToken& on_token = {}) const;

  // Of a text, which becomes tokens with the special ones that the tokenizer adds. Answers have texts, without special tokens,
  // whether or not `detokenize` is set.
  Generation generate(std::string_view prompt, const GenerationSettings& settings = {}, const OnToken& on_token = {}) const;
  Generation generate(TextState& state, std::string_view prompt, const GenerationSettings& settings = {},
                      const OnToken& on_token = {}) const;

  // Of a conversation, with chat_template() and add_generation_prompt. Where there are tools, the marks of calls stay in the text
  // (answer_detokenizer), and tokens that end a call end the answer (answer_ends): AnswerParser reads it. What the conversation
  // has in common with what `state` holds is not computed again (cached_tokens).
  Generation generate(const ChatInput& messages, const GenerationSettings& settings = {}, const OnToken& on_token = {}) const;
  Generation generate(TextState& state, const ChatInput& messages, const GenerationSettings& settings = {},
                      const OnToken& on_token = {}) const;

  // Vectors of texts, float32[texts, dimensions], as TextEmbedder makes them. Throws Error(not_implemented) for a network that
  // gives logits alone, as language models do: it says what to use.
  Tensor embed(std::span<const std::string> texts) const;

  // Lets go of the model: of this object, not of its copies and states; the last of them frees the memory. All other members but
  // state() throw Error(invalid_argument) from then on. Not while another thread uses this object.
  void unload();
  ModelState state() const;

  // Of tokens, or of a text with the special tokens that the tokenizer adds. Throws Error(invalid_argument) for fewer than two
  // tokens, and for windows that are out of range.
  Perplexity perplexity(std::span<const TokenId> tokens, const PerplexitySettings& settings = {}) const;
  Perplexity perplexity(std::string_view text, const PerplexitySettings& settings = {}) const;

  // Loaded from info().tokenizer when it is first asked for. Throws Error as Tokenizer::load() does.
  const Tokenizer& tokenizer() const;

  // Loaded from the model's path when it is first asked for. Throws Error as ChatTemplate::load() does.
  const ChatTemplate& chat_template() const;

  // For GenerationSettings::mask: answers that fit a grammar, and end where it does. Throws Error(invalid_argument) for what
  // cannot be enforced, Error(not_implemented) for tokenizers whose tokens do not simply join (WordPiece). The model's vocabulary
  // is arranged at the first call.
  TokenMaskMaker constrain(OutputFormat format, std::string_view text = {}) const;

  // The same for calls of functions: the answer is one (or several) in the format. `tools` as for AnswerParser; `prompt` too:
  // where it ends within reasoning, the answer begins with the rest of that. Throws Error(invalid_argument) for a name that is
  // not among the tools, schemas that cannot be enforced, and ToolCallFormat::none; `detect` is taken for hermes.
  TokenMaskMaker constrain_calls(const AnswerFormat& format, std::string_view tools, const ToolChoice& choice = {},
                                 std::string_view prompt = {}) const;

  Report report() const;  // of the session

 private:
  friend class GenerationEngine;
  struct Impl;
  explicit LanguageModel(std::shared_ptr<const Impl> impl);
  const Impl& impl() const;  // throws where it was unloaded
  std::shared_ptr<const text::Decoder> decoder() const;
  std::shared_ptr<const Impl> impl_;
};

struct LanguageConvertOptions {
  // Of the matrices: "" as they are stored, every value exactly (MatMulNBits with the codes of the blocks; minimums of blocks as
  // a product of their own; floats as float32); "float32"; "float16", with all that is computed; "int8" or "int4": rounded anew,
  // in blocks of 32.
  std::string dtype;
  std::int64_t max_context = 0;  // positions that the angles are written for; 0: the model's own
};

struct LanguageConversion {
  std::string architecture;
  std::int64_t context = 0;
  std::uint64_t bytes = 0;  // of the network that was written
  // Why there are no tokenizer.json, tokenizer_config.json and special_tokens_map.json; "": they were written, or copied.
  std::string without_tokenizer;
};

// Writes the network of a .gguf file, or of a folder with .safetensors files, as FOLDER/model.onnx, model.onnx.data and
// genai_config.json, which onnxruntime-genai (0.18) opens as well as LanguageModel. Takes as much memory as the files have.
// Throws Error as LanguageModel::load() does, and Error(io).
SDX_API LanguageConversion convert_language_model(const std::filesystem::path& model, const std::filesystem::path& folder,
                                                  const LanguageConvertOptions& options = {});

}  // namespace sdx
