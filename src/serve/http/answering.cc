// Answering requests.

#include <ctime>

#include "base/error.h"
#include "serve/http/connection.h"

namespace sdx::serve {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds kDrainTime{10};

// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", days[parts.tm_wday], parts.tm_mday, months[parts.tm_mon],
                     parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

bool has_no_body(int status) { return status == 204 || status == 304; }

}  // namespace

void Connection::dispatch() {
  state_ = State::handling;
  await_nothing();
  outcome_.received = request_->body.size();
  answer_ = std::make_shared<Answer>();
  answer_->gone = gone_;
  answer_->held = std::move(request_->held);
  answer_->most_unsent = shared_.options.limits.unsent_bytes;
  answer_->chunked = !old_;
  answer_->head_only = request_->method == "HEAD";
  shared_.callbacks.entry(request_, make_responder(shared_from_this(), answer_));
  if (state_ == State::handling || state_ == State::sending) watch();
}

void Connection::refuse(int status, std::string_view message) {
  keep_alive_ = false;
  Response response = shape_(status, message);
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  respond(std::move(response));
}

void Connection::make_head(const Response& response, bool streamed, std::size_t body_size) {
  head_.clear();
  auto out = std::back_inserter(head_);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\nDate: {}\r\n", response.status, reason(response.status), date());
  for (const auto& [name, value] : response.headers) {
    head_ += name;
    head_ += ": ";
    head_ += value;
    head_ += "\r\n";
  }
  if (streamed && old_) keep_alive_ = false;  // the end of the connection is the end of the body
  if (streamed && !old_) head_ += "Transfer-Encoding: chunked\r\n";
  if (!streamed && !has_no_body(response.status)) fmt::format_to(out, "Content-Length: {}\r\n", body_size);
  head_ += keep_alive_ ? (old_ ? "Connection: keep-alive\r\n\r\n" : "\r\n") : "Connection: close\r\n\r\n";
  outcome_.status = response.status;
  if (request_) outcome_.to_first_byte = Clock::now() - request_->arrived;
}

void Connection::respond(Response response) {
  if (state_ == State::closed) return;
  state_ = State::sending;
  response_ = std::move(response);
  if (shared_.stopping) keep_alive_ = false;
  if (request_ && shared_.callbacks.decorate) shared_.callbacks.decorate(*request_, response_);
  if (!request_) old_ = false;
  make_head(response_, false, response_.body.size());
  const bool head_only = request_ && request_->method == "HEAD";
  if (head_only || has_no_body(response_.status)) response_.body.clear();
  send_pieces();
}

void Connection::start_stream(Response response) {
  if (state_ == State::closed) return;
  state_ = State::sending;
  streaming_ = true;
  if (shared_.stopping) keep_alive_ = false;
  if (shared_.callbacks.decorate) shared_.callbacks.decorate(*request_, response);
  response_ = std::move(response);
  response_.body.clear();
  make_head(response_, true, 0);
  send_pieces();
}

// Sends the head, and the available part of the body.
void Connection::send_pieces() {
  if (writing_) return;  // "100 Continue": this is called again when it has gone
  writing_ = true;
  outcome_.sent += response_.body.size();
  await_until(transfer_deadline(Clock::now(), head_.size() + response_.body.size()));
  transport_->write({asio::buffer(head_), asio::buffer(response_.body)},
                    [self = shared_from_this()](SystemError error, std::size_t) {
                      self->writing_ = false;
                      if (self->state_ == State::closed) return;
                      if (error) return self->cut();
                      self->head_.clear();
                      if (!self->streaming_) return self->sent();
                      self->response_.body.clear();
                      self->pump();
                    });
}

void Connection::pump() {
  if (state_ != State::sending || !streaming_ || writing_ || !answer_) return;  // closed, or called again when this is sent
  bool ended = false, whole = false;
  {
    const std::lock_guard lock(answer_->mutex);
    answer_->woken = false;
    response_.body.swap(answer_->unsent);
    ended = answer_->ended;
    whole = answer_->whole;
  }
  if (!response_.body.empty()) return send_pieces();
  if (!ended) return await_nothing();  // the handler takes its time
  if (!whole) return cut();
  sent();
}

void Connection::sent() {
  outcome_.whole = true;
  report();
  answer_.reset();
  if (keep_alive_) return next_request();
  transport_->end_writing(shared_from_this());
  if (body_read_ && input_.empty() && !transport_->needs_handshake()) return cut();
  // Closing with unread input resets the connection, and the client would lose the answer.
  state_ = State::draining;
  await_until(Clock::now() + kDrainTime);
  drain();
}

void Connection::report() {
  if (std::exchange(reported_, true) || !request_) return;
  outcome_.duration = Clock::now() - request_->arrived;
  if (shared_.callbacks.ended) shared_.callbacks.ended(*request_, outcome_);
  const std::shared_ptr<BodyShare> share = std::move(body_share_);
  std::shared_ptr<void> held = std::move(request_->held);
  if (answer_) {
    const std::lock_guard lock(answer_->mutex);
    if (!answer_->ended) return;  // somebody still works on it
    held = std::move(answer_->held);
  }
  if (share) share->release();
}

}  // namespace sdx::serve
