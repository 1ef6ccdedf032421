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

// How the next token is chosen. Logits pass through, in this order: repetition_penalty, presence and frequency penalties,
// logit_bias. Then, with `greedy` or temperature 0, the most likely token is taken; otherwise logits are divided by the
// temperature and filtered by top_k, typical_p, top_p and min_p, each acting on what the previous one left.
struct SamplingSettings {
  bool greedy = false;
  float temperature = 1.0F;  // >= 0
  std::int64_t top_k = 0;    // keep this many most likely tokens; 0: all
  float top_p = 1.0F;        // (0, 1]: keep the most likely tokens that together have this probability
  float min_p = 0.0F;        // [0, 1]: minimum probability relative to the most likely token
  float typical_p = 1.0F;    // (0, 1]: keep the tokens whose information is nearest to the expected one, with this total
                             // probability (arXiv:2202.00666)
  // > 0: divides positive and multiplies negative logits of tokens in prompt and answer (arXiv:1909.05858).
  float repetition_penalty = 1.0F;
  float presence_penalty = 0.0F;                      // subtracted from the logits of tokens in the answer
  float frequency_penalty = 0.0F;                     // the same, once per occurrence
  std::vector<std::pair<TokenId, float>> logit_bias;  // added to the logits
  // The same seed gives the same tokens for the same model, settings, instruction set and number of threads. No value: a random
  // seed.
  std::optional<std::uint64_t> seed;
};

// Restricts the tokens allowed at each position of an answer. One object serves one answer, from one thread at a time.
class SDX_API TokenMask {
 public:
  virtual ~TokenMask();
  // One bit per token: token i is allowed if bit i % 64 of word i / 64 is set; tokens beyond the span are not. Valid until the
  // next call.
  virtual std::span<const std::uint64_t> allowed() = 0;
  // Accepts the chosen token, including one that ends the answer; returns false if it does not fit.
  virtual bool accept(TokenId id) = 0;
  // True if only the end of the answer can follow.
  virtual bool complete() const = 0;
};
using TokenMaskMaker = std::function<std::unique_ptr<TokenMask>()>;

// Kinds of constraints on answers: a JSON schema, a grammar in llama.cpp's notation, or a regular expression that the whole
// answer must match; `json` and `json_object` need no text. docs/constrained-output.md says what each accepts.
enum class OutputFormat { json_schema, gbnf, regex, json, json_object };

// What an answer is held to. Reasoning that the prompt begins, or that may come first, is free text; what follows is not.
struct AnswerConstraint {
  enum class Calls { none, allowed, required };

  AnswerFormat format;                 // how the model writes calls and reasoning; Harmony: also its channels
  bool may_reason = false;             // the answer may begin with reasoning though the prompt does not
  std::optional<OutputFormat> output;  // the form of an answer that is no call; no value: any text without marks of calls
  std::string text = {};               // the schema, grammar or expression of `output`
  Calls calls = Calls::none;           // then `tools` and `choice` say which
  std::string tools = {};              // as for AnswerParser
  ToolChoice choice = {};
  // Tools whose parameters must be enforced. Those of others are as far as possible; "tools[NAME]#" tells where they are not.
  bool all_strict = true;
  std::vector<std::string> strict = {};
  std::string prompt = {};  // as for AnswerParser, without `begun`
  std::string begun = {};   // the beginning of the answer, which the prompt gives
};

class LanguageModel;

// What to do if an answer or its prompt exceeds the model's context.
enum class ContextOverflow {
  error,  // refuse prompts that are too long; answers end with "length"
  slide,  // keep the first `keep` tokens, drop the older half of the rest and recompute what remains
};

struct GenerationSettings {
  std::int64_t max_tokens = 256;  // per answer; the model's context may end it sooner
  std::int64_t min_tokens = 0;    // tokens to generate before one may end the answer
  SamplingSettings sampling;
  int n = 1;                         // number of answers; the prompt is computed once
  int logprobs = -1;                 // >= 0: return log probabilities of the chosen tokens and of this many most likely ones
  std::vector<TokenId> stop_tokens;  // besides the model's own
  bool ignore_end = false;           // the model's own stop tokens do not end the answer
  std::vector<std::string> stop;     // strings that end the answer and are excluded from `text`. Needs `detokenize`
  // Converts tokens to text; if empty, `text` stays empty. Called on the generating thread.
  std::function<std::string(std::span<const TokenId>)> detokenize;
  // Creates the mask of each answer (LanguageModel::constrain); empty: no constraint. Tokens not allowed get the logit -infinity
  // after penalties and biases. Throws Error(runtime_failure) if no token is allowed. Cannot be combined with ignore_end.
  TokenMaskMaker mask;

  // Speculative decoding: guessed tokens are computed together with the last one and kept as long as the model chooses the same.
  // This takes fewer steps and gives the same answers up to rounding, whatever the other settings. Use one of these:
  // Prompt lookup: guess up to this many tokens (at most 64) that followed an earlier occurrence of the last ones; 0: off.
  int lookup = 0;
  std::shared_ptr<const LanguageModel> draft;  // guess greedily with a smaller model of the same vocabulary
  int draft_tokens = 4;                        // tokens per guess of `draft`, 1 to 64

  // > 1: beam search, as transformers and onnxruntime-genai define it: this many beams (at most 64) grow at once, and the n (at
  // most `beams`) best finished ones are the answers, ranked by the sum of their log probabilities divided by length to the power
  // of length_penalty. Tokens are reported at the end. Sampling settings are ignored; penalties other than 1 and 0, logit_bias,
  // logprobs, stop, mask, lookup, draft and slide are refused.
  int beams = 1;
  float length_penalty = 1.0F;
  bool early_stopping = true;  // stop once `beams` beams have finished; else when no growing beam can become better

  bool control_tokens = false;  // names of special tokens in a conversation's texts are these tokens, not text
  ContextOverflow overflow = ContextOverflow::error;
  std::int64_t keep = 0;  // with slide: less than the context size minus 2
  RunOptions run;         // timeout per step, cancellation
};

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0.0F;  // natural logarithm of the model's own probability, before penalties and temperature
};

// One generated token, as it is streamed.
struct GeneratedToken {
  int choice = 0;  // index of the answer, out of n
  TokenId id = 0;
  std::string text;  // newly certain text: never part of a character or of a stop string
  std::optional<TokenLogprob> logprob;
  std::vector<TokenLogprob> top;  // most likely first
};

struct Choice {
  std::vector<TokenId> tokens;  // including the one that ended the answer
  std::string text;
  std::string finish_reason;  // "stop", "length", "cancelled" (the callback returned false)
  std::string stop;           // the stop string that ended it
  double score = 0;           // of beam search
  std::vector<TokenLogprob> logprobs;
  std::vector<std::vector<TokenLogprob>> top_logprobs;
};

struct Generation {
  std::vector<Choice> choices;
  std::int64_t prompt_tokens = 0, completion_tokens = 0;
  std::int64_t cached_tokens = 0;                        // prompt tokens reused from the cache
  std::int64_t drafted_tokens = 0, accepted_tokens = 0;  // guessed tokens (lookup, draft), and how many of them were kept
  std::int64_t slides = 0;                               // number of times the context was full (ContextOverflow::slide)
  double first_token_ms = 0, prompt_tokens_per_s = 0, tokens_per_s = 0;
};

// Returning false ends the answer.
using OnToken = std::function<bool(const GeneratedToken&)>;

struct PerplexitySettings {
  std::int64_t window = 0;  // tokens that the model sees at once, at least 2; 0: the model's context, at most 2048
  std::int64_t stride = 0;  // tokens from one window to the next, at most `window`; 0: half of it
  std::function<void(std::int64_t done, std::int64_t all)> progress;  // in tokens; called after each window
  RunOptions run;
};

// How well a model predicts a text: each token but the first is scored once, from the preceding tokens in its window. Windows are
// those of Hugging Face's "Perplexity of fixed-length models": the first is scored whole, each later one only on its new tokens.
struct Perplexity {
  std::int64_t tokens = 0, scored = 0, windows = 0;
  double nll = 0;                        // mean negative log-likelihood of the scored tokens, natural logarithm
  double perplexity = 0;                 // e to the power of nll
  double seconds = 0, tokens_per_s = 0;  // for all computed tokens, counting those in overlapping windows each time
};

// A LoRA adapter: a folder as PEFT writes it (adapter_config.json, adapter_model.safetensors), or a GGUF file of kind "adapter".
struct LoraAdapter {
  std::filesystem::path path;
  float scale = 1.0F;  // multiplies the adapter's contribution
};

struct LanguageModelOptions {
  SessionOptions session;
  std::int64_t max_context = 0;  // tokens; 0: the model's own
  // Type of the key-value cache: float32, float16, bfloat16 or int8 (with one scale per row); undefined: the model's own. load()
  // throws Error(invalid_argument) if the network does not support it. docs/language-models.md describes the effect on results.
  DataType cache_type = DataType::undefined;
  // The least precise type that activations may be rounded to where they are multiplied by weights in blocks, as MatMulNBits'
  // accuracy_level has it: 1 float32, 2 float16, 3 bfloat16, 4 int8. 0: what the model's files ask for; .gguf files ask for int8,
  // as llama.cpp computes prompts and batches. Throws Error(invalid_argument) for other numbers.
  int accuracy_level = 0;
  // Each weight W acts as W + scale * alpha / rank * B * A, computed as two extra products; W itself stays as stored. In ONNX
  // networks the weights are found by name. load() throws Error(not_implemented | invalid_model) naming what it cannot apply.
  std::vector<LoraAdapter> loras;
};

struct LanguageModelInfo {
  std::string format;               // "gguf", "safetensors", "genai", "onnx"
  std::string architecture;         // "llama"; "" if the files do not say
  std::filesystem::path tokenizer;  // the file or folder that the vocabulary is in
  std::int64_t context = 0;         // 0: not known
  std::int64_t vocabulary = 0, layers = 0, kv_heads = 0, head_size = 0;
  std::optional<TokenId> bos, pad;
  std::vector<TokenId> eos;
  SamplingSettings defaults;  // as recommended by the files
  double load_ms = 0;
};

// One sequence in a model: its tokens and its key-value cache. Memory grows with use (docs/language-models.md). Movable. Not
// thread-safe, but any number of states may be used at once. Keeps the model alive.
class SDX_API TextState {
 public:
  ~TextState();
  TextState(TextState&&) noexcept;
  TextState& operator=(TextState&&) noexcept;

  // Appends and computes the tokens. Returns float32 logits for the next token: [1, vocabulary] after the last token, or [tokens,
  // vocabulary] after each. Throws Error(invalid_argument) if there are no tokens, for tokens outside the vocabulary, and beyond
  // the model's context; the state is then unchanged.
  Tensor append(std::span<const TokenId> tokens, bool all_logits = false, const RunOptions& options = {});
  // Drops all but the first `count` tokens. Throws Error(invalid_argument) if there are fewer.
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

// A loaded model. Copies share it; any number of threads may call all members, except unload().
class SDX_API LanguageModel {
 public:
  // A .gguf file, or a folder: with genai_config.json, as optimum and transformers.js export it, or as transformers writes it
  // (config.json, model.safetensors). Throws Error: io, invalid_model, not_implemented (naming what is not supported),
  // out_of_memory.
  static LanguageModel load(const std::filesystem::path& path, const LanguageModelOptions& options = {});

  const LanguageModelInfo& info() const;
  TextState new_state() const;

  // Answers a prompt, which must not be empty. Throws Error(invalid_argument) for settings out of range, and for a prompt that
  // leaves no room in the context.
  Generation generate(std::span<const TokenId> prompt, const GenerationSettings& settings = {},
                      const OnToken& on_token = {}) const;
  // Continues `state`, whose tokens count as part of the prompt. Afterwards the state holds the last answer up to its last token,
  // which is not computed; after beam search, it ends with the prompt.
  Generation generate(TextState& state, std::span<const TokenId> prompt, const GenerationSettings& settings = {},
                      const OnToken& on_token = {}) const;

  // Answers a text, tokenised with the special tokens that the tokenizer adds. Answers have text, without special tokens, whether
  // or not `detokenize` is set.
  Generation generate(std::string_view prompt, const GenerationSettings& settings = {}, const OnToken& on_token = {}) const;
  Generation generate(TextState& state, std::string_view prompt, const GenerationSettings& settings = {},
                      const OnToken& on_token = {}) const;

  // Answers a conversation, using chat_template() and add_generation_prompt. With tools, call marks stay in the text
  // (answer_detokenizer) for AnswerParser to read, and tokens that end a call end the answer (answer_ends). The prefix that the
  // conversation shares with `state` is not recomputed (cached_tokens).
  Generation generate(const ChatInput& messages, const GenerationSettings& settings = {}, const OnToken& on_token = {}) const;
  Generation generate(TextState& state, const ChatInput& messages, const GenerationSettings& settings = {},
                      const OnToken& on_token = {}) const;

  // Embeddings of texts, float32[texts, dimensions], as TextEmbedder makes them. For an ONNX network that returns only logits,
  // throws Error(not_implemented) saying what to use.
  Tensor embed(std::span<const std::string> texts) const;

  // Releases this object's reference to the model; copies and states keep theirs, and the last one frees the memory. Afterwards
  // all other members but state() throw Error(invalid_argument). Do not call while another thread uses this object.
  void unload();
  ModelState state() const;

  // Perplexity of tokens, or of a text with the special tokens that the tokenizer adds. Throws Error(invalid_argument) for fewer
  // than two tokens, and for windows that are out of range.
  Perplexity perplexity(std::span<const TokenId> tokens, const PerplexitySettings& settings = {}) const;
  Perplexity perplexity(std::string_view text, const PerplexitySettings& settings = {}) const;

  // Loaded from info().tokenizer on first use. Throws Error as Tokenizer::load() does.
  const Tokenizer& tokenizer() const;

  // Loaded from the model's path on first use. Throws Error as ChatTemplate::load() does.
  const ChatTemplate& chat_template() const;

  // For GenerationSettings::mask: answers that match the constraint and end where it does. Throws Error(invalid_argument) for
  // constraints that cannot be enforced, Error(not_implemented) for tokenizers whose tokens do not simply concatenate
  // (WordPiece). The first call prepares the model's vocabulary. `unenforced`, where given, gets the places of a schema's
  // conditions that answers may not meet ("#/properties/tags/uniqueItems"); without it they are logged as a warning.
  TokenMaskMaker constrain(OutputFormat format, std::string_view text = {}, std::vector<std::string>* unenforced = nullptr) const;

  // The same for function calls: the answer is one or several calls in the format. `tools` and `prompt` are as for AnswerParser:
  // if the prompt ends within reasoning, the answer begins with the rest of it. Throws Error(invalid_argument) for a name that is
  // not among the tools, schemas that cannot be enforced, and ToolCallFormat::none; `detect` is treated as hermes.
  TokenMaskMaker constrain_calls(const AnswerFormat& format, std::string_view tools, const ToolChoice& choice = {},
                                 std::string_view prompt = {}, std::vector<std::string>* unenforced = nullptr) const;

  // The same for answers that reason, call and have a form. Throws Error(invalid_argument) also for a beginning that does not
  // fit.
  TokenMaskMaker constrain_answer(const AnswerConstraint& of, std::vector<std::string>* unenforced = nullptr) const;

  // Prepare `settings` for answers with text; a detokenizer that is set stays. For plain text, without special tokens:
  void prepare_answer(GenerationSettings& settings) const;
  // For a format: its marks stay in the text (answer_detokenizer), and with `calls`, tokens that end a call end the answer
  // (answer_ends).
  void prepare_answer(GenerationSettings& settings, const AnswerFormat& format, bool calls = true) const;
  // For calls in the format of chat_template(). Returns the parser of the answer; the arguments are as for AnswerParser, and
  // errors as there.
  AnswerParser prepare_answer(GenerationSettings& settings, std::string_view tools, std::string_view prompt = {}) const;

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
  // Storage of the matrices: "" as stored, every value exact (MatMulNBits with the blocks' codes; block minimums as a separate
  // product; floats as float32); "float32"; "float16", including all computation; "int8" or "int4": requantised in blocks of 32.
  std::string dtype;
  std::int64_t max_context = 0;  // positions to write rotary angles for; 0: the model's own
  bool dry_run = false;          // do everything but write
};

struct LanguageConversion {
  std::string architecture;
  std::int64_t context = 0;
  std::uint64_t bytes = 0;         // size of the written network
  std::vector<std::string> files;  // names of all files written to the folder
  // Why tokenizer.json, tokenizer_config.json and special_tokens_map.json are missing; "": they were written or copied.
  std::string without_tokenizer;
};

// Writes the network of a .gguf file, or of a folder with .safetensors files, as FOLDER/model.onnx, model.onnx.data and
// genai_config.json, which both onnxruntime-genai (0.18) and LanguageModel can open. Needs as much memory as the files are large.
// Throws Error as LanguageModel::load() does, and Error(io).
SDX_API LanguageConversion convert_language_model(const std::filesystem::path& model, const std::filesystem::path& folder,
                                                  const LanguageConvertOptions& options = {});

}  // namespace sdx
