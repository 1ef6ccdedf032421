// Answers that are given later, by other threads.

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "serve/http/client_test_support.h"
#include "serve/http/server.h"

namespace sdx::serve {
namespace {

using std::chrono::milliseconds;

const std::string kGet = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";

// Keeps requests until a test answers them.
class Desk {
 public:
  ServerCallbacks callbacks() {
    ServerCallbacks out;
    out.entry = [this](const RequestPtr& request, const ResponderPtr& responder) {
      const std::lock_guard lock(mutex_);
      waiting_.emplace_back(request, responder);
      changed_.notify_all();
    };
    out.ended = [this](const Request&, const Outcome& outcome) {
      const std::lock_guard lock(mutex_);
      outcomes_.push_back(outcome);
      changed_.notify_all();
    };
    return out;
  }
  std::pair<RequestPtr, ResponderPtr> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !waiting_.empty(); });
    auto out = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    return out;
  }
  Outcome outcome(std::size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return outcomes_.size() > index; });
    return outcomes_.size() > index ? outcomes_[index] : Outcome();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<RequestPtr, ResponderPtr>> waiting_;
  std::vector<Outcome> outcomes_;
};

Response text(std::string body) {
  Response out;
  out.headers = {{"Content-Type", "text/plain"}};
  out.body = std::move(body);
  return out;
}

TEST(Responder, AnswersLater) {
  Desk desk;
  Server server({}, desk.callbacks());
  Client client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send(kGet);
    auto [request, responder] = desk.next();
    EXPECT_EQ(request->client, "127.0.0.1");
    responder->respond(text("later"));
    responder->respond(text("too late"));
    EXPECT_TRUE(client.receive("later").starts_with("HTTP/1.1 200 "));
    EXPECT_TRUE(desk.outcome(static_cast<std::size_t>(i)).whole);
  }
}

TEST(Responder, ThousandsWaitWithoutThreads) {
  Desk desk;
  ServerOptions options;
  options.limits.connections = 1000;
  options.limits.threads = 1;
  options.limits.io_threads = 2;
  Server server(options, desk.callbacks());
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::pair<RequestPtr, ResponderPtr>> open;
  for (int i = 0; i < 300; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    clients.back()->send(kGet);
    open.push_back(desk.next());
  }
  for (auto& [request, responder] : open) responder->respond(text("end"));
  for (auto& client : clients) EXPECT_TRUE(client->receive("end").ends_with("\r\n\r\nend"));
  open.clear();
}

TEST(Responder, StreamsPieces) {
  Desk desk;
  Server server({}, desk.callbacks());
  Client client(server.port());
  client.send(kGet + kGet);
  for (int i = 0; i < 2; ++i) {
    auto [request, responder] = desk.next();
    responder->start(text("0,"));
    EXPECT_NE(client.receive("0,\r\n").find("Transfer-Encoding: chunked\r\n"), std::string::npos);
    EXPECT_TRUE(responder->write("1,"));
    EXPECT_EQ(client.receive("1,\r\n"), "2\r\n1,\r\n");
    EXPECT_TRUE(responder->write(""));
    responder->end();
    EXPECT_FALSE(responder->write("more"));
    EXPECT_EQ(client.receive("0\r\n\r\n"), "0\r\n\r\n");
  }
  EXPECT_TRUE(desk.outcome(1).whole);
}

TEST(Responder, OldClientsGetNoChunks) {
  Desk desk;
  Server server({}, desk.callbacks());
  Client client(server.port());
  client.send("GET /a HTTP/1.0\r\n\r\n");
  auto [request, responder] = desk.next();
  responder->start(text("0,"));
  EXPECT_TRUE(responder->write("1,"));
  responder->end();
  const std::string answer = client.receive();
  EXPECT_TRUE(answer.ends_with("\r\n\r\n0,1,")) << answer;
  EXPECT_EQ(answer.find("chunked"), std::string::npos) << answer;
}

TEST(Responder, StreamsNothingForHead) {
  Desk desk;
  Server server({}, desk.callbacks());
  Client client(server.port());
  client.send("HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n" + kGet);
  auto [request, responder] = desk.next();
  responder->start(text("body"));
  responder->end();
  responder.reset();
  auto [second, answer] = desk.next();
  answer->respond(text("got"));
  const std::string both = client.receive("got");
  EXPECT_EQ(both.find("body"), std::string::npos) << both;
}

TEST(Responder, TellsWhenTheClientGoes) {
  Desk desk;
  Server server({}, desk.callbacks());
  for (const bool streaming : {false, true}) {
    Client client(server.port());
    client.send(kGet);
    auto [request, responder] = desk.next();
    std::mutex mutex;
    std::condition_variable changed;
    int calls = 0;
    const auto tell = [&] {
      const std::lock_guard lock(mutex);
      ++calls;
      changed.notify_all();
    };
    responder->on_gone(tell);
    if (streaming) responder->start(text("x"));
    client.close();
    {
      std::unique_lock lock(mutex);
      EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return calls == 1; }));
    }
    EXPECT_TRUE(responder->gone());
    responder->on_gone(tell);  // at once
    EXPECT_EQ(calls, 2);
    responder->respond(text("for nobody"));
  }
}

TEST(Responder, WorkCountsUntilItEndsThoughItsClientHasGone) {
  Desk desk;
  ServerOptions options;
  options.limits.all_bodies_bytes = 1500;
  ServerCallbacks callbacks = desk.callbacks();
  std::mutex mutex;
  std::vector<std::weak_ptr<void>> held;
  callbacks.admit = [&](Request& request) {
    request.held = std::make_shared<int>(0);
    const std::lock_guard lock(mutex);
    held.push_back(request.held);
    return Admission();
  };
  Server server(options, callbacks);
  const std::string post = "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x');
  Client first(server.port());
  first.send(post);
  auto [request, responder] = desk.next();
  first.reset();
  EXPECT_EQ(desk.outcome(0).status, 0);
  Client second(server.port());
  second.send(post);
  EXPECT_TRUE(second.receive("\r\n\r\n").starts_with("HTTP/1.1 503 "));
  EXPECT_FALSE(held[0].expired());
  request.reset();
  responder.reset();
  Client third(server.port());
  third.send(post);
  desk.next().second->respond(text("done"));
  EXPECT_TRUE(third.receive("done").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(held[0].expired());
  third.send(post);  // what was answered counts no longer
  desk.next().second->respond(text("again"));
  EXPECT_TRUE(third.receive("again").starts_with("HTTP/1.1 200 "));
}

TEST(Responder, ForgetsWhomToTellWhenItHasEnded) {
  Desk desk;
  Server server({}, desk.callbacks());
  Client client(server.port());
  client.send(kGet);
  auto [request, responder] = desk.next();
  const auto token = std::make_shared<int>();
  responder->on_gone([token] { FAIL(); });
  responder->respond(text("end"));
  EXPECT_EQ(token.use_count(), 1);
  client.receive("end");
  client.close();
}

TEST(Responder, CutsClientsThatDoNotRead) {
  Desk desk;
  Server server({}, desk.callbacks());
  Client client(server.port());
  client.send(kGet);
  auto [request, responder] = desk.next();
  responder->start(text(""));
  const std::string piece(1 << 20, 'x');
  int pieces = 0;
  while (pieces < 1000 && responder->write(piece)) {
    ++pieces;
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_LT(pieces, 1000);
  EXPECT_FALSE(desk.outcome(0).whole);  // waits for the cut
  EXPECT_TRUE(responder->gone());
}

TEST(Responder, OneThatIsLostIsNotSilent) {
  Desk desk;
  Server server({}, desk.callbacks());
  Client client(server.port());
  client.send(kGet);
  desk.next();
  EXPECT_TRUE(client.receive("}}").starts_with("HTTP/1.1 500 "));
  client.send(kGet);
  {
    auto [request, responder] = desk.next();
    responder->start(text("half"));
  }
  const std::string rest = client.receive();
  EXPECT_EQ(rest.find("0\r\n\r\n"), std::string::npos) << rest;
  EXPECT_FALSE(desk.outcome(1).whole);
}

TEST(Responder, StopWaitsForThem) {
  Desk desk;
  Server server({}, desk.callbacks());
  Client client(server.port()), lost(server.port());
  client.send(kGet);
  auto [request, responder] = desk.next();
  std::thread engine([r = std::move(responder)]() mutable {
    std::this_thread::sleep_for(milliseconds(100));
    r->respond(text("end"));
    r.reset();
  });
  server.stop(milliseconds(20000));
  EXPECT_TRUE(client.receive().ends_with("end"));
  engine.join();
}

TEST(Responder, ManyThreadsAtOnce) {
  ServerOptions options;
  options.limits.connections = 100;
  options.limits.io_threads = 3;
  std::mutex mutex;
  std::vector<std::thread> threads;
  ServerCallbacks callbacks;
  callbacks.entry = [&](const RequestPtr& request, const ResponderPtr& responder) {
    const std::lock_guard lock(mutex);
    threads.emplace_back([request, responder] {
      responder->start(text(""));
      for (int i = 0; i < 100 && responder->write("piece,"); ++i) {
      }
      responder->end();
    });
  };
  {
    Server server(options, callbacks);
    std::vector<std::thread> clients;
    for (int c = 0; c < 8; ++c) {
      clients.emplace_back([&, c] {
        for (int i = 0; i < 10; ++i) {
          Client client(server.port());
          client.send(kGet);
          if ((c + i) % 3 == 0) continue;  // leaves at once
          const std::string all = client.receive("0\r\n\r\n");
          EXPECT_TRUE(all.ends_with("0\r\n\r\n"));
          std::size_t pieces = 0;
          for (std::size_t at = all.find("piece,"); at != std::string::npos; at = all.find("piece,", at + 1)) ++pieces;
          EXPECT_EQ(pieces, 100u);
        }
      });
    }
    for (auto& client : clients) client.join();
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace sdx::serve
