// The items of a conversation, as messages of a chat.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text/json_text.h"
#include "serve/responses/requests.h"

namespace sdx::serve::responses {
namespace {

using openai::Fields;
using openai::Json;
using openai::refuse;

// A content: a text, or parts that are texts.
std::string text_of(const Fields& item, const Json& content, const std::string& param) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) openai::wrong_type(param, "a string or an array of content parts", content);
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    Fields part = item.within(content[i], fmt::format("{}[{}]", param, i));
    const std::string type = part.required_text("type");
    if (i > 0) text += '\n';
    if (type == "refusal") {
      text += part.required_text("refusal");
    } else if (type == "input_text" || type == "output_text" || type == "text" || type == "summary_text" ||
               type == "reasoning_text") {
      text += part.required_text("text");
    } else {
      refuse(fmt::format("Invalid content type '{}' in '{}': this server's models accept only text.", type.substr(0, 60),
                         part.path("type")),
             part.path("type"), "unsupported_content");
    }
    part.ignore({"annotations", "logprobs"});
    part.finish();
  }
  return text;
}

// A chat has the parts of one turn of the assistant in one message, items have them one by one.
class Messages {
 public:
  explicit Messages(const Fields& fields, const std::string& instructions) : fields_(fields) {
    if (!instructions.empty()) out_.push_back({{"role", "system"}, {"content", instructions}});
  }

  void add(const Json& value, const std::string& where) {
    Fields item = fields_.within(value, where);
    const std::string type = item.text("type").value_or("message");
    item.ignore({"id", "status", "phase"});
    if (type == "message") {
      add_message(item);
    } else if (type == "reasoning") {
      add_reasoning(item);
    } else if (type == "function_call" || type == "custom_tool_call") {
      add_call(item, type == "custom_tool_call");
    } else if (type == "function_call_output" || type == "custom_tool_call_output") {
      add_output(item);
    } else {
      refuse(fmt::format("Invalid value: '{}'. Items may be 'message', 'reasoning', 'function_call', 'function_call_output', "
                         "'custom_tool_call', 'custom_tool_call_output' and 'item_reference'.",
                         type.substr(0, 60)),
             item.path("type"), "invalid_value");
    }
    item.finish();
  }

  Json take() {
    end_turn();
    return std::move(out_);
  }

 private:
  void end_turn() {
    if (!turn_.is_null()) out_.push_back(std::exchange(turn_, Json()));
  }

  // Whether the turn has more than thoughts, so that further texts or thoughts belong to the next.
  bool turn_has_answered() const {
    return !turn_.is_null() && (turn_.contains("tool_calls") || !turn_.at("content").get_ref<const std::string&>().empty());
  }

  Json& turn() {
    if (turn_.is_null()) turn_ = {{"role", "assistant"}, {"content", ""}};
    return turn_;
  }

  void add_message(Fields& item) {
    const std::string role = item.required_text("role");
    const std::string text = text_of(item, item.required("content"), item.path("content"));
    if (role == "assistant") {
      if (turn_has_answered()) end_turn();
      turn()["content"] = text;
      return;
    }
    if (role != "user" && role != "system" && role != "developer") {
      openai::wrong_value(item.path("role"), Json(role), "'assistant', 'system', 'developer', and 'user'");
    }
    end_turn();
    // Templates often take one message of the system, at the beginning.
    if (role != "user" && out_.size() == 1 && out_[0]["role"] != "user") {
      out_[0]["content"] = out_[0]["content"].get<std::string>() + "\n\n" + text;
    } else {
      out_.push_back({{"role", out_.empty() && role == "developer" ? "system" : role}, {"content", text}});
    }
  }

  void add_reasoning(Fields& item) {
    std::string text;
    for (const char* name : {"content", "summary"}) {
      const Json* parts = item.array(name, 0, 1024);
      if (parts != nullptr && !parts->empty() && text.empty()) text = text_of(item, *parts, item.path(name));
    }
    item.ignore({"encrypted_content"});
    if (text.empty()) return;
    if (turn_has_answered()) end_turn();
    turn()["reasoning_content"] = text;
  }

  void add_call(Fields& item, bool custom) {
    const std::string id = item.required_text("call_id");
    const std::string name = item.required_text("name");
    const std::string given = item.required_text(custom ? "input" : "arguments");
    item.ignore({"namespace", "caller"});
    Json arguments = custom ? Json{{"input", given}} : Json(given);
    if (!custom) {
      if (std::optional<Json> parsed = openai::read_json(given); parsed && parsed->is_object()) arguments = std::move(*parsed);
    }
    Json& calls = turn()["tool_calls"];
    if (calls.is_null()) calls = Json::array();
    calls.push_back({{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", std::move(arguments)}}}});
    called_.insert(id);
  }

  void add_output(Fields& item) {
    const std::string id = item.required_text("call_id");
    if (!called_.contains(id)) {
      refuse(fmt::format("No tool call found for function call output with call_id {}.", id.substr(0, 100)), "input",
             "invalid_value");
    }
    const std::string text = text_of(item, item.required("output"), item.path("output"));
    end_turn();
    out_.push_back({{"role", "tool"}, {"content", text}, {"tool_call_id", id}});
  }

  const Fields& fields_;
  Json out_ = Json::array();
  Json turn_;  // of the assistant, while its parts come; null: none
  std::set<std::string> called_;
};

}  // namespace

Json messages_of(const Fields& fields, const Json& items, const std::string& instructions) {
  Messages messages(fields, instructions);
  for (std::size_t i = 0; i < items.size(); ++i) messages.add(items[i], fmt::format("input[{}]", i));
  return messages.take();
}

}  // namespace sdx::serve::responses
