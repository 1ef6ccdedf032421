// A connection of the HTTP server: the first byte says in which pieces the rest arrives. What comes back must be answers, one for
// each request that was let through, and one at most for what was not.

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <cstdlib>

#include "serve/http/connection.h"
#include "serve/monitor/trace.h"
#include "serve/server/keys.h"

namespace {

namespace asio = boost::asio;
using namespace sdx::serve;

class Memory : public Transport {
 public:
  Memory(asio::io_context& io, std::string_view input, std::size_t piece, std::string& output)
      : Transport(Tcp::socket(io)), io_(io), input_(input), piece_(piece), output_(output) {}

  void handshake(Done done) override { done({}, 0); }
  void read_some(asio::mutable_buffer into, Done done) override {
    const std::size_t n = asio::buffer_copy(into, asio::buffer(input_.data(), std::min(piece_, input_.size())));
    input_.remove_prefix(n);
    const SystemError error = n == 0 && into.size() > 0 ? SystemError(asio::error::eof) : SystemError();
    asio::post(io_, [done = std::move(done), error, n] { done(error, n); });
  }
  void write(const Buffers& bytes, Done done) override {
    std::size_t n = 0;
    for (const auto& part : bytes) {
      output_.append(static_cast<const char*>(part.data()), part.size());
      n += part.size();
    }
    asio::post(io_, [done = std::move(done), n] { done({}, n); });
  }
  void end_writing(std::shared_ptr<void>) override {}
  bool needs_handshake() const noexcept override { return false; }

 private:
  asio::io_context& io_;
  std::string_view input_;
  std::size_t piece_;
  std::string& output_;
};

void answer(const RequestPtr& request, const ResponderPtr& responder) {
  if (request->path.front() != '/' || request->path.find("/../") != std::string::npos) std::abort();
  if (request->path == "/stream") {
    responder->start({});
    responder->write("piece");
    return responder->end();
  }
  if (request->path == "/lost") return;
  responder->respond(json_response("{}"));
}

void talk(std::string_view input, std::size_t piece) {
  asio::io_context io{1};
  std::string output;
  std::size_t dispatched = 0;
  Shared shared;
  shared.options.limits.header_bytes = 1024;
  shared.options.limits.body_bytes = 2048;
  shared.service.entry = [&](const RequestPtr& request, const ResponderPtr& responder) {
    ++dispatched;
    if (request->body.size() > shared.options.limits.body_bytes) std::abort();
    answer(request, responder);
  };
  {
    auto transport = std::make_unique<Memory>(io, input, piece, output);
    const auto connection = std::make_shared<Connection>(io, std::move(transport), shared, [] {});
    connection->start();
    io.poll();
    connection->cut();
  }
  io.restart();
  io.poll();
  if (shared.body_bytes != 0) std::abort();
  std::size_t answers = 0;
  for (std::size_t at = output.find("HTTP/1.1 "); at != std::string::npos; at = output.find("HTTP/1.1 ", at + 1)) {
    const char digit = at + 9 < output.size() ? output[at + 9] : '0';
    answers += digit >= '2' && digit <= '5';  // not "100 Continue", nor what messages say of HTTP/1.1
  }
  if (!output.empty() && !output.starts_with("HTTP/1.1 ")) std::abort();
  if (answers > dispatched + 1 || answers + 1 < dispatched) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  talk(text, 1 + data[0] % 64U * (data[0] / 64U + 1));
  static_cast<void>(sdx::serve::parse_traceparent(text));
  try {
    sdx::serve::parse_keys(text, "keys");
  } catch (const sdx::Error&) {  // files of keys may be refused
  }
  return 0;
}
