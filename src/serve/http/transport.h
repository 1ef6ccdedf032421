#pragma once
// Bytes to and from a client, plain or encrypted. For the files of this folder that deal with connections.

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>

namespace sdx::serve {

using Tcp = boost::asio::ip::tcp;
using SystemError = boost::system::error_code;

// Used by one thread. One read and one write may be under way at the same time; buffers, and everything that the callbacks refer
// to, must live until these were called.
class Transport {
 public:
  using Done = std::function<void(SystemError error, std::size_t bytes)>;
  using Buffers = std::array<boost::asio::const_buffer, 2>;

  explicit Transport(Tcp::socket socket) : socket_(std::move(socket)) {}
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual void handshake(Done done) = 0;
  virtual void read_some(boost::asio::mutable_buffer into, Done done) = 0;
  virtual void write(const Buffers& bytes, Done done) = 0;  // all of them
  // Tells the client that nothing follows; its further bytes can still be read. `keep` is held until that is done.
  virtual void end_writing(std::shared_ptr<void> keep) = 0;
  virtual bool needs_handshake() const noexcept = 0;

  void close() {
    SystemError ignored;
    socket_.close(ignored);
  }
  Tcp::socket& socket() noexcept { return socket_; }

 protected:
  Tcp::socket socket_;
};

std::unique_ptr<Transport> plain_transport(Tcp::socket socket);

// Makes transports that encrypt.
class Encryption {
 public:
  virtual ~Encryption() = default;
  virtual std::unique_ptr<Transport> transport(Tcp::socket socket) = 0;
};

}  // namespace sdx::serve
