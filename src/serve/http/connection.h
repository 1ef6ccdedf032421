#pragma once
// One client's connection. Everything here runs on the server's one thread for input and output, but where it says otherwise.
// For connection.cc and server.cc alone: Boost takes seconds to compile.

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "serve/http/handler_pool.h"
#include "serve/http/server.h"

namespace sdx::serve {

using Clock = std::chrono::steady_clock;
using Tcp = boost::asio::ip::tcp;
using SystemError = boost::system::error_code;

// What connections share with their server.
struct Shared {
  ServerOptions options;
  Handler handler;
  Admit admit;
  std::uint16_t port = 0;
  std::uint64_t body_bytes = 0;  // of requests being read or answered, as far as they announced it
  bool stopping = false;
  HandlerPool* pool = nullptr;
};

class StreamWriter;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Tcp::socket socket, Shared& shared, std::function<void()> ended);
  ~Connection();
  void start() { next_request(); }
  // No further request; closes at once when none is under way.
  void finish();
  // Closes now, whatever is under way.
  void cut();

 private:
  friend class StreamWriter;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void next_request();
  void read();
  void arrived(SystemError error, std::size_t bytes);
  void read_head();
  void take_head(std::size_t size);
  void begin_body();
  void read_body();
  void dispatch();
  void run_handler();  // on a thread of the pool
  void watch();        // notices a client that goes while its request is being answered

  void refuse(int status, std::string_view message);
  void respond(Response response);
  void send_head(const Response& response, bool streamed, std::size_t body_size);
  void sent();
  void start_stream(Response response);
  void pump();
  void drain();

  void await_until(Clock::time_point when);
  void timed_out();
  Clock::time_point transfer_deadline(Clock::time_point start, std::uint64_t bytes) const;
  bool reserve_body(std::uint64_t bytes);
  void release_body();
  void lose_client();

  Tcp::socket socket_;
  boost::asio::steady_timer timer_;
  std::uint64_t timer_round_ = 0;
  Shared& shared_;
  std::function<void()> ended_;

  enum class State { idle, head, body, handling, sending, draining, closed } state_ = State::idle;
  std::vector<char> incoming_;
  std::string input_;  // read, not parsed yet
  std::size_t scanned_ = 0;
  bool reading_ = false;
  bool keep_alive_ = false;
  std::optional<Parser> parser_;
  std::shared_ptr<Request> request_;
  std::shared_ptr<std::atomic<bool>> gone_;
  std::uint64_t body_limit_ = 0, body_reserved_ = 0, received_ = 0, drained_ = 0;
  Clock::time_point since_;
  std::string head_;
  Response response_;
  std::shared_ptr<StreamWriter> writer_;
};

}  // namespace sdx::serve
