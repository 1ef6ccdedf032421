#include "serve/http/server.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <list>

#include "base/error.h"
#include "base/log.h"
#include "serve/http/connection.h"

namespace sdx::serve {
namespace asio = boost::asio;

namespace {

// One thread for input and output, with connections of its own.
struct Loop {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> busy{io.get_executor()};
  std::list<std::weak_ptr<Connection>> connections;
  std::size_t before_sweep = 64;
  std::thread thread;

  void run() {
    while (true) {
      try {
        io.run();
        return;
      } catch (const std::exception& e) {  // out of memory: the connection concerned is gone, the others go on
        log::warning("a connection was dropped: {}", e.what());
      }
    }
  }

  void add(const std::shared_ptr<Connection>& connection) {
    if (connections.size() >= before_sweep) {
      connections.remove_if([](const auto& c) { return c.expired(); });
      before_sweep = 2 * connections.size() + 64;
    }
    connections.push_back(connection);
    connection->start();
  }

  // False where every connection is busy.
  bool cut_idlest() {
    std::shared_ptr<Connection> idlest;
    for (const auto& weak : connections) {
      const auto connection = weak.lock();
      const auto since = connection ? connection->idle_since() : std::nullopt;
      if (since && (!idlest || *since < *idlest->idle_since())) idlest = connection;
    }
    if (idlest) idlest->cut();
    return idlest != nullptr;
  }

  void finish() {
    for (const auto& weak : connections) {
      if (const auto connection = weak.lock()) connection->finish();
    }
  }

  void cut() {
    for (const auto& weak : connections) {
      if (const auto connection = weak.lock()) connection->cut();
    }
  }
};

}  // namespace

struct Server::Impl {
  std::vector<std::unique_ptr<Loop>> loops;
  std::optional<Tcp::acceptor> acceptor;
  std::optional<asio::steady_timer> pause;
  Shared shared;
  std::size_t next = 0;
  std::atomic<int> open{0};
  bool accepting = false;
  std::mutex stopping;
  std::mutex waiting;
  std::condition_variable none_open;
  std::unique_ptr<HandlerPool> pool;

  void begin(ServerOptions options, ServerCallbacks callbacks);
  void listen();
  void accept();
  void accept_one();
  void take(Loop& loop, Tcp::socket socket);
  void make_room();
  void accept_later();
  void ended();
  void wait(std::chrono::milliseconds grace);
};

void Server::Impl::begin(ServerOptions options, ServerCallbacks callbacks) {
  shared.options = std::move(options);
  shared.callbacks = std::move(callbacks);
  const Limits& limits = shared.options.limits;
  for (int i = 0; i < std::max(1, limits.io_threads); ++i) loops.push_back(std::make_unique<Loop>());
  acceptor.emplace(loops[0]->io);
  pause.emplace(loops[0]->io);
  listen();
  pool = std::make_unique<HandlerPool>(limits.threads, limits.waiting);
  accept();
  for (const auto& loop : loops) loop->thread = std::thread([l = loop.get()] { l->run(); });
}

void Server::Impl::listen() {
  SystemError error;
  const ServerOptions& options = shared.options;
  if (options.listening >= 0) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    const bool known = ::getsockname(options.listening, reinterpret_cast<sockaddr*>(&name), &size) == 0;
    if (!known || (name.ss_family != AF_INET && name.ss_family != AF_INET6)) {
      fail(ErrorCode::io, "the socket that was handed over (file descriptor {}) is not a TCP socket", options.listening);
    }
    acceptor->assign(name.ss_family == AF_INET6 ? Tcp::v6() : Tcp::v4(), options.listening, error);
  } else {
    const auto address = asio::ip::make_address(options.address, error);
    const Tcp::endpoint wanted(address, options.port);
    if (!error) acceptor->open(wanted.protocol(), error);
    if (!error) acceptor->set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor->bind(wanted, error);
    if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  }
  if (error) {
    fail(ErrorCode::io, "cannot listen on {} port {}: {}; name another port, or 0 for a free one", options.address, options.port,
         error.message());
  }
  shared.port = acceptor->local_endpoint().port();
}

void Server::Impl::accept() {
  if (accepting || shared.stopping) return;
  accepting = true;
  try {
    accept_one();
  } catch (const std::exception& e) {  // out of memory: later there may be some
    log::warning("no connection was accepted: {}", e.what());
    accepting = false;
    accept_later();
  }
}

void Server::Impl::accept_one() {
  if (open >= shared.options.limits.connections) return make_room();
  Loop& loop = *loops[next++ % loops.size()];
  acceptor->async_accept(loop.io, [this, &loop](SystemError error, Tcp::socket socket) {
    accepting = false;
    if (shared.stopping) return;
    if (error) {
      // Out of file descriptors, most likely: trying again at once would keep a core busy.
      return accept_later();
    }
    try {
      take(loop, std::move(socket));
    } catch (const std::exception& e) {
      log::warning("a connection was dropped: {}", e.what());
      return accept_later();
    }
    accept();
  });
}

void Server::Impl::take(Loop& loop, Tcp::socket socket) {
  SystemError ignored;
  socket.set_option(Tcp::no_delay(true), ignored);
  ++open;
  std::shared_ptr<Connection> connection;
  try {
    auto& encryption = shared.options.encryption;
    auto transport = encryption ? encryption->transport(std::move(socket)) : plain_transport(std::move(socket));
    connection = std::make_shared<Connection>(loop.io, std::move(transport), shared, [this] { ended(); });
  } catch (...) {
    --open;
    throw;
  }
  if (&loop == loops[0].get()) {
    loop.add(connection);
  } else {
    asio::post(loop.io, [&loop, connection] { loop.add(connection); });
  }
}

// A waiting client has priority over an idle connection: idle ones must not keep others out.
void Server::Impl::make_room() {
  acceptor->async_wait(Tcp::acceptor::wait_read, [this](SystemError error) {
    if (error || shared.stopping) return;
    Loop& loop = *loops[next++ % loops.size()];
    asio::post(loop.io, [this, &loop] {
      const bool room = loop.cut_idlest();
      asio::post(loops[0]->io, [this, room] {
        accepting = false;
        room ? accept() : accept_later();
      });
    });
  });
}

void Server::Impl::accept_later() {
  pause->expires_after(std::chrono::milliseconds(50));
  pause->async_wait([this](SystemError) { accept(); });
}

// Called by any of the threads.
void Server::Impl::ended() {
  const int before = open.fetch_sub(1);
  if (shared.stopping) {
    const std::lock_guard lock(waiting);
    none_open.notify_all();
  } else if (before >= shared.options.limits.connections) {
    asio::post(loops[0]->io, [this] { accept(); });
  }
}

void Server::Impl::wait(std::chrono::milliseconds grace) {
  const auto end = Clock::now() + grace;
  std::unique_lock lock(waiting);
  none_open.wait_until(lock, end, [this] { return open == 0; });
}

namespace {

// Requests go to the pool, which runs `handler` for them.
ServerCallbacks callbacks_of(Handler handler, Admit admit, const std::unique_ptr<HandlerPool>& pool) {
  ServerCallbacks callbacks;
  callbacks.admit = std::move(admit);
  callbacks.entry = [handler = std::move(handler), &pool](const RequestPtr& request, const ResponderPtr& responder) {
    const bool taken = pool->submit([&handler, request, responder]() { answer_with(handler, *request, *responder); });
    if (taken) return;
    Response busy = error_response(503, "the server is busy; try again later");
    busy.headers.emplace_back("Retry-After", "1");
    responder->respond(std::move(busy));
  };
  return callbacks;
}

}  // namespace

Server::Server(ServerOptions options, Handler handler, Admit admit) : impl_(std::make_unique<Impl>()) {
  impl_->begin(std::move(options), callbacks_of(std::move(handler), std::move(admit), impl_->pool));
}

Server::Server(ServerOptions options, ServerCallbacks callbacks) : impl_(std::make_unique<Impl>()) {
  impl_->begin(std::move(options), std::move(callbacks));
}

Server::~Server() { stop(std::chrono::milliseconds(0)); }

std::uint16_t Server::port() const noexcept { return impl_->shared.port; }
int Server::connections() const noexcept { return impl_->open; }

void Server::stop(std::chrono::milliseconds grace) {
  Impl& i = *impl_;
  const std::lock_guard lock(i.stopping);
  if (i.loops.empty() || !i.loops[0]->thread.joinable()) return;
  i.shared.stopping = true;
  asio::post(i.loops[0]->io, [&i] {
    SystemError ignored;
    i.acceptor->close(ignored);
    i.pause->cancel();
  });
  for (const auto& loop : i.loops) asio::post(loop->io, [l = loop.get()] { l->finish(); });
  i.wait(grace);
  for (const auto& loop : i.loops) asio::post(loop->io, [l = loop.get()] { l->cut(); });
  i.pool->join();
  for (const auto& loop : i.loops) loop->busy.reset();
  for (const auto& loop : i.loops) loop->thread.join();
}

}  // namespace sdx::serve
