#pragma once
// Requests and responses as plain values: nothing here knows of sockets.

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdx::serve {

// In the order in which they came; names are compared without regard to case.
using Headers = std::vector<std::pair<std::string, std::string>>;

// The first of that name; empty when there is none.
std::string_view header(const Headers& headers, std::string_view name);

struct Request {
  std::string method;  // "GET", as sent
  std::string target;  // "/a%20b?c=d", as sent
  std::string path;    // "/a b": decoded; begins with '/', has no "." or ".." part, no empty part but the last, no zero byte
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in order
  Headers headers;
  std::string body;

  // Set when the client has gone: long work may end early. Never null.
  std::shared_ptr<const std::atomic<bool>> gone;

  std::string_view header(std::string_view name) const { return serve::header(headers, name); }
  // The first value of that name in the query; empty when there is none.
  std::string_view parameter(std::string_view name) const;
};

// Takes what a streamed response consists of. Used by the thread that runs Response::stream alone.
class BodyWriter {
 public:
  virtual ~BodyWriter() = default;
  // Sends the bytes, and waits while much is still unsent. False once the client has gone: nothing that follows will arrive.
  virtual bool write(std::string_view bytes) = 0;
  // True once the client has gone, at the latest when it has been noticed that its end of the connection is closed.
  virtual bool gone() const = 0;
};

struct Response {
  int status = 200;
  Headers headers;  // without Content-Length, Transfer-Encoding, Connection and Date, which the server adds
  std::string body;
  // When set, `body` is ignored and this writes the body piece by piece, on a thread of the server. An exception cuts the
  // connection, so that the client sees that the body is not whole.
  std::function<void(BodyWriter&)> stream;
};

// "Not Found"
std::string_view reason(int status);

// `{"error": {"code": 404, "message": "…"}}`.
Response error_response(int status, std::string_view message);
Response json_response(std::string json, int status = 200);

}  // namespace sdx::serve
