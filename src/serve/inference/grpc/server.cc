#include "server.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include "base/error.h"
#include "calls.h"
#include "credentials.h"
#include "health.grpc.pb.h"
#include "inference.grpc.pb.h"
#include "messages.h"
#include "stream.h"

namespace sdx::serve {
namespace {

using grpc::CallbackServerContext;
using grpc::Status;
using grpc::StatusCode;

// JSON and messages have the same names.
template <class Message>
void fill(Message& message, const std::string& json) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &message, options);
  if (!status.ok()) fail(ErrorCode::internal, "a description does not fit its message: {}", std::string(status.message()));
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

// Runs on a thread that may wait, because models are loaded.
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

// An inference. Its message is parsed here and not by gRPC, so that keys come first, and not on gRPC's threads.
class Inference final : public Unary {
 public:
  inference::ModelInferRequest request;
  inference::ModelInferResponse response;

  // False if the call has ended with an error. Releases `bytes`, so that tensors are not in memory twice.
  bool read(const Calls& calls, grpc::ByteBuffer& bytes) {
    Status parsed;
    Status status =
        calls.attempt([&] { parsed = grpc::SerializationTraits<inference::ModelInferRequest>::Deserialize(&bytes, &request); });
    if (status.ok() && !parsed.ok()) status = {StatusCode::INVALID_ARGUMENT, "the message is not a ModelInferRequest"};
    if (!status.ok()) Finish(status);
    return status.ok();
  }
  void answer(const Calls& calls, grpc::ByteBuffer& bytes) {
    Status made;
    const Status status = calls.attempt([&] {
      bool owns = false;
      made = grpc::SerializationTraits<inference::ModelInferResponse>::Serialize(response, &bytes, &owns);
    });
    Finish(status.ok() ? made : status);
  }
};

// ---- Services ----

using Reactor = grpc::ServerUnaryReactor;
using RawService =
    inference::GRPCInferenceService::WithRawCallbackMethod_ModelInfer<inference::GRPCInferenceService::CallbackService>;

class InferenceService final : public RawService {
 public:
  explicit InferenceService(Calls& calls) : calls_(calls) {}

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

  Reactor* ModelInfer(CallbackServerContext* context, const grpc::ByteBuffer* request, grpc::ByteBuffer* response) override {
    auto* reactor = new Inference;
    auto* const bytes = const_cast<grpc::ByteBuffer*>(request);  // the call's own, which nobody else reads
    if (const auto refused = calls_.refused(*context, reactor->call, false)) {
      reactor->Finish(*refused);
    } else if (!calls_.pool.submit([=, this] {
                 if (reactor->read(calls_, *bytes)) infer(reactor, *context, *response);
               })) {
      reactor->Finish({StatusCode::RESOURCE_EXHAUSTED, "the server is busy; try again later"});
    }
    return reactor;
  }
  grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>* ModelStreamInfer(
      CallbackServerContext* context) override {
    return new_stream(calls_, context);
  }

  // Requests of Triton's clients. Traces and logs of this server are set on its command line.
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
  void infer(Inference* call, const CallbackServerContext& context, grpc::ByteBuffer& bytes) {
    const auto work = [&] {
      InferRequest request = request_of(call->request);
      limit_time(request, context);
      request.run.cancel = call->cancel;
      calls_.host.infer(std::move(request), [this, call, &bytes](const InferResult& result) {
        const Status status = result.error ? status_of(calls_.host.meaning(result.error))
                                           : calls_.attempt([&] { fill_response(call->response, call->request.id(), result); });
        if (!status.ok()) return call->Finish(status);
        call->answer(calls_, bytes);
      });
    };
    if (const Status status = calls_.attempt(work); !status.ok()) call->Finish(status);
  }

  void load(const inference::RepositoryModelLoadRequest& request) const {
    std::optional<std::string> config;
    for (const auto& [key, value] : request.parameters()) {
      if (key.starts_with("file:")) {
        fail(ErrorCode::not_implemented, "models are loaded only from the repository: file parameters are not supported");
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
    credentials_ = credentials(options);
    builder.AddListeningPort(address, credentials_, &port_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<std::uint64_t>(options.message_bytes, (1U << 31) - 1)));
    builder.SetMaxSendMessageSize(-1);
    // Without TLS a message is read before its key can be looked at.
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
  void replace_certificate(const std::string& certificate, const std::string& key) override {
    if (certificates_) certificates_->replace({certificate, key});
  }
  void stop(std::chrono::milliseconds grace) override {
    if (!server_) return;
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_->Wait();
    calls_.pool.join();
    server_.reset();
  }

 private:
  std::shared_ptr<grpc::ServerCredentials> credentials(const GrpcOptions& options) {
    if (options.certificate.empty()) return grpc::InsecureServerCredentials();
    certificates_ = std::make_shared<Certificates>(Certificates::Pair{options.certificate, options.key});
    return tls_credentials(certificates_, calls_.host.key_error);
  }

  Calls calls_;
  InferenceService service_;
  Health health_;
  int port_ = 0;
  std::shared_ptr<Certificates> certificates_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // used by the server for as long as it exists
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

std::unique_ptr<GrpcServer> serve_grpc(const GrpcOptions& options, GrpcHost host) {
  return std::make_unique<Server>(options, std::move(host));
}

}  // namespace sdx::serve
