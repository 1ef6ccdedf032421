#include "serve/http/connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <condition_variable>
#include <ctime>
#include <limits>
#include <mutex>

#include "base/error.h"
#include "serve/http/access.h"
#include "serve/http/head.h"

namespace sdx::serve {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kUnsentBytes = 1024 * 1024;  // a streamed response waits beyond
// What a refused client may still send before it is cut: a browser shows an answer only when it could send all of its request.
constexpr std::uint64_t kDrainBytes = 1ull << 30;
constexpr std::chrono::seconds kDrainTime{10};

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_model: return 400;
    case ErrorCode::not_implemented: return 501;
    case ErrorCode::provider_unavailable: return 503;
    case ErrorCode::out_of_memory: return 413;
    case ErrorCode::cancelled: return 499;
    case ErrorCode::deadline_exceeded: return 504;
    default: return 500;
  }
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", days[parts.tm_wday], parts.tm_mday, months[parts.tm_mon],
                     parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

bool can_be_sent(const Response& response) {
  const auto plain = [](const std::string& text) {
    return std::none_of(text.begin(), text.end(), [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
  };
  return response.status >= 200 && response.status <= 599 &&
         std::all_of(response.headers.begin(), response.headers.end(),
                     [&](const auto& h) { return !h.first.empty() && plain(h.first) && plain(h.second); });
}

}  // namespace

// Between the handler's thread, which writes, and the connection's, which sends.
class StreamWriter : public BodyWriter {
 public:
  StreamWriter(std::shared_ptr<Connection> connection, std::shared_ptr<std::atomic<bool>> gone, bool chunked)
      : executor_(connection->socket_.get_executor()),
        connection_(std::move(connection)),
        gone_(std::move(gone)),
        chunked_(chunked) {}

  bool write(std::string_view bytes) override {
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [this] { return unsent_.size() < kUnsentBytes || *gone_; });
      if (*gone_) return false;
      if (bytes.empty()) return true;
      if (chunked_) unsent_ += fmt::format("{:x}\r\n", bytes.size());
      unsent_ += bytes;
      if (chunked_) unsent_ += "\r\n";
    }
    wake();
    return true;
  }

  bool gone() const override { return *gone_; }

  void end(bool whole) {
    {
      const std::lock_guard lock(mutex_);
      if (whole && chunked_) unsent_ += "0\r\n\r\n";
      ended_ = true;
      whole_ = whole;
    }
    wake();
  }

  // For the connection's thread.
  std::string take() {
    std::string out;
    {
      const std::lock_guard lock(mutex_);
      out.swap(unsent_);
    }
    room_.notify_all();
    return out;
  }
  bool ended() {
    const std::lock_guard lock(mutex_);
    return ended_ && unsent_.empty();
  }
  bool whole() {
    const std::lock_guard lock(mutex_);
    return whole_;
  }
  void client_gone() {
    const std::lock_guard lock(mutex_);
    room_.notify_all();
  }

 private:
  void wake() {
    asio::post(executor_, [connection = connection_] { connection->pump(); });
  }

  asio::any_io_executor executor_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<std::atomic<bool>> gone_;
  bool chunked_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::string unsent_;
  bool ended_ = false, whole_ = false;
};

Connection::Connection(Tcp::socket socket, Shared& shared, std::function<void()> ended)
    : socket_(std::move(socket)), timer_(socket_.get_executor()), shared_(shared), ended_(std::move(ended)) {}

Connection::~Connection() {
  release_body();
  ended_();
}

void Connection::finish() {
  keep_alive_ = false;
  if (state_ == State::idle || state_ == State::draining) cut();
}

void Connection::cut() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  lose_client();
  timer_.cancel();
  SystemError ignored;
  socket_.close(ignored);
  writer_.reset();
}

void Connection::lose_client() {
  if (gone_) *gone_ = true;
  if (writer_) writer_->client_gone();
}

// ---- Time

void Connection::await_until(Clock::time_point when) {
  timer_.expires_at(when);
  timer_.async_wait([self = shared_from_this(), round = ++timer_round_](SystemError error) {
    if (!error && round == self->timer_round_) self->timed_out();
  });
}

void Connection::timed_out() {
  if (state_ == State::head || state_ == State::body) return refuse(408, "the request did not arrive in time");
  if (state_ != State::handling) cut();
}

Clock::time_point Connection::transfer_deadline(Clock::time_point start, std::uint64_t bytes) const {
  const Limits& limits = shared_.options.limits;
  return start + limits.transfer_time + std::chrono::milliseconds(bytes * 1000 / std::max<std::uint64_t>(1, limits.least_rate));
}

// ---- Reading

void Connection::next_request() {
  release_body();
  parser_.reset();
  request_.reset();
  gone_.reset();
  writer_.reset();
  response_ = {};
  scanned_ = 0;
  if (shared_.stopping) return cut();
  state_ = input_.empty() ? State::idle : State::head;
  since_ = Clock::now();
  const Limits& limits = shared_.options.limits;
  await_until(since_ + (input_.empty() ? limits.idle : limits.head_time));
  read_head();
}

void Connection::read_head() {
  // One empty line before a request is forgiven, as RFC 9112 asks.
  if (scanned_ == 0 && input_.starts_with("\r\n")) input_.erase(0, 2);
  const HeadEnd end = find_head_end(input_, scanned_);
  scanned_ = input_.size();
  const std::size_t most = shared_.options.limits.header_bytes;
  if (end.state == HeadState::broken) return refuse(400, "the request is not HTTP/1.1: its lines must end with CR LF");
  if ((end.state == HeadState::complete ? end.size : input_.size()) > most) {
    return refuse(431, fmt::format("the head of the request has more than {} bytes", most));
  }
  if (end.state == HeadState::complete) return take_head(end.size);
  read();
}

// One read is under way at most; what it brings is for whatever state the connection is in by then.
void Connection::read() {
  if (reading_) return;
  reading_ = true;
  incoming_.resize(kReadBytes);
  socket_.async_read_some(asio::buffer(incoming_), [self = shared_from_this()](SystemError error, std::size_t n) {
    self->reading_ = false;
    if (self->state_ == State::closed) return;
    self->input_.append(self->incoming_.data(), n);
    self->arrived(error, n);
  });
}

void Connection::arrived(SystemError error, std::size_t bytes) {
  const bool answering = state_ == State::handling || state_ == State::sending;
  if (error && answering) {
    // A client may close its own direction and still wait for an answer; but nothing else tells of one that left while its answer
    // is being streamed.
    keep_alive_ = false;
    lose_client();
    if (error != asio::error::eof || writer_) cut();
    return;
  }
  if (error) return cut();
  if (answering) return watch();
  if (state_ == State::draining) return drain();
  if (state_ == State::body) {
    received_ += bytes;
    return read_body();
  }
  if (state_ == State::idle) {
    state_ = State::head;
    await_until(Clock::now() + shared_.options.limits.head_time);
  }
  read_head();
}

void Connection::take_head(std::size_t size) {
  keep_alive_ = false;
  if (const auto error = check_head(std::string_view(input_).substr(0, size))) return refuse(error->status, error->message);
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(shared_.options.limits.header_bytes));
  parser_->body_limit(std::numeric_limits<std::uint64_t>::max());  // until it is known
  parser_->eager(false);
  SystemError error;
  const std::size_t used = parser_->put(asio::buffer(input_.data(), size), error);
  if (error || !parser_->is_header_done() || used != size) return refuse(400, "the request is not HTTP/1.1");
  input_.erase(0, size);

  request_ = std::make_shared<Request>();
  gone_ = std::make_shared<std::atomic<bool>>(false);
  request_->gone = gone_;
  const auto& message = parser_->get();
  request_->method = std::string(message.method_string());
  request_->target = std::string(message.target());
  for (const auto& field : message) request_->headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  if (!split_target(*request_)) return refuse(400, "the path of the request cannot be one of this server's");
  keep_alive_ = message.keep_alive() && !shared_.stopping;
  const auto& names = shared_.options.hosts;
  if (!names.empty() && !host_is_ours(request_->header("host"), names, shared_.port)) {
    return refuse(421, "the request's Host is not the name of this server");
  }
  begin_body();
}

void Connection::begin_body() {
  body_limit_ = shared_.options.limits.body_bytes;
  if (shared_.admit) {
    Admission admission = shared_.admit(*request_);
    if (admission.refused) {
      keep_alive_ = keep_alive_ && parser_->is_done();
      return respond(std::move(*admission.refused));
    }
    body_limit_ = admission.body_bytes.value_or(body_limit_);
  }
  const auto length = parser_->content_length();
  if (length && *length > body_limit_) {
    return refuse(413, fmt::format("the request's body has {} bytes; at most {} are taken here", *length, body_limit_));
  }
  if (!parser_->is_done() && !reserve_body(length ? *length : body_limit_)) {
    return refuse(503, "the server is busy with as many bytes as it can take; try again later");
  }
  parser_->body_limit(body_limit_);
  parser_->eager(true);
  state_ = State::body;
  since_ = Clock::now();
  received_ = input_.size();
  if (!request_->header("expect").empty() && !parser_->is_done() && input_.empty()) {
    static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(socket_, asio::buffer(go_on.data(), go_on.size()),
                      [self = shared_from_this()](SystemError error, std::size_t) {
                        if (error) self->cut();
                      });
  }
  read_body();
}

void Connection::read_body() {
  SystemError error;
  while (!parser_->is_done() && !input_.empty()) {
    const std::size_t used = parser_->put(asio::buffer(input_), error);
    input_.erase(0, used);
    if (error == http::error::need_more) {
      if (input_.size() >= 2 * kReadBytes) return refuse(400, "a chunk of the request's body is not as HTTP/1.1 has it");
      break;
    }
    if (error == http::error::body_limit)
      return refuse(413, fmt::format("the request's body has more than {} bytes", body_limit_));
    if (error) return refuse(400, fmt::format("the request's body is not as HTTP/1.1 has it ({})", error.message()));
    if (used == 0) break;
  }
  if (parser_->is_done()) return dispatch();
  await_until(transfer_deadline(since_, received_));
  read();
}

bool Connection::reserve_body(std::uint64_t bytes) {
  if (bytes > shared_.options.limits.all_bodies_bytes - std::min(shared_.options.limits.all_bodies_bytes, shared_.body_bytes)) {
    return false;
  }
  body_reserved_ = bytes;
  shared_.body_bytes += bytes;
  return true;
}

void Connection::release_body() {
  shared_.body_bytes -= body_reserved_;
  body_reserved_ = 0;
}

// ---- Answering

void Connection::dispatch() {
  request_->body = std::move(parser_->get().body());
  state_ = State::handling;
  ++timer_round_;
  // Connections end on the thread for input and output alone: the handler's hold on this one is let go there.
  const bool taken = shared_.pool->submit([self = shared_from_this(), executor = socket_.get_executor()]() mutable {
    self->run_handler();
    asio::post(executor, [self = std::move(self)] {});
  });
  if (!taken) {
    Response busy = error_response(503, "the server is busy; try again later");
    busy.headers.emplace_back("Retry-After", "1");
    return respond(std::move(busy));
  }
  watch();
}

void Connection::run_handler() {
  Response response;
  try {
    response = shared_.handler(*request_);
    if (!can_be_sent(response)) response = error_response(500, "the answer cannot be put into HTTP");
  } catch (const Error& e) {
    response = error_response(status_of(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    response = error_response(503, "the machine ran out of memory");
  } catch (const std::exception& e) {
    response = error_response(500, e.what());
  }
  const bool streamed = static_cast<bool>(response.stream) && request_->method != "HEAD";
  if (!streamed) {
    asio::post(socket_.get_executor(),
               [self = shared_from_this(), response = std::move(response)]() mutable { self->respond(std::move(response)); });
    return;
  }
  const auto writer = std::make_shared<StreamWriter>(shared_from_this(), gone_, parser_->get().version() >= 11);
  const auto stream = response.stream;
  asio::post(socket_.get_executor(), [self = shared_from_this(), writer, response = std::move(response)]() mutable {
    if (self->state_ == State::closed) return;
    self->writer_ = writer;
    self->start_stream(std::move(response));
  });
  try {
    stream(*writer);
    writer->end(true);
  } catch (...) {  // whatever it is, the client sees that the body is not whole
    writer->end(false);
  }
}

void Connection::watch() {
  if (input_.size() <= shared_.options.limits.header_bytes) read();
}

void Connection::refuse(int status, std::string_view message) {
  keep_alive_ = false;
  respond(error_response(status, message));
}

void Connection::send_head(const Response& response, bool streamed, std::size_t body_size) {
  head_ = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", response.status, reason(response.status), date());
  for (const auto& [name, value] : response.headers) head_ += fmt::format("{}: {}\r\n", name, value);
  const bool old = parser_ && parser_->is_header_done() && parser_->get().version() < 11;
  if (streamed && old) keep_alive_ = false;  // the end of the connection is the end of the body
  if (streamed && !old) head_ += "Transfer-Encoding: chunked\r\n";
  if (!streamed && response.status != 204 && response.status != 304) head_ += fmt::format("Content-Length: {}\r\n", body_size);
  head_ += keep_alive_ ? (old ? "Connection: keep-alive\r\n\r\n" : "\r\n") : "Connection: close\r\n\r\n";
}

void Connection::respond(Response response) {
  if (state_ == State::closed) return;
  state_ = State::sending;
  response_ = std::move(response);
  if (shared_.stopping) keep_alive_ = false;
  const bool no_body = (request_ && request_->method == "HEAD") || response_.status == 204 || response_.status == 304;
  send_head(response_, false, response_.body.size());
  await_until(transfer_deadline(Clock::now(), response_.body.size()));
  const std::array<asio::const_buffer, 2> both{asio::buffer(head_),
                                               no_body ? asio::const_buffer() : asio::buffer(response_.body)};
  asio::async_write(socket_, both, [self = shared_from_this()](SystemError error, std::size_t) {
    if (error || self->state_ == State::closed) return self->cut();
    self->sent();
  });
}

void Connection::sent() {
  if (keep_alive_) return next_request();
  SystemError error;
  socket_.shutdown(Tcp::socket::shutdown_send, error);
  if (error || (parser_ && parser_->is_done() && input_.empty())) return cut();
  // Closing with unread input resets the connection, and the client would lose the answer.
  state_ = State::draining;
  await_until(Clock::now() + kDrainTime);
  drain();
}

void Connection::drain() {
  drained_ += input_.size();
  input_.clear();
  if (drained_ > kDrainBytes) return cut();
  read();
}

void Connection::start_stream(Response response) {
  state_ = State::sending;
  response.stream = nullptr;
  response_ = std::move(response);
  if (shared_.stopping) keep_alive_ = false;
  send_head(response_, true, 0);
  await_until(Clock::now() + shared_.options.limits.transfer_time);
  asio::async_write(socket_, asio::buffer(head_), [self = shared_from_this()](SystemError error, std::size_t) {
    if (error || self->state_ == State::closed) return self->cut();
    self->head_.clear();
    self->pump();
  });
}

void Connection::pump() {
  if (state_ != State::sending || !writer_ || !head_.empty()) return;  // closed, or busy sending
  if (writer_->ended()) {
    const bool whole = writer_->whole();
    writer_.reset();
    if (!whole) return cut();
    return sent();
  }
  head_ = writer_->take();
  if (head_.empty()) {
    ++timer_round_;  // the handler takes its time
    return;
  }
  await_until(transfer_deadline(Clock::now(), head_.size()));
  asio::async_write(socket_, asio::buffer(head_), [self = shared_from_this()](SystemError error, std::size_t) {
    if (error || self->state_ == State::closed) return self->cut();
    self->head_.clear();
    self->pump();
  });
}

}  // namespace sdx::serve
