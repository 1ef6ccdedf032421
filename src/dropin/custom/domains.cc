// Domains of programs' operators, and libraries that bring them.

#include <memory>

#include "base/system/file.h"
#include "base/system/loader.h"
#include "dropin/custom/libraries.h"
#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

OrtStatus* create_domain(const char* name, OrtCustomOpDomain** out) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    auto made = std::make_unique<OrtCustomOpDomain>();
    made->name = &require(name, "domain");
    *out = made.release();
  });
}

void release_domain(OrtCustomOpDomain* domain) noexcept { delete domain; }

OrtStatus* add_op(OrtCustomOpDomain* domain, const OrtCustomOp* op) noexcept {
  return guarded([&] { require(domain, "custom_op_domain").ops.push_back(&require(op, "op")); });
}

OrtStatus* add_domain(OrtSessionOptions* options, OrtCustomOpDomain* domain) noexcept {
  return guarded([&] { require(options, "options").domains.push_back(&require(domain, "custom_op_domain")); });
}

void* open_library(const char* path) {
  std::string why;
  void* const handle = load_library(path_of(&require(path, "library_path")), LibraryUse::local, why);
  if (handle == nullptr) fail_ort(ORT_FAIL, std::string("Failed to load library ") + path + " with error: " + why);
  return handle;
}

RegisterCustomOps entry_of(void* handle, const char* name, const std::string& where) {
  void* const entry = symbol_of(handle, name);
  if (entry == nullptr) fail_ort(ORT_FAIL, std::string("Failed to get symbol ") + name + " with error: " + where);
  return reinterpret_cast<RegisterCustomOps>(entry);
}

// The program closes the library.
OrtStatus* register_library(OrtSessionOptions* options, const char* path, void** library) noexcept {
  return guarded([&] {
    require(library, "library_handle") = nullptr;
    require(options, "options");
    void* const handle = open_library(path);
    try {
      const RegisterCustomOps entry = entry_of(handle, kRegisterCustomOps, path);
      if (OrtStatus* const status = entry(options, api_base())) {
        const OrtErrorCode code = status_code(status);
        std::string message = status_message(status);
        release_status(status);
        fail_ort(code, std::move(message));
      }
    } catch (...) {
      unload_library(handle);
      throw;
    }
    *library = handle;
  });
}

// Ours to close, which happens when the last session that may use its operators has ended.
OrtStatus* register_library_for_good(OrtSessionOptions* options, const char* path) noexcept {
  OrtStatus* refused = nullptr;
  OrtStatus* const status = guarded([&] {
    OrtSessionOptions& o = require(options, "options");
    const std::shared_ptr<const void> library(open_library(path), [](const void* h) { unload_library(const_cast<void*>(h)); });
    const std::size_t before = o.domains.size();
    o.kept.push_back(library);
    refused = entry_of(const_cast<void*>(library.get()), kRegisterCustomOps, path)(options, api_base());
    if (refused == nullptr) return;
    o.domains.resize(before);
    // The message is in our memory; objects that the library made stay loaded until the options end.
  });
  return status != nullptr ? status : refused;
}

// A function of the program itself or of a library that it has loaded for all to see.
OrtStatus* register_using_function(OrtSessionOptions* options, const char* name) noexcept {
  OrtStatus* refused = nullptr;
  OrtStatus* const status = guarded([&] {
    require(options, "options");
    if (*(&require(name, "registration_func_name")) == '\0') {
      fail_ort(ORT_INVALID_ARGUMENT, "RegisterCustomOpsUsingFunction: Registration function name must be specified.");
    }
    refused = entry_of(nullptr, name, "it is not among the symbols that all libraries see")(options, api_base());
  });
  return status != nullptr ? status : refused;
}

// ONNX Runtime's own build has them only where it was built with its extensions; so here: they are asked for from the package's
// library, where it is loaded or can be found by name.
OrtStatus* enable_extensions(OrtSessionOptions* options) noexcept {
  OrtStatus* refused = nullptr;
  OrtStatus* const status = guarded([&] {
    require(options, "options");
    void* entry = symbol_of(nullptr, kRegisterCustomOps);
    if (entry == nullptr) {
      std::string why;
      void* const handle = load_library("libortextensions.so", LibraryUse::for_good, why);
      if (handle != nullptr) entry = symbol_of(handle, kRegisterCustomOps);
    }
    if (entry == nullptr) {
      fail_ort(ORT_FAIL,
               "EnableOrtCustomOps: Custom operators in onnxruntime-extensions are not enabled: libortextensions.so is neither "
               "loaded nor found; register its path with RegisterCustomOpsLibrary_V2");
    }
    refused = reinterpret_cast<RegisterCustomOps>(entry)(options, api_base());
  });
  return status != nullptr ? status : refused;
}

}  // namespace

void fill_domains(Table& table) {
  table.set(Slot::CreateCustomOpDomain, &create_domain);
  table.set(Slot::ReleaseCustomOpDomain, &release_domain);
  table.set(Slot::CustomOpDomain_Add, &add_op);
  table.set(Slot::AddCustomOpDomain, &add_domain);
  table.set(Slot::RegisterCustomOpsLibrary, &register_library);
  table.set(Slot::RegisterCustomOpsLibrary_V2, &register_library_for_good);
  table.set(Slot::RegisterCustomOpsUsingFunction, &register_using_function);
  table.set(Slot::EnableOrtCustomOps, &enable_extensions);
}

}  // namespace sdx::dropin
