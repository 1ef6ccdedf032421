#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sdx/chat_template.hpp>
#include <utility>

#include "base/error.h"
#include "base/text/json_text.h"
#include "base/text/utf8.h"
#include "tensor/gguf/gguf.h"
#include "tensor/gguf/gguf_names.h"
#include "text/template/from_json.h"
#include "text/template/interpreter.h"
#include "text/template/unicode.h"

namespace sdx {

using nlohmann::json;
using text::jinja::Interpreter;
using text::jinja::PyError;
using text::jinja::Value;

struct ChatTemplate::Impl {
  text::jinja::Program plain;
  std::optional<text::jinja::Program> with_tools;
  std::string special_tokens = "{}";
};

namespace {

constexpr std::size_t max_source = std::size_t{4} << 20;
constexpr std::size_t max_file = std::size_t{64} << 20;

text::jinja::Program parse(std::string_view source, const std::string& name) {
  if (source.size() > max_source)
    fail(ErrorCode::invalid_model, "{}: {} bytes are more than a chat template may have (4 MiB)", name, source.size());
  if (!is_utf8(source)) fail(ErrorCode::invalid_model, "{}: not valid UTF-8", name);
  try {
    return text::jinja::parse(source, name);
  } catch (const PyError& error) {
    fail(ErrorCode::invalid_model, "{}: {}", name, error.message());
  }
}

Value read_json(Interpreter& interpreter, const std::string& text, const char* what) {
  try {
    return text::jinja::parse_json(interpreter, text);
  } catch (const PyError& error) {
    fail(error.type() == PyError::Type::limit ? ErrorCode::out_of_memory : ErrorCode::invalid_argument, "{} of the chat: {}",
         what, error.message());
  }
}

void set_variables(Interpreter& interpreter, const std::string& text, const char* what) {
  const Value all = read_json(interpreter, text, what);
  if (!all.is(text::jinja::Kind::dict)) fail(ErrorCode::invalid_argument, "{} of the chat: expected a JSON object", what);
  for (const auto& [name, value] : all.dict().items) interpreter.variables[name.text()] = value;
}

int digits(std::string_view text, std::size_t at, std::size_t count) {
  int number = 0;
  for (std::size_t i = at; i < at + count; i++) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
    number = number * 10 + (text[i] - '0');
  }
  return number;
}

text::jinja::Now parse_now(const std::string& text) {
  text::jinja::Now now;
  if (text.empty()) {
    const auto time = std::chrono::system_clock::now();
    const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
    localtime_r(&seconds, &now.time);
    now.microseconds =
        static_cast<long>(std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count() % 1'000'000);
    return now;
  }
  const int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  const bool timed = text.size() > 10;
  const int hour = timed ? digits(text, 11, 2) : 0, minute = timed ? digits(text, 14, 2) : 0,
            second = text.size() > 16 ? digits(text, 17, 2) : 0;
  const bool shaped = (text.size() == 10 || text.size() == 16 || text.size() == 19) && text[4] == '-' && text[7] == '-';
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!shaped || year < 1 || !date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) {
    fail(ErrorCode::invalid_argument, "now: '{}' is not a date; expected, for example, \"2026-01-02\" or \"2026-01-02T03:04:05\"",
         text);
  }
  now.time.tm_year = year - 1900;
  now.time.tm_mon = month - 1;
  now.time.tm_mday = day;
  now.time.tm_hour = hour;
  now.time.tm_min = minute;
  now.time.tm_sec = second;
  const std::chrono::sys_days days = date;
  now.time.tm_wday = static_cast<int>(std::chrono::weekday(days).c_encoding());
  now.time.tm_yday = static_cast<int>((days - std::chrono::sys_days(std::chrono::year(year) / std::chrono::January / 1)).count());
  now.time.tm_isdst = -1;
  return now;
}

// The tag where a rendering failed, cut short.
std::string tag_text(const text::jinja::Program& program, const text::jinja::Node& node) {
  const std::string_view source = std::string_view(program.source).substr(std::min<std::size_t>(node.at, program.source.size()));
  const std::size_t close = std::min(source.find("%}"), source.find("}}"));
  std::string tag;
  bool space = false;
  for (const char32_t c : text::jinja::decode(source.substr(0, close == std::string_view::npos ? close : close + 2))) {
    if (tag.size() > 120) return tag + " …";
    if (text::jinja::is_space(c)) {
      space = true;
      continue;
    }
    if (std::exchange(space, false)) tag += ' ';
    append_utf8(tag, c);
  }
  return tag;
}

[[noreturn]] void report(const PyError& error, const text::jinja::Program& program, const text::jinja::Node* where) {
  const ErrorCode code = error.type() == PyError::Type::raised  ? ErrorCode::invalid_argument
                         : error.type() == PyError::Type::limit ? ErrorCode::out_of_memory
                                                                : ErrorCode::runtime_failure;
  Error result(code, error.message());
  if (where) result.add_context(fmt::format("in line {}: {}", where->line, tag_text(program, *where)));
  result.add_context(fmt::format("in the {}", program.name));
  throw result;
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, const std::string& name) {
  auto impl = std::make_shared<Impl>();
  impl->plain = parse(source, name);
  impl_ = std::move(impl);
}

const std::string& ChatTemplate::source() const { return impl_->plain.source; }
const std::string& ChatTemplate::tool_source() const {
  return impl_->with_tools ? impl_->with_tools->source : impl_->plain.source;
}

void ChatTemplate::set_special_tokens(std::string_view tokens) {
  auto impl = std::make_shared<Impl>();
  const json parsed = json::parse(tokens, nullptr, false);
  if (!parsed.is_object()) fail(ErrorCode::invalid_argument, "special tokens of the chat: expected a JSON object");
  impl->special_tokens = tokens;
  impl->plain = parse(impl_->plain.source, impl_->plain.name);
  if (impl_->with_tools) impl->with_tools = parse(impl_->with_tools->source, impl_->with_tools->name);
  impl_ = std::move(impl);
}

std::string ChatTemplate::render(const ChatInput& input, const ChatLimits& limits) const {
  const bool tools = !input.tools.empty() && input.tools != "null";
  const text::jinja::Program& program = tools && impl_->with_tools ? *impl_->with_tools : impl_->plain;
  Interpreter interpreter(program, limits.output);
  interpreter.budget.max_steps = limits.steps;
  interpreter.budget.max_live = limits.memory;
  interpreter.now = parse_now(input.now);
  set_variables(interpreter, impl_->special_tokens, "special tokens");
  interpreter.variables["messages"] = read_json(interpreter, input.messages, "messages");
  interpreter.variables["tools"] = tools ? read_json(interpreter, input.tools, "tools") : Value();
  interpreter.variables["documents"] = input.documents.empty() ? Value() : read_json(interpreter, input.documents, "documents");
  interpreter.variables["add_generation_prompt"] = Value::boolean(input.add_generation_prompt);
  if (!input.variables.empty()) set_variables(interpreter, input.variables, "variables");
  try {
    return interpreter.render();
  } catch (const PyError& error) {
    report(error, program, interpreter.where());
  }
}

// ---- Folders
namespace {

std::optional<std::string> read_if_there(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error || !std::filesystem::is_regular_file(path, error)) return std::nullopt;
  if (size > max_file)
    fail(ErrorCode::invalid_model, "{}: {} bytes are more than such a file may have (64 MiB)", path.string(), size);
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) fail(ErrorCode::io, "{}: cannot be read", path.string());
  return text;
}

json read_object(const std::filesystem::path& path) {
  const auto text = read_if_there(path);
  if (!text) return json::object();
  try {
    json parsed = json::parse(*text);
    if (parsed.is_object()) return parsed;
  } catch (const json::exception& error) {
    fail(ErrorCode::invalid_model, "{}: not valid JSON: {}", path.string(), error.what());
  }
  fail(ErrorCode::invalid_model, "{}: expected a JSON object", path.string());
}

// Tokens are texts, or objects with their text under "content".
void add_tokens(json& tokens, const json& config) {
  for (const auto& [name, value] : config.items()) {
    if (!name.ends_with("_token") || tokens.contains(name)) continue;
    const json& text = value.is_object() && value.contains("content") ? value["content"] : value;
    if (text.is_string()) tokens[name] = text;
  }
}

json folder_tokens(const std::filesystem::path& folder) {
  json tokens = json::object();
  add_tokens(tokens, read_object(folder / "tokenizer_config.json"));
  add_tokens(tokens, read_object(folder / "special_tokens_map.json"));
  return tokens;
}

const json* named_template(const json& list, std::string_view name) {
  for (const json& entry : list) {
    if (entry.is_object() && entry.contains("name") && entry["name"] == name && entry.contains("template") &&
        entry["template"].is_string()) {
      return &entry["template"];
    }
  }
  return nullptr;
}

}  // namespace

namespace {

bool is_gguf(const std::filesystem::path& path) { return path.extension() == ".gguf"; }

json gguf_tokens(const GgufFile& file) {
  json tokens = json::object();
  const auto words = file.texts("tokenizer.ggml.tokens");
  for (const auto& [name, key] :
       {std::pair("bos_token", "tokenizer.ggml.bos_token_id"), std::pair("eos_token", "tokenizer.ggml.eos_token_id"),
        std::pair("unk_token", "tokenizer.ggml.unknown_token_id"), std::pair("pad_token", "tokenizer.ggml.padding_token_id")}) {
    const auto id = file.whole(key);
    if (words && id && *id < words->size()) tokens[name] = std::string((*words)[*id]);
  }
  return tokens;
}

}  // namespace

namespace {

// A folder without files about a tokenizer may have a .gguf file.
std::filesystem::path template_place(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  for (const char* name : {"chat_template.jinja", "tokenizer_config.json", "chat_template.json", "tokenizer.json"}) {
    if (std::filesystem::exists(path / name, error)) return path;
  }
  return gguf_in(path).value_or(path);
}

}  // namespace

bool ChatTemplate::has(const std::filesystem::path& path) {
  const std::filesystem::path folder = template_place(path);
  if (is_gguf(folder)) return GgufFile::open(folder).text("tokenizer.chat_template").has_value();
  std::error_code error;
  if (std::filesystem::exists(folder / "chat_template.jinja", error)) return true;
  return read_object(folder / "tokenizer_config.json").contains("chat_template") ||
         read_object(folder / "chat_template.json").contains("chat_template");
}

std::string ChatTemplate::special_tokens_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = template_place(path);
  return dump_json(is_gguf(folder) ? gguf_tokens(GgufFile::open(folder)) : folder_tokens(folder));
}

ChatTemplate ChatTemplate::load(const std::filesystem::path& path) {
  const std::filesystem::path folder = template_place(path);
  if (is_gguf(folder)) {
    const GgufFile file = GgufFile::open(folder);
    const auto source = file.text("tokenizer.chat_template");
    if (!source) {
      fail(ErrorCode::invalid_model,
           "{}: no chat template (tokenizer.chat_template); the model may be one that only completes text", folder.string());
    }
    auto impl = std::make_shared<Impl>();
    impl->plain = parse(*source, folder.string());
    if (const auto tool_use = file.text("tokenizer.chat_template.tool_use")) {
      impl->with_tools = parse(*tool_use, folder.string() + " (tool_use)");
    }
    impl->special_tokens = dump_json(gguf_tokens(file));
    ChatTemplate result;
    result.impl_ = std::move(impl);
    return result;
  }
  auto impl = std::make_shared<Impl>();
  impl->special_tokens = folder_tokens(folder).dump();
  json found;
  std::string from = (folder / "chat_template.jinja").string();
  if (auto text = read_if_there(from)) {
    found = *text;
    if (auto tool = read_if_there(folder / "additional_chat_templates" / "tool_use.jinja"))
      impl->with_tools = parse(*tool, from + " (tool_use)");
  } else {
    for (const char* file : {"tokenizer_config.json", "chat_template.json"}) {
      const nlohmann::json object = read_object(folder / file);
      if (!object.contains("chat_template") || object["chat_template"].is_null()) continue;
      found = object["chat_template"];
      from = (folder / file).string();
      break;
    }
  }
  if (found.is_null()) {
    fail(ErrorCode::invalid_model,
         "{}: no chat template: neither chat_template.jinja nor \"chat_template\" in tokenizer_config.json; the model may be one "
         "that only completes text",
         folder.string());
  }
  if (found.is_array()) {
    const json list = std::move(found);
    const json *plain = named_template(list, "default"), *tool_use = named_template(list, "tool_use");
    if (!plain) fail(ErrorCode::invalid_model, "{}: \"chat_template\" is a list without an entry named \"default\"", from);
    if (tool_use) impl->with_tools = parse(tool_use->get<std::string>(), from + " (tool_use)");
    found = *plain;
  }
  if (!found.is_string()) fail(ErrorCode::invalid_model, "{}: \"chat_template\" is neither a text nor a list", from);
  impl->plain = parse(found.get<std::string>(), from);
  ChatTemplate result;
  result.impl_ = std::move(impl);
  return result;
}

}  // namespace sdx
