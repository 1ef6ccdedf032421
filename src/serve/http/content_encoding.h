#pragma once
// Bodies that clients have compressed (RFC 9110, section 8.4): gzip and deflate.

#include <cstdint>
#include <optional>

#include "serve/http/message.h"

namespace sdx::serve {

// True where the body must be decoded before it can be read.
bool is_encoded(const Request& request);

// Replaces the body by what it stands for, of `most` bytes at most. Memory follows what comes out, and counts against what all
// bodies may take. Nothing, or the refusal: 415 for other encodings, 400 for broken data, 413 and 503 for too much of it.
// Takes about 3 ms for each MB: not for threads that read and write.
std::optional<Response> decode_body(Request& request, std::uint64_t most, ErrorShape shape);

}  // namespace sdx::serve
