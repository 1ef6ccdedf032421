#include "serve/ollama/api.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/json_text.h"
#include "serve/ollama/error.h"
#include "serve/ollama/models.h"
#include "serve/ollama/pulls.h"
#include "serve/ollama/requests.h"
#include "serve/ollama/text_answer.h"
#include "serve/openai/chat/handlers.h"
#include "serve/openai/fill.h"
#include "serve/openai/vectors.h"

namespace sdx::serve::ollama {
namespace {

using openai::Found;
using openai::Shared;

// Clients look for features by the version; these are of this one's interface.
constexpr std::string_view kInterfaceVersion = "0.13.3";

std::string_view path_of(Kind kind) { return kind == Kind::chat ? "api/chat" : "api/generate"; }

void text(Shared& shared, const RequestPtr& request, const ResponderPtr& responder, Kind kind) {
  const openai::Json body = openai::read_body(request->body);
  TextRequest r = kind == Kind::chat ? read_chat(body) : read_generate(body);
  openai::GenerationFields& g = r.chat.generation;
  const std::string asked = g.model;
  g.model = known_name(shared.models.catalog(), asked);
  if (r.empty) {
    const Found found = shared.models.get(g.model, ModelKind::language, path_of(kind));
    if (request->notes) request->notes->set_model(g.model).set_ignored(g.ignored.text());
    Response response = json_response(loaded_answer(asked, kind) + (g.stream ? "\n" : ""));
    if (g.stream) response.headers = {{"Content-Type", std::string(reply_form().content_type)}};
    responder->respond(std::move(response));
    return;
  }
  if (!r.suffix.empty()) {
    const Found found = shared.models.get(g.model, ModelKind::language, path_of(kind));
    const openai::FillRequest fill{r.chat.messages.back()["content"].get<std::string>(), r.suffix, {}, {}};
    openai::fill_in(r.chat, found.model->language->model, fill, "suffix");
  }
  if (kind == Kind::generate && !r.chat.raw) {
    // A model without a template continues the prompt.
    const Found found = shared.models.get(g.model, ModelKind::language, path_of(kind));
    if (!found.model->language->chat) r.chat.raw = r.chat.messages.back()["content"].get<std::string>();
  }
  const openai::PromptKind prompt = r.chat.raw ? openai::PromptKind::completion : openai::PromptKind::chat;
  openai::PreparedChat prepared = openai::prepare_chat(shared, *request, r.chat, prompt, path_of(kind));
  g.model = asked;
  auto writer = std::make_unique<TextAnswer>(prepared, r.chat, kind, request->arrived);
  openai::answer_chat(shared, request, responder, std::move(prepared), std::move(writer), g.stream, reply_form());
}

std::int64_t nanoseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
}

Response vectors(Shared& shared, const Request& request, VectorRequest r) {
  const std::string asked = r.texts.model;
  r.texts.model = known_name(shared.models.catalog(), asked);
  const Found found = shared.models.get(r.texts.model, ModelKind::embedding, r.one ? "api/embeddings" : "api/embed");
  openai::Measured measured(shared.metrics, found.model->name, request.arrived);
  const std::int64_t loaded = nanoseconds_since(request.arrived);
  std::string list;
  const std::int64_t tokens =
      openai::embed_texts(r.texts, *found.model, request, [&](std::span<const float> vector, std::size_t index) {
        if (index > 0) list += ',';
        openai::append_vector(list, vector);
      });
  measured.end({.prompt = tokens}, "stop");
  if (r.one) return json_response("{\"embedding\":" + (list.empty() ? "[]" : list) + "}");
  return json_response("{\"model\":" + json_string(asked) + ",\"embeddings\":[" + list +
                       fmt::format("],\"total_duration\":{},\"load_duration\":{},\"prompt_eval_count\":{}}}",
                                   nanoseconds_since(request.arrived), loaded, tokens));
}

std::string named(const Request& request) {
  openai::Ignored ignored;
  std::string name = read_model_name(openai::read_body(request.body), ignored);
  if (request.notes) request.notes->set_model(name).set_ignored(ignored.text());
  return name;
}

Response show(Shared& shared, const Request& request) {
  const std::string name = known_name(shared.models.catalog(), named(request));
  for (const ModelKind kind : {ModelKind::language, ModelKind::embedding}) {
    try {
      return json_response(show_json(*shared.models.get(name, kind, "api/show").model));
    } catch (const openai::ApiError& error) {
      if (kind == ModelKind::embedding || error.code) throw;  // without a code: a model of another kind
    }
  }
  openai::no_such_model(name);
}

struct Named {
  std::string name;
  bool stream = true;
};

Named read_pull(const Request& request) {
  openai::Ignored ignored;
  const openai::Json body = openai::read_body(request.body);
  Named out{read_model_name(body, ignored), read_stream(body)};
  if (request.notes) request.notes->set_model(out.name).set_ignored(ignored.text());
  return out;
}

Response pulled(bool stream) { return json_response(stream ? "{\"status\":\"success\"}\n" : "{\"status\":\"success\"}"); }

// Clients fetch a model before they use it; what the server was started with needs no fetching.
void pull(Shared& shared, Pulls& pulls, const RequestPtr& request, const ResponderPtr& responder) {
  const Named asked = read_pull(*request);
  const Catalog& catalog = shared.models.catalog();
  const std::string name = known_name(catalog, asked.name);
  const std::vector<PulledModel> own = catalog.pulled();
  const bool fetched = std::any_of(own.begin(), own.end(), [&](const PulledModel& m) { return m.name == name; });
  for (const ModelStatus& status : catalog.list()) {
    if (status.name == name && !(fetched && pulls.allowed())) return responder->respond(pulled(asked.stream));
  }
  if (!pulls.allowed()) {
    openai::refuse(
        fmt::format("this server does not fetch models for clients, and has none called '{}'; 'sdx serve --allow-pull' does, and "
                    "'sdx pull' puts models into its repository",
                    asked.name.substr(0, 200)));
  }
  bool begun = false;
  const auto tell = [&](std::string_view line) {
    if (*request->gone) return false;
    if (!asked.stream) return true;
    if (!begun) {
      begun = true;
      responder->start({200, {{"Content-Type", std::string(reply_form().content_type)}}, "{\"status\":\"pulling manifest\"}\n"});
    }
    return line.empty() || responder->write(std::string(line) + "\n");
  };
  try {
    pulls.fetch(asked.name, tell);
  } catch (...) {
    if (!begun) throw;
    responder->write(reply_form().error_event(openai::current_api_error()));
  }
  if (begun) return responder->end();
  responder->respond(pulled(asked.stream));
}

Response remove(Shared& shared, Pulls& pulls, const Request& request) {
  const std::string name = known_name(shared.models.catalog(), named(request));
  if (!pulls.allowed())
    openai::refuse("this server does not delete models for clients; 'sdx serve --allow-pull' deletes those that were pulled");
  pulls.remove(name);
  return Response{};
}

[[noreturn]] Response keep(std::string_view what) {
  openai::refuse(fmt::format("this server does not {} models: whoever runs it chooses them", what));
}

}  // namespace

void add_routes(Router& router, Shared& shared, Pulls& pulls) {
  Shared* const all = &shared;
  Pulls* const fetches = &pulls;
  const auto add_quick = [&](const char* pattern, auto answer) {
    Route route = openai::quick_route("GET", pattern, error_shape);
    route.runs = Runs::on_pool;  // looks at files
    router.add(route, openai::at_once(answer, error_response));
  };
  const auto add = [&](const char* method, const char* pattern, auto answer) {
    router.add(openai::pool_route(method, pattern, all->body_bytes, error_shape), openai::at_once(answer, error_response));
  };
  for (const Kind kind : {Kind::chat, Kind::generate}) {
    const char* pattern = kind == Kind::chat ? "/api/chat" : "/api/generate";
    router.add(
        openai::pool_route("POST", pattern, all->body_bytes, error_shape),
        openai::later([all, kind](auto& request, auto& responder) { text(*all, request, responder, kind); }, error_response));
  }
  add("POST", "/api/embed",
      [all](const Request& request) { return vectors(*all, request, read_embed(openai::read_body(request.body))); });
  add("POST", "/api/embeddings",
      [all](const Request& request) { return vectors(*all, request, read_embeddings(openai::read_body(request.body))); });
  add("POST", "/api/show", [all](const Request& request) { return show(*all, request); });
  router.add(openai::pool_route("POST", "/api/pull", all->body_bytes, error_shape),
             openai::later([all, fetches](auto& request, auto& responder) { pull(*all, *fetches, request, responder); },
                           error_response));
  add("DELETE", "/api/delete", [all, fetches](const Request& request) { return remove(*all, *fetches, request); });
  add("POST", "/api/copy", [](const Request&) { return keep("copy"); });
  add("POST", "/api/create", [](const Request&) { return keep("create"); });
  add("POST", "/api/push", [](const Request&) { return keep("push"); });
  add_quick("/api/tags", [all](const Request&) { return json_response(tags_json(all->models.catalog())); });
  add_quick("/api/ps", [all](const Request&) { return json_response(running_json(all->models.catalog())); });
  add_quick("/api/version", [](const Request&) {
    return json_response(fmt::format(R"({{"version":"{}","server":"sardonyx {}"}})", kInterfaceVersion, SDX_VERSION));
  });
}

}  // namespace sdx::serve::ollama
