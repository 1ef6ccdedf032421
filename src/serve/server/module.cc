// libsdx_serve.so

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/system/control_group.h"
#include "base/system/network/service_manager.h"
#include "base/system/network/sockets.h"
#include "base/text/ascii.h"
#include "serve/anthropic/api.h"
#include "serve/http/text.h"
#include "serve/http/tls.h"
#include "serve/inference/http_routes.h"
#include "serve/llama/api.h"
#include "serve/module_api.h"
#include "serve/ollama/api.h"
#include "serve/ollama/pulls.h"
#include "serve/openai/api.h"
#include "serve/page/page.h"
#include "serve/responses/api.h"
#include "serve/server/application.h"
#include "serve/server/grpc.h"
#include "serve/server/model_metrics.h"
#include "serve/server/otlp.h"
#include "serve/server/process_metrics.h"
#include "serve/server/settings.h"
#include "serve/vllm/api.h"

namespace sdx::serve {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGrace{30000};
constexpr milliseconds kTick{50};
constexpr int kConnections = 10000;

// A thousand connections need as many file descriptors; many systems give a process 1024 and let it ask for more. Returns how
// many connections there is room for, models and logs left aside.
int room_for_connections() {
  constexpr std::size_t kAside = 128;
  const std::size_t most = raise_descriptor_limit();
  return static_cast<int>(std::clamp<std::size_t>(most > kAside ? most - kAside : 1, 1, kConnections));
}

// A foreign name may resolve to this machine (DNS rebinding). A server that listens only on this machine need not answer to
// such a name.
GuardOptions guard_options(const ServeRequest& request, const Settings& settings) {
  GuardOptions options;
  options.origins = request.cors;
  if (is_loopback(settings.host)) options.hosts = {"127.0.0.1", "localhost", "[::1]", ascii_lower(settings.host)};
  if (!options.hosts.empty()) {
    for (const std::string& name : request.hosts) options.hosts.push_back(ascii_lower(name));
  }
  return options;
}

std::unique_ptr<Keys> keys_of(const ServeRequest& request) {
  return request.api_keys.empty() ? nullptr : std::make_unique<Keys>(read_keys(request.api_keys));
}

ollama::PullOptions pull_options(const ServeRequest& request, const ServeHost& host) {
  constexpr std::uint64_t kUsualLimit = 100'000'000'000;
  ollama::PullOptions out;
  out.allowed = request.allow_pull;
  out.most_bytes = request.pull_limit > 0 ? request.pull_limit : kUsualLimit;
  out.pull = host.pull;
  return out;
}

// Routes that every monitor queries, more often than all others.
void add_own_routes(Router& router, const Metrics& metrics, const Catalog& catalog) {
  Route route;
  route.method = "GET";
  route.limited = false;
  route.pattern = "/metrics";
  router.add(route, Handler([&metrics](const Request&) {
               Response response;
               response.headers = {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}, {"Cache-Control", "no-store"}};
               response.body = metrics.text();
               return response;
             }));
  route.pattern = "/health";
  route.runs = Runs::at_once;
  route.needs = Needs::nothing;
  router.add(route, Handler([&catalog](const Request&) {
               return catalog.ready() ? json_response("{\"status\":\"ok\"}") : api_error(503, "not all models are loaded");
             }));
}

class Program {
 public:
  Program(const ServeRequest& request, const ServeHost& host)
      : request_(request),
        host_(host),
        settings_(settings_of(request)),
        log_(request.log_format == "json" ? LogFormat::json : LogFormat::text, host.say) {
    const std::vector<int> sockets = inherited_sockets();
    if (!sockets.empty()) socket_ = sockets.front();
    if (const std::string address = socket_address(socket_); !address.empty()) settings_.host = address;
    if (!request.tls_cert.empty()) encryption_ = tls_encryption({request.tls_cert, request.tls_key});
    guard_.emplace(guard_options(request, settings_), keys_of(request));
    if (!request.otlp.empty()) spans_.emplace(otlp_sender(request.otlp));
    settings_.catalog.log = [this](std::string_view level, std::string_view message) { log_.add(level, message); };
    catalog_.emplace(settings_.catalog);
    api_.emplace(*catalog_, metrics_);
    api_->add_routes(router_);
    anthropic::add_routes(router_, api_->shared());
    pulls_.emplace(*catalog_, pull_options(request, host));
    ollama::add_routes(router_, api_->shared(), *pulls_);
    llama::add_routes(router_, api_->shared());
    vllm::add_routes(router_, api_->shared());
    responses::add_routes(router_, api_->shared(), responses_);
    add_inference_routes(router_, *catalog_);
    add_inference_metrics(metrics_, *catalog_);
    add_own_routes(router_, metrics_, *catalog_);
    if (request.page) add_page(router_);
    watch_process(metrics_);
    watch_models(metrics_, *catalog_);
    watch_parts();
    application_.emplace(router_, *guard_, metrics_, log_, spans_ ? &*spans_ : nullptr,
                         ApplicationOptions{.log_prompts = request.log_prompts});
  }

  void run();

 private:
  void watch_parts();
  void listen();
  void listen_for_grpc();
  void warn();
  void reload();

  const ServeRequest& request_;
  const ServeHost& host_;
  Settings settings_;
  int socket_ = -1;
  std::shared_ptr<Encryption> encryption_;
  Metrics metrics_;
  Log log_;
  std::optional<Guard> guard_;
  std::optional<SpanExporter> spans_;
  std::optional<Catalog> catalog_;
  std::optional<openai::Api> api_;
  std::optional<ollama::Pulls> pulls_;
  responses::Store responses_;
  Router router_;
  std::optional<Application> application_;
  std::optional<Server> server_;
  std::unique_ptr<GrpcServer> grpc_;
};

void Program::watch_parts() {
  const auto add = [&](const char* name, const char* help, const char* kind, std::function<double()> value) {
    metrics_.collect(name, help, kind, [value = std::move(value)] { return std::vector<Metrics::Sample>{{"", {}, value()}}; });
  };
  add("sdx_http_requests_running", "Requests in progress, without those for health and metrics.", "gauge",
      [this] { return static_cast<double>(guard_->running()); });
  add("sdx_http_connections", "Open connections.", "gauge",
      [this] { return server_ ? static_cast<double>(server_->connections()) : 0.0; });
  add("sdx_log_dropped_lines_total", "Log lines dropped because the reader was too slow.", "counter",
      [this] { return static_cast<double>(log_.dropped()); });
  if (!spans_) return;
  add("sdx_spans_sent_total", "Spans that the collector accepted.", "counter",
      [this] { return static_cast<double>(spans_->sent()); });
  add("sdx_spans_dropped_total", "Spans that were lost: too many waited, or the collector did not accept them.", "counter",
      [this] { return static_cast<double>(spans_->dropped()); });
}

void Program::listen() {
  ServerOptions options;
  options.address = settings_.host;
  options.port = static_cast<std::uint16_t>(settings_.port);
  options.listening = socket_;
  options.encryption = encryption_;
  Limits& limits = options.limits;
  limits.connections = room_for_connections();
  limits.io_threads = static_cast<int>(std::clamp(usable_cpus() / 2, 1, 8));
  limits.all_bodies_bytes = 4ull << 30;
  limits.idle = milliseconds(75000);
  server_.emplace(options, application_->callbacks());
}

// Whoever did not ask for gRPC is served without it where its library or its port cannot be had.
void Program::listen_for_grpc() {
  try {
    grpc_ = start_grpc(request_, settings_, *catalog_, *guard_);
  } catch (const Error& error) {
    if (request_.grpc_port != -1) throw;
    log_.add("warning", std::string("no gRPC: ") + error.message());
  }
  if (grpc_) log_.add("info", fmt::format("gRPC on {}:{}", settings_.host, grpc_->port()));
}

void Program::warn() {
  if (is_loopback(settings_.host)) return;
  if (!guard_->keys() && request_.allow_pull) {
    log_.add("warning", "--allow-pull: anyone who can reach this server can also fetch models onto its disk and remove them");
  }
  if (!guard_->keys()) {
    log_.add("warning",
             fmt::format("anyone who can reach {} can use this server; --api-keys FILE restricts access", settings_.host));
  }
  if (guard_->keys() && !encryption_) {
    log_.add("warning", "keys and prompts cross the network unencrypted; use --tls-cert and --tls-key, or a proxy with TLS");
  }
}

// A part that cannot be reloaded keeps its previous state.
void Program::reload() {
  notify_service_manager("RELOADING=1");
  const auto attempt = [&](const char* what, const std::function<void()>& action) {
    try {
      action();
      log_.add("info", fmt::format("{} read again", what));
    } catch (const std::exception& e) {
      log_.add("error", fmt::format("{} as before: {}", what, e.what()));
    }
  };
  if (guard_->keys()) attempt("API keys", [&] { guard_->keys()->replace(read_keys(request_.api_keys)); });
  if (encryption_)
    attempt("certificate", [&] {
      serve::reload(*encryption_);
      if (grpc_) reload_certificate(*grpc_, request_);
    });
  notify_service_manager("READY=1");
}

void Program::run() {
  listen();
  listen_for_grpc();
  warn();
  log_.flush();
  host_.say("listening on " + url_of(encryption_ ? "https" : "http", settings_.host, server_->port()));
  notify_service_manager("READY=1");
  const auto watchdog = watchdog_interval() / 2;
  auto barked = std::chrono::steady_clock::now();
  while (!host_.stop()) {
    if (host_.reload()) reload();
    if (watchdog.count() > 0 && std::chrono::steady_clock::now() - barked > watchdog) {
      barked = std::chrono::steady_clock::now();
      notify_service_manager("WATCHDOG=1");
    }
    std::this_thread::sleep_for(kTick);
  }
  notify_service_manager("STOPPING=1");
  log_.add("info", "stopping: running requests may finish");
  pulls_->stop();
  std::thread other([this] {
    if (grpc_) grpc_->stop(kGrace);
  });
  server_->stop(kGrace);
  other.join();
  grpc_.reset();
  server_.reset();
}

void serve(const ServeRequest& request, const ServeHost& host) { Program(request, host).run(); }

constexpr ServeModule kModule{module_head<ServeModule>(SDX_VERSION), serve};

}  // namespace
}  // namespace sdx::serve

extern "C" __attribute__((visibility("default"))) const sdx::ModuleHead* sdx_serve_module() { return &sdx::serve::kModule.head; }
