#include <algorithm>
#include <sdx/generation_engine.hpp>
#include <thread>

#include "base/error.h"
#include "text/engine/free_memory.h"
#include "text/engine/scheduler.h"

namespace sdx {

using namespace text;

struct GenerationEngine::Impl {
  Impl(LanguageModel from, std::shared_ptr<const Decoder> decoder, const EngineOptions& options)
      : model(std::move(from)),
        max_waiting(static_cast<std::size_t>(options.max_waiting)),
        scheduler(std::move(decoder), model.info(), options, mailbox),
        thread([this] { scheduler.run(); }) {}

  LanguageModel model;
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  std::size_t max_waiting;
  Scheduler scheduler;
  std::thread thread;
};

namespace {

EngineOptions checked(EngineOptions o) {
  const auto need = [](bool ok, const char* name, auto value, const char* range) {
    if (!ok) fail(ErrorCode::invalid_argument, "{} must be {}, received {}", name, range, value);
  };
  need(o.max_sequences >= 1 && o.max_sequences <= 4096, "max_sequences", o.max_sequences, "from 1 to 4096");
  need(o.max_waiting >= 0, "max_waiting", o.max_waiting, "0 or greater");
  need(o.max_step_tokens >= 0, "max_step_tokens", o.max_step_tokens, "0 (512) or greater");
  if (o.max_step_tokens == 0) o.max_step_tokens = 512;
  if (o.cache_bytes > 0 && o.prefix_bytes > 0) return o;
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;
  const std::uint64_t free = free_memory();
  if (o.cache_bytes == 0) o.cache_bytes = std::max(kLeast, free / 2);
  if (o.prefix_bytes == 0) o.prefix_bytes = std::max(kLeast, free / 10);
  return o;
}

}  // namespace

GenerationEngine::GenerationEngine(LanguageModel model, const EngineOptions& options) {
  const std::shared_ptr<const Decoder> decoder = model.decoder();
  impl_ = std::make_unique<Impl>(std::move(model), decoder, checked(options));
}

GenerationEngine::~GenerationEngine() {
  {
    const std::lock_guard lock(impl_->mailbox->mutex);
    impl_->mailbox->stop = true;
    impl_->mailbox->step.cancel();
    impl_->mailbox->changed.notify_all();
  }
  impl_->thread.join();
}

GenerationTask GenerationEngine::submit(GenerationRequest request) {
  const LanguageModelInfo& info = impl_->model.info();
  check_settings(request.settings, info);
  check_alone(request.settings);
  if (request.prompt.empty()) fail(ErrorCode::invalid_argument, "there are no tokens to continue from");
  for (const TokenId id : request.prompt) {
    if (info.vocabulary > 0 && static_cast<std::int64_t>(id) >= info.vocabulary)
      fail(ErrorCode::invalid_argument, "token {} is not in the model's vocabulary of {}", id, info.vocabulary);
  }
  if (info.context > 0 && static_cast<std::int64_t>(request.prompt.size()) > info.context) {
    fail(ErrorCode::invalid_argument, "{} tokens exceed the model's context of {}", request.prompt.size(), info.context);
  }
  auto task = std::make_shared<GenerationTask::Impl>();
  task->most_tokens = impl_->scheduler.most_tokens(request);
  task->request = std::move(request);
  task->mailbox = impl_->mailbox;
  task->submitted = Clock::now();
  task->choices.resize(static_cast<std::size_t>(task->request.settings.n));
  const std::shared_ptr<Mailbox>& mail = impl_->mailbox;
  const std::lock_guard lock(mail->mutex);
  if (mail->waiting >= impl_->max_waiting + mail->free) {
    fail(ErrorCode::out_of_memory, "{} requests already wait: try again later, or raise max_waiting", mail->waiting);
  }
  impl_->scheduler.submitted();
  mail->arrived.push_back(task);
  ++mail->waiting;
  mail->changed.notify_all();
  return GenerationTask(task);
}

EngineStatus GenerationEngine::status() const { return impl_->scheduler.status(); }
const LanguageModel& GenerationEngine::model() const { return impl_->model; }

}  // namespace sdx
