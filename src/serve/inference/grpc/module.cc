// libsdx_serve_grpc.so

#include <google/protobuf/stubs/common.h>
#if GOOGLE_PROTOBUF_VERSION < 4022000
#include <google/protobuf/stubs/logging.h>
#else
#include <absl/base/log_severity.h>
#include <absl/log/globals.h>
#endif

#include "config_text.h"
#include "serve/grpc_api.h"
#include "server.h"

namespace {

constexpr sdx::serve::GrpcModule kModule{sdx::module_head<sdx::serve::GrpcModule>(SDX_VERSION), sdx::serve::serve_grpc,
                                         sdx::serve::read_config_text};

}  // namespace

extern "C" __attribute__((visibility("default"))) const sdx::ModuleHead* sdx_serve_grpc_module() {
  // Otherwise every broken message causes a line on standard error; clients get errors as answers.
#if GOOGLE_PROTOBUF_VERSION < 4022000
  google::protobuf::SetLogHandler(nullptr);
#else
  absl::SetStderrThreshold(absl::LogSeverityAtLeast::kFatal);
#endif
  return &kModule.head;
}
