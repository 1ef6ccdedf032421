#include "serve/http/responder.h"

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "base/error.h"
#include "serve/http/connection.h"

namespace sdx::serve {
namespace {

namespace asio = boost::asio;

bool can_be_sent(const Response& response) {
  const auto plain = [](const std::string& text) {
    return std::none_of(text.begin(), text.end(), [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
  };
  return response.status >= 200 && response.status <= 599 &&
         std::all_of(response.headers.begin(), response.headers.end(),
                     [&](const auto& h) { return !h.first.empty() && plain(h.first) && plain(h.second); });
}

class ConnectionResponder : public Responder {
 public:
  ConnectionResponder(std::shared_ptr<Connection> connection, std::shared_ptr<Answer> answer)
      : io_(connection->io()), work_(io_.get_executor()), connection_(std::move(connection)), answer_(std::move(answer)) {}

  ~ConnectionResponder() override {
    bool answered = false, ended = false;
    {
      const std::lock_guard lock(answer_->mutex);
      answered = answer_->answered;
      ended = answer_->ended;
      answer_->on_gone = nullptr;
    }
    if (!answered) ConnectionResponder::respond(error_response(500, "the request was not answered"));
    if (answered && !ended) ConnectionResponder::cut();
    // Connections end on the thread for input and output alone.
    asio::post(io_, [connection = std::move(connection_)] {});
  }
  ConnectionResponder(const ConnectionResponder&) = delete;
  ConnectionResponder& operator=(const ConnectionResponder&) = delete;

  void respond(Response response) override;
  void start(Response head) override;
  bool write(std::string_view bytes) override;
  void end() override { finish(true); }
  void cut() override { finish(false); }
  bool gone() const override { return *answer_->gone; }
  void on_gone(std::function<void()> call) override;

 private:
  bool claim();
  void finish(bool whole);
  void wake();  // answer_->mutex is held

  asio::io_context& io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Answer> answer_;
};

bool ConnectionResponder::claim() {
  const std::lock_guard lock(answer_->mutex);
  return !std::exchange(answer_->answered, true);
}

void ConnectionResponder::respond(Response response) {
  if (!claim()) return;
  if (!can_be_sent(response)) response = error_response(500, "the answer cannot be sent as HTTP");
  std::function<void()> unused;
  {
    const std::lock_guard lock(answer_->mutex);
    answer_->ended = true;
    unused.swap(answer_->on_gone);
  }
  asio::dispatch(
      io_, [connection = connection_, response = std::move(response)]() mutable { connection->respond(std::move(response)); });
}

void ConnectionResponder::start(Response head) {
  if (!claim()) return;
  if (!can_be_sent(head)) {
    head = error_response(500, "the answer cannot be sent as HTTP");
    head.body.clear();
  }
  const std::string first = std::move(head.body);
  head.body.clear();
  asio::dispatch(io_,
                 [connection = connection_, head = std::move(head)]() mutable { connection->start_stream(std::move(head)); });
  if (!first.empty()) write(first);
}

bool ConnectionResponder::write(std::string_view bytes) {
  bool slow = false;
  {
    const std::lock_guard lock(answer_->mutex);
    if (*answer_->gone || answer_->ended) return false;
    if (bytes.empty() || answer_->head_only) return true;
    slow = answer_->unsent.size() > answer_->most_unsent;
    if (!slow) {
      if (answer_->chunked) fmt::format_to(std::back_inserter(answer_->unsent), "{:x}\r\n", bytes.size());
      answer_->unsent += bytes;
      if (answer_->chunked) answer_->unsent += "\r\n";
      wake();
    }
  }
  if (slow) asio::post(io_, [connection = connection_] { connection->cut(); });
  return !slow;
}

void ConnectionResponder::finish(bool whole) {
  std::function<void()> unused;
  const std::lock_guard lock(answer_->mutex);
  if (answer_->ended || !answer_->answered) return;
  if (whole && answer_->chunked && !answer_->head_only) answer_->unsent += "0\r\n\r\n";
  answer_->ended = true;
  answer_->whole = whole;
  unused.swap(answer_->on_gone);
  wake();
}

void ConnectionResponder::on_gone(std::function<void()> call) {
  {
    const std::lock_guard lock(answer_->mutex);
    if (answer_->ended) return;
    if (!*answer_->gone) {
      answer_->on_gone = std::move(call);
      return;
    }
  }
  call();
}

void ConnectionResponder::wake() {
  if (std::exchange(answer_->woken, true)) return;
  asio::post(io_, [connection = connection_] { connection->pump(); });
}

}  // namespace

void Answer::client_gone() {
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex);
    *gone = true;
    call.swap(on_gone);
  }
  if (call) call();
}

ResponderPtr make_responder(std::shared_ptr<Connection> connection, std::shared_ptr<Answer> answer) {
  return std::make_shared<ConnectionResponder>(std::move(connection), std::move(answer));
}

void answer_with(const Handler& handler, const Request& request, Responder& responder, ErrorShape shape) {
  Response response;
  try {
    response = handler(request);
  } catch (const Error& e) {
    response = shape(status_of(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    response = shape(503, "the machine ran out of memory");
  } catch (const std::exception& e) {
    response = shape(500, e.what());
  } catch (...) {
    response = shape(500, "the request failed");
  }
  responder.respond(std::move(response));
}

}  // namespace sdx::serve
