// What a server reads before it knows who sent it: heads of requests, targets, forms, packed bodies.

#include <cstdint>
#include <cstdlib>
#include <sdx/error.hpp>
#include <string>

#include "serve/http/content_encoding.h"
#include "serve/http/head.h"
#include "serve/http/multipart.h"

namespace {

void unpack(std::string_view text) {
  constexpr std::size_t most = 1 << 16;
  for (const char* encoding : {"gzip", "deflate"}) {
    sdx::serve::Request request;
    request.headers = {{"Content-Encoding", encoding}};
    request.body = text;
    if (sdx::serve::is_encoded(request) == text.empty()) std::abort();
    const auto refused = sdx::serve::decode_body(request, most, sdx::serve::error_response);
    if (refused ? refused->status < 400 : request.body.size() > most) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const sdx::serve::HeadEnd end = sdx::serve::find_head_end(text);
  if (end.state == sdx::serve::HeadState::complete) {
    if (end.size > size) std::abort();
    static_cast<void>(sdx::serve::check_head(text.substr(0, end.size)));
  }
  sdx::serve::Request request;
  request.target = "/" + std::string(text);
  if (sdx::serve::split_target(request) && (request.path.front() != '/' || request.path.find("/../") != std::string::npos))
    std::abort();
  static_cast<void>(sdx::serve::multipart_boundary(text));
  try {
    for (const sdx::serve::Part& part : sdx::serve::parse_multipart(text, "XX")) {
      if (part.body.size() > size) std::abort();
    }
  } catch (const sdx::Error&) {  // forms may be refused
  }
  unpack(text);
  return 0;
}
