#include "serve/http/server.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <list>

#include "base/error.h"
#include "base/log.h"
#include "serve/http/connection.h"

namespace sdx::serve {
namespace asio = boost::asio;

struct Server::Impl {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> busy{io.get_executor()};
  Tcp::acceptor acceptor{io};
  asio::steady_timer pause{io};
  Shared shared;
  std::list<std::weak_ptr<Connection>> connections;
  int open = 0;
  bool accepting = false;
  std::mutex stopping;
  std::unique_ptr<HandlerPool> pool;
  std::thread thread;

  void listen();
  void run();
  void accept();
  void accepted(SystemError error, Tcp::socket socket);
  void ended();
  void finish_all(std::chrono::milliseconds grace);
};

void Server::Impl::listen() {
  SystemError error;
  const auto address = asio::ip::make_address(shared.options.address, error);
  const Tcp::endpoint wanted(address, shared.options.port);
  if (!error) acceptor.open(wanted.protocol(), error);
  if (!error) acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(wanted, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    fail(ErrorCode::io, "cannot listen on {} port {}: {}; name another port, or 0 for a free one", shared.options.address,
         shared.options.port, error.message());
  }
  shared.port = acceptor.local_endpoint().port();
}

void Server::Impl::run() {
  while (true) {
    try {
      io.run();
      return;
    } catch (const std::exception& e) {  // out of memory: the connection concerned is gone, the others go on
      log::warning("a connection was dropped: {}", e.what());
    }
  }
}

void Server::Impl::accept() {
  if (accepting || shared.stopping || open >= shared.options.limits.connections) return;
  accepting = true;
  acceptor.async_accept([this](SystemError error, Tcp::socket socket) {
    accepting = false;
    accepted(error, std::move(socket));
  });
}

void Server::Impl::accepted(SystemError error, Tcp::socket socket) {
  if (shared.stopping) return;
  if (error) {
    // Out of file descriptors, most likely: trying again at once would keep a core busy.
    pause.expires_after(std::chrono::milliseconds(100));
    pause.async_wait([this](SystemError) { accept(); });
    return;
  }
  SystemError ignored;
  socket.set_option(Tcp::no_delay(true), ignored);
  ++open;
  connections.remove_if([](const auto& c) { return c.expired(); });
  const auto connection = std::make_shared<Connection>(std::move(socket), shared, [this] { ended(); });
  connections.push_back(connection);
  connection->start();
  accept();
}

void Server::Impl::ended() {
  --open;
  if (shared.stopping && open == 0) pause.cancel();
  accept();
}

void Server::Impl::finish_all(std::chrono::milliseconds grace) {
  if (shared.stopping) return;
  shared.stopping = true;
  SystemError ignored;
  acceptor.close(ignored);
  for (const auto& weak : connections) {
    if (const auto connection = weak.lock()) connection->finish();
  }
  if (open == 0) return;
  pause.expires_after(grace);
  pause.async_wait([this](SystemError) {
    for (const auto& weak : connections) {
      if (const auto connection = weak.lock()) connection->cut();
    }
  });
}

Server::Server(ServerOptions options, Handler handler, Admit admit) : impl_(std::make_unique<Impl>()) {
  Impl& i = *impl_;
  i.shared.options = std::move(options);
  i.shared.handler = std::move(handler);
  i.shared.admit = std::move(admit);
  i.listen();
  const Limits& limits = i.shared.options.limits;
  i.pool = std::make_unique<HandlerPool>(limits.threads, limits.waiting);
  i.shared.pool = i.pool.get();
  i.accept();
  i.thread = std::thread([&i] { i.run(); });
}

Server::~Server() { stop(std::chrono::milliseconds(0)); }

std::uint16_t Server::port() const noexcept { return impl_->shared.port; }

void Server::stop(std::chrono::milliseconds grace) {
  const std::lock_guard lock(impl_->stopping);
  if (!impl_->thread.joinable()) return;
  asio::post(impl_->io, [this, grace] { impl_->finish_all(grace); });
  impl_->pool->join();
  impl_->busy.reset();
  impl_->thread.join();
}

}  // namespace sdx::serve
