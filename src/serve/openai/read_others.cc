// Completions, embeddings, reranking.

#include <fmt/format.h>

#include "serve/openai/requests.h"

namespace sdx::serve::openai {
namespace {

constexpr std::size_t kMostPrompts = 128, kMostInputs = 2048, kMostDocuments = 4096;

void check_answers(const CompletionRequest& r, bool best_given) {
  const GenerationFields& g = r.generation;
  if (r.best_of < g.n) {
    refuse(fmt::format("'best_of' ({}) must be at least 'n' ({}).", r.best_of, g.n), "best_of", "invalid_value");
  }
  if (g.stream && best_given && r.best_of > g.n) {
    refuse("Results of 'best_of' cannot be streamed: the best is only known at the end.", "best_of", "invalid_value");
  }
  if (g.max_tokens == 0 && !r.echo) {
    refuse("Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.", "max_tokens",
           "integer_below_min_value");
  }
  if (static_cast<std::size_t>(r.best_of) * r.prompts.size() > kMostPrompts) {
    refuse(fmt::format("{} prompts with {} answers each are more than {} answers.", r.prompts.size(), r.best_of, kMostPrompts),
           "prompt", "invalid_value");
  }
}

std::string document_text(const Fields& fields, const Json& document, std::size_t index) {
  if (document.is_string()) return document.get<std::string>();
  const std::string where = fmt::format("documents[{}]", index);
  if (!document.is_object()) wrong_type(where, "a string or an object with \"text\"", document);
  return fields.within(document, where).required_text("text");
}

}  // namespace

CompletionRequest read_completion_request(const Json& body) {
  Ignored ignored;
  Fields fields(body, "", ignored);
  CompletionRequest r;
  r.generation = read_generation_fields(fields, false);
  if (!r.generation.max_tokens && !r.generation.unlimited) r.generation.max_tokens = 16;  // OpenAI's default
  r.prompts = read_texts(fields.required("prompt"), "prompt", kMostPrompts);
  r.echo = fields.boolean("echo").value_or(false);
  r.logprobs = static_cast<int>(fields.integer("logprobs", 0, 20).value_or(-1));
  const auto best = fields.integer("best_of", 1, 128);
  r.best_of = static_cast<int>(best.value_or(r.generation.n));
  check_answers(r, best.has_value());
  r.suffix = fields.text("suffix").value_or("");
  for (const PromptText& prompt : r.prompts) {
    if (r.suffix.empty() || std::holds_alternative<std::string>(prompt)) continue;
    refuse("Invalid 'prompt': with 'suffix', prompts must be texts.", "prompt", "invalid_value");
  }
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"});
  fields.finish();
  r.generation.ignored = std::move(ignored);
  return r;
}

EmbeddingRequest read_embedding_request(const Json& body) {
  Ignored ignored;
  Fields fields(body, "", ignored);
  EmbeddingRequest r;
  r.model = fields.required_text("model");
  r.input = read_texts(fields.required("input"), "input", kMostInputs);
  for (std::size_t i = 0; i < r.input.size(); ++i) {
    const auto* text = std::get_if<std::string>(&r.input[i]);
    if (text != nullptr && text->empty()) {
      refuse("Invalid 'input': input cannot be an empty string.", r.input.size() > 1 ? fmt::format("input[{}]", i) : "input",
             "invalid_value");
    }
  }
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") wrong_value("encoding_format", Json(format), "'float' and 'base64'");
  r.base64 = format == "base64";
  r.dimensions = fields.integer("dimensions", 1);
  r.cut = fields.integer("truncate_prompt_tokens", -1, -1).has_value();
  fields.ignore({"user"});
  fields.finish();
  r.ignored = std::move(ignored);
  return r;
}

RerankRequest read_rerank_request(const Json& body) {
  Ignored ignored;
  Fields fields(body, "", ignored);
  RerankRequest r;
  r.model = fields.required_text("model");
  r.query = fields.required_text("query");
  fields.required("documents");
  const Json& documents = *fields.array("documents", 1, kMostDocuments);
  for (std::size_t i = 0; i < documents.size(); ++i) r.documents.push_back(document_text(fields, documents[i], i));
  r.top_n = fields.integer("top_n", 1);
  r.return_documents = fields.boolean("return_documents").value_or(true);
  fields.unsupported("rank_fields", "Documents are ranked by their \"text\".");
  fields.ignore({"user"});
  fields.finish();
  r.ignored = std::move(ignored);
  return r;
}

}  // namespace sdx::serve::openai
