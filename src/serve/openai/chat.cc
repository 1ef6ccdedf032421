// /v1/chat/completions

#include "serve/openai/api_impl.h"
#include "serve/openai/chat_answer.h"

namespace sdx::serve::openai {

void Api::Impl::chat(const RequestPtr& request, const ResponderPtr& responder) {
  const ChatRequest r = read_chat_request(read_body(request->body));
  PreparedChat prepared = prepare_chat(*this, *request, r, PromptKind::chat, "v1/chat/completions");
  const LanguageModel& model = prepared.found.model->language->model;

  ChatAnswerOptions with;
  with.head = new_head("chatcmpl-", r.generation.model, prepared.found.facts->fingerprint());
  with.n = r.generation.n;
  with.format = prepared.format;
  with.tools = r.tools;
  with.prompt = prepared.prompt;
  with.parallel_calls = r.parallel_calls;
  with.stream = r.generation.stream;
  with.include_usage = r.generation.include_usage;
  if (r.logprobs >= 0) with.texts = prepared.found.facts->texts(model);
  with.ends = end_tokens(prepared.job.settings, model.info());
  answer_chat(*this, request, responder, std::move(prepared), std::make_unique<ChatAnswer>(std::move(with)), r.generation.stream);
}

}  // namespace sdx::serve::openai
