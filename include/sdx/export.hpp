#pragma once
// Marks the symbols that libsdx exports.

#if defined(_WIN32)
#define SDX_API
#else
#define SDX_API __attribute__((visibility("default")))
#endif
