// A request's system prompt and messages.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/json_text.h"
#include "serve/anthropic/requests.h"

namespace sdx::serve::anthropic {
namespace {

using openai::Fields;
using openai::Json;
using openai::refuse;

constexpr std::size_t kMostMessages = 100000, kMostBlocks = 16384;

[[noreturn]] void unsupported_block(const std::string& path, const std::string& type) {
  refuse(fmt::format("{}: content of type '{}' is not supported: this server's models read only text", path, type.substr(0, 60)),
         path, "unsupported_content");
}

void join(std::string& to, std::string_view text) {
  if (!to.empty() && !text.empty()) to += '\n';
  to += text;
}

// A document whose contents are text.
std::string document_text(Fields& block, const std::string& path) {
  Fields source = block.within(block.required("source"), path + ".source");
  const std::string type = source.required_text("type");
  if (type != "text") unsupported_block(path + ".source", type);
  std::string text;
  if (const auto title = block.text("title")) join(text, *title);
  if (const auto context = block.text("context")) join(text, *context);
  join(text, source.required_text("data"));
  source.ignore({"media_type"});
  source.finish();
  block.ignore({"citations", "cache_control"});
  return text;
}

// Texts that a tool returned: a string, or blocks.
std::string result_text(const Fields& fields, const Json* content, const std::string& path) {
  if (content == nullptr) return {};
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) openai::wrong_type(path, "a string or an array of blocks", *content);
  std::string out;
  for (std::size_t i = 0; i < content->size(); ++i) {
    const std::string where = fmt::format("{}.{}", path, i);
    Fields block = fields.within((*content)[i], where);
    const std::string type = block.required_text("type");
    if (type == "document") {
      join(out, document_text(block, where));
    } else if (type == "text") {
      join(out, block.required_text("text"));
      block.ignore({"cache_control", "citations"});
    } else {
      unsupported_block(where, type);
    }
    block.finish();
  }
  return out;
}

class Conversation {
 public:
  explicit Conversation(Json& out) : out_(out) {}

  void read(const Fields& fields, const Json& value, std::size_t index) {
    const std::string path = fmt::format("messages.{}", index);
    Fields message = fields.within(value, path);
    const std::string role = message.required_text("role");
    if (role != "user" && role != "assistant" && role != "system") {
      openai::wrong_value(path + ".role", Json(role), "'user' and 'assistant'");
    }
    const Json& content = message.required("content");
    message.finish();
    if (!pending_.empty() && role != "user") unanswered(path);
    if (content.is_string()) {
      if (!pending_.empty()) unanswered(path);
      out_.push_back({{"role", role}, {"content", content}});
      return;
    }
    if (!content.is_array()) openai::wrong_type(path + ".content", "a string or an array of blocks", content);
    if (content.size() > kMostBlocks) refuse(fmt::format("{}.content: more than {} blocks", path, kMostBlocks), path);
    if (role == "assistant") {
      read_assistant(message, content, path);
    } else {
      read_user(message, content, path, role);
    }
  }

  // The last message may be the beginning of the answer.
  std::string take_continued(std::size_t messages) {
    if (!pending_.empty()) unanswered(fmt::format("messages.{}", messages));
    if (out_.empty() || out_.back()["role"] != "assistant") return {};
    std::string text = out_.back()["content"].get<std::string>();
    out_.erase(out_.size() - 1);
    return text;
  }

 private:
  [[noreturn]] void unanswered(const std::string& path) const {
    refuse(fmt::format(
               "{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must "
               "have a corresponding `tool_result` block in the next message.",
               path, fmt::join(pending_.begin(), pending_.begin() + std::min<std::ptrdiff_t>(std::ssize(pending_), 10), ", ")),
           path);
  }

  void read_assistant(const Fields& message, const Json& content, const std::string& path) {
    std::string text, thinking;
    Json calls = Json::array();
    for (std::size_t i = 0; i < content.size(); ++i) {
      const std::string where = fmt::format("{}.content.{}", path, i);
      Fields block = message.within(content[i], where);
      const std::string type = block.required_text("type");
      block.ignore({"cache_control"});
      if (type == "text") {
        text += block.required_text("text");
        block.ignore({"citations"});
      } else if (type == "thinking") {
        join(thinking, block.required_text("thinking"));
        block.ignore({"signature"});
      } else if (type == "redacted_thinking") {
        block.ignore({"data"});  // encrypted for another server
      } else if (type == "tool_use") {
        calls.push_back(read_call(block, where));
      } else {
        unsupported_block(where, type);
      }
      block.finish();
    }
    Json out = {{"role", "assistant"}, {"content", text}};
    if (!thinking.empty()) out["reasoning_content"] = thinking;
    if (!calls.empty()) out["tool_calls"] = std::move(calls);
    out_.push_back(std::move(out));
  }

  Json read_call(Fields& block, const std::string& where) {
    const std::string id = block.required_text("id");
    const std::string name = block.required_text("name");
    const Json& input = block.required("input");
    if (!input.is_object()) openai::wrong_type(where + ".input", "an object", input);
    block.ignore({"caller"});
    pending_.push_back(id);
    return {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", input}}}};
  }

  // Results of calls are messages of their own in a chat; texts between them are the user's.
  void read_user(const Fields& message, const Json& content, const std::string& path, const std::string& role) {
    std::string text;
    bool has_text = content.empty();
    for (std::size_t i = 0; i < content.size(); ++i) {
      const std::string where = fmt::format("{}.content.{}", path, i);
      Fields block = message.within(content[i], where);
      const std::string type = block.required_text("type");
      block.ignore({"cache_control"});
      if (type == "tool_result") {
        if (has_text) out_.push_back({{"role", role}, {"content", std::exchange(text, {})}});
        has_text = false;
        read_result(block, where);
      } else if (type == "text" || type == "document") {
        join(text, type == "text" ? block.required_text("text") : document_text(block, where));
        block.ignore({"citations"});
        has_text = true;
      } else {
        unsupported_block(where, type);
      }
      block.finish();
    }
    if (!pending_.empty()) unanswered(path);
    if (has_text) out_.push_back({{"role", role}, {"content", text}});
  }

  void read_result(Fields& block, const std::string& where) {
    const std::string id = block.required_text("tool_use_id");
    const auto found = std::find(pending_.begin(), pending_.end(), id);
    if (found == pending_.end()) {
      refuse(fmt::format("{}: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block must have a "
                         "corresponding `tool_use` block in the previous message.",
                         where, id.substr(0, 100)),
             where);
    }
    pending_.erase(found);
    block.boolean("is_error");  // a tool's own words say so
    out_.push_back(
        {{"role", "tool"}, {"content", result_text(block, block.take("content"), where + ".content")}, {"tool_call_id", id}});
  }

  Json& out_;
  std::vector<std::string> pending_;  // calls without a result
};

void read_system(Fields& fields, Json& out) {
  const Json* system = fields.take("system");
  if (system == nullptr) return;
  std::string text;
  if (system->is_string()) {
    text = system->get<std::string>();
  } else if (system->is_array()) {
    for (std::size_t i = 0; i < system->size(); ++i) {
      const std::string where = fmt::format("system.{}", i);
      Fields block = fields.within((*system)[i], where);
      if (const std::string type = block.required_text("type"); type != "text") unsupported_block(where, type);
      join(text, block.required_text("text"));
      block.ignore({"cache_control", "citations"});
      block.finish();
    }
  } else {
    openai::wrong_type("system", "a string or an array of blocks", *system);
  }
  if (!text.empty()) out.push_back({{"role", "system"}, {"content", text}});
}

}  // namespace

void read_conversation(Fields& fields, openai::ChatRequest& to) {
  read_system(fields, to.messages);
  fields.required("messages");
  const Json& messages = *fields.array("messages", 1, kMostMessages);
  Conversation conversation(to.messages);
  for (std::size_t i = 0; i < messages.size(); ++i) conversation.read(fields, messages[i], i);
  to.continued = conversation.take_continued(messages.size());
}

}  // namespace sdx::serve::anthropic
