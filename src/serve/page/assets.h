#pragma once
// The page itself, put together from assets/ when the program is built.

#include <string_view>

namespace sdx::serve {

// HTML with style and script inside. @NONCE@ stands where the nonce of the Content-Security-Policy belongs.
extern const std::string_view kPage;

}  // namespace sdx::serve
