#pragma once
// The functions with which a gRPC server answers: the same as HTTP's.

#include "serve/grpc_api.h"
#include "serve/inference/http_routes.h"

namespace sdx::serve {

// Without a guard, which the caller sets. The catalogue must outlive the server.
GrpcHost grpc_host(Catalog& catalog, const InferenceOptions& options = {});

}  // namespace sdx::serve
