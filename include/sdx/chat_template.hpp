#pragma once
// Chat templates turn a conversation into the prompt that a model was trained on. Templates are written in Jinja (jinja2 3.1's
// language, with the settings and additions of Hugging Face transformers); docs/chat-templates.md lists what is supported.
//
//   const sdx::ChatTemplate chat = sdx::ChatTemplate::load("SmolLM2-135M-Instruct");
//   const std::string prompt = chat.render({.messages = R"([{"role": "user", "content": "Hello"}])", .add_generation_prompt =
//   true});
//
// Any number of threads may render with one ChatTemplate at once. Templates are untrusted input: each rendering has limits
// (ChatLimits), and a template can reach only what it is given.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/export.hpp>

namespace sdx {

class Tokenizer;

// Input of a template, as JSON text (UTF-8). Numbers with a fraction or an exponent are floats, others integers.
struct ChatInput {
  std::string messages = "[]";
  std::string tools = {};      // a list of functions; "": none
  std::string documents = {};  // "": none
  bool add_generation_prompt = false;
  // The time that strftime_now() uses: "2026-01-02" or "2026-01-02T03:04:05"; "": the local time.
  std::string now = {};
  // A JSON object with further variables, such as {"enable_thinking": false}. They override special tokens of the same name.
  std::string variables = {};
};

// A prompt, and where it is what the conversation says, although it looks like a special token.
struct PlainPrompt {
  std::string text;
  std::vector<std::size_t> plain;  // bytes at which such texts begin, in order: for Tokenizer::encode()
};

struct ChatLimits {
  std::uint64_t steps = 10'000'000;             // evaluations, loop rounds, 64 bytes of text copied
  std::size_t output = std::size_t{16} << 20;   // bytes of the result
  std::size_t memory = std::size_t{256} << 20;  // bytes held by values at any time
};

class SDX_API ChatTemplate {
 public:
  // Parses the template. `name` is its name in errors. Throws Error(invalid_model) with line and reason.
  explicit ChatTemplate(std::string_view source, const std::string& name = "chat template");

  // From a .gguf file: tokenizer.chat_template, and tokenizer.chat_template.tool_use. From a model's folder: chat_template.jinja,
  // else `chat_template` of tokenizer_config.json, else chat_template.json; special tokens (bos_token, eos_token, …) from
  // tokenizer_config.json and special_tokens_map.json. Where several templates are there, "tool_use" serves requests with tools
  // and "default" all others. Throws Error(io) or Error(invalid_model).
  static ChatTemplate load(const std::filesystem::path& model);
  // Whether load() would find a template in the file or folder.
  static bool has(const std::filesystem::path& model);

  // The special tokens that load() reads, as a JSON object for set_special_tokens(); with or without a template.
  static std::string special_tokens_of(const std::filesystem::path& model);

  // The prompt. Throws Error(invalid_argument) for JSON that cannot be read and where the template itself refuses (its message to
  // raise_exception comes first), Error(runtime_failure) where it fails, Error(out_of_memory) where it exceeds a limit; the
  // context names template, line and tag.
  std::string render(const ChatInput& input, const ChatLimits& limits = {}) const;

  // The same for conversations with texts of others: names of special tokens in messages, tools and documents stay text. Only the
  // marks of calls and reasoning keep their meaning, in messages of the assistant.
  PlainPrompt render_plain(const ChatInput& input, const Tokenizer& tokenizer, const ChatLimits& limits = {}) const;

  const std::string& source() const;       // of the template used for requests without tools
  const std::string& tool_source() const;  // of the one used for requests with tools; often the same

  // Sets the special tokens available to every rendering: a JSON object, else Error(invalid_argument). Not while another thread
  // renders with this object.
  void set_special_tokens(std::string_view json);

 private:
  struct Impl;
  ChatTemplate() = default;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace sdx
