#include "serve/openai/reply.h"

#include "serve/openai/answer_head.h"

namespace sdx::serve::openai {

const ReplyForm& openai_form() {
  static const ReplyForm form{
      "text/event-stream; charset=utf-8", ": keep-alive\n\n",
      [](const ApiError& error) { return std::string(kEventBegin) + error_json(error) + std::string(kEventEnd); },
      error_response};
  return form;
}

void Reply::open(std::string_view first) {
  const std::lock_guard lock(mutex_);
  if (open_ || !stream_ || !responder_ || (over_ && !whole_)) return;
  open_ = true;
  Response head;
  // Proxies (nginx) would keep events until they have many.
  head.headers = {{"Content-Type", std::string(form_.content_type)}, {"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  head.body = first;
  head.body += waiting_;
  waiting_.clear();
  responder_->start(std::move(head));
  written_ = std::chrono::steady_clock::now();
  if (!whole_) return;
  responder_->end();
  responder_.reset();
}

bool Reply::write(std::string_view bytes) {
  if (!open_) {
    waiting_ += bytes;
    return true;
  }
  written_ = std::chrono::steady_clock::now();
  return responder_->write(bytes);
}

bool Reply::send(std::string_view events) {
  const std::lock_guard lock(mutex_);
  if (over_ || !responder_) return false;
  return events.empty() || write(events);
}

void Reply::finish(std::string last) {
  const std::lock_guard lock(mutex_);
  if (over_ || !responder_) return;
  over_ = whole_ = true;
  if (!stream_) {
    responder_->respond(json_response(std::move(last)));
    return;
  }
  write(last);
  if (open_) responder_->end();
}

void Reply::fail(const ApiError& error, std::string_view event) {
  const std::lock_guard lock(mutex_);
  if (over_ || !responder_) return;
  over_ = true;
  if (!open_) {
    waiting_.clear();
    responder_->respond(form_.error(error));
    return;
  }
  write(event.empty() ? form_.error_event(error) : std::string(event));
  responder_->end();
}

void Reply::let_go() {
  ResponderPtr gone;
  const std::lock_guard lock(mutex_);
  if (whole_ && stream_ && !open_) return;  // open() still has to send what there is
  gone.swap(responder_);
}

void Reply::beat(std::chrono::steady_clock::duration silence) {
  const std::lock_guard lock(mutex_);
  if (form_.heartbeat.empty() || !open_ || over_ || !responder_) return;
  if (std::chrono::steady_clock::now() - written_ < silence) return;
  write(form_.heartbeat);
}

}  // namespace sdx::serve::openai
