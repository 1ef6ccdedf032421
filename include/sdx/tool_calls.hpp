#pragma once
// Parses function calls and reasoning out of a model's answer. Link libsdx_text (CMake: sardonyx::text).
//
//   sdx::AnswerParser parser = model.prepare_answer(settings, tools, prompt);  // marks of calls are often special tokens
//   model.generate(tokens, settings, [&](const sdx::GeneratedToken& token) { send(parser.add(token.text)); return true; });
//   send(parser.finish());
//   parser.answer().calls;
//
// Answers are untrusted: no text makes the parser fail, and what it holds back is bounded. Text that only looks like a call stays
// content, byte for byte. docs/tool-calls.md shows the formats. Functions throw sdx::Error where they say so. Use an AnswerParser
// from one thread at a time; all else is thread-safe.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/chat_template.hpp>
#include <sdx/export.hpp>
#include <sdx/tokenizer.hpp>

namespace sdx {

// Formats in which models write calls.
enum class ToolCallFormat {
  detect,        // whichever of the formats below the answer uses
  none,          // the answer has no calls
  hermes,        // <tool_call>{"name", "arguments"}</tool_call>: Hermes, Qwen 2.5 and 3, Granite 4
  qwen_xml,      // <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>: Qwen 3 Coder, Nemotron 3
  glm,           // <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>: GLM 4.5 to 4.7
  llama,         // {"name", "parameters"}, perhaps behind <|python_tag|>: Llama 3.1 to 3.3
  mistral,       // [TOOL_CALLS][{"name", "arguments", "id"}]: Mistral 7B v0.3, Nemo
  mistral_args,  // [TOOL_CALLS]NAME[ARGS]{…}: Mistral Small 3.2, Devstral, Ministral 3
  json_list,     // functools[{"name", "arguments"}], or <|tool_call|>[…]<|/tool_call|>: Phi-4-mini, Granite 3
  gemma,         // a block ```tool_code or ```json with {"name", "parameters"} or such objects in a list: Gemma 3
  gemma4,        // <|tool_call>call:NAME{KEY:<|"|>TEXT<|"|>,KEY:3}<tool_call|>: Gemma 4
  functionary,   // >>>NAME, a line end, {…}: Functionary 3.2
  deepseek,      // <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>: DeepSeek V3, R1, V3.1
  kimi,          // <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>: Kimi K2
  harmony,       // <|channel|>commentary to=functions.NAME<|message|>{…}<|call|>: GPT-OSS
  lfm,           // <|tool_call_start|>[NAME(KEY=VALUE)]<|tool_call_end|>: LFM 2 and 2.5
  olmo,          // <function_calls>NAME(KEY=VALUE)</function_calls>, a line for each call: Olmo 3
  pythonic,      // [NAME(KEY=VALUE), …], perhaps between <|python_start|> and <|python_end|>: Llama 4, Llama 3.2
  command,       // <|START_ACTION|>[{"tool_call_id", "tool_name", "parameters"}]<|END_ACTION|>: Command R7B, A
  minimax,       // <minimax:tool_call><invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>…: MiniMax M2
  nemotron,      // <TOOLCALL>[{"name", "arguments"}]</TOOLCALL>: Nemotron Nano 2
  dsml,  // <｜DSML｜function_calls><｜DSML｜invoke name="NAME"><｜DSML｜parameter name="KEY" string="true">…: DeepSeek V3.2
};

struct AnswerFormat {
  ToolCallFormat calls = ToolCallFormat::detect;
  // Marks around reasoning; "": do not look for it. Harmony uses its `analysis` channel instead.
  std::string reasoning_begin = "<think>", reasoning_end = "</think>";
  // The brackets around json_list in a forced call; when parsing, all variants are read.
  std::string list_begin = "functools", list_end = "";
};

// Detects the format from the call marks in a template's rendering of earlier calls; `detect` if none is known.
SDX_API AnswerFormat answer_format(const ChatTemplate& chat_template);
SDX_API AnswerFormat answer_format(std::string_view template_source);
// "hermes" …
SDX_API const char* to_string(ToolCallFormat format);
// Throws Error(invalid_argument) listing the valid names.
SDX_API ToolCallFormat tool_call_format(std::string_view name);

struct ToolCall {
  std::string id;  // the model's, or a generated one: "call_" and 24 letters and digits; for Mistral's format, 9
  std::string name;
  std::string arguments;  // JSON text as the model wrote it; an object if `complete`
  bool complete = false;  // false: the answer ended within the call, or the arguments are not a JSON object
};

struct ParsedAnswer {
  std::string content, reasoning;
  std::vector<ToolCall> calls;
};

struct AnswerEvent {
  enum class Kind {
    content,     // `text`
    reasoning,   // `text`
    call_begin,  // `index`, `id`, `name`; arguments follow
    arguments,   // `index`, `text`: the next part of them
    call_end,    // `index`, `complete`
  };
  Kind kind = Kind::content;
  int index = -1;  // of the call, from 0; -1: no call
  std::string text, id, name;
  bool complete = false;
};

// Parses one answer. Calls arrive one after another. The events together do not depend on how the text was split.
class SDX_API AnswerParser {
 public:
  // `tools`: the offered functions, as JSON like ChatInput::tools; "": none, so that only calls with marks are recognised. With
  // tools, bare JSON counts as a call if it names one of them, and values that a format writes as plain text (qwen_xml, glm) get
  // the types in the schemas. `prompt`: the text that the answer continues, whose end may begin
  // the reasoning. Throws Error(invalid_argument) for tools that are not a JSON list of functions.
  explicit AnswerParser(const AnswerFormat& format, std::string_view tools = {}, std::string_view prompt = {});
  ~AnswerParser();
  AnswerParser(AnswerParser&&) noexcept;
  AnswerParser& operator=(AnswerParser&&) noexcept;

  // Returns what this piece makes certain; a piece may split words and characters.
  std::vector<AnswerEvent> add(std::string_view text);
  // Ends the answer and returns what was held back. Do not call add() afterwards.
  std::vector<AnswerEvent> finish();

  const ParsedAnswer& answer() const;  // so far

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A whole answer. Throws as AnswerParser does.
SDX_API ParsedAnswer parse_answer(std::string_view text, const AnswerFormat& format = {}, std::string_view tools = {},
                                  std::string_view prompt = {});

// A decoder for GenerationSettings::detokenize: like Tokenizer::decode() without special tokens, but it keeps those that the
// format's marks consist of.
SDX_API std::function<std::string(std::span<const std::uint32_t>)> answer_detokenizer(Tokenizer tokenizer,
                                                                                      const AnswerFormat& format);
// Tokens for GenerationSettings::stop_tokens: they end a call and with it the answer, and files do not always name them
// (<|eom_id|>, <|call|>).
SDX_API std::vector<std::uint32_t> answer_ends(const Tokenizer& tokenizer, const AnswerFormat& format);

// The kind of call that an answer is forced to be (LanguageModel::constrain_calls).
struct ToolChoice {
  std::string name = {};  // the function; "": any of them
  bool parallel = false;  // more calls may follow, where the format has a way to write them
};

}  // namespace sdx
