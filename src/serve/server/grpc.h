#pragma once
// The server's gRPC side.

#include <memory>

#include "serve/grpc_api.h"
#include "serve/models/catalog.h"
#include "serve/module_api.h"
#include "serve/server/guard.h"
#include "serve/server/settings.h"

namespace sdx::serve {

// Null where the settings say that there is none. Everything given must outlive it. Throws Error(io) where the library or the
// address cannot be had.
std::unique_ptr<GrpcServer> start_grpc(const ServeRequest& request, const Settings& settings, Catalog& catalog, Guard& guard);

// Reads the files of the certificate again, which HTTP's side has found fit. Throws Error(io).
void reload_certificate(GrpcServer& server, const ServeRequest& request);

}  // namespace sdx::serve
