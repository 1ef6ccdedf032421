#pragma once
// The client's side of one answer: a whole, or a stream of events that begins when the request is accepted.

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

#include "serve/http/message.h"
#include "serve/openai/error.h"

namespace sdx::serve::openai {

// How an interface writes what every answer may need.
struct ReplyForm {
  std::string_view content_type;  // of a stream
  std::string_view heartbeat;     // sent into a stream that is silent; "": nothing, since clients would take it for an event
  std::string (*error_event)(const ApiError& error);  // ends a stream
  Response (*error)(const ApiError& error);
};
const ReplyForm& openai_form();

// Thread-safe; nothing waits for the client.
class Reply {
 public:
  Reply(ResponderPtr responder, bool stream, const ReplyForm& form = openai_form())
      : form_(form), responder_(std::move(responder)), stream_(stream) {}

  // Starts the stream of events: sends `first`, then the events from before this call. Until then an error is a status of its
  // own.
  void open(std::string_view first);
  // Sends events of a stream. False: the client no longer reads them.
  bool send(std::string_view events);
  // The last events of a stream, or the whole answer.
  void finish(std::string last);
  // Instead of either: a status, or in a stream that has begun an event that clients take for an error. Counts if nothing ended
  // the answer before. `event`: in place of the form's.
  void fail(const ApiError& error, std::string_view event = {});
  // Lets go of the connection; finish() or fail() came before.
  void let_go();
  // Called at intervals: sends a comment, which clients skip, if nothing was sent for that long.
  void beat(std::chrono::steady_clock::duration silence);

 private:
  bool write(std::string_view bytes);

  const ReplyForm& form_;
  std::mutex mutex_;
  ResponderPtr responder_;  // guarded by `mutex_`, as all that follows
  const bool stream_;
  bool open_ = false, over_ = false, whole_ = false;
  std::string waiting_;  // events before open()
  std::chrono::steady_clock::time_point written_;
};

}  // namespace sdx::serve::openai
