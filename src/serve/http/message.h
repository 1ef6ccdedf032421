#pragma once
// Requests and responses as plain values: nothing here knows of sockets.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/error.hpp>

namespace sdx::serve {

// Fields in the order of arrival; names are compared without regard to case.
using Headers = std::vector<std::pair<std::string, std::string>>;

// The first of that name; empty when there is none.
std::string_view header(const Headers& headers, std::string_view name);

// Notes for a request's log line and trace, beyond its head. Thread-safe.
class Notes {
 public:
  using Clock = std::chrono::steady_clock;
  // A part of the work, for a trace.
  struct Stage {
    const char* name;  // of the program's own text
    Clock::time_point begin, end;
  };
  struct Values {
    std::string model;                                  // as the request named it
    std::string prompt;                                 // logged where the user wants it alone
    std::string ignored;                                // names of the request's fields without effect, fit for a header
    std::int64_t prompt_tokens = 0, answer_tokens = 0;  // 0: not a matter of tokens
    std::vector<Stage> stages;                          // 32 at most
  };
  Notes& set_model(std::string_view model);
  void set_prompt(std::string_view prompt);
  Notes& set_ignored(std::string_view names);
  std::string ignored() const;
  void set_tokens(std::int64_t prompt, std::int64_t answer);
  // True if prompts are logged; otherwise they need not be assembled.
  bool wants_prompt() const noexcept { return wants_prompt_; }
  void want_prompt() noexcept { wants_prompt_ = true; }
  // Nothing happens where the request is not traced.
  void add_stage(const char* name, Clock::time_point begin, Clock::time_point end);
  // Adds the stages "prompt", from submission to the first token, and "decode", from there until this call.
  void add_generation(Clock::time_point submitted, double first_token_ms);
  void want_stages() noexcept { wants_stages_ = true; }
  Values values() const;

 private:
  mutable std::mutex mutex_;
  Values values_;
  std::atomic<bool> wants_prompt_{false}, wants_stages_{false};
};

// A stage from here to its end. `notes` may be null, and must outlive it.
class StageTimer {
 public:
  StageTimer(Notes* notes, const char* name) : notes_(notes), name_(name) {}
  ~StageTimer() {
    if (notes_ != nullptr) notes_->add_stage(name_, begin_, Notes::Clock::now());
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  Notes* const notes_;
  const char* const name_;
  const Notes::Clock::time_point begin_ = Notes::Clock::now();
};

struct RouterEntry;
class BodyShare;  // serve/http/body_share.h

struct Request {
  std::string method;  // "GET", as sent
  std::string target;  // "/a%20b?c=d", as sent
  std::string path;    // "/a b": decoded; begins with '/', has no "." or ".." part, no empty part but the last, no zero byte
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
  Headers headers;
  std::string body;

  // Set when the client has disconnected: long work may end early. Never null.
  std::shared_ptr<const std::atomic<bool>> gone;

  std::string client;  // its address: "127.0.0.1"
  std::chrono::steady_clock::time_point arrived;
  std::chrono::system_clock::time_point arrived_at;
  std::shared_ptr<Notes> notes;  // never null

  // Results of a Router and a guard; empty if there are none.
  const RouterEntry* matched = nullptr;
  std::string route;                                       // the pattern: "/v2/models/{model}/infer"
  std::vector<std::pair<std::string, std::string>> parts;  // {model} of the pattern and so on
  std::string id;                                          // X-Request-Id, as the client sent it or made up
  std::string key;                                         // the name of the key that it came with
  std::string traceparent, tracestate;  // of this request's own span (W3C Trace Context), for calls made on its behalf
  // Released when the request has been answered or, if its client disconnected before, when no work on it is left.
  std::shared_ptr<void> held;
  std::shared_ptr<BodyShare> body_held;  // the body's share of Limits::all_bodies_bytes; so too

  std::string_view part(std::string_view name) const;  // empty when there is none
  std::string_view header(std::string_view name) const { return serve::header(headers, name); }
  // The first value of that name in the query; empty when there is none.
  std::string_view parameter(std::string_view name) const;
};

struct Response {
  int status = 200;
  Headers headers;  // without Content-Length, Transfer-Encoding, Connection and Date, which the server adds
  std::string body;
};

using RequestPtr = std::shared_ptr<Request>;

// The answer to one request, given at once or later, by any thread. Thread-safe; no function waits. The server cannot end while a
// Responder is held: release it after the answer has ended, and soon after on_gone. A request whose Responder is released without
// an answer gets status 500; a stream that has not ended is cut.
class Responder {
 public:
  virtual ~Responder() = default;
  // Sends the whole answer and ends it. Only the first call counts; later ones are ignored.
  virtual void respond(Response response) = 0;

  // Or piece by piece: status and header fields (`body`, if any, is the first piece) …
  virtual void start(Response head) = 0;
  // … pieces, which are sent together where they come faster than they go. False once the client has disconnected, also because
  // more than Limits::unsent_bytes wait for a client that does not read: nothing that follows will arrive.
  virtual bool write(std::string_view bytes) = 0;
  virtual void end() = 0;  // the body is whole
  virtual void cut() = 0;  // it is not: the connection is cut, so that the client sees it

  virtual bool gone() const = 0;
  // Called once if the client goes before the answer has ended (at once if it has gone already): by the thread that reads and
  // writes, so it must be quick. Let go of when the answer has ended.
  virtual void on_gone(std::function<void()> call) = 0;
};
using ResponderPtr = std::shared_ptr<Responder>;

// "Not Found"
std::string_view reason(int status);

// The body `{"error": {"code": 404, "message": "…"}}`.
Response error_response(int status, std::string_view message);
Response json_response(std::string json, int status = 200);
// The error in OpenAI's form: `{"error": {"message": "…", "type": "invalid_request_error", "param": null, "code": "…"}}`. Empty
// `type`: the one for the status; empty `code`: null.
Response api_error(int status, std::string_view message, std::string_view type = {}, std::string_view code = {},
                   std::string_view param = {});
// The form in which a route reports errors; api_error with its first two arguments is one.
using ErrorShape = Response (*)(int status, std::string_view message);
Response api_error_shape(int status, std::string_view message);

// The status that an error of this code means to a client.
int status_of(ErrorCode code);

}  // namespace sdx::serve
