// The whole way of a request: a server, a guard, routes, metrics, log, spans.

#include "serve/server/application.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "serve/http/client_test_support.h"

namespace sdx::serve {
namespace {

class Whole {
 public:
  explicit Whole(const std::string& keys = "", GuardOptions guard = {}, ApplicationOptions options = {})
      : log_(LogFormat::json,
             [this](std::string_view lines) {
               const std::lock_guard lock(mutex_);
               lines_ += std::string(lines) + "\n";
             }),
        spans_([this](const std::vector<Span>& spans) {
          const std::lock_guard lock(mutex_);
          sent_.insert(sent_.end(), spans.begin(), spans.end());
          return true;
        }),
        guard_(std::move(guard), keys.empty() ? nullptr : std::make_unique<Keys>(parse_keys(keys, "keys"))) {
    add_routes();
    application_.emplace(router_, guard_, metrics_, log_, &spans_, options);
    ServerOptions server;
    server.limits.connections = 200;
    server.limits.io_threads = 2;
    server_.emplace(server, application_->callbacks());
  }

  std::string ask(const std::string& head, const std::string& body = "") {
    Client client(server_->port());
    client.send(head + "\r\nHost: localhost\r\nConnection: close\r\n" +
                (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body);
    return client.receive();
  }
  // All that was logged; the server has ended by then.
  std::string end() {
    server_.reset();
    log_.flush();
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  std::string metrics() const { return metrics_.text(); }
  std::uint16_t port() const { return server_->port(); }
  Guard& guard() { return guard_; }

 private:
  void add_routes() {
    Route echo;
    echo.method = "POST";
    echo.pattern = "/echo/{name}";
    echo.body_bytes = 100;
    router_.add(echo, Handler([](const Request& request) {
                  request.notes->set_model(request.part("name"));
                  request.notes->set_tokens(3, 4);
                  if (request.notes->wants_prompt()) request.notes->set_prompt(request.body);
                  if (request.body == "bad") fail(ErrorCode::invalid_argument, "this is bad");
                  return json_response(request.body);
                }));
    Route later;
    later.method = "GET";
    later.pattern = "/later";
    later.runs = Runs::at_once;
    router_.add(later, AsyncHandler([](const RequestPtr& request, const ResponderPtr& responder) {
                  if (request->parameter("throw") == "1") throw std::runtime_error("thrown");
                  std::thread([request, responder] {
                    if (request->parameter("gone") == "1") {
                      while (!*request->gone) std::this_thread::yield();
                      return responder->respond(api_error(503, "too late"));
                    }
                    responder->start({});
                    responder->write("later");
                    responder->end();
                  }).detach();
                }));
    Route health;
    health.method = "GET";
    health.pattern = "/health";
    health.runs = Runs::at_once;
    health.limited = false;
    health.needs = Needs::nothing;
    router_.add(health, Handler([](const Request&) { return json_response("{}"); }));
  }

  std::mutex mutex_;
  std::string lines_;
  std::vector<Span> sent_;
  Metrics metrics_;
  Router router_;
  Log log_;
  SpanExporter spans_;
  Guard guard_;
  std::optional<Application> application_;
  std::optional<Server> server_;
};

int status_of_answer(const std::string& answer) { return answer.size() > 12 ? std::atoi(answer.substr(9, 3).c_str()) : 0; }

TEST(Application, LeadsRequestsThrough) {
  Whole whole;
  EXPECT_TRUE(whole.ask("POST /echo/m HTTP/1.1\r\nX-Request-Id: one", "{}").ends_with("\r\n\r\n{}"));
  EXPECT_NE(whole.ask("GET /later HTTP/1.1").find("later\r\n0\r\n\r\n"), std::string::npos);
  EXPECT_EQ(status_of_answer(whole.ask("GET /later?throw=1 HTTP/1.1")), 500);
  EXPECT_EQ(status_of_answer(whole.ask("POST /echo/m HTTP/1.1", "bad")), 400);
  EXPECT_EQ(status_of_answer(whole.ask("POST /echo/m HTTP/1.1", std::string(101, 'x'))), 413);
  EXPECT_EQ(status_of_answer(whole.ask("GET /echo/m HTTP/1.1")), 405);
  EXPECT_EQ(status_of_answer(whole.ask("GET /none HTTP/1.1")), 404);
  EXPECT_EQ(status_of_answer(whole.ask("OPTIONS /echo/m HTTP/1.1")), 204);
  EXPECT_EQ(status_of_answer(whole.ask("GET /health HTTP/1.1")), 200);
  const std::string lines = whole.end();
  const auto first = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(first["id"], "one");
  EXPECT_EQ(first["model"], "m");
  EXPECT_EQ(first["prompt_tokens"], 3);
  EXPECT_EQ(first["received"], 2);
  EXPECT_FALSE(first.contains("prompt"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 8);  // without health
  const std::string metrics = whole.metrics();
  for (const char* sample : {"sdx_http_requests_total{method=\"POST\",route=\"/echo/{name}\",status=\"200\"} 1\n",
                             "sdx_http_requests_total{method=\"POST\",route=\"/echo/{name}\",status=\"413\"} 1\n",
                             "sdx_http_requests_total{method=\"GET\",route=\"none\",status=\"404\"} 1\n",
                             "sdx_http_requests_total{method=\"GET\",route=\"none\",status=\"405\"} 1\n",
                             "sdx_http_requests_total{method=\"OPTIONS\",route=\"none\",status=\"204\"} 1\n"}) {
    EXPECT_NE(metrics.find(sample), std::string::npos) << sample << metrics;
  }
  EXPECT_EQ(whole.guard().running(), 0);
}

TEST(Application, PackedBodiesAreUnpackedBeforeTheirHandler) {
  Whole whole;
  // gzip's stored form: head, one block, checksum, length.
  const std::string body("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x02\0\xfd\xff{}\x43\xbf\xa6\xa3\x02\0\0\0", 25);
  EXPECT_TRUE(whole.ask("POST /echo/m HTTP/1.1\r\nContent-Encoding: gzip", body).ends_with("\r\n\r\n{}"));
  EXPECT_EQ(status_of_answer(whole.ask("POST /echo/m HTTP/1.1\r\nContent-Encoding: gzip", "{}")), 400);
  const std::string other = whole.ask("POST /echo/m HTTP/1.1\r\nContent-Encoding: br", "{}");
  EXPECT_EQ(status_of_answer(other), 415);
  EXPECT_NE(other.find("Accept-Encoding: gzip, deflate\r\n"), std::string::npos) << other;
}

TEST(Application, LogsPromptsWhereAsked) {
  Whole whole("", {}, {.log_prompts = true});
  whole.ask("POST /echo/m HTTP/1.1", "secret");
  EXPECT_NE(whole.end().find("\"prompt\":\"secret\""), std::string::npos);
}

TEST(Application, WhoeverLeavesIsNoFailureOfTheServer) {
  Whole whole;
  Client client(whole.port());
  client.send("GET /later?gone=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.shut();
  EXPECT_EQ(status_of_answer(client.receive()), 503);
  const std::string lines = whole.end();
  EXPECT_NE(lines.find("\"status\":499"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("error"), std::string::npos) << lines;
}

TEST(Application, HoldsKeysUntilTheAnswerHasEnded) {
  Whole whole("k concurrency=1");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(status_of_answer(whole.ask("POST /echo/m HTTP/1.1\r\nAuthorization: Bearer k", "{}")), 200);
    EXPECT_EQ(status_of_answer(whole.ask("GET /later HTTP/1.1\r\nAuthorization: Bearer k")), 200);
    EXPECT_EQ(status_of_answer(whole.ask("POST /echo/m HTTP/1.1", "{}")), 401);
  }
  whole.end();
}

TEST(Application, ManyClientsAtOnce) {
  Whole whole("k");
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 40; ++i) {
        if ((c + i) % 5 == 0) {  // leaves without an answer
          Client client(whole.port());
          client.send("GET /later HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer k\r\n\r\n");
          continue;
        }
        const std::string path = i % 2 == 0 ? "GET /later" : "GET /health";
        EXPECT_EQ(status_of_answer(whole.ask(path + " HTTP/1.1\r\nAuthorization: Bearer k")), 200);
      }
    });
  }
  for (auto& client : clients) client.join();
  whole.end();
  EXPECT_EQ(whole.guard().running(), 0);
}

}  // namespace
}  // namespace sdx::serve
