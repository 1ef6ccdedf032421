#include "serve/ollama/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text/json_text.h"

namespace sdx::serve::ollama {
namespace {

using openai::Fields;
using openai::Json;
using openai::refuse;

constexpr std::size_t kMostMessages = 16384, kMostCalls = 1024, kMostInputs = 2048, kMostStops = 128, kLongestStop = 1024;

std::string model_name(Fields& fields) {
  const auto model = fields.text("model"), name = fields.text("name");
  std::string out = model.value_or(name.value_or(""));
  if (out.empty()) refuse("model is required", "model", "missing_required_parameter");
  return out;
}

void read_stops(Fields& options, openai::GenerationFields& to) {
  const Json* stop = options.take("stop");
  if (stop == nullptr) return;
  const std::string param = options.path("stop");
  if (!stop->is_array() && !stop->is_string()) openai::wrong_type(param, "an array of strings", *stop);
  if (stop->is_array()) options.array("stop", 0, kMostStops);
  for (const Json& text : stop->is_array() ? *stop : Json::array({*stop})) {
    if (!text.is_string()) openai::wrong_type(param, "an array of strings", text);
    const auto& value = text.get_ref<const std::string&>();
    if (value.empty() || value.size() > kLongestStop) {
      refuse(fmt::format("invalid '{}': a stop sequence must have 1 to {} bytes, but has {}", param, kLongestStop, value.size()),
             param, "invalid_value");
    }
    to.stop.push_back(value);
  }
}

void read_options(Fields& fields, openai::GenerationFields& to) {
  const Json* value = fields.object("options");
  if (value == nullptr) return;
  Fields options = fields.within(*value, "options");
  openai::SamplingFields& s = to.sampling;
  s.temperature = options.number("temperature", 0, 100);
  s.top_p = options.number("top_p", 0, 1);
  s.min_p = options.number("min_p", 0, 1);
  s.typical_p = options.number("typical_p", 0, 1);
  s.top_k = options.integer("top_k", -1);
  s.repetition_penalty = options.number("repeat_penalty", 1e-3, 1e3);
  s.presence_penalty = options.number("presence_penalty", -2, 2);
  s.frequency_penalty = options.number("frequency_penalty", -2, 2);
  s.seed = options.integer("seed", std::numeric_limits<std::int64_t>::min());
  const auto most = options.integer("num_predict", -2);
  to.unlimited = most && *most <= 0;
  if (most && *most > 0) to.max_tokens = most;
  read_stops(options, to);
  // How Ollama runs a model: what the server was started with holds here.
  options.ignore({"num_ctx", "num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap", "use_mlock", "low_vram",
                  "numa", "f16_kv", "vocab_only", "logits_all", "embedding_only"});
  options.finish();
}

void read_format(Fields& fields, openai::ChatRequest& to) {
  const Json* format = fields.take("format");
  if (format == nullptr || *format == Json("")) return;
  if (*format == Json("json")) {
    to.generation.format = openai::FormatField{OutputFormat::json_object, "", "format", false};
  } else if (format->is_object()) {
    to.generation.format = openai::FormatField{OutputFormat::json_schema, dump_json(*format), "format", false};
  } else {
    refuse("invalid format: expected \"json\" or a JSON schema", "format", "invalid_value");
  }
}

void read_think(Fields& fields, openai::ChatRequest& to) {
  const Json* think = fields.take("think");
  if (think == nullptr) return;
  if (think->is_boolean()) {
    to.variables["enable_thinking"] = *think;
  } else if (*think == Json("high") || *think == Json("medium") || *think == Json("low")) {
    to.variables["enable_thinking"] = true;
    to.variables["reasoning_effort"] = *think;
  } else {
    refuse("think must be a boolean or \"high\", \"medium\", \"low\"", "think", "invalid_value");
  }
}

void read_shared(Fields& fields, openai::ChatRequest& to) {
  to.generation.model = model_name(fields);
  to.generation.stream = fields.boolean("stream").value_or(true);
  read_options(fields, to.generation);
  read_format(fields, to);
  read_think(fields, to);
  const bool logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, 20);
  if (logprobs) to.logprobs = static_cast<int>(top.value_or(0));
  fields.ignore({"keep_alive", "truncate", "shift"});
}

void refuse_images(Fields& fields) {
  const Json* images = fields.take("images");
  if (images == nullptr || (images->is_array() && images->empty())) return;
  refuse(fmt::format("{}: this server's models read only text", fields.path("images")), fields.path("images"),
         "unsupported_content");
}

class Conversation {
 public:
  Json messages = Json::array();

  void read(const Fields& fields, const Json& value, std::size_t index) {
    Fields m = fields.within(value, fmt::format("messages[{}]", index));
    const std::string role = m.required_text("role");
    refuse_images(m);
    Json out = {{"role", role}, {"content", m.text("content").value_or("")}};
    if (role == "assistant") {
      read_assistant(m, out);
    } else if (role == "tool") {
      read_result(m, out);
    } else if (role != "system" && role != "user") {
      openai::wrong_value(m.path("role"), Json(role), "'system', 'user', 'assistant' and 'tool'");
    }
    m.ignore({"thinking", "tool_calls", "tool_name", "tool_call_id"});
    m.finish();
    messages.push_back(std::move(out));
  }

 private:
  void read_assistant(Fields& m, Json& out) {
    if (const auto thinking = m.text("thinking"); thinking && !thinking->empty()) out["reasoning_content"] = *thinking;
    const Json* calls = m.array("tool_calls", 0, kMostCalls);
    open_.clear();
    if (calls == nullptr || calls->empty()) return;
    out["tool_calls"] = Json::array();
    for (std::size_t i = 0; i < calls->size(); ++i) {
      Fields call = m.within((*calls)[i], fmt::format("{}[{}]", m.path("tool_calls"), i));
      Fields function = call.within(call.required("function"), call.path("function"));
      const std::string id = call.text("id").value_or(fmt::format("call_{}", calls_++));
      const std::string name = function.required_text("name");
      const Json* arguments = function.take("arguments");
      if (arguments != nullptr && !arguments->is_object() && !arguments->is_string()) {
        openai::wrong_type(function.path("arguments"), "an object", *arguments);
      }
      Json given = arguments != nullptr ? *arguments : Json::object();
      if (given.is_string()) {  // as OpenAI's clients have them
        if (std::optional<Json> parsed = openai::read_json(given.get_ref<const std::string&>()); parsed && parsed->is_object()) {
          given = std::move(*parsed);
        }
      }
      function.ignore({"index", "description"});
      function.finish();
      call.ignore({"type"});
      call.finish();
      open_.push_back({id, name});
      out["tool_calls"].push_back(
          {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", std::move(given)}}}});
    }
  }

  // A result names its call by an id, by the function, or not at all: then it answers the first that is open.
  void read_result(Fields& m, Json& out) {
    const auto id = m.text("tool_call_id"), name = m.text("tool_name");
    auto found = open_.begin();
    if (id) {
      found = std::find_if(open_.begin(), open_.end(), [&](const Open& call) { return call.id == *id; });
    } else if (name) {
      found = std::find_if(open_.begin(), open_.end(), [&](const Open& call) { return call.name == *name; });
    }
    if (name) out["name"] = *name;
    if (found == open_.end()) {
      if (id) out["tool_call_id"] = *id;
      return;
    }
    out["tool_call_id"] = found->id;
    if (!name) out["name"] = found->name;
    open_.erase(found);
  }

  struct Open {
    std::string id, name;
  };
  std::vector<Open> open_;  // calls without a result
  std::size_t calls_ = 0;
};

}  // namespace

std::string read_model_name(const Json& body, openai::Ignored& ignored) {
  Fields fields(body, "", ignored);
  std::string name = model_name(fields);
  fields.ignore({"verbose", "stream", "insecure"});
  fields.finish();
  return name;
}

bool read_stream(const Json& body) {
  openai::Ignored ignored;
  return Fields(body, "", ignored).boolean("stream").value_or(true);
}

TextRequest read_chat(const Json& body) {
  openai::Ignored ignored;
  Fields fields(body, "", ignored);
  TextRequest r;
  openai::read_tools(fields, r.chat);
  read_shared(fields, r.chat);
  Conversation conversation;
  if (const Json* messages = fields.array("messages", 0, kMostMessages)) {
    for (std::size_t i = 0; i < messages->size(); ++i) conversation.read(fields, (*messages)[i], i);
  }
  r.chat.messages = std::move(conversation.messages);
  r.empty = r.chat.messages.empty();
  if (!r.empty && r.chat.messages.back()["role"] == "assistant" && !r.chat.messages.back().contains("tool_calls")) {
    r.chat.continued = r.chat.messages.back()["content"].get<std::string>();
    r.chat.messages.erase(r.chat.messages.size() - 1);
  }
  fields.finish();
  r.chat.generation.ignored = std::move(ignored);
  return r;
}

TextRequest read_generate(const Json& body) {
  openai::Ignored ignored;
  Fields fields(body, "", ignored);
  TextRequest r;
  read_shared(fields, r.chat);
  const std::string prompt = fields.text("prompt").value_or("");
  refuse_images(fields);
  r.suffix = fields.text("suffix").value_or("");
  if (const auto text = fields.text("template"); text && !text->empty()) {
    refuse("template is not supported: models have their own chat templates, and 'raw' goes without one", "template",
           "unsupported_parameter");
  }
  fields.unsupported("context", "Use /api/chat, which has the conversation in its messages.");
  const auto system = fields.text("system");
  if (fields.boolean("raw").value_or(false)) r.chat.raw = prompt;
  if (system && !system->empty()) r.chat.messages.push_back({{"role", "system"}, {"content", *system}});
  r.chat.messages.push_back({{"role", "user"}, {"content", prompt}});
  r.empty = prompt.empty() && r.suffix.empty();
  fields.finish();
  r.chat.generation.ignored = std::move(ignored);
  return r;
}

VectorRequest read_embed(const Json& body) {
  VectorRequest r;
  Fields fields(body, "", r.texts.ignored);
  r.texts.model = model_name(fields);
  const Json* input = fields.take("input");
  if (input != nullptr && !(input->is_array() && input->empty())) {
    r.texts.input = openai::read_texts(*input, "input", kMostInputs);
    for (const openai::PromptText& text : r.texts.input) {
      if (!std::holds_alternative<std::string>(text)) openai::wrong_type("input", "a string or an array of strings", *input);
    }
  }
  r.texts.dimensions = fields.integer("dimensions", 1);
  r.texts.cut = fields.boolean("truncate").value_or(true);
  fields.ignore({"options", "keep_alive"});
  fields.finish();
  return r;
}

VectorRequest read_embeddings(const Json& body) {
  VectorRequest r;
  r.one = true;
  Fields fields(body, "", r.texts.ignored);
  r.texts.model = model_name(fields);
  if (auto prompt = fields.text("prompt"); prompt && !prompt->empty()) r.texts.input.emplace_back(std::move(*prompt));
  r.texts.cut = true;
  fields.ignore({"options", "keep_alive"});
  fields.finish();
  return r;
}

}  // namespace sdx::serve::ollama
