#include "serve/llama/requests.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/text/json_text.h"

namespace sdx::serve::llama {
namespace {

using openai::Fields;
using openai::Json;
using openai::refuse;

constexpr std::size_t kMostParts = 1 << 20, kMostStops = 128, kLongestStop = 1024, kMostBiases = 1 << 20, kMostExtra = 1024;
constexpr std::int64_t kMostProbs = 1000;
constexpr std::size_t kMostText = 1 << 20;  // bytes: the tokens of a text take a hundred times its memory

TokenId token_of(const Json& value, const std::string& param) {
  constexpr std::int64_t most = std::numeric_limits<TokenId>::max();
  if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > static_cast<double>(most)) {
    openai::wrong_type(param, "a token", value);
  }
  return value.get<TokenId>();
}

void add_part(std::vector<PromptPart>& to, const Json& value, const std::string& param) {
  if (value.is_string()) {
    to.emplace_back(value.get<std::string>());
    return;
  }
  const TokenId token = token_of(value, param);
  if (to.empty() || !std::holds_alternative<openai::TokenList>(to.back())) to.emplace_back(openai::TokenList());
  std::get<openai::TokenList>(to.back()).push_back(token);
}

void read_prompt(Fields& fields, std::vector<PromptPart>& to) {
  const Json& prompt = fields.required("prompt");
  if (!prompt.is_array()) {
    if (!prompt.is_string()) openai::wrong_type("prompt", "a string or an array of strings and tokens", prompt);
    to.emplace_back(prompt.get<std::string>());
    return;
  }
  fields.array("prompt", 1, kMostParts);
  bool tokens = false;
  for (const Json& part : prompt) {
    add_part(to, part, "prompt");
    tokens = tokens || part.is_number();
  }
  if (!tokens && to.size() > 1) {
    refuse("Invalid 'prompt': several texts are several prompts, and this path takes one. Send a request for each.", "prompt",
           "invalid_value");
  }
}

void read_biases(Fields& fields, openai::SamplingFields& to) {
  const Json* biases = fields.take("logit_bias");
  if (biases == nullptr) return;
  const auto add = [&](TokenId token, const Json& bias) {
    if (bias == Json(false)) {
      to.logit_bias.emplace_back(token, -std::numeric_limits<float>::infinity());
    } else if (bias.is_number()) {
      to.logit_bias.emplace_back(token, bias.get<float>());
    } else {
      openai::wrong_type("logit_bias", "a decimal or false", bias);
    }
  };
  if (biases->is_object()) {
    for (const auto& [key, bias] : biases->items()) {
      TokenId token = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
      if (key.empty() || error != std::errc{} || end != key.data() + key.size()) {
        refuse("Invalid key in 'logit_bias': only tokens by number are supported.", "logit_bias", "invalid_value");
      }
      add(token, bias);
    }
    return;
  }
  fields.array("logit_bias", 0, kMostBiases);
  for (const Json& pair : *biases) {
    if (!pair.is_array() || pair.size() != 2) openai::wrong_type("logit_bias", "an array of pairs", pair);
    add(token_of(pair[0], "logit_bias"), pair[1]);
  }
}

void read_stops(Fields& fields, openai::GenerationFields& to) {
  const Json* stops = fields.take("stop");
  if (stops == nullptr) return;
  if (stops->is_array()) fields.array("stop", 0, kMostStops);
  for (const Json& stop : stops->is_array() ? *stops : Json::array({*stops})) {
    if (!stop.is_string()) openai::wrong_type("stop", "an array of strings", stop);
    const auto& text = stop.get_ref<const std::string&>();
    if (text.size() > kLongestStop)
      refuse(fmt::format("Invalid 'stop': a text of more than {} bytes.", kLongestStop), "stop", "invalid_value");
    if (!text.empty()) to.stop.push_back(text);
  }
}

void read_sampling(Fields& fields, openai::SamplingFields& s) {
  s.temperature = fields.number("temperature", 0, 100);
  s.top_p = fields.number("top_p", 0, 1);
  s.min_p = fields.number("min_p", 0, 1);
  s.typical_p = fields.number("typical_p", 0, 1);
  s.repetition_penalty = fields.number("repeat_penalty", 1e-3, 1e3);
  s.presence_penalty = fields.number("presence_penalty", -2, 2);
  s.frequency_penalty = fields.number("frequency_penalty", -2, 2);
  s.top_k = fields.integer("top_k", -1);
  s.seed = fields.integer("seed", std::numeric_limits<std::int64_t>::min());
  if (s.seed && (*s.seed == -1 || *s.seed == 0xFFFFFFFF)) s.seed.reset();  // any
  read_biases(fields, s);
}

void read_format(Fields& fields, openai::GenerationFields& to) {
  if (auto grammar = fields.text("grammar"); grammar && !grammar->empty()) {
    to.format = openai::FormatField{OutputFormat::gbnf, std::move(*grammar), "grammar", false};
  }
  const Json* schema = fields.object("json_schema");
  if (schema == nullptr) return;
  if (to.format) refuse("Either 'json_schema' or 'grammar' can be specified, but not both.", "json_schema", "invalid_value");
  to.format = openai::FormatField{OutputFormat::json_schema, dump_json(*schema), "json_schema", false};
}

}  // namespace

namespace {

// All but the prompt.
CompletionRequest read_settings(Fields& fields, openai::Ignored& ignored) {
  CompletionRequest r;
  openai::GenerationFields& g = r.chat.generation;
  g.model = fields.text("model").value_or("");
  auto most = fields.integer("n_predict", -2);
  if (!most) most = fields.integer("max_tokens", -2);
  g.unlimited = !most || *most < 0;
  if (most == 0)
    refuse("Invalid 'n_predict': integer below minimum value. Expected a value >= 1 or -1.", "n_predict", "invalid_value");
  if (!g.unlimited) g.max_tokens = most;
  read_sampling(fields, g.sampling);
  read_stops(fields, g);
  read_format(fields, g);
  g.ignore_end = fields.boolean("ignore_eos").value_or(false);
  if (g.ignore_end && g.format) {
    refuse(fmt::format("'ignore_eos' cannot be honoured if '{}' determines how the answer ends.", g.format->param), "ignore_eos",
           "invalid_value");
  }
  g.stream = fields.boolean("stream").value_or(false);
  if (const auto probs = fields.integer("n_probs", 0, kMostProbs); probs.value_or(0) > 0)
    r.chat.logprobs = static_cast<int>(*probs);
  fields.unsupported("post_sampling_probs", "Probabilities are those before sampling.");
  r.return_tokens = fields.boolean("return_tokens").value_or(false);
  fields.ignore({"max_tokens", "cache_prompt", "id_slot"});
  fields.finish();
  g.ignored = std::move(ignored);
  return r;
}

// Other files' names and texts.
void read_extra(Fields& fields, openai::FillRequest& to) {
  const Json* extra = fields.array("input_extra", 0, kMostExtra);
  if (extra == nullptr) return;
  for (std::size_t i = 0; i < extra->size(); ++i) {
    Fields file = fields.within((*extra)[i], fmt::format("input_extra[{}]", i));
    std::string name = file.text("filename").value_or("tmp");
    to.others.emplace_back(std::move(name), file.required_text("text"));
    file.finish();
  }
}

}  // namespace

CompletionRequest read_completion(const Json& body, std::vector<PromptPart>& prompt) {
  openai::Ignored ignored;
  Fields fields(body, "", ignored);
  read_prompt(fields, prompt);
  return read_settings(fields, ignored);
}

CompletionRequest read_infill(const Json& body, openai::FillRequest& fill) {
  openai::Ignored ignored;
  Fields fields(body, "", ignored);
  fill.before = fields.required_text("input_prefix");
  fill.after = fields.required_text("input_suffix");
  fill.begun = fields.text("prompt").value_or("");
  read_extra(fields, fill);
  return read_settings(fields, ignored);
}

TokenizeRequest read_tokenize(const Json& body) {
  TokenizeRequest r;
  Fields fields(body, "", r.ignored);
  r.model = fields.text("model").value_or("");
  r.content = fields.required_text("content");
  if (r.content.size() > kMostText) {
    refuse(fmt::format("Invalid 'content': a text of {} bytes; {} at most.", r.content.size(), kMostText), "content",
           "string_above_max_length");
  }
  r.add_special = fields.boolean("add_special").value_or(false);
  r.with_pieces = fields.boolean("with_pieces").value_or(false);
  if (!fields.boolean("parse_special").value_or(true)) {
    refuse("Unsupported value: 'parse_special' false: special tokens in a text are always read as such.", "parse_special",
           "unsupported_value");
  }
  fields.finish();
  return r;
}

DetokenizeRequest read_detokenize(const Json& body) {
  DetokenizeRequest r;
  Fields fields(body, "", r.ignored);
  r.model = fields.text("model").value_or("");
  fields.required("tokens");
  for (const Json& token : *fields.array("tokens", 0, kMostParts)) r.tokens.push_back(token_of(token, "tokens"));
  fields.finish();
  return r;
}

openai::EmbeddingRequest read_embedding(const Json& body) {
  constexpr std::size_t kMostInputs = 2048;
  openai::EmbeddingRequest r;
  Fields fields(body, "", r.ignored);
  r.model = fields.text("model").value_or("");
  const Json* input = fields.take("input");
  const Json* content = fields.take("content");
  if (input == nullptr && content == nullptr) content = &fields.required("content");
  r.input = openai::read_texts(input != nullptr ? *input : *content, input != nullptr ? "input" : "content", kMostInputs);
  if (const auto norm = fields.integer("embd_normalize", -1); norm && *norm != 2) {
    refuse("Unsupported value: 'embd_normalize': vectors have length 1 where the model's files say so (2), and no other norm.",
           "embd_normalize", "unsupported_value");
  }
  fields.ignore({"encoding_format"});
  fields.finish();
  return r;
}

}  // namespace sdx::serve::llama
