#include "server.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <mutex>

#include "base/error.h"
#include "health.grpc.pb.h"
#include "inference.grpc.pb.h"
#include "messages.h"
#include "serve/http/handler_pool.h"

namespace sdx::serve {
namespace {

using grpc::CallbackServerContext;
using grpc::Status;
using grpc::StatusCode;

StatusCode code_of(int status) {
  switch (status) {
    case 400: return StatusCode::INVALID_ARGUMENT;
    case 401: return StatusCode::UNAUTHENTICATED;
    case 403: return StatusCode::PERMISSION_DENIED;
    case 404: return StatusCode::NOT_FOUND;
    case 413:
    case 429: return StatusCode::RESOURCE_EXHAUSTED;
    case 499: return StatusCode::CANCELLED;
    case 501: return StatusCode::UNIMPLEMENTED;
    case 503: return StatusCode::UNAVAILABLE;
    case 504: return StatusCode::DEADLINE_EXCEEDED;
    default: return StatusCode::INTERNAL;
  }
}

Status status_of(const GrpcError& error) { return {code_of(error.status), error.message}; }

// JSON and messages have the same names.
template <class Message>
void fill(Message& message, const std::string& json) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &message, options);
  if (!status.ok()) fail(ErrorCode::internal, "a description does not fit its message: {}", std::string(status.message()));
}

// What all calls share.
class Calls {
 public:
  Calls(GrpcHost host, int threads, int waiting) : host(std::move(host)), pool(threads, waiting) {}

  GrpcHost host;
  HandlerPool pool;

  std::optional<Status> refused(const CallbackServerContext& context, GrpcCall& call, bool health) const {
    if (!host.guard) return std::nullopt;
    call.peer = context.peer();
    call.health = health;
    const auto at = context.client_metadata().find("authorization");
    if (at != context.client_metadata().end()) call.authorization.assign(at->second.data(), at->second.size());
    const std::optional<GrpcError> error = host.guard(call);
    return error ? std::optional(status_of(*error)) : std::nullopt;
  }

  // What `work` throws, as a status.
  template <class Work>
  Status attempt(const Work& work) const {
    try {
      work();
      return Status::OK;
    } catch (...) {
      return status_of(host.meaning(std::current_exception()));
    }
  }
};

std::optional<std::chrono::milliseconds> time_left(const CallbackServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::system_clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

void limit_time(InferRequest& request, const CallbackServerContext& context) {
  if (const auto left = time_left(context)) request.run.timeout = std::min(request.run.timeout.value_or(*left), *left);
}

// ---- Calls with one answer ----

class Unary : public grpc::ServerUnaryReactor {
 public:
  GrpcCall call;
  CancelToken cancel;
  void OnDone() override { delete this; }
  void OnCancel() override { cancel.cancel(); }
};

// Answers what takes microseconds at once.
template <class Work>
grpc::ServerUnaryReactor* at_once(const Calls& calls, CallbackServerContext* context, bool health, const Work& work) {
  auto* reactor = new Unary;
  const auto refused = calls.refused(*context, reactor->call, health);
  reactor->Finish(refused ? *refused : calls.attempt(work));
  return reactor;
}

// On a thread that may wait: models are loaded.
template <class Work>
grpc::ServerUnaryReactor* on_pool(Calls& calls, CallbackServerContext* context, Work work) {
  auto* reactor = new Unary;
  if (const auto refused = calls.refused(*context, reactor->call, false)) {
    reactor->Finish(*refused);
    return reactor;
  }
  if (!calls.pool.submit([&calls, reactor, work = std::move(work)] { reactor->Finish(calls.attempt(work)); })) {
    reactor->Finish({StatusCode::RESOURCE_EXHAUSTED, "the server is busy; try again later"});
  }
  return reactor;
}

// ---- A stream of inferences ----

// One at a time, in the order in which they come: a client that wants more at once opens more streams.
class Stream : public grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse> {
 public:
  Stream(Calls& calls, CallbackServerContext* context) : calls_(calls), context_(context) {
    if (const auto refused = calls_.refused(*context, call_, false)) {
      Finish(*refused);
      return;
    }
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(Status::OK);
      return;
    }
    response_.Clear();
    if (!calls_.pool.submit([this] { ask(); })) answer({StatusCode::RESOURCE_EXHAUSTED, "the server is busy; try again later"});
  }
  void OnWriteDone(bool ok) override {
    if (!ok) {
      Finish({StatusCode::CANCELLED, "the client has gone"});
      return;
    }
    StartRead(&request_);
  }
  void OnCancel() override { cancel_.cancel(); }
  void OnDone() override { delete this; }

 private:
  void ask() {
    try {
      InferRequest request = request_of(request_);
      limit_time(request, *context_);
      request.run.cancel = cancel_;
      calls_.host.infer(std::move(request), [this](const InferResult& result) {
        // Whoever calls this serves others too: nothing may leave it.
        answer(result.error ? status_of(calls_.host.meaning(result.error))
                            : calls_.attempt([&] { fill_response(*response_.mutable_infer_response(), request_.id(), result); }));
      });
    } catch (...) {
      answer(status_of(calls_.host.meaning(std::current_exception())));
    }
  }
  void answer(const Status& status) {
    if (!status.ok()) {
      response_.Clear();  // what was filled in before it failed
      response_.set_error_message(status.error_message().empty() ? "the request failed" : status.error_message());
      response_.mutable_infer_response()->set_id(request_.id());
    }
    StartWrite(&response_);
  }

  Calls& calls_;
  CallbackServerContext* context_;
  GrpcCall call_;
  CancelToken cancel_;
  inference::ModelInferRequest request_;
  inference::ModelStreamInferResponse response_;
};

// ---- Services ----

using Reactor = grpc::ServerUnaryReactor;

class Service final : public inference::GRPCInferenceService::CallbackService {
 public:
  explicit Service(Calls& calls) : calls_(calls) {}

  Reactor* ServerLive(CallbackServerContext* context, const inference::ServerLiveRequest* /*request*/,
                      inference::ServerLiveResponse* response) override {
    return at_once(calls_, context, true, [&] { response->set_live(true); });
  }
  Reactor* ServerReady(CallbackServerContext* context, const inference::ServerReadyRequest* /*request*/,
                       inference::ServerReadyResponse* response) override {
    return at_once(calls_, context, true, [&] { response->set_ready(calls_.host.ready()); });
  }
  Reactor* ModelReady(CallbackServerContext* context, const inference::ModelReadyRequest* request,
                      inference::ModelReadyResponse* response) override {
    return on_pool(calls_, context, [this, request, response] {
      try {
        calls_.host.need_model(request->name(), request->version());
        response->set_ready(true);
      } catch (const std::exception&) {  // why not is in the index
        response->set_ready(false);
      }
    });
  }
  Reactor* ServerMetadata(CallbackServerContext* context, const inference::ServerMetadataRequest* /*request*/,
                          inference::ServerMetadataResponse* response) override {
    return at_once(calls_, context, false, [&] { fill(*response, calls_.host.server()); });
  }
  Reactor* ModelMetadata(CallbackServerContext* context, const inference::ModelMetadataRequest* request,
                         inference::ModelMetadataResponse* response) override {
    return on_pool(calls_, context,
                   [this, request, response] { fill(*response, calls_.host.model(request->name(), request->version())); });
  }
  Reactor* ModelConfig(CallbackServerContext* context, const inference::ModelConfigRequest* request,
                       inference::ModelConfigResponse* response) override {
    return on_pool(calls_, context, [this, request, response] {
      fill(*response->mutable_config(), calls_.host.config(request->name(), request->version()));
    });
  }
  Reactor* ModelStatistics(CallbackServerContext* context, const inference::ModelStatisticsRequest* request,
                           inference::ModelStatisticsResponse* response) override {
    return on_pool(calls_, context,
                   [this, request, response] { fill(*response, calls_.host.statistics(request->name(), request->version())); });
  }
  Reactor* RepositoryIndex(CallbackServerContext* context, const inference::RepositoryIndexRequest* request,
                           inference::RepositoryIndexResponse* response) override {
    return on_pool(calls_, context,
                   [this, request, response] { fill(*response, "{\"models\":" + calls_.host.index(request->ready()) + "}"); });
  }
  Reactor* RepositoryModelLoad(CallbackServerContext* context, const inference::RepositoryModelLoadRequest* request,
                               inference::RepositoryModelLoadResponse* /*response*/) override {
    return on_pool(calls_, context, [this, request] { load(*request); });
  }
  Reactor* RepositoryModelUnload(CallbackServerContext* context, const inference::RepositoryModelUnloadRequest* request,
                                 inference::RepositoryModelUnloadResponse* /*response*/) override {
    return on_pool(calls_, context, [this, request] { calls_.host.unload(request->model_name()); });
  }

  Reactor* ModelInfer(CallbackServerContext* context, const inference::ModelInferRequest* request,
                      inference::ModelInferResponse* response) override {
    auto* reactor = new Unary;
    if (const auto refused = calls_.refused(*context, reactor->call, false)) {
      reactor->Finish(*refused);
    } else if (!calls_.pool.submit([=, this] { infer(reactor, *context, *request, *response); })) {
      reactor->Finish({StatusCode::RESOURCE_EXHAUSTED, "the server is busy; try again later"});
    }
    return reactor;
  }
  grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>* ModelStreamInfer(
      CallbackServerContext* context) override {
    return new Stream(calls_, context);
  }

  // What Triton's clients may ask for. Traces and logs of this server are set on its command line.
  Reactor* TraceSetting(CallbackServerContext* context, const inference::TraceSettingRequest* request,
                        inference::TraceSettingResponse* response) override {
    return at_once(calls_, context, false, [&] {
      if (request->settings_size() > 0) fail(ErrorCode::invalid_argument, "traces are set when the server starts (--otlp)");
      (*response->mutable_settings())["trace_level"].add_value("OFF");
      (*response->mutable_settings())["trace_mode"].add_value("opentelemetry");
    });
  }
  Reactor* LogSettings(CallbackServerContext* context, const inference::LogSettingsRequest* request,
                       inference::LogSettingsResponse* response) override {
    return at_once(calls_, context, false, [&] {
      if (request->settings_size() > 0) fail(ErrorCode::invalid_argument, "logs are set when the server starts (--log-format)");
      for (const char* level : {"log_info", "log_warning", "log_error"}) {
        (*response->mutable_settings())[level].set_bool_param(true);
      }
    });
  }

 private:
  void infer(Unary* reactor, const CallbackServerContext& context, const inference::ModelInferRequest& message,
             inference::ModelInferResponse& response) {
    const auto work = [&] {
      InferRequest request = request_of(message);
      limit_time(request, context);
      request.run.cancel = reactor->cancel;
      calls_.host.infer(std::move(request), [this, reactor, &message, &response](const InferResult& result) {
        reactor->Finish(result.error ? status_of(calls_.host.meaning(result.error))
                                     : calls_.attempt([&] { fill_response(response, message.id(), result); }));
      });
    };
    if (const Status status = calls_.attempt(work); !status.ok()) reactor->Finish(status);
  }

  void load(const inference::RepositoryModelLoadRequest& request) const {
    std::optional<std::string> config;
    for (const auto& [key, value] : request.parameters()) {
      if (key.starts_with("file:")) {
        fail(ErrorCode::not_implemented, "models are loaded from the repository alone: file parameters are not supported");
      }
      if (key != "config") fail(ErrorCode::invalid_argument, "loading has no parameter '{}'; it has config", key);
      config = value.string_param();
    }
    calls_.host.load(request.model_name(), config);
  }

  Calls& calls_;
};

class Health final : public grpc::health::v1::Health::CallbackService {
 public:
  explicit Health(Calls& calls) : calls_(calls) {}

  Reactor* Check(CallbackServerContext* context, const grpc::health::v1::HealthCheckRequest* request,
                 grpc::health::v1::HealthCheckResponse* response) override {
    auto* reactor = new Unary;
    const auto refused = calls_.refused(*context, reactor->call, true);
    if (refused) {
      reactor->Finish(*refused);
    } else if (!request->service().empty() && request->service() != "inference.GRPCInferenceService") {
      reactor->Finish({StatusCode::NOT_FOUND, "there is no such service"});
    } else {
      using grpc::health::v1::HealthCheckResponse;
      response->set_status(calls_.host.ready() ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
      reactor->Finish(Status::OK);
    }
    return reactor;
  }

 private:
  Calls& calls_;
};

class Server final : public GrpcServer {
 public:
  Server(const GrpcOptions& options, GrpcHost host)
      : calls_(std::move(host), options.threads, options.waiting), service_(calls_), health_(calls_) {
    grpc::ServerBuilder builder;
    const std::string address = (options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]") + ":" +
                                std::to_string(options.port);
    builder.AddListeningPort(address, credentials(options), &port_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<std::uint64_t>(options.message_bytes, (1U << 31) - 1)));
    builder.SetMaxSendMessageSize(-1);
    // A message is read and parsed before its key can be looked at.
    grpc::ResourceQuota quota("sdx serve");
    quota.Resize(static_cast<std::size_t>(options.memory_bytes));
    builder.SetResourceQuota(quota);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.streams);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a port that somebody else has is an error
    builder.RegisterService(&service_);
    builder.RegisterService(&health_);
    server_ = builder.BuildAndStart();
    if (!server_ || port_ == 0) fail(ErrorCode::io, "cannot listen on {} for gRPC", address);
  }
  ~Server() override { stop(std::chrono::milliseconds(0)); }

  int port() const override { return port_; }
  void stop(std::chrono::milliseconds grace) override {
    if (!server_) return;
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_->Wait();
    calls_.pool.join();
    server_.reset();
  }

 private:
  static std::shared_ptr<grpc::ServerCredentials> credentials(const GrpcOptions& options) {
    if (options.certificate.empty()) return grpc::InsecureServerCredentials();
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({options.key, options.certificate});
    return grpc::SslServerCredentials(tls);
  }

  Calls calls_;
  Service service_;
  Health health_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

std::unique_ptr<GrpcServer> serve_grpc(const GrpcOptions& options, GrpcHost host) {
  return std::make_unique<Server>(options, std::move(host));
}

}  // namespace sdx::serve
