#include "serve/openai/chat/run.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/text/json_text.h"
#include "serve/openai/chat/constrain.h"

namespace sdx::serve::openai {
namespace {

// One chat under way. After the start only the engine's thread is in here.
struct ChatRun {
  ChatRun(const RequestPtr& request, std::unique_ptr<ChatWriter> form, Measured measuring, ModelPtr used,
          std::shared_ptr<Reply> client)
      : notes(request->notes),
        writer(std::move(form)),
        measured(std::move(measuring)),
        reply(std::move(client)),
        model(std::move(used)) {}

  bool token(const GeneratedToken& token) {
    measured.token();
    events.clear();
    const bool more = writer->add(token, events);
    return reply->send(events) && more;
  }

  void end(const Generation* generation, const std::exception_ptr& failure) {
    try {
      if (failure) std::rethrow_exception(failure);
      if (writer->cut_short(*generation)) throw api_error(Error(ErrorCode::cancelled, ""));
      Usage usage;
      usage.add(*generation);
      if (notes) {
        notes->set_tokens(usage.prompt, usage.completion);
        notes->add_generation(submitted, generation->first_token_ms);
      }
      measured.end(usage, generation->choices.front().finish_reason == "length" ? "length" : "stop");
      std::string last;
      if (stream) {
        writer->finish(*generation, last);
      } else {
        last = writer->whole(*generation);
      }
      reply->finish(std::move(last));
    } catch (...) {
      const ApiError error = current_api_error();
      reply->fail(error, stream ? writer->failure(error) : std::string());
    }
    // The server ends only when the reply is released; until then the catalogue holds the model as well. If this were the last
    // pointer to it, the engine's thread would wait for its own end.
    model.reset();
    reply->let_go();
  }

  std::shared_ptr<Notes> notes;
  std::unique_ptr<ChatWriter> writer;
  Measured measured;
  std::shared_ptr<Reply> reply;
  ModelPtr model;  // behind the reply, so that it is let go of first
  bool stream = false;
  Notes::Clock::time_point submitted;
  std::string events;
};

ApiError no_template(const std::string& model, std::string_view path) {
  ApiError error(404, fmt::format("The model `{}` has no chat template and thus is not supported by {}. Did you mean to use "
                                  "v1/completions?",
                                  model, path));
  error.param = "model";
  return error;
}

ChatPrompt raw_prompt(const PromptText& raw, const LanguageModel& model, PromptKind kind) {
  ChatPrompt out;
  if (const auto* text = std::get_if<std::string>(&raw)) {
    out.text = *text;
    out.tokens = tokens_of(model, out.text, true, kind);
  } else {
    out.tokens = std::get<TokenList>(raw);
    out.text = model.tokenizer().decode(out.tokens, false);
  }
  return out;
}

// The beginning of the answer that the request gives, behind `prompt`. Where the prompt begins reasoning, that ends first.
std::string beginning_of(const ChatRequest& r, const AnswerFormat& format, std::string_view prompt) {
  if (r.continued.empty()) return {};
  while (!prompt.empty() && (prompt.back() == '\n' || prompt.back() == ' ')) prompt.remove_suffix(1);
  const bool opened =
      !format.reasoning_begin.empty() && !format.reasoning_end.empty() && prompt.ends_with(format.reasoning_begin);
  const bool ends = !opened || r.continued.find(format.reasoning_end) != std::string::npos;
  return (ends ? "" : "\n" + format.reasoning_end + "\n\n") + r.continued;
}

}  // namespace

ChatPrompt make_prompt(const ChatRequest& r, const Found& found, PromptKind kind, std::string_view path) {
  const LanguageService& service = *found.model->language;
  if (r.raw) return raw_prompt(*r.raw, service.model, kind);
  if (!service.chat) throw no_template(r.generation.model, path);
  Json messages = r.messages;
  for (Json& m : messages) {
    if (!found.facts->knows_developers() && m["role"] == "developer") m["role"] = "system";
  }
  ChatInput input;
  input.messages = dump_json(messages);
  input.tools = r.tools;
  input.add_generation_prompt = r.add_generation_prompt;
  if (!r.variables.empty()) input.variables = dump_json(r.variables);
  ChatPrompt out;
  std::vector<std::size_t> plain;
  try {
    if (service.control_tokens) {
      out.text = service.chat->render(input);
    } else {
      PlainPrompt rendered = service.chat->render_plain(input, service.model.tokenizer());
      out.text = std::move(rendered.text);
      plain = std::move(rendered.plain);
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
    refuse(fmt::format("The model's chat template does not take these messages: {}", error.message()), "messages",
           "invalid_value");
  }
  out.text += beginning_of(r, found.facts->format(), out.text);
  // Templates write special tokens themselves.
  out.tokens = tokens_of(service.model, out.text, false, kind, plain);
  return out;
}

PreparedChat prepare_chat(Shared& shared, const Request& request, const ChatRequest& r, PromptKind kind, std::string_view path) {
  PreparedChat out;
  out.found = shared.models.get(r.generation.model, ModelKind::language, path);
  if (request.notes) request.notes->set_model(r.generation.model);
  const LanguageModel& model = out.found.model->language->model;
  std::optional<StageTimer> cutting(std::in_place, request.notes.get(), "tokenize");
  ChatPrompt prompt = make_prompt(r, out.found, kind, path);
  cutting.reset();
  if (request.notes && request.notes->wants_prompt()) request.notes->set_prompt(prompt.text);
  out.prompt_tokens = static_cast<std::int64_t>(prompt.tokens.size());
  const std::int64_t room = answer_room(r.generation, kind, model.info(), out.prompt_tokens);
  out.shortened = !r.generation.max_tokens || room < *r.generation.max_tokens;

  Ignored ignored = r.generation.ignored;
  out.job.settings = generation_settings(r.generation, model, room);
  out.format = format_of(r, out.found);
  if (r.raw) {
    hold_to_format(out.job.settings, r.generation, model, ignored);
  } else {
    const std::string before = prompt.text.substr(0, prompt.text.size() - r.continued.size());
    hold_answer(out.job.settings, r, out.found, out.format, before, ignored);
  }
  if (request.notes) request.notes->set_ignored(ignored.text());
  if (r.raw) {
    model.prepare_answer(out.job.settings);
  } else {
    model.prepare_answer(out.job.settings, out.format, r.tool_use != ToolUse::none);
  }
  out.job.settings.n = r.generation.n;
  out.job.settings.logprobs = r.logprobs;
  out.job.prompt = std::move(prompt.tokens);
  out.prompt = std::move(prompt.text);
  return out;
}

std::size_t count_prompt(Shared& shared, const Request& request, const ChatRequest& r, PromptKind kind, std::string_view path) {
  const Found found = shared.models.get(r.generation.model, ModelKind::language, path);
  if (request.notes) request.notes->set_model(r.generation.model).set_ignored(r.generation.ignored.text());
  return make_prompt(r, found, kind, path).tokens.size();
}

void answer_chat(Shared& shared, const RequestPtr& request, const ResponderPtr& responder, PreparedChat prepared,
                 std::unique_ptr<ChatWriter> writer, bool stream, const ReplyForm& form) {
  const ModelPtr model = prepared.found.model;
  const auto reply = std::make_shared<Reply>(responder, stream, form);
  const std::string first = stream ? writer->begin() : std::string();
  const auto run = std::make_shared<ChatRun>(request, std::move(writer), Measured(shared.metrics, model->name, request->arrived),
                                             model, reply);
  run->stream = stream;
  GenerationRequest& job = prepared.job;
  job.on_token = [run](const GeneratedToken& token) { return run->token(token); };
  job.on_end = [run](const Generation* generation, const std::exception_ptr& failure) { run->end(generation, failure); };
  run->submitted = Notes::Clock::now();
  const GenerationTask task = model->language->engine->submit(std::move(job));
  reply->open(first);
  if (stream) shared.heartbeats.watch(reply);
  responder->on_gone([task] { task.cancel(); });
}

}  // namespace sdx::serve::openai
