// Fields that chats and completions share.

#include <fmt/format.h>

#include <charconv>

#include "base/text/json_text.h"
#include "serve/openai/requests.h"

namespace sdx::serve::openai {
namespace {

constexpr std::size_t kMostStops = 16, kLongestStop = 1024;
constexpr std::int64_t kMostTokenId = 0xFFFFFFFF;

TokenId read_token(const Json& value, const std::string& param) {
  if (!value.is_number_integer()) wrong_type(param, "an integer", value);
  if (value.is_number_unsigned() ? value.get<std::uint64_t>() > kMostTokenId : value.get<std::int64_t>() < 0) {
    refuse(fmt::format("Invalid '{}': {} is not a token.", param, dump_json(value)), param, "invalid_value");
  }
  return value.get<TokenId>();
}

TokenList read_token_list(const Json& list, const std::string& param) {
  TokenList out;
  out.reserve(list.size());
  for (const Json& id : list) out.push_back(read_token(id, param));
  return out;
}

void read_bias(Fields& fields, SamplingFields& to) {
  const Json* biases = fields.object("logit_bias");
  if (biases == nullptr) return;
  for (const auto& [key, value] : biases->items()) {
    const std::string param = "logit_bias";
    TokenId id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (key.empty() || error != std::errc{} || end != key.data() + key.size()) {
      refuse(fmt::format("Invalid key in 'logit_bias': {}. You should only be submitting non-negative integers.",
                         key.substr(0, 100)),
             param, "invalid_value");
    }
    if (!value.is_number()) wrong_type(fmt::format("logit_bias.{}", key), "a decimal", value);
    const auto bias = value.get<double>();
    if (!(bias >= -100 && bias <= 100)) {
      refuse(fmt::format("Invalid value in 'logit_bias': {}. Expected a value from -100 to 100.", dump_json(value)), param,
             "invalid_value");
    }
    to.logit_bias.emplace_back(id, static_cast<float>(bias));
  }
}

SamplingFields read_sampling(Fields& fields) {
  SamplingFields s;
  s.temperature = fields.number("temperature", 0, 2);
  s.top_p = fields.number("top_p", 0, 1);
  s.min_p = fields.number("min_p", 0, 1);
  s.typical_p = fields.number("typical_p", 0, 1);
  s.presence_penalty = fields.number("presence_penalty", -2, 2);
  s.frequency_penalty = fields.number("frequency_penalty", -2, 2);
  s.repetition_penalty = fields.number("repetition_penalty", 1e-3, 1e3);
  if (const auto penalty = fields.number("repeat_penalty", 1e-3, 1e3); penalty) s.repetition_penalty = penalty;
  s.top_k = fields.integer("top_k", -1);
  s.seed = fields.integer("seed", std::numeric_limits<std::int64_t>::min());
  read_bias(fields, s);
  return s;
}

void read_stops(Fields& fields, GenerationFields& to) {
  if (const Json* stop = fields.take("stop")) {
    const bool list = stop->is_array();
    if (!list && !stop->is_string()) wrong_type("stop", "an array of strings", *stop);
    if (list) fields.array("stop", 0, kMostStops);
    for (std::size_t i = 0; i < (list ? stop->size() : 1); ++i) {
      const Json& text = list ? (*stop)[i] : *stop;
      const std::string param = list ? fmt::format("stop[{}]", i) : "stop";
      if (!text.is_string()) wrong_type(param, "a string", text);
      const auto& value = text.get_ref<const std::string&>();
      if (value.empty() || value.size() > kLongestStop) {
        refuse(
            fmt::format("Invalid '{}': a stop sequence must have 1 to {} bytes, but has {}.", param, kLongestStop, value.size()),
            param, "invalid_value");
      }
      to.stop.push_back(value);
    }
  }
  if (const Json* ids = fields.array("stop_token_ids", 0, 1024)) to.stop_tokens = read_token_list(*ids, "stop_token_ids");
}

void set_format(GenerationFields& to, OutputFormat format, std::string text, std::string param) {
  if (to.format) {
    refuse(fmt::format("Invalid '{}': the answer is already constrained by '{}'; only one constraint is possible.", param,
                       to.format->param),
           param, "invalid_value");
  }
  to.format = FormatField{format, std::move(text), std::move(param)};
}

void read_response_format(Fields& fields, GenerationFields& to) {
  const Json* value = fields.take("response_format");
  if (value == nullptr) return;
  Fields format = fields.within(*value, "response_format");
  const std::string type = format.required_text("type");
  if (type == "json_schema") {
    Fields schema = format.within(format.required("json_schema"), "response_format.json_schema");
    const std::string name = schema.required_text("name");
    if (name.empty() || name.size() > 64 ||
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != std::string::npos) {
      refuse(fmt::format("Invalid '{}': string does not match pattern. Expected a string that matches the pattern "
                         "'^[a-zA-Z0-9_-]{{1,64}}$'.",
                         schema.path("name")),
             schema.path("name"), "invalid_value");
    }
    schema.text("description");
    const bool strict = schema.boolean("strict").value_or(false);
    const Json* asked = schema.object("schema");
    schema.finish();
    set_format(to, asked != nullptr ? OutputFormat::json_schema : OutputFormat::json_object,
               asked != nullptr ? dump_json(*asked) : "", "response_format");
    to.format->strict = strict;
  } else if (type == "json_object") {
    const Json* asked = format.object("schema");  // llama.cpp's way
    set_format(to, asked != nullptr ? OutputFormat::json_schema : OutputFormat::json_object,
               asked != nullptr ? dump_json(*asked) : "", "response_format");
  } else if (type != "text") {
    wrong_value("response_format.type", Json(type), "'json_object', 'json_schema', and 'text'");
  }
  format.finish();
}

std::string regex_of_choices(const Json& choices, const std::string& param) {
  std::string out;
  for (const Json& choice : choices) {
    if (!choice.is_string()) wrong_type(param, "an array of strings", choice);
    if (!out.empty()) out += '|';
    for (const char c : choice.get_ref<const std::string&>()) {
      if (std::string_view("\\^$.|?*+()[]{}/-").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

void read_schema(Fields& fields, std::string_view name, GenerationFields& to) {
  const Json* schema = fields.take(name);
  if (schema == nullptr) return;
  if (!schema->is_object() && !schema->is_string()) wrong_type(fields.path(name), "an object", *schema);
  set_format(to, OutputFormat::json_schema, schema->is_string() ? schema->get<std::string>() : dump_json(*schema),
             fields.path(name));
}

// vLLM's name for all of them since its version 0.12.
void read_structured_outputs(Fields& fields, GenerationFields& to) {
  const Json* value = fields.object("structured_outputs");
  if (value == nullptr) return;
  Fields of = fields.within(*value, "structured_outputs");
  read_schema(of, "json", to);
  if (auto text = of.text("regex")) set_format(to, OutputFormat::regex, std::move(*text), of.path("regex"));
  if (auto text = of.text("grammar")) set_format(to, OutputFormat::gbnf, std::move(*text), of.path("grammar"));
  if (of.boolean("json_object").value_or(false)) set_format(to, OutputFormat::json_object, "", of.path("json_object"));
  if (const Json* choices = of.array("choice", 1, 1024)) {
    set_format(to, OutputFormat::regex, regex_of_choices(*choices, of.path("choice")), of.path("choice"));
  }
  of.unsupported("structural_tag", "Use 'json', 'regex', 'choice' or 'grammar'.");
  of.finish();
}

// vLLM's and llama.cpp's names.
void read_extra_formats(Fields& fields, GenerationFields& to) {
  read_structured_outputs(fields, to);
  for (const char* name : {"grammar", "guided_grammar"}) {
    if (auto text = fields.text(name); text && !text->empty()) set_format(to, OutputFormat::gbnf, std::move(*text), name);
  }
  if (auto text = fields.text("guided_regex")) set_format(to, OutputFormat::regex, std::move(*text), "guided_regex");
  for (const char* name : {"guided_json", "json_schema"}) read_schema(fields, name, to);
  if (const Json* choices = fields.array("guided_choice", 1, 1024)) {
    set_format(to, OutputFormat::regex, regex_of_choices(*choices, "guided_choice"), "guided_choice");
  }
}

void read_stream(Fields& fields, GenerationFields& to) {
  to.stream = fields.boolean("stream").value_or(false);
  const Json* options = fields.object("stream_options");
  if (options == nullptr) return;
  if (!to.stream) {
    refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options", "invalid_value");
  }
  Fields of = fields.within(*options, "stream_options");
  to.include_usage = of.boolean("include_usage").value_or(false);
  of.ignore({"include_obfuscation"});
  of.finish();
}

}  // namespace

SamplingSettings SamplingFields::over(SamplingSettings s) const {
  const auto set = [](float& to, const std::optional<double>& value) {
    if (value) to = static_cast<float>(*value);
  };
  // A share of 0 leaves the likeliest token alone, as in OpenAI's interface.
  const bool likeliest = (top_p && static_cast<float>(*top_p) == 0) || (typical_p && static_cast<float>(*typical_p) == 0);
  // Whoever asks for chance gets it, though the files recommend the likeliest.
  if (temperature || top_p || min_p || typical_p || top_k) s.greedy = false;
  set(s.temperature, temperature);
  if (likeliest) {
    s.greedy = true;
  } else {
    set(s.top_p, top_p);
    set(s.typical_p, typical_p);
  }
  set(s.min_p, min_p);
  set(s.repetition_penalty, repetition_penalty);
  set(s.presence_penalty, presence_penalty);
  set(s.frequency_penalty, frequency_penalty);
  if (top_k) s.top_k = *top_k < 0 ? 0 : *top_k;
  if (seed) s.seed = static_cast<std::uint64_t>(*seed);
  if (!logit_bias.empty()) s.logit_bias = logit_bias;
  return s;
}

namespace {

// -1 is what many clients say for "as many as fit".
std::optional<std::int64_t> most_tokens(Fields& fields, std::string_view name, std::int64_t least) {
  const auto most = fields.integer(name, -1);
  if (most == 0 && least > 0) fields.integer(name, least);  // says what is wrong
  return most;
}

void read_most_tokens(Fields& fields, bool chat, GenerationFields& to) {
  auto most = most_tokens(fields, "max_tokens", chat ? 1 : 0);
  if (chat) {
    if (const auto completion = most_tokens(fields, "max_completion_tokens", 1); completion) {
      if (most && most != completion) {
        refuse("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", "max_tokens",
               "invalid_parameter_combination");
      }
      most = completion;
    }
  }
  to.unlimited = most == -1;
  if (!to.unlimited) to.max_tokens = most;
}

}  // namespace

GenerationFields read_generation_fields(Fields& fields, bool chat) {
  GenerationFields g;
  g.model = fields.required_text("model");
  read_most_tokens(fields, chat, g);
  g.min_tokens = fields.integer("min_tokens", 0).value_or(0);
  g.n = static_cast<int>(fields.integer("n", 1, 128).value_or(1));
  g.sampling = read_sampling(fields);
  read_stops(fields, g);
  g.ignore_end = fields.boolean("ignore_eos").value_or(false);
  read_response_format(fields, g);
  read_extra_formats(fields, g);
  if (g.ignore_end && g.format) {
    refuse(fmt::format("'ignore_eos' cannot be honoured if '{}' determines how the answer ends.", g.format->param), "ignore_eos",
           "invalid_value");
  }
  read_stream(fields, g);
  return g;
}

std::vector<PromptText> read_texts(const Json& value, const std::string& param, std::size_t most) {
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array()) wrong_type(param, "a string or an array", value);
  if (value.empty()) {
    refuse(
        fmt::format("Invalid '{}': empty array. Expected an array with minimum length 1, but got an empty array instead.", param),
        param, "empty_array");
  }
  if (value[0].is_number()) return {read_token_list(value, param)};
  if (value.size() > most) {
    refuse(fmt::format(
               "Invalid '{}': array too long. Expected an array with maximum length {}, but got an array with length {} instead.",
               param, most, value.size()),
           param, "array_above_max_length");
  }
  std::vector<PromptText> out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", param, i);
    if (value[0].is_string()) {
      if (!value[i].is_string()) wrong_type(at, "a string", value[i]);
      out.emplace_back(value[i].get<std::string>());
    } else {
      if (!value[i].is_array()) wrong_type(at, "a string or an array of tokens", value[i]);
      if (value[i].empty()) refuse(fmt::format("Invalid '{}': empty array.", at), at, "empty_array");
      out.emplace_back(read_token_list(value[i], at));
    }
  }
  return out;
}

}  // namespace sdx::serve::openai
