#include "serve/http/server.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <random>
#include <sdx/error.hpp>
#include <thread>

#include "serve/http/client_test_support.h"
#include "serve/http/transport.h"
#include "support/errors.h"

namespace sdx::serve {
namespace {

using std::chrono::milliseconds;

Response echo(const Request& request) {
  Response response;
  response.headers = {{"Content-Type", "text/plain"}};
  response.body = request.method + " " + request.path + " [" + request.body + "]";
  return response;
}

int status_of(std::string_view answer) {
  return answer.starts_with("HTTP/1.1 ") && answer.size() > 12 ? std::atoi(std::string(answer.substr(9, 3)).c_str()) : 0;
}

std::string ask(const Server& server, std::string_view request) {
  Client client(server.port());
  client.send(request);
  client.shut();
  return client.receive();
}

const std::string kGet = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";

std::string post(std::string_view fields, std::string_view body) {
  return "POST /p HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

TEST(Server, Answers) {
  Server server({}, echo);
  EXPECT_NE(server.port(), 0);
  const std::string answer = ask(server, kGet);
  EXPECT_EQ(status_of(answer), 200);
  testing::expect_parts(answer, {"\r\nContent-Length: 9\r\n", "\r\nDate: "});
  EXPECT_TRUE(answer.ends_with("\r\n\r\nGET /a []")) << answer;
}

TEST(Server, ReadsBodies) {
  Server server({}, echo);
  EXPECT_TRUE(ask(server, post("Content-Length: 5\r\n", "hello")).ends_with("POST /p [hello]"));
  EXPECT_TRUE(ask(server, post("Transfer-Encoding: chunked\r\n", "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"))
                  .ends_with("POST /p [hello]"));
  EXPECT_TRUE(ask(server, post("Content-Length: 0\r\n", "")).ends_with("POST /p []"));
  // Byte by byte.
  Client client(server.port());
  for (const char c : post("Transfer-Encoding: chunked\r\n", "a\r\n0123456789\r\n0\r\n\r\n"))
    client.send(std::string_view(&c, 1));
  EXPECT_TRUE(client.receive("]").ends_with("POST /p [0123456789]"));
}

TEST(Server, HeadHasNoBody) {
  Server server({}, echo);
  const std::string answer = ask(server, "HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 10\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST(Server, KeepsConnections) {
  Server server({}, echo);
  Client client(server.port());
  for (int i = 0; i < 50; ++i) {
    client.send(kGet);
    EXPECT_TRUE(client.receive("]").ends_with("GET /a []"));
  }
  client.send("GET /last HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string last = client.receive();
  EXPECT_NE(last.find("Connection: close\r\n"), std::string::npos);
  EXPECT_TRUE(last.ends_with("GET /last []"));
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  Server server({}, [](const Request& request) {
    if (request.path == "/0") std::this_thread::sleep_for(milliseconds(50));
    return echo(request);
  });
  Client client(server.port());
  std::string all;
  for (int i = 0; i < 200; ++i) {
    all += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n" + std::string(200, 'x');
  }
  std::thread sender([&] { client.send(all); });
  for (int i = 0; i < 200; ++i) {
    const std::string answer = client.receive("]");
    EXPECT_TRUE(answer.ends_with("POST /" + std::to_string(i) + " [" + std::string(200, 'x') + "]")) << answer;
  }
  sender.join();
}

TEST(Server, OldClients) {
  Server server({}, echo);
  const std::string answer = ask(server, "GET /a HTTP/1.0\r\n\r\n");
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("GET /a []"));
}

TEST(Server, RefusesWhatCanBeReadInTwoWays) {
  Server server({}, [](const Request& request) {
    EXPECT_NE(request.path, "/smuggled");
    return echo(request);
  });
  const std::string inner = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::vector<std::pair<std::string, int>> cases{
      {post("Content-Length: 0\r\nContent-Length: 44\r\n", inner), 400},
      {post("Content-Length: 44\r\nContent-Length: 44\r\n", inner), 400},
      {post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + inner), 400},
      {post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n" + inner), 400},
      {post("Transfer-Encoding: identity\r\n", inner), 501},
      {post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n" + inner), 501},
      {post("Transfer-Encoding:\x0b"
            "chunked\r\n",
            "0\r\n\r\n" + inner),
       400},
      {post("X: a\r\n Content-Length: 44\r\n", inner), 400},
      {post("Content-Length: -1\r\n", inner), 400},
      {post("Content-Length: 0x10\r\n", inner), 400},
      {post("Transfer-Encoding: chunked\r\n", "ffffffffffffffff1\r\nx\r\n0\r\n\r\n" + inner), 400},
      {post("Transfer-Encoding: chunked\r\n", "fffffffffffffffe\r\nx\r\n0\r\n\r\n" + inner), 413},
      {post("Transfer-Encoding: chunked\r\n", "-1\r\nx\r\n0\r\n\r\n" + inner), 400},
      {post("Transfer-Encoding: chunked\r\n", "1\nx\n0\n\n" + inner), 400},
      {post("Transfer-Encoding: chunked\r\n", "1\r\nxy\r\n0\r\n\r\n" + inner), 400},
      {"GET / HTTP/1.1\nHost: localhost\n\n" + inner, 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + inner, 400},
      {"GET / HTTP/1.1\r\n\r\n" + inner, 400},
      {"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n" + inner, 400},
      {"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n" + inner, 400},
      {"GET / HTTP/3.0\r\nHost: localhost\r\n\r\n" + inner, 505},
      {std::string("\x16\x03\x01\x02\x00\x01\x00", 7), 400},
  };
  for (const auto& [request, status] : cases) {
    const std::string answer = ask(server, request);
    EXPECT_EQ(status_of(answer), status) << request << "\n->\n" << answer;
    testing::expect_parts(answer, {"\r\nConnection: close\r\n", "{\"error\":{\"code\":"});
    EXPECT_EQ(answer.find("}HTTP/1.1 "), std::string::npos) << answer;
  }
}

TEST(Server, LimitsHeads) {
  ServerOptions options;
  options.limits.header_bytes = 1000;
  Server server(options, echo);
  EXPECT_EQ(status_of(ask(server, "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(2000, 'x') + "\r\n\r\n")), 431);
  EXPECT_EQ(status_of(ask(server, "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(200000, 'x'))), 431);
  EXPECT_EQ(status_of(ask(server, "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(900, 'x') + "\r\n\r\n")), 200);
}

TEST(Server, LimitsBodiesByRoute) {
  ServerOptions options;
  options.limits.body_bytes = 10;
  Server server(options, echo, [](const Request& request) {
    Admission admission;
    if (request.path == "/large") admission.body_bytes = 100000;
    if (request.path == "/closed") admission.refused = error_response(403, "no");
    return admission;
  });
  const auto send = [&](const std::string& path, std::size_t size, bool chunked) {
    std::string request = "POST " + path + " HTTP/1.1\r\nHost: a\r\n";
    const std::string body(size, 'x');
    if (chunked) {
      std::string chunks;
      for (std::size_t at = 0; at < size; at += 15) {
        const std::string piece = body.substr(at, 15);
        chunks += (piece.size() == 15 ? "f" : std::to_string(piece.size() % 10)) + "\r\n" + piece + "\r\n";
      }
      request += "Transfer-Encoding: chunked\r\n\r\n" + chunks + "0\r\n\r\n";
    } else {
      request += "Content-Length: " + std::to_string(size) + "\r\n\r\n" + body;
    }
    Client client(server.port());
    client.send(request);
    return status_of(client.receive("\r\n\r\n"));
  };
  for (const bool chunked : {false, true}) {
    EXPECT_EQ(send("/small", 9, chunked), 200);
    EXPECT_EQ(send("/small", 30, chunked), 413);
    EXPECT_EQ(send("/small", 3000000, chunked), 413);
    EXPECT_EQ(send("/large", 99990, chunked), 200);
    EXPECT_EQ(send("/large", 100005, chunked), 413);
    EXPECT_EQ(send("/closed", 3000000, chunked), 403);
  }
}

TEST(Server, LimitsAllBodiesTogether) {
  ServerOptions options;
  options.limits.body_bytes = 1000;
  options.limits.all_bodies_bytes = 1500;
  Server server(options, echo);
  Client first(server.port());
  first.send(post("Content-Length: 1000\r\nExpect: 100-continue\r\n", ""));
  EXPECT_EQ(status_of(first.receive("\r\n\r\n")), 100);
  const std::string busy = ask(server, post("Content-Length: 501\r\n", std::string(501, 'x')));
  EXPECT_EQ(status_of(busy), 503);
  EXPECT_NE(busy.find("\r\nRetry-After: 1\r\n"), std::string::npos) << busy;
  EXPECT_EQ(status_of(ask(server, post("Content-Length: 500\r\n", std::string(500, 'x')))), 200);
  first.send(std::string(1000, 'y'));
  EXPECT_EQ(status_of(first.receive("]")), 200);
  EXPECT_EQ(status_of(ask(server, post("Content-Length: 1000\r\n", std::string(1000, 'x')))), 200);
}

TEST(Server, DropsSlowSenders) {
  ServerOptions options;
  options.limits.idle = milliseconds(50);
  options.limits.head_time = milliseconds(50);
  options.limits.transfer_time = milliseconds(50);
  Server server(options, echo);
  Client idle(server.port());
  EXPECT_EQ(idle.receive(), "");
  Client slow_head(server.port());
  slow_head.send("GET / HTTP");
  EXPECT_EQ(status_of(slow_head.receive()), 408);
  Client slow_body(server.port());
  slow_body.send(post("Content-Length: 100\r\n", "only this"));
  EXPECT_EQ(status_of(slow_body.receive()), 408);
  // Bytes that trickle in gain no time.
  Client trickle(server.port());
  std::string answer;
  std::thread reader([&] { answer = trickle.receive(); });
  for (int i = 0; i < 100; ++i) {
    trickle.send(i == 0 ? "GET / HTTP/1.1\r\n" : "X: y\r\n");
    std::this_thread::sleep_for(milliseconds(5));
  }
  reader.join();
  EXPECT_EQ(status_of(answer), 408);
}

TEST(Server, ErrorsAreJson) {
  Server server({}, [](const Request& request) -> Response {
    if (request.path == "/argument") throw Error(ErrorCode::invalid_argument, "bad \"thing\" \xff");
    if (request.path == "/memory") throw std::bad_alloc();
    if (request.path == "/split") return {.status = 200, .headers = {{"X", "a\r\nSet-Cookie: b"}}, .body = ""};
    throw std::runtime_error("broken");
  });
  const auto get = [&](const std::string& path) { return ask(server, "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"); };
  EXPECT_EQ(status_of(get("/argument")), 400);
  EXPECT_NE(get("/argument").find("bad \\\"thing\\\""), std::string::npos);
  EXPECT_EQ(status_of(get("/memory")), 503);
  EXPECT_EQ(status_of(get("/other")), 500);
  EXPECT_EQ(status_of(get("/split")), 500);
  EXPECT_EQ(get("/split").find("Set-Cookie"), std::string::npos);
}

TEST(Server, ChecksHosts) {
  ServerOptions options;
  options.hosts = {"127.0.0.1", "localhost"};
  Server server(options, echo);
  const auto get = [&](const std::string& host) {
    return status_of(ask(server, "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"));
  };
  EXPECT_EQ(get("127.0.0.1:" + std::to_string(server.port())), 200);
  EXPECT_EQ(get("localhost:" + std::to_string(server.port())), 200);
  EXPECT_EQ(get("localhost"), 421);
  EXPECT_EQ(get("rebound.example:" + std::to_string(server.port())), 421);
}

TEST(Server, RefusesWhenTooManyWait) {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  int inside = 0;
  ServerOptions options;
  options.limits.threads = 1;
  options.limits.waiting = 1;
  Server server(options, [&](const Request& request) {
    std::unique_lock lock(mutex);
    ++inside;
    changed.notify_all();
    changed.wait(lock, [&] { return open; });
    return echo(request);
  });
  Client first(server.port()), second(server.port()), third(server.port());
  first.send(kGet);
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside == 1; });
  }
  second.send(kGet);
  third.send(kGet);
  // One of the two waits, the other is refused: at once, since nothing is let go before it is.
  std::string of_second, of_third;
  const auto receive = [&](Client& client, std::string& answer) {
    answer = client.receive("\r\n\r\n");
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  };
  std::thread a([&] { receive(second, of_second); });
  std::thread b([&] { receive(third, of_third); });
  a.join();
  b.join();
  EXPECT_EQ(status_of(of_second) + status_of(of_third), 200 + 503);
  EXPECT_EQ(status_of(first.receive("\r\n\r\n")), 200);
}

// Fails like a system without memory.
class Failing : public Encryption {
 public:
  std::unique_ptr<Transport> transport(Tcp::socket socket) override {
    if (++connections_ <= 2) throw std::bad_alloc();
    return plain_transport(std::move(socket));
  }

 private:
  int connections_ = 0;
};

TEST(Server, AConnectionThatFailsIsNotTheLast) {
  ServerOptions options;
  options.limits.connections = 1;
  options.encryption = std::make_shared<Failing>();
  Server server(options, echo);
  for (int i = 0; i < 2; ++i) {
    Client client(server.port());
    EXPECT_EQ(client.receive(), "");
  }
  EXPECT_EQ(status_of(ask(server, "GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")), 200);
}

TEST(Server, IdleConnectionsMakeRoom) {
  for (const int threads : {1, 2}) {
    ServerOptions options;
    options.limits.connections = 4;
    options.limits.io_threads = threads;
    Server server(options, echo);
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::make_unique<Client>(server.port()));
      clients.back()->send(kGet);
      EXPECT_EQ(status_of(clients.back()->receive("]")), 200) << i;
    }
    EXPECT_EQ(clients.front()->receive(), "");  // closed, for the others
    clients.back()->send(kGet);
    EXPECT_EQ(status_of(clients.back()->receive("]")), 200);
    EXPECT_LE(server.connections(), 4);
  }
}

TEST(Server, BusyConnectionsKeepTheirPlace) {
  std::atomic<bool> open = false;
  std::atomic<int> inside = 0;
  ServerOptions options;
  options.limits.connections = 2;
  Server server(options, [&](const Request& request) {
    ++inside;
    while (!open) std::this_thread::sleep_for(milliseconds(1));
    return echo(request);
  });
  Client first(server.port()), second(server.port());
  first.send(kGet);
  second.send(kGet);
  while (inside < 2) std::this_thread::sleep_for(milliseconds(1));
  Client third(server.port());
  third.send(kGet);
  std::this_thread::sleep_for(milliseconds(150));
  EXPECT_EQ(inside, 2);
  open = true;
  EXPECT_EQ(status_of(first.receive("]")), 200);
  EXPECT_EQ(status_of(second.receive("]")), 200);
  EXPECT_EQ(status_of(third.receive("]")), 200);
}

TEST(Server, StopLetsRequestsEnd) {
  std::atomic<bool> inside = false;
  Server server({}, [&](const Request& request) {
    inside = true;
    std::this_thread::sleep_for(milliseconds(100));
    return echo(request);
  });
  Client idle(server.port()), busy(server.port());
  busy.send(kGet);
  while (!inside) std::this_thread::sleep_for(milliseconds(1));
  server.stop(milliseconds(10000));
  EXPECT_EQ(status_of(busy.receive()), 200);
  EXPECT_EQ(idle.receive(), "");
  EXPECT_FALSE(Client(server.port()).connected());
  server.stop();
}

TEST(Server, StopCutsWhatGoesOn) {
  std::atomic<bool> inside = false;
  Server server({}, [&](const Request& request) {
    inside = true;
    while (!*request.gone) std::this_thread::sleep_for(milliseconds(1));
    return echo(request);
  });
  Client client(server.port());
  client.send(kGet);
  while (!inside) std::this_thread::sleep_for(milliseconds(1));
  server.stop(milliseconds(10));
  EXPECT_EQ(client.receive(), "");
}

TEST(Server, APortIsTakenOnce) {
  const Server server({}, echo);
  ServerOptions options;
  options.port = server.port();
  EXPECT_THROW(Server(options, echo), Error);
  options.address = "nonsense";
  EXPECT_THROW(Server(options, echo), Error);
}

// Whatever arrives, the server goes on answering.
TEST(Server, RandomBytes) {
  ServerOptions options;
  options.limits.head_time = milliseconds(200);
  options.limits.transfer_time = milliseconds(200);
  Server server(options, echo);
  std::mt19937 random(3);
  const std::string seed =
      post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n") + kGet + post("Content-Length: 3\r\n", "abc");
  const std::string_view alphabet = "\r\n: 0aFG/-\0\xff;,";
  for (int round = 0; round < 500; ++round) {
    std::string bytes = seed;
    const int changes = static_cast<int>(random() % 8);
    for (int i = 0; i < changes; ++i) {
      const std::size_t at = random() % bytes.size();
      if (random() % 2 != 0) {
        bytes[at] = alphabet[random() % alphabet.size()];
      } else {
        bytes.erase(at, random() % 8);
      }
      if (bytes.empty()) bytes = "x";
    }
    const std::string answer = ask(server, bytes);
    ASSERT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 ")) << bytes << "\n->\n" << answer;
  }
  EXPECT_EQ(status_of(ask(server, kGet)), 200);
}

}  // namespace
}  // namespace sdx::serve
