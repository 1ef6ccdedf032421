#pragma once
// The interface of libsdx_serve_grpc.so: the Open Inference Protocol over gRPC, and reading config.pbtxt. It is a library of its
// own, loaded when one of the two is needed, because gRPC and protobuf bring 30 libraries. All is of one build: C++ types cross
// the border.

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/module/module.h"

namespace sdx::serve {

struct InferRequest;
struct InferResult;

// An answer that is an error; HTTP's statuses stand for gRPC's.
struct GrpcError {
  int status = 500;
  std::string message;
};

// One call, before its contents are parsed.
struct GrpcCall {
  std::string peer;            // "ipv4:127.0.0.1:40000"
  std::string authorization;   // "Bearer …", from the metadata of that name
  bool health = false;         // asks only whether the server is there
  std::shared_ptr<void> held;  // set by the guard; let go when the call has ended
};

// Cancels what may not have begun. Thread-safe.
class LateCancel {
 public:
  // Sets the function that cancel() calls, and calls it at once if cancel() was called before.
  void set(std::function<void()> call) {
    std::unique_lock lock(mutex_);
    call_ = std::move(call);
    const auto now = cancelled_ ? call_ : nullptr;
    lock.unlock();
    if (now) now();
  }
  void cancel() {
    std::unique_lock lock(mutex_);
    cancelled_ = true;
    const auto now = call_;
    lock.unlock();
    if (now) now();
  }

 private:
  std::mutex mutex_;
  std::function<void()> call_;
  bool cancelled_ = false;
};

// The functions with which the server answers. Called from any thread; all may throw sdx::Error.
struct GrpcHost {
  std::function<std::optional<GrpcError>(GrpcCall& call)> guard;  // empty: everybody may ask
  // The error of a key alone, as the guard would report it; counts nothing.
  std::function<std::optional<GrpcError>(std::string_view authorization)> key_error;
  std::function<void(InferRequest request, std::function<void(InferResult)> done)> infer;
  // Whether a model answers with text, piece by piece; then generate() asks it. `answer` is called for each piece as it comes and
  // once with `last`, by any thread but never by two at once; its result says whether more is wanted. Throws if the request
  // cannot be submitted; then `answer` is not called.
  std::function<bool(const std::string& name, const std::string& version)> generates;
  std::function<void(InferRequest request, std::function<bool(const InferResult& result, bool last)> answer,
                     std::shared_ptr<LateCancel> cancel)>
      generate;
  std::function<GrpcError(const std::exception_ptr& error)> meaning;
  std::function<bool()> ready;
  std::function<void(const std::string& name, const std::string& version)> need_model;  // throws where it is not ready
  // JSON, as HTTP has it.
  std::function<std::string()> server;
  std::function<std::string(const std::string& name, const std::string& version)> model, config, statistics;
  std::function<std::string(bool ready)> index;
  std::function<void(const std::string& name, const std::optional<std::string>& config)> load;
  std::function<void(const std::string& name)> unload;
};

struct GrpcOptions {
  std::string host = "127.0.0.1";
  int port = 0;                                           // 0: a free one
  std::string certificate, key;                           // PEM; "": no TLS
  std::uint64_t message_bytes = std::uint64_t{64} << 20;  // the most that a request may have
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;    // that gRPC reads into, of all connections together
  int streams = 256;                                      // calls at the same time on one connection; more wait
  int threads = 64;                                       // that run handlers
  int waiting = 1024;                                     // requests that wait for such a thread; beyond: RESOURCE_EXHAUSTED
};

// Destroying it ends calls under way within `grace` seconds.
class GrpcServer {
 public:
  virtual ~GrpcServer() = default;
  virtual int port() const = 0;
  // PEM, for connections made after the call. Only for a server that began with a certificate.
  virtual void replace_certificate(const std::string& certificate, const std::string& key) = 0;
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

struct GrpcModule {
  static constexpr ModuleName kModule{"sardonyx/libsdx_serve_grpc.so", "sdx_serve_grpc_module", "SDX_SERVE_GRPC_LIB",
                                      "gRPC and config.pbtxt", "libgrpc++1.51"};

  ModuleHead head;
  // Listens when it returns. Throws Error(io) where the address cannot be had.
  std::unique_ptr<GrpcServer> (*serve)(const GrpcOptions& options, GrpcHost host);
  // config.pbtxt as JSON with the same names. Fields that are not known here are added to `ignored`, as messages. Throws
  // Error(invalid_argument) with line and column.
  std::string (*read_config)(std::string_view text, std::vector<std::string>& ignored);
};

}  // namespace sdx::serve
