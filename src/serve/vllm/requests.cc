#include "serve/vllm/requests.h"

#include <fmt/format.h>

namespace sdx::serve::vllm {
namespace {

using openai::Fields;
using openai::Json;

constexpr std::size_t kMostTexts = 4096;

// A text or a list of texts, by the first of its names that is there.
std::vector<std::string> read_texts(Fields& fields, std::initializer_list<const char*> names) {
  const Json* value = nullptr;
  const char* name = *names.begin();
  for (const char* other : names) {
    const Json* given = fields.take(other);
    if (given == nullptr || value != nullptr) continue;
    value = given;
    name = other;
  }
  if (value == nullptr) value = &fields.required(name);
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) openai::wrong_type(name, "a string or an array of strings", *value);
  fields.array(name, 1, kMostTexts);
  std::vector<std::string> out;
  for (const Json& text : *value) {
    if (!text.is_string()) openai::wrong_type(fmt::format("{}[{}]", name, out.size()), "a string", text);
    out.push_back(text.get<std::string>());
  }
  return out;
}

}  // namespace

ScoreRequest read_score(const Json& body) {
  ScoreRequest r;
  Fields fields(body, "", r.ignored);
  r.model = fields.required_text("model");
  r.first = read_texts(fields, {"text_1", "queries", "data_1"});
  r.second = read_texts(fields, {"text_2", "documents", "data_2"});
  if (r.first.size() != 1 && r.first.size() != r.second.size()) {
    openai::refuse(fmt::format("Input lengths must be either 1:1, 1:N or N:N, received {}:{}.", r.first.size(), r.second.size()),
                   "text_1", "invalid_value");
  }
  r.cut = fields.integer("truncate_prompt_tokens", -1, -1).has_value();
  fields.ignore({"user", "priority", "request_id", "encoding_format"});
  fields.finish();
  return r;
}

ClassifyRequest read_classify(const Json& body) {
  ClassifyRequest r;
  Fields fields(body, "", r.ignored);
  r.model = fields.required_text("model");
  r.texts = read_texts(fields, {"input"});
  fields.integer("truncate_prompt_tokens", -1, -1);  // as texts are in any case
  fields.ignore({"user", "priority", "request_id"});
  fields.finish();
  return r;
}

}  // namespace sdx::serve::vllm
