// Reading requests.

#include "serve/http/connection.h"

#include <algorithm>

#include "base/error.h"
#include "serve/http/access.h"
#include "serve/http/head.h"

namespace sdx::serve {
namespace {

namespace asio = boost::asio;

// The memory of an idle connection, which counts a thousand times over.
constexpr std::size_t kReadBytes = 4 * 1024;
constexpr std::size_t kBodyReadBytes = 64 * 1024;
constexpr std::uint64_t kFirstBodyBytes = 1024 * 1024;  // set aside for a body of which nothing has come yet
// The bytes that a refused client may still send before it is cut: a browser shows an answer only if it could send all of its
// request.
constexpr std::uint64_t kDrainBytes = 1ull << 30;

}  // namespace

Connection::Connection(asio::io_context& io, std::unique_ptr<Transport> transport, Shared& shared, std::function<void()> ended)
    : io_(io), transport_(std::move(transport)), timer_(io), shared_(shared), ended_(std::move(ended)) {
  SystemError error;
  const auto peer = transport_->socket().remote_endpoint(error);
  if (!error) client_ = peer.address().to_string();
}

Connection::~Connection() { ended_(); }

void Connection::start() {
  if (!transport_->needs_handshake()) return next_request();
  await_until(Clock::now() + shared_.options.limits.head_time);
  transport_->handshake([self = shared_from_this()](SystemError error, std::size_t) {
    if (self->state_ == State::closed) return;
    if (error) return self->cut();
    self->next_request();
  });
}

void Connection::finish() {
  keep_alive_ = false;
  if (state_ == State::greeting || state_ == State::idle || state_ == State::draining) cut();
}

std::optional<Clock::time_point> Connection::idle_since() const noexcept {
  if (state_ != State::idle) return std::nullopt;
  return since_;
}

void Connection::cut() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  timer_.cancel();
  transport_->close();
  lose_client();
  report();
  answer_.reset();
  request_.reset();
}

void Connection::lose_client() {
  if (gone_) *gone_ = true;
  if (answer_) answer_->client_gone();
}

// ---- Time

// Most deadlines are met and move on: the timer is set again where one comes sooner, else when it rings.
void Connection::await_until(Clock::time_point when) {
  deadline_ = when;
  if (when < armed_) arm(when);
}

void Connection::arm(Clock::time_point when) {
  armed_ = when;
  timer_.expires_at(when);
  timer_.async_wait([self = shared_from_this()](SystemError error) {
    if (error || self->state_ == State::closed) return;
    self->armed_ = Clock::time_point::max();
    if (Clock::now() >= self->deadline_) {
      self->timed_out();
    } else if (self->deadline_ != Clock::time_point::max()) {
      self->arm(self->deadline_);
    }
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
  chunks_.reset();
  request_.reset();
  gone_.reset();
  answer_.reset();
  streaming_ = false;
  body_read_ = true;
  shape_ = error_response;
  response_ = {};
  scanned_ = 0;
  if (shared_.stopping) return cut();
  state_ = input_.empty() ? State::idle : State::head;
  since_ = Clock::now();
  const Limits& limits = shared_.options.limits;
  await_until(since_ + (input_.empty() ? limits.idle : limits.head_time));
  if (input_.empty()) return read();
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

// At most one read is under way; its data are for the state that the connection has by then.
void Connection::read() {
  if (reading_) return;
  reading_ = true;
  if (state_ == State::body && length_ && input_.empty()) {
    std::string& body = request_->body;
    const auto free = asio::buffer(body.data() + received_, body.size() - static_cast<std::size_t>(received_));
    // The request is held, since the buffer is its body.
    return transport_->read_some(free, [self = shared_from_this(), request = request_](SystemError error, std::size_t n) {
      self->reading_ = false;
      if (self->state_ == State::closed) return;
      if (!error && self->state_ == State::body) {
        self->received_ += n;
        return self->read_body();
      }
      self->arrived(error, n);
    });
  }
  incoming_.resize(state_ == State::body || state_ == State::draining ? kBodyReadBytes : kReadBytes);
  transport_->read_some(asio::buffer(incoming_), [self = shared_from_this()](SystemError error, std::size_t n) {
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
    const bool streamed = streaming_;
    if (error != asio::error::eof || streamed) return cut();
    lose_client();
    return;
  }
  if (error) return cut();
  if (answering) return watch();
  if (state_ == State::draining) return drain();
  if (state_ == State::body) {
    if (!length_) received_ += bytes;
    return read_body();
  }
  if (state_ == State::idle) {
    state_ = State::head;
    since_ = Clock::now();
    await_until(since_ + shared_.options.limits.head_time);
  }
  read_head();
}

void Connection::take_head(std::size_t size) {
  keep_alive_ = false;
  body_read_ = false;
  if (const auto error = check_head(std::string_view(input_).substr(0, size))) return refuse(error->status, error->message);
  make_request(std::string_view(input_).substr(0, size));
  input_.erase(0, size);
  if (!split_target(*request_)) return refuse(400, "the path of the request is not valid");
  const auto& names = shared_.options.hosts;
  if (!names.empty() && !host_is_ours(request_->header("host"), names, shared_.port)) {
    return refuse(421, "the request's Host is not the name of this server");
  }
  begin_body();
}

void Connection::make_request(std::string_view head) {
  request_ = std::make_shared<Request>();
  gone_ = std::make_shared<std::atomic<bool>>(false);
  request_->gone = gone_;
  request_->notes = std::make_shared<Notes>();
  request_->client = client_;
  request_->arrived = Clock::now();
  request_->arrived_at = std::chrono::system_clock::now();
  reported_ = false;
  outcome_ = {};
  const Framing framing = serve::read_head(head, *request_);
  old_ = framing.old;
  length_ = framing.length;
  keep_alive_ = framing.keep_alive && !shared_.stopping;
  if (!length_) chunks_.emplace();
}

void Connection::begin_body() {
  body_limit_ = shared_.options.limits.body_bytes;
  received_ = 0;
  body_read_ = length_ == 0;
  if (shared_.callbacks.admit) {
    Admission admission = shared_.callbacks.admit(*request_);
    shape_ = admission.shape;
    if (admission.refused) {
      keep_alive_ = keep_alive_ && body_read_;
      return respond(std::move(*admission.refused));
    }
    body_limit_ = admission.body_bytes.value_or(body_limit_);
  }
  if (body_read_) return dispatch();
  if (length_ && *length_ > body_limit_) {
    return refuse(413, fmt::format("the request's body has {} bytes; at most {} are accepted here", *length_, body_limit_));
  }
  if (!reserve_body(std::min(length_.value_or(body_limit_), kFirstBodyBytes))) {
    return refuse(503, "the server is busy: its limit for request bodies is reached; try again later");
  }
  state_ = State::body;
  since_ = Clock::now();
  if (!request_->header("expect").empty() && !old_ && input_.empty()) go_on();
  if (!length_) received_ = input_.size();
  read_body();
}

void Connection::go_on() {
  static constexpr std::string_view text = "HTTP/1.1 100 Continue\r\n\r\n";
  writing_ = true;
  transport_->write({asio::buffer(text.data(), text.size())}, [self = shared_from_this()](SystemError error, std::size_t) {
    self->writing_ = false;
    if (error) return self->cut();
    if (self->state_ == State::sending) self->send_pieces();
  });
}

void Connection::read_body() {
  if (!(length_ ? read_plain_body() : read_chunks())) return;
  if (body_read_) return dispatch();
  await_until(transfer_deadline(since_, received_));
  read();
}

// Both are false when the request was refused.
bool Connection::read_plain_body() {
  std::string& body = request_->body;
  if (received_ == body.size() && received_ < *length_) {
    // Memory grows with the received bytes, not with the announced length.
    const std::uint64_t size = std::min(*length_, std::max<std::uint64_t>(kBodyReadBytes, 2 * received_));
    if (!reserve_body(std::min(*length_, std::max(size, kFirstBodyBytes)))) {
      refuse(503, "the server is busy: its limit for request bodies is reached; try again later");
      return false;
    }
    body.resize(static_cast<std::size_t>(size));
  }
  if (!input_.empty()) {
    const std::size_t taken = std::min<std::size_t>(input_.size(), body.size() - static_cast<std::size_t>(received_));
    std::copy_n(input_.data(), taken, body.data() + received_);
    input_.erase(0, taken);
    received_ += taken;
    if (!input_.empty() && received_ < *length_) return read_plain_body();
  }
  body_read_ = received_ == *length_;
  return body_read_ || received_ < body.size() || read_plain_body();
}

bool Connection::read_chunks() {
  std::string& body = request_->body;
  std::string_view rest = input_;
  const Chunks::State state = chunks_->take(rest, body, body_limit_);
  input_.erase(0, input_.size() - rest.size());
  const auto refused = [&](int status, std::string_view message) {
    refuse(status, message);
    return false;
  };
  if (state == Chunks::State::too_large) {
    return refused(413, fmt::format("the request's body has more than {} bytes", body_limit_));
  }
  body_read_ = state == Chunks::State::done;
  const bool endless = !body_read_ && input_.size() >= shared_.options.limits.header_bytes;
  if (state == Chunks::State::broken || endless) return refused(400, "a chunk of the request's body is malformed");
  // A chunk of one byte takes six bytes; a longer form hides something, or is meant to keep the server busy.
  if (received_ > 16 * body.size() + 64 * 1024) {
    return refused(400, "the chunks of the request's body have more overhead than data");
  }
  if (!reserve_body(body.size()))
    return refused(503, "the server is busy: its limit for request bodies is reached; try again later");
  return true;
}

bool Connection::reserve_body(std::uint64_t bytes) {
  if (!body_share_) {
    body_share_ = std::make_shared<BodyShare>(shared_.body_bytes, shared_.options.limits.all_bodies_bytes);
    request_->body_held = body_share_;
  }
  return body_share_->grow(bytes);
}

// Reads while the request is answered: the client may send its next requests, or close.
void Connection::watch() {
  if (input_.size() <= shared_.options.limits.header_bytes) read();
}

void Connection::drain() {
  drained_ += input_.size();
  input_.clear();
  if (drained_ > kDrainBytes) return cut();
  read();
}

}  // namespace sdx::serve
