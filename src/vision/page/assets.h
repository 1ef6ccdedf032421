#pragma once
// The page itself, put together from assets/ when the program is built.

#include <string_view>

namespace sdx::faces::page {

// HTML with style and script inside. @NONCE@ stands where the nonce of the Content-Security-Policy belongs.
extern const std::string_view kDocument;

}  // namespace sdx::faces::page
