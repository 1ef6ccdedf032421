#include "serve/responses/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text/json_text.h"
#include "serve/http/access.h"
#include "serve/openai/chat/handlers.h"
#include "serve/responses/requests.h"
#include "serve/responses/response_answer.h"

namespace sdx::serve::responses {
namespace {

using openai::Json;

constexpr std::string_view kPath = "v1/responses";

void respond(openai::Shared& shared, Store& store, const RequestPtr& request, const ResponderPtr& responder) {
  ResponseRequest r = read_response_request(openai::read_body(request->body), store, request->key);
  openai::PreparedChat prepared = openai::prepare_chat(shared, *request, r.chat, openai::PromptKind::chat, kPath);
  ResponseOptions with;
  with.id = "resp_" + random_token();
  with.created = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  with.custom_tools = std::move(r.custom_tools);
  with.echo = std::move(r.echo);
  if (r.store) {
    with.completed = [all = &store, id = with.id, owner = request->key, previous = std::move(r.previous),
                      input = dump_json(r.input)](const Json& response) { all->add(id, owner, previous, input, response); };
  }
  const bool stream = r.chat.generation.stream;
  auto writer = std::make_unique<ResponseAnswer>(prepared, r.chat, std::move(with));
  openai::answer_chat(shared, request, responder, std::move(prepared), std::move(writer), stream);
}

Response count(openai::Shared& shared, const Store& store, const Request& request) {
  const ResponseRequest r = read_response_request(openai::read_body(request.body), store, request.key);
  const std::size_t tokens = openai::count_prompt(shared, request, r.chat, openai::PromptKind::chat, kPath);
  return json_response(fmt::format(R"({{"object":"response.input_tokens","input_tokens":{}}})", tokens));
}

[[noreturn]] void not_found(std::string_view id) {
  openai::ApiError error(404, fmt::format("Response with id '{}' not found.", id.substr(0, 100)));
  error.param = "response_id";
  throw error;
}

TurnPtr find(const Store& store, const Request& request) {
  TurnPtr turn = store.find(request.part("id"), request.key);
  if (!turn) not_found(request.part("id"));
  return turn;
}

Response remove(Store& store, const Request& request) {
  const std::string_view id = request.part("id");
  if (!store.remove(id, request.key)) not_found(id);
  return json_response("{\"id\":" + json_string(id) + ",\"object\":\"response\",\"deleted\":true}");
}

// A page of the items that were asked: the newest first unless `order` says otherwise.
Response input_items(const Store& store, const Request& request) {
  Json items = Json::parse(find(store, request)->input);
  const std::string_view order = request.parameter("order"), after = request.parameter("after"),
                         most = request.parameter("limit");
  if (order != "asc") std::reverse(items.begin(), items.end());
  std::size_t limit = 20;
  if (!most.empty()) {
    const auto [end, error] = std::from_chars(most.data(), most.data() + most.size(), limit);
    if (error != std::errc{} || end != most.data() + most.size() || limit < 1 || limit > 100) {
      openai::refuse("Invalid 'limit': expected an integer from 1 to 100.", "limit", "invalid_value");
    }
  }
  std::size_t begin = 0;
  if (!after.empty()) {
    while (begin < items.size() && items[begin]["id"] != Json(after)) ++begin;
    begin = std::min(begin + 1, items.size());
  }
  Json page = Json::array();
  for (std::size_t i = begin; i < items.size() && page.size() < limit; ++i) page.push_back(items[i]);
  const bool more = begin + page.size() < items.size();
  const Json out = {{"object", "list"},
                    {"first_id", page.empty() ? Json() : page.front()["id"]},
                    {"last_id", page.empty() ? Json() : page.back()["id"]},
                    {"has_more", more},
                    {"data", page}};
  return json_response(dump_json(out));
}

}  // namespace

void add_routes(Router& router, openai::Shared& shared, Store& store) {
  openai::Shared* const all = &shared;
  Store* const turns = &store;
  router.add(openai::pool_route("POST", "/v1/responses", all->body_bytes),
             openai::later([all, turns](auto& request, auto& responder) { respond(*all, *turns, request, responder); }));
  router.add(openai::pool_route("POST", "/v1/responses/input_tokens", all->body_bytes),
             openai::at_once([all, turns](const Request& request) { return count(*all, *turns, request); }));
  router.add(openai::quick_route("GET", "/v1/responses/{id}"),
             openai::at_once([turns](const Request& request) { return json_response(find(*turns, request)->response); }));
  router.add(openai::quick_route("DELETE", "/v1/responses/{id}"),
             openai::at_once([turns](const Request& request) { return remove(*turns, request); }));
  router.add(openai::pool_route("GET", "/v1/responses/{id}/input_items", all->body_bytes),
             openai::at_once([turns](const Request& request) { return input_items(*turns, request); }));
  router.add(openai::quick_route("POST", "/v1/responses/{id}/cancel"),
             openai::at_once([turns](const Request& request) -> Response {
               find(*turns, request);
               openai::refuse("Only responses that run in the background can be cancelled, and here none does.");
             }));
}

}  // namespace sdx::serve::responses
