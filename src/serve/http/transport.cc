#include "serve/http/transport.h"

#include <boost/asio/write.hpp>

namespace sdx::serve {
namespace {

namespace asio = boost::asio;

class PlainTransport : public Transport {
 public:
  using Transport::Transport;
  void handshake(Done done) override { done({}, 0); }
  void read_some(asio::mutable_buffer into, Done done) override { socket_.async_read_some(into, std::move(done)); }
  void write(const Buffers& bytes, Done done) override { asio::async_write(socket_, bytes, std::move(done)); }
  void end_writing(std::shared_ptr<void>) override {
    SystemError ignored;
    socket_.shutdown(Tcp::socket::shutdown_send, ignored);
  }
  bool needs_handshake() const noexcept override { return false; }
};

}  // namespace

std::unique_ptr<Transport> plain_transport(Tcp::socket socket) { return std::make_unique<PlainTransport>(std::move(socket)); }

}  // namespace sdx::serve
