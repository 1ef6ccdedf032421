#pragma once
// libsdx_serve_grpc.so (serve/grpc_api.h), loaded when it is first asked for.

#include "serve/grpc_api.h"

namespace sdx::serve {

// Throws Error(io) with what was tried.
const GrpcModule& grpc_module();

}  // namespace sdx::serve
