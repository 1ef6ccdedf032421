#pragma once
// One client's connection. Everything here runs on one of the server's threads for input and output, always the same, but where
// it says otherwise. For connection.cc, answering.cc and server.cc alone: Boost takes seconds to compile.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/http/body_share.h"
#include "serve/http/chunks.h"
#include "serve/http/handler_pool.h"
#include "serve/http/responder.h"
#include "serve/http/server.h"
#include "serve/http/transport.h"

namespace sdx::serve {

using Clock = std::chrono::steady_clock;

// State that connections share with their server.
struct Shared {
  ServerOptions options;
  ServerCallbacks callbacks;
  std::uint16_t port = 0;
  // The bytes of requests being read or answered, some of which outlive their connections.
  std::shared_ptr<std::atomic<std::uint64_t>> body_bytes = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::atomic<bool> stopping{false};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::io_context& io, std::unique_ptr<Transport> transport, Shared& shared, std::function<void()> ended);
  ~Connection();
  void start();
  // No further request; closes at once when none is under way.
  void finish();
  // Closes at once, even with a request under way.
  void cut();
  // Since when it waits for a request; nothing where one is under way.
  std::optional<Clock::time_point> idle_since() const noexcept;

  // Called by the answer under way.
  void respond(Response response);
  void start_stream(Response response);
  void pump();  // sends what the stream has
  boost::asio::io_context& io() noexcept { return io_; }

 private:
  void next_request();
  void read();
  void arrived(SystemError error, std::size_t bytes);
  void read_head();
  void take_head(std::size_t size);
  void make_request(std::string_view head);
  void begin_body();
  void go_on();
  void read_body();
  bool read_plain_body();
  bool read_chunks();
  void dispatch();
  void watch();  // notices a client that goes while its request is being answered

  void refuse(int status, std::string_view message);
  void make_head(const Response& response, bool streamed, std::size_t body_size);
  void send_pieces();
  void sent();
  void drain();
  void report();

  void await_until(Clock::time_point when);
  void await_nothing() { deadline_ = Clock::time_point::max(); }
  void arm(Clock::time_point when);
  void timed_out();
  Clock::time_point transfer_deadline(Clock::time_point start, std::uint64_t bytes) const;
  bool reserve_body(std::uint64_t bytes);
  void lose_client();

  boost::asio::io_context& io_;
  std::unique_ptr<Transport> transport_;
  boost::asio::steady_timer timer_;
  Clock::time_point deadline_ = Clock::time_point::max(), armed_ = Clock::time_point::max();
  Shared& shared_;
  std::function<void()> ended_;
  std::string client_;

  enum class State { greeting, idle, head, body, handling, sending, draining, closed } state_ = State::greeting;
  std::vector<char> incoming_;
  std::string input_;  // read, not parsed yet
  std::size_t scanned_ = 0;
  bool reading_ = false;
  bool keep_alive_ = false;
  bool old_ = false;        // HTTP/1.0
  bool body_read_ = false;  // nothing of the request is left to read
  std::optional<Chunks> chunks_;
  std::optional<std::uint64_t> length_;  // of the body; nothing: in chunks
  RequestPtr request_;
  ErrorShape shape_ = error_response;
  std::shared_ptr<std::atomic<bool>> gone_;
  std::shared_ptr<BodyShare> body_share_;  // the request's, while nothing was reported of it
  std::uint64_t body_limit_ = 0, received_ = 0, drained_ = 0;
  Clock::time_point since_;
  std::string head_;
  Response response_;
  std::shared_ptr<Answer> answer_;
  bool streaming_ = false, writing_ = false, reported_ = true;
  Outcome outcome_;
};

}  // namespace sdx::serve
