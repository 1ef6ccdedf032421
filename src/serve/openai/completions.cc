// /v1/completions

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "serve/openai/api_impl.h"
#include "serve/openai/fill.h"

namespace sdx::serve::openai {
namespace {

constexpr std::string_view kPath = "v1/completions";

// Completions under way: a task for each prompt. After the start only the engine's thread is in here.
struct CompletionRun {
  CompletionRun(const RequestPtr& request, CompletionAnswerOptions with, Measured measuring, ModelPtr used,
                std::shared_ptr<Reply> client)
      : notes(request->notes),
        stream(with.stream),
        answer(std::move(with)),
        measured(std::move(measuring)),
        reply(std::move(client)),
        model(std::move(used)) {}

  bool token(std::size_t prompt, const GeneratedToken& token) {
    measured.token();
    events.clear();
    answer.add(prompt, token, events);
    return reply->send(events);
  }

  void end(std::size_t prompt, const Generation* generation, const std::exception_ptr& failure) {
    ++ended;
    try {
      if (failure) std::rethrow_exception(failure);
      for (const Choice& c : generation->choices) {
        if (c.finish_reason == "cancelled") throw api_error(Error(ErrorCode::cancelled, ""));
      }
      events.clear();
      if (notes && generation->completion_tokens > 0) notes->add_generation(submitted, generation->first_token_ms);
      answer.finish(prompt, *generation, events);
      reply->send(events);
      if (answer.complete()) finish();
    } catch (...) {
      reply->fail(current_api_error());
    }
    if (ended != prompts) return;
    model.reset();  // as ChatRun::end() does
    reply->let_go();
  }

  // Nothing is computed: the request asked for the prompts themselves.
  void finish() {
    if (notes) notes->set_tokens(answer.usage().prompt, answer.usage().completion);
    measured.end(answer.usage(), "stop");
    reply->finish(stream ? answer.end() : answer.whole());
  }

  std::shared_ptr<Notes> notes;
  Notes::Clock::time_point submitted;
  const bool stream;
  CompletionAnswer answer;
  Measured measured;
  std::shared_ptr<Reply> reply;
  ModelPtr model;  // behind the reply, so that it is let go of first
  std::size_t prompts = 1, ended = 0;
  std::string events;
};

std::vector<TokenList> read_prompts(const CompletionRequest& r, const LanguageModel& model) {
  std::vector<TokenList> out;
  for (const PromptText& prompt : r.prompts) {
    const auto* tokens = std::get_if<TokenList>(&prompt);
    if (!r.suffix.empty()) {
      out.push_back(fill_prompt(model, {std::get<std::string>(prompt), r.suffix, {}, {}}, "suffix"));
      continue;
    }
    out.push_back(tokens != nullptr ? *tokens : tokens_of(model, std::get<std::string>(prompt), true, PromptKind::completion));
    const std::int64_t vocabulary = model.info().vocabulary;
    for (const TokenId id : out.back()) {
      if (vocabulary > 0 && static_cast<std::int64_t>(id) >= vocabulary) {
        refuse(fmt::format("Invalid 'prompt': token {} is not in the model's vocabulary of {}.", id, vocabulary), "prompt",
               "invalid_value");
      }
    }
  }
  return out;
}

std::vector<Echo> make_echoes(const CompletionRequest& r, const LanguageModel& model, const std::vector<TokenList>& prompts,
                              Line& line, const ResponderPtr& responder) {
  std::vector<Echo> out;
  const auto gone = [&] { return responder->gone(); };
  std::optional<Turn> turn;
  if (r.logprobs >= 0) turn.emplace(line, gone);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto* text = std::get_if<std::string>(&r.prompts[i]);
    out.push_back({text != nullptr ? *text : model.tokenizer().decode(prompts[i]), {}, {}});
    if (r.logprobs < 0) continue;
    add_prompt_logprobs(out.back(), model, prompts[i], r.logprobs, gone);
  }
  return out;
}

GenerationSettings settings_of(const CompletionRequest& r, const LanguageModel& model, std::int64_t room, Ignored& ignored) {
  GenerationSettings s = generation_settings(r.generation, model, room);
  hold_to_format(s, r.generation, model, ignored);
  model.prepare_answer(s);
  if (!r.suffix.empty()) add_fill_ends(model, s.stop_tokens);
  s.n = r.best_of;
  s.logprobs = r.best_of > r.generation.n ? std::max(r.logprobs, 0) : r.logprobs;
  return s;
}

// An echo without an answer.
void only_echo(const std::shared_ptr<CompletionRun>& run, const std::vector<TokenList>& prompts, int answers) {
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Generation nothing;
    nothing.prompt_tokens = static_cast<std::int64_t>(prompts[i].size());
    nothing.choices.resize(static_cast<std::size_t>(answers));
    for (Choice& c : nothing.choices) c.finish_reason = "length";
    run->end(i, &nothing, nullptr);
  }
}

}  // namespace

void Api::Impl::completions(const RequestPtr& request, const ResponderPtr& responder) {
  const CompletionRequest r = read_completion_request(read_body(request->body));
  const GenerationFields& g = r.generation;
  const Found found = models.get(g.model, ModelKind::language, kPath);
  if (request->notes) request->notes->set_model(g.model);
  const LanguageModel& model = found.model->language->model;
  std::optional<StageTimer> cutting(std::in_place, request->notes.get(), "tokenize");
  const std::vector<TokenList> prompts = read_prompts(r, model);
  cutting.reset();
  std::vector<std::int64_t> rooms;
  for (const TokenList& p : prompts) {
    rooms.push_back(answer_room(g, PromptKind::completion, model.info(), static_cast<std::int64_t>(p.size())));
  }
  const bool computes = g.max_tokens != 0;
  Ignored ignored = g.ignored;
  const GenerationSettings settings = settings_of(r, model, rooms.front(), ignored);
  if (request->notes) request->notes->set_ignored(ignored.text());

  CompletionAnswerOptions with;
  with.head = new_head("cmpl-", g.model, found.facts->fingerprint());
  with.prompts = prompts.size();
  with.n = g.n;
  with.best_of = r.best_of;
  with.stream = g.stream;
  with.include_usage = g.include_usage;
  if (r.logprobs >= 0) with.texts = found.facts->texts(model);
  with.ends = end_tokens(settings, model.info());
  if (r.echo) with.echo = make_echoes(r, model, prompts, prompt_logprobs, responder);

  const auto reply = std::make_shared<Reply>(responder, g.stream);
  const auto run = std::make_shared<CompletionRun>(request, std::move(with),
                                                   Measured(metrics, found.model->name, request->arrived), found.model, reply);
  run->prompts = prompts.size();
  const std::string first = g.stream ? run->answer.begin() : std::string();
  run->submitted = Notes::Clock::now();
  std::vector<GenerationTask> tasks;
  try {
    if (!computes) only_echo(run, prompts, r.best_of);
    for (std::size_t i = 0; computes && i < prompts.size(); ++i) {
      GenerationRequest job;
      job.prompt = prompts[i];
      job.settings = settings;
      job.settings.max_tokens = rooms[i];
      job.on_token = [run, i](const GeneratedToken& token) { return run->token(i, token); };
      job.on_end = [run, i](const Generation* done, const std::exception_ptr& failure) { run->end(i, done, failure); };
      tasks.push_back(found.model->language->engine->submit(std::move(job)));
    }
  } catch (...) {
    reply->fail(current_api_error());
    for (const GenerationTask& task : tasks) task.cancel();
    return;
  }
  reply->open(first);
  if (g.stream) heartbeats.watch(reply);
  responder->on_gone([tasks] {
    for (const GenerationTask& task : tasks) task.cancel();
  });
}

}  // namespace sdx::serve::openai
