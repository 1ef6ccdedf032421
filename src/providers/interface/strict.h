#pragma once

#include <string_view>

namespace sdx {

// The end of errors that are due to `strict`. Callers that set it by themselves say instead what their own users can give:
// session::without_strict().
inline constexpr std::string_view kOmitStrict = ". Omit `strict` to fall back to the next provider";

}  // namespace sdx
