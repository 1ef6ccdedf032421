#pragma once
// The interface of libsdx_faces_page.so: a server for one page. It is a library of its own, because the command needs HTTP for
// nothing else about faces. Nothing is thrown and nothing is freed across the border.

#include <cstddef>
#include <cstdint>

#include "base/module/module.h"
#include "vision/batch/request.h"

namespace sdx::faces::page {

struct ModuleOptions {
  const vision::Request* request = nullptr;  // the model, its session and how it looks for faces
  std::uint16_t port = 0;                    // of 127.0.0.1; 0: a free one
  // Asked a few times a second; true ends the server.
  bool (*stopped)(void* context) = nullptr;
  // Called once, when the server listens: the address to open, with the token.
  void (*listening)(void* context, const char* url) = nullptr;
  void (*warning)(void* context, const char* text) = nullptr;
  void* context = nullptr;
};

struct Module {
  static constexpr ModuleName kModule{"sardonyx/libsdx_faces_page.so", "sdx_faces_page_module", "SDX_FACES_PAGE_LIB",
                                      "sdx faces page"};
  static constexpr std::size_t kTypesBytes = sizeof(vision::Request);

  ModuleHead head;
  // Serves until it is stopped. False for a failure, which `error` describes.
  bool (*serve)(const ModuleOptions* options, char* error, std::size_t error_size);
};

}  // namespace sdx::faces::page
