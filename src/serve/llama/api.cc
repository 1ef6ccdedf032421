#include "serve/llama/api.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/json_text.h"
#include "base/text/utf8.h"
#include "serve/llama/completion_answer.h"
#include "serve/llama/requests.h"
#include "serve/openai/chat/handlers.h"
#include "serve/openai/fill.h"
#include "serve/openai/vectors.h"

namespace sdx::serve::llama {
namespace {

using openai::Found;
using openai::Json;
using openai::Shared;

// {"error": {"code": 400, "message", "type"}}
Response failed(const openai::ApiError& error) {
  const Json body = {{"error", {{"code", error.status}, {"message", error.message}, {"type", error.type}}}};
  return openai::with_retry(json_response(dump_json(body), error.status), error);
}

Response error_shape(int status, std::string_view message) {
  return failed({status, std::string(message), status < 500 ? "invalid_request_error" : "server_error"});
}

const openai::ReplyForm& reply_form() {
  static const openai::ReplyForm form{openai::openai_form().content_type, openai::openai_form().heartbeat,
                                      [](const openai::ApiError& error) { return "data: " + failed(error).body + "\n\n"; },
                                      failed};
  return form;
}

// llama.cpp serves one model, which requests need not name; so here, where there is one language model.
std::string model_name(Shared& shared, const std::string& asked, ModelKind kind = ModelKind::language) {
  if (!asked.empty()) return asked;
  std::vector<std::string> names;
  for (const ModelStatus& status : shared.models.catalog().list()) {
    if (!status.kind || *status.kind == kind) names.push_back(status.name);
  }
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() == 1) return names.front();
  const char* none = kind == ModelKind::language ? "This server has no language model." : "This server has no embedding model.";
  openai::refuse(names.empty() ? none : "This server has several models: name one in 'model'.", "model",
                 "missing_required_parameter");
}

Found find(Shared& shared, const Request& request, const std::string& asked, std::string_view path) {
  Found found = shared.models.get(model_name(shared, asked), ModelKind::language, path);
  if (request.notes) request.notes->set_model(found.model->name);
  return found;
}

void completion(Shared& shared, const RequestPtr& request, const ResponderPtr& responder) {
  std::vector<PromptPart> parts;
  CompletionRequest r = read_completion(openai::read_body(request->body), parts);
  r.chat.generation.model = model_name(shared, r.chat.generation.model);
  const Found found = find(shared, *request, r.chat.generation.model, "completion");
  if (parts.size() == 1) {
    r.chat.raw = std::move(parts.front());
  } else {
    openai::TokenList tokens;
    for (const PromptPart& part : parts) {
      const auto* text = std::get_if<std::string>(&part);
      if (text != nullptr && text->empty()) continue;
      const openai::TokenList own =
          text != nullptr ? openai::tokens_of(found.model->language->model, *text, tokens.empty(), openai::PromptKind::completion)
                          : std::get<openai::TokenList>(part);
      tokens.insert(tokens.end(), own.begin(), own.end());
    }
    r.chat.raw = std::move(tokens);
  }
  openai::PreparedChat prepared = openai::prepare_chat(shared, *request, r.chat, openai::PromptKind::completion, "completion");
  auto writer = std::make_unique<CompletionAnswer>(prepared, r.chat, r.return_tokens);
  openai::answer_chat(shared, request, responder, std::move(prepared), std::move(writer), r.chat.generation.stream, reply_form());
}

void infill(Shared& shared, const RequestPtr& request, const ResponderPtr& responder) {
  openai::FillRequest fill;
  CompletionRequest r = read_infill(openai::read_body(request->body), fill);
  r.chat.generation.model = model_name(shared, r.chat.generation.model);
  const Found found = find(shared, *request, r.chat.generation.model, "infill");
  openai::fill_in(r.chat, found.model->language->model, fill, "input_suffix");
  openai::PreparedChat prepared = openai::prepare_chat(shared, *request, r.chat, openai::PromptKind::completion, "infill");
  auto writer = std::make_unique<CompletionAnswer>(prepared, r.chat, r.return_tokens);
  openai::answer_chat(shared, request, responder, std::move(prepared), std::move(writer), r.chat.generation.stream, reply_form());
}

// A text, or its bytes where a token is no whole character.
Json piece_of(std::string_view bytes) {
  if (is_utf8(bytes)) return Json(std::string(bytes));
  Json out = Json::array();
  for (const char c : bytes) out.push_back(static_cast<unsigned char>(c));
  return out;
}

Response tokenize(Shared& shared, const Request& request) {
  const TokenizeRequest r = read_tokenize(openai::read_body(request.body));
  const Found found = find(shared, request, r.model, "tokenize");
  if (request.notes) request.notes->set_ignored(r.ignored.text());
  const LanguageModel& model = found.model->language->model;
  const openai::TokenList tokens = model.tokenizer().encode(r.content, r.add_special).ids;
  Json list = Json::array();
  const auto texts = r.with_pieces ? found.facts->texts(model) : nullptr;
  for (const TokenId token : tokens) {
    if (!texts) {
      list.push_back(token);
      continue;
    }
    const std::string_view bytes = texts->bytes(token);
    list.push_back({{"id", token}, {"piece", bytes.empty() ? Json(texts->shown(token)) : piece_of(bytes)}});
  }
  Json out;
  out["tokens"] = std::move(list);
  return json_response(dump_json(out));
}

Response detokenize(Shared& shared, const Request& request) {
  const DetokenizeRequest r = read_detokenize(openai::read_body(request.body));
  const Found found = find(shared, request, r.model, "detokenize");
  if (request.notes) request.notes->set_ignored(r.ignored.text());
  return json_response("{\"content\":" + json_string(found.model->language->model.tokenizer().decode(r.tokens, false)) + "}");
}

Response apply_template(Shared& shared, const Request& request) {
  Json body = openai::read_body(request.body);
  if (!body.contains("model") || body["model"].is_null()) body["model"] = model_name(shared, "");
  const openai::ChatRequest r = openai::read_chat_request(body);
  const Found found = find(shared, request, r.generation.model, "apply-template");
  if (request.notes) request.notes->set_ignored(r.generation.ignored.text());
  return json_response(
      "{\"prompt\":" + json_string(openai::make_prompt(r, found, openai::PromptKind::chat, "apply-template").text) + "}");
}

// The vector of each text, in a list of its own: llama.cpp's models without pooling have several there.
Response embedding(Shared& shared, const Request& request) {
  openai::EmbeddingRequest r = read_embedding(openai::read_body(request.body));
  r.model = model_name(shared, r.model, ModelKind::embedding);
  const Found found = shared.models.get(r.model, ModelKind::embedding, "embedding");
  openai::Measured measured(shared.metrics, found.model->name, request.arrived);
  std::string out = "[";
  const std::int64_t tokens =
      openai::embed_texts(r, *found.model, request, [&](std::span<const float> vector, std::size_t index) {
        out += fmt::format("{}{{\"index\":{},\"embedding\":[", index == 0 ? "" : ",", index);
        openai::append_vector(out, vector);
        out += "]}";
      });
  measured.end({.prompt = tokens}, "stop");
  return json_response(out + "]");
}

Json slot_json(std::int64_t id, const LoadedModel& model, bool busy) {
  return {{"id", id}, {"n_ctx", model.language->model.info().context}, {"speculative", false}, {"is_processing", busy}};
}

std::string token_text(const LanguageModel& model, const std::optional<TokenId>& token) {
  return token ? model.tokenizer().id_to_token(*token).value_or("") : "";
}

Response props(Shared& shared, const Request& request) {
  const Found found = find(shared, request, std::string(request.parameter("model")), "props");
  const LanguageService& service = *found.model->language;
  const LanguageModelInfo& info = service.model.info();
  Json defaults = slot_json(0, *found.model, false);
  GenerationSettings settings;
  settings.max_tokens = -1;
  settings.sampling = info.defaults;
  defaults["params"] = settings_json(settings);
  Json out = {{"default_generation_settings", std::move(defaults)},
              {"total_slots", service.engine->status().max_sequences},
              {"model_alias", found.model->name},
              {"model_path", found.model->name},
              {"modalities", {{"vision", false}, {"audio", false}}},
              {"chat_template", service.chat ? service.chat->source() : ""},
              {"bos_token", token_text(service.model, info.bos)},
              {"eos_token", info.eos.empty() ? "" : token_text(service.model, info.eos.front())},
              {"build_info", fmt::format("sardonyx {}", SDX_VERSION)}};
  if (service.chat && service.chat->tool_source() != service.chat->source()) {
    out["chat_template_tool_use"] = service.chat->tool_source();
  }
  return json_response(dump_json(out));
}

Response slots(Shared& shared, const Request& request) {
  const Found found = find(shared, request, std::string(request.parameter("model")), "slots");
  const EngineStatus status = found.model->language->engine->status();
  Json out = Json::array();
  for (int i = 0; i < status.max_sequences; ++i) out.push_back(slot_json(i, *found.model, i < status.running));
  return json_response(dump_json(out));
}

}  // namespace

void add_routes(Router& router, Shared& shared) {
  Shared* const all = &shared;
  const auto add = [&](const char* method, const char* pattern, Response (*answer)(Shared&, const Request&)) {
    router.add(openai::pool_route(method, pattern, all->body_bytes, error_shape),
               openai::at_once([all, answer](const Request& request) { return answer(*all, request); }, failed));
  };
  for (const char* pattern : {"/completion", "/completions"}) {
    router.add(openai::pool_route("POST", pattern, all->body_bytes, error_shape),
               openai::later([all](auto& request, auto& responder) { completion(*all, request, responder); }, failed));
  }
  router.add(openai::pool_route("POST", "/infill", all->body_bytes, error_shape),
             openai::later([all](auto& request, auto& responder) { infill(*all, request, responder); }, failed));
  add("POST", "/tokenize", tokenize);
  add("POST", "/detokenize", detokenize);
  add("POST", "/apply-template", apply_template);
  for (const char* pattern : {"/embedding", "/embeddings"}) add("POST", pattern, embedding);
  add("GET", "/props", props);
  add("GET", "/slots", slots);
}

}  // namespace sdx::serve::llama
