#pragma once
// An HTTP/1.1 server: keep-alive, pipelining, chunked requests, streamed responses, TLS. A few threads do all reading and
// writing, each for its own connections; handlers run on a pool of their own, or answer later (Responder). What it does not do:
// compressing answers, files, HTTP/2. Compressed bodies: content_encoding.h.
//
//   serve::Server server({.port = 8080}, [](const serve::Request& request) { return serve::json_response("{}"); });
//   …
//   server.stop();

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/http/message.h"

namespace sdx::serve {

struct Limits {
  std::size_t header_bytes = 16 * 1024;            // the request line and all header fields
  std::uint64_t body_bytes = 1024 * 1024;          // of routes for which Admit says nothing else
  std::uint64_t all_bodies_bytes = 1024ull << 20;  // of all requests that are being read or answered
  std::size_t unsent_bytes = 1024 * 1024;          // of a streamed answer, waiting for its client; beyond, the client is cut
  int connections = 64;                            // beyond, the one that is idle longest goes; where none is, more wait
  int io_threads = 1;                              // that read and write
  int threads = 4;                                 // that run handlers
  int waiting = 64;                                // requests that wait for such a thread; beyond: 503
  std::chrono::milliseconds idle{30000};           // between two requests of a connection
  std::chrono::milliseconds head_time{10000};      // from the first byte of a head to its last; of TLS, the handshake
  std::chrono::milliseconds transfer_time{30000};  // for a body, either way, plus what least_rate gives
  std::uint64_t least_rate = 16 * 1024;            // bytes a second that a slow client must reach in the long run
};

class Encryption;  // serve/http/tls.h

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: a free one
  int listening = -1;      // a socket that listens already and becomes the server's; then address and port say nothing
  // Names that clients may use in Host, without port ("127.0.0.1", "localhost"); others get 421. Empty: any.
  std::vector<std::string> hosts;
  Limits limits;
  std::shared_ptr<Encryption> encryption;  // null: none
};

// Runs on a thread of the pool. sdx::Error becomes an error response by its code (invalid_argument: 400, out_of_memory: 413 …),
// any other exception 500.
using Handler = std::function<Response(const Request&)>;
// Called by the thread that reads and writes: must hand the request on, or answer in microseconds. Must not throw.
using Entry = std::function<void(RequestPtr request, ResponderPtr responder)>;

struct Admission {
  std::optional<Response> refused;          // answered at once; the body is not read
  std::optional<std::uint64_t> body_bytes;  // the most that the body may have
  ErrorShape shape = error_response;        // of what the server itself refuses from here on
};
// Called with a request whose body has not been read yet, on the thread that reads and writes: it must be quick.
using Admit = std::function<Admission(Request&)>;

// The end of an exchange.
struct Outcome {
  int status = 0;                             // 0: cut before an answer
  bool whole = false;                         // all of the answer was handed to the system
  std::uint64_t received = 0, sent = 0;       // bytes of bodies
  std::chrono::nanoseconds to_first_byte{0};  // from the head of the request to the head of the answer
  std::chrono::nanoseconds duration{0};       // to the end of the answer
};

// All are called by the threads that read and write, so that they must be quick, and do not throw.
struct ServerCallbacks {
  Entry entry;
  Admit admit;                                                // may be empty
  std::function<void(const Request&, Response&)> decorate;    // adds header fields before an answer is sent; may be empty
  std::function<void(const Request&, const Outcome&)> ended;  // once for every request whose head was whole; may be empty
};

class Server {
 public:
  // Listens when it returns. Throws Error(io) when the address cannot be had.
  Server(ServerOptions options, Handler handler, Admit admit = {});
  Server(ServerOptions options, ServerCallbacks callbacks);
  // stop(), with no time for requests under way.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const noexcept;
  int connections() const noexcept;  // open ones

  // Takes no more connections, lets requests under way end for `grace`, then cuts them; returns when no handler runs and no
  // Responder is held. Handlers whose client was cut see Request::gone. May be called more than once, by any thread but a
  // handler's.
  void stop(std::chrono::milliseconds grace = std::chrono::milliseconds(2000));

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Answers with the result of `handler`, or with its exception.
void answer_with(const Handler& handler, const Request& request, Responder& responder, ErrorShape shape = error_response);

}  // namespace sdx::serve
