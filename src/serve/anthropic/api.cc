#include "serve/anthropic/api.h"

#include <fmt/format.h>

#include "serve/anthropic/error.h"
#include "serve/anthropic/message_answer.h"
#include "serve/anthropic/requests.h"
#include "serve/http/access.h"
#include "serve/openai/chat/handlers.h"

namespace sdx::serve::anthropic {
namespace {

constexpr std::string_view kPath = "v1/messages";

void messages(openai::Shared& shared, const RequestPtr& request, const ResponderPtr& responder) {
  const MessageRequest r = read_message_request(openai::read_body(request->body));
  openai::PreparedChat prepared = openai::prepare_chat(shared, *request, r.chat, openai::PromptKind::message, kPath);
  MessageOptions with;
  with.id = "msg_" + random_token();
  with.model = r.chat.generation.model;
  with.thinking = r.thinking;
  with.omit_thinking = r.omit_thinking;
  with.shortened = prepared.shortened;
  auto writer = std::make_unique<MessageAnswer>(prepared, r.chat, std::move(with));
  openai::answer_chat(shared, request, responder, std::move(prepared), std::move(writer), r.chat.generation.stream, reply_form());
}

Response count_tokens(openai::Shared& shared, const Request& request) {
  const MessageRequest r = read_message_request(openai::read_body(request.body), true);
  const std::size_t tokens = openai::count_prompt(shared, request, r.chat, openai::PromptKind::message, kPath);
  return json_response(fmt::format(R"({{"input_tokens":{}}})", tokens));
}

}  // namespace

void add_routes(Router& router, openai::Shared& shared) {
  openai::Shared* const all = &shared;
  router.add(openai::pool_route("POST", "/v1/messages", all->body_bytes, error_shape),
             openai::later([all](auto& request, auto& responder) { messages(*all, request, responder); }, error_response));
  router.add(openai::pool_route("POST", "/v1/messages/count_tokens", all->body_bytes, error_shape),
             openai::at_once([all](const Request& request) { return count_tokens(*all, request); }, error_response));
}

}  // namespace sdx::serve::anthropic
