#pragma once
// Bodies that clients have compressed (RFC 9110, section 8.4): gzip and deflate.

#include <cstdint>
#include <optional>

#include "serve/http/message.h"

namespace sdx::serve {

// True where the body must be decoded before it can be read.
bool is_encoded(const Request& request);

// Replaces the body by its decoded form, of `most` bytes at most. Memory grows with the output, and counts against the limit for
// all bodies. Returns nothing, or the refusal: 415 for other encodings, 400 for broken data, 413 and 503 if it is too large.
// Takes about 3 ms for each MB, so it does not belong on threads that read and write.
std::optional<Response> decode_body(Request& request, std::uint64_t most, ErrorShape shape);

}  // namespace sdx::serve
