#pragma once
// What libsdx_hub.so offers: HTTP and checksums. A library of its own, loaded at the first download, because loading OpenSSL
// takes longer than the whole of `sdx inspect` on a small model. Plain C types: nothing is thrown and nothing is freed across the
// border.

#include <cstddef>

#include "base/module/module.h"

namespace sdx::hub {

struct ModuleHeader {
  const char* name;
  const char* value;
};

enum class Outcome : int {
  ok = 0,
  no_connection = 1,  // the name is unknown, nobody listens, or the certificate is refused
  broken = 2,         // the connection ended before the response did
  stalled = 3,        // fewer than `stall_bytes` came in `timeout_ms`
  oversized = 4,      // the header is longer than any honest one
  stopped = 5,        // a callback returned false
};

struct ModuleRequest {
  const char* origin;  // "https://host:port"
  const char* path;    // "/a%20b?c", ready to be sent
  const char* proxy_host = nullptr;
  int proxy_port = 0;
  const ModuleHeader* headers = nullptr;
  std::size_t header_count = 0;
  int timeout_ms = 30000;
  std::size_t stall_bytes = 1024;
  void* context = nullptr;
  // Called once, before any data; false ends the request.
  bool (*on_response)(void* context, int status, const ModuleHeader* headers, std::size_t count) = nullptr;
  bool (*on_data)(void* context, const char* data, std::size_t size) = nullptr;
};

struct Module {
  static constexpr ModuleName kModule{"sardonyx/libsdx_hub.so", "sdx_hub_module", "SDX_HUB_LIB", "downloading"};

  ModuleHead head;
  // `error` receives a description of everything but ok and stopped.
  Outcome (*get)(const ModuleRequest* request, char* error, std::size_t error_size);
  // "sha256" or "sha1"; null when there is no such thing.
  void* (*digest_new)(const char* algorithm);
  bool (*digest_update)(void* digest, const void* data, std::size_t size);
  // Frees the digest. Writes at most 32 bytes; returns how many, 0 for a failure.
  std::size_t (*digest_finish)(void* digest, unsigned char* out);
};

}  // namespace sdx::hub
