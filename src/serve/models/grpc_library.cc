#include "serve/models/grpc_library.h"

#include <dlfcn.h>

#include <string_view>

#include "base/system/own_library.h"

namespace sdx::serve {
namespace {

void* module_of(void* handle) {
  const auto function = reinterpret_cast<SdxServeGrpcModuleFunction>(::dlsym(handle, "sdx_serve_grpc_module"));
  const GrpcModule* module = function == nullptr ? nullptr : function();
  if (module == nullptr || module->version != kGrpcModuleVersion || std::string_view(module->product) != SDX_VERSION)
    return nullptr;
  return const_cast<GrpcModule*>(module);  // which nobody writes to
}

const GrpcModule& load() {
  // Beside libsdx_serve.so; of tests, below the program's neighbour.
  const OwnLibrary library{"libsdx_serve_grpc.so",
                           "SDX_SERVE_GRPC_LIB",
                           "gRPC and config.pbtxt",
                           {folder_of(reinterpret_cast<const void*>(&module_of)), program_folder()},
                           {".", "../lib/sardonyx"}};
  return *static_cast<const GrpcModule*>(load_own_library(library, module_of));
}

}  // namespace

const GrpcModule& grpc_module() {
  static const GrpcModule& loaded = load();
  return loaded;
}

}  // namespace sdx::serve
