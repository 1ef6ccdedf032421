// /v1/chat/completions

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/text/json_text.h"
#include "serve/openai/api_impl.h"
#include "serve/openai/chat_answer.h"

namespace sdx::serve::openai {
namespace {

constexpr std::string_view kPath = "v1/chat/completions";

// One chat under way. After the start only the engine's thread is in here.
struct ChatRun {
  ChatRun(const RequestPtr& request, ChatAnswerOptions with, Measured measuring, ModelPtr used, std::shared_ptr<Reply> client)
      : notes(request->notes),
        answer(std::move(with)),
        measured(std::move(measuring)),
        reply(std::move(client)),
        model(std::move(used)) {}

  bool token(const GeneratedToken& token) {
    measured.token();
    events.clear();
    const bool more = answer.add(token, events);
    return reply->send(events) && more;
  }

  void end(const Generation* generation, const std::exception_ptr& failure) {
    try {
      if (failure) std::rethrow_exception(failure);
      if (answer.cut_short(*generation)) throw api_error(Error(ErrorCode::cancelled, ""));
      Usage usage;
      usage.add(*generation);
      if (notes) {
        notes->set_tokens(usage.prompt, usage.completion);
        notes->add_generation(submitted, generation->first_token_ms);
      }
      measured.end(usage, generation->choices.front().finish_reason == "length" ? "length" : "stop");
      std::string last;
      if (stream) {
        answer.finish(*generation, last);
      } else {
        last = answer.whole(*generation);
      }
      reply->finish(std::move(last));
    } catch (...) {
      reply->fail(current_api_error());
    }
    // The server ends only when the reply is released; until then the catalogue holds the model as well. If this were the last
    // pointer to it, the engine's thread would wait for its own end.
    model.reset();
    reply->let_go();
  }

  std::shared_ptr<Notes> notes;
  ChatAnswer answer;
  Measured measured;
  std::shared_ptr<Reply> reply;
  ModelPtr model;  // behind the reply, so that it is let go of first
  bool stream = false;
  Notes::Clock::time_point submitted;
  std::string events;
};

struct Prompt {
  std::string text;
  TokenList tokens;
};

Prompt make_prompt(const ChatRequest& r, const Found& found) {
  const LanguageService& service = *found.model->language;
  if (!service.chat) {
    ApiError error(404, fmt::format("The model `{}` has no chat template and thus is not supported by {}. Did you mean to use "
                                    "v1/completions?",
                                    r.generation.model, kPath));
    error.param = "model";
    throw error;
  }
  Json messages = r.messages;
  for (Json& m : messages) {
    if (!found.facts->knows_developers() && m["role"] == "developer") m["role"] = "system";
  }
  ChatInput input;
  input.messages = dump_json(messages);
  input.tools = r.tools;
  input.add_generation_prompt = true;
  if (!r.variables.empty()) input.variables = dump_json(r.variables);
  Prompt out;
  try {
    out.text = service.chat->render(input);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
    refuse(fmt::format("The model's chat template does not take these messages: {}", error.message()), "messages",
           "invalid_value");
  }
  // Templates write special tokens themselves.
  out.tokens = tokens_of(service.model, out.text, false, PromptKind::chat);
  return out;
}

AnswerFormat format_of(const ChatRequest& r, const Found& found) {
  AnswerFormat format = found.facts->format();
  if (r.tool_use == ToolUse::none) format.calls = ToolCallFormat::none;
  if (r.tool_use == ToolUse::required && (format.calls == ToolCallFormat::detect || format.calls == ToolCallFormat::none)) {
    format.calls = ToolCallFormat::hermes;
  }
  if (r.generation.format) format.reasoning_begin = format.reasoning_end = "";  // the form is that of the whole answer
  return format;
}

// Places begin with "tools[name]".
void refuse_in_part(const std::vector<std::string>& unenforced, const ChatRequest& r) {
  for (const Json& tool : Json::parse(r.tools)) {
    const Json& function = tool["function"];
    const auto name = function["name"].get<std::string>();
    if (std::find(r.strict_tools.begin(), r.strict_tools.end(), name) == r.strict_tools.end()) continue;
    const std::string head = "tools[" + name + "]";
    std::vector<std::string> own;
    for (const std::string& place : unenforced) {
      if (place.starts_with(head + "#")) own.push_back(place.substr(head.size()));
    }
    openai::refuse_in_part(own, function["parameters"], head);
  }
}

void force_call(GenerationSettings& s, const ChatRequest& r, const LanguageModel& model, const AnswerFormat& format,
                const std::string& prompt, Ignored& ignored) {
  try {
    std::vector<std::string> unenforced;
    s.mask = model.constrain_calls(format, r.tools, {r.tool_name, r.parallel_calls}, prompt, &unenforced);
    if (!r.strict_tools.empty() && !unenforced.empty()) refuse_in_part(unenforced, r);
    for (const std::string& place : unenforced) ignored.add_exact(place);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::not_implemented) throw;
    refuse(fmt::format("Invalid 'tools': {}", error.message()), "tools", "invalid_value");
  }
}

}  // namespace

void Api::Impl::chat(const RequestPtr& request, const ResponderPtr& responder) {
  const ChatRequest r = read_chat_request(read_body(request->body));
  const Found found = models.get(r.generation.model, ModelKind::language, kPath);
  if (request->notes) request->notes->set_model(r.generation.model);
  const LanguageModel& model = found.model->language->model;
  std::optional<StageTimer> cutting(std::in_place, request->notes.get(), "tokenize");
  Prompt prompt = make_prompt(r, found);
  cutting.reset();
  if (request->notes && request->notes->wants_prompt()) request->notes->set_prompt(prompt.text);
  const std::int64_t room =
      answer_room(r.generation, PromptKind::chat, model.info(), static_cast<std::int64_t>(prompt.tokens.size()));

  GenerationRequest job;
  Ignored ignored = r.generation.ignored;
  job.settings = generation_settings(r.generation, model, room, ignored);
  const AnswerFormat format = format_of(r, found);
  if (r.tool_use == ToolUse::required) force_call(job.settings, r, model, format, prompt.text, ignored);
  if (request->notes) request->notes->set_ignored(ignored.text());
  model.prepare_answer(job.settings, format, r.tool_use != ToolUse::none);
  job.settings.n = r.generation.n;
  job.settings.logprobs = r.logprobs;
  job.prompt = std::move(prompt.tokens);

  ChatAnswerOptions with;
  with.head = new_head("chatcmpl-", r.generation.model, found.facts->fingerprint());
  with.n = r.generation.n;
  with.format = format;
  with.tools = r.tools;
  with.prompt = std::move(prompt.text);
  with.parallel_calls = r.parallel_calls;
  with.stream = r.generation.stream;
  with.include_usage = r.generation.include_usage;
  if (r.logprobs >= 0) with.texts = found.facts->texts(model);
  with.ends = end_tokens(job.settings, model.info());

  const auto reply = std::make_shared<Reply>(responder, r.generation.stream);
  const auto run = std::make_shared<ChatRun>(request, std::move(with), Measured(metrics, found.model->name, request->arrived),
                                             found.model, reply);
  run->stream = r.generation.stream;
  const std::string first = r.generation.stream ? run->answer.begin() : std::string();
  job.on_token = [run](const GeneratedToken& token) { return run->token(token); };
  job.on_end = [run](const Generation* generation, const std::exception_ptr& failure) { run->end(generation, failure); };
  run->submitted = Notes::Clock::now();
  const GenerationTask task = found.model->language->engine->submit(std::move(job));
  reply->open(first);
  if (r.generation.stream) heartbeats.watch(reply);
  responder->on_gone([task] { task.cancel(); });
}

}  // namespace sdx::serve::openai
