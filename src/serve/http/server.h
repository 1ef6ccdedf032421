#pragma once
// A small HTTP/1.1 server: keep-alive, pipelining, chunked requests, streamed responses. One thread does all reading and writing;
// handlers run on a pool of their own. What it does not do: TLS, compression, files.
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
  int connections = 64;                            // more wait in the system's queue
  int threads = 4;                                 // that run handlers
  int waiting = 64;                                // requests that wait for such a thread; beyond: 503
  std::chrono::milliseconds idle{30000};           // between two requests of a connection
  std::chrono::milliseconds head_time{10000};      // from the first byte of a head to its last
  std::chrono::milliseconds transfer_time{30000};  // for a body, either way, plus what least_rate gives
  std::uint64_t least_rate = 16 * 1024;            // bytes a second that a slow client must reach in the long run
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: a free one
  // Names that clients may use in Host, without port ("127.0.0.1", "localhost"); others get 421. Empty: any.
  std::vector<std::string> hosts;
  Limits limits;
};

// Runs on a thread of the pool. sdx::Error becomes an error response by its code (invalid_argument: 400, out_of_memory: 413 …),
// any other exception 500.
using Handler = std::function<Response(const Request&)>;

struct Admission {
  std::optional<Response> refused;          // answered at once; the body is not read
  std::optional<std::uint64_t> body_bytes;  // the most that the body may have
};
// Called with a request whose body has not been read yet, on the thread that reads and writes: it must be quick.
using Admit = std::function<Admission(const Request&)>;

class Server {
 public:
  // Listens when it returns. Throws Error(io) when the address cannot be had.
  Server(ServerOptions options, Handler handler, Admit admit = {});
  // stop(), with no time for requests under way.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const noexcept;

  // Takes no more connections, lets requests under way end for `grace`, then cuts them; returns when no handler runs. Handlers
  // whose client was cut see Request::gone. May be called more than once, by any thread but a handler's.
  void stop(std::chrono::milliseconds grace = std::chrono::milliseconds(2000));

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdx::serve
