#pragma once
// Connects a handler's threads with a connection.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "serve/http/message.h"

namespace sdx::serve {

class Connection;

// The state of one answer. Thread-safe.
struct Answer {
  std::mutex mutex;
  std::string unsent;             // pieces of a stream, as they go out
  std::function<void()> on_gone;  // called once, by the thread that takes it out
  std::shared_ptr<std::atomic<bool>> gone;
  std::shared_ptr<void> held;  // of the request: a client that goes must not make room for the next while its work goes on
  std::size_t most_unsent = 0;
  bool chunked = true, head_only = false;
  bool answered = false;  // respond() or start() was called
  bool ended = false, whole = false;
  bool woken = false;  // the connection has been told, and has not come yet

  void client_gone();
};

// A Responder for the request that `connection` has read.
ResponderPtr make_responder(std::shared_ptr<Connection> connection, std::shared_ptr<Answer> answer);

}  // namespace sdx::serve
