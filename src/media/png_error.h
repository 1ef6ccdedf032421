#pragma once
// libpng, too, reports errors through longjmp: the functions that call setjmp hold no objects with destructors.

#include <png.h>

#include <cstdio>

namespace sdx::media {

struct PngMessage {
  char text[160] = "";
};

[[noreturn]] inline void png_failed(png_structp png, png_const_charp text) {
  auto* message = static_cast<PngMessage*>(png_get_error_ptr(png));
  std::snprintf(message->text, sizeof message->text, "%s", text);
  png_longjmp(png, 1);
}

inline void png_warned(png_structp, png_const_charp) {}

}  // namespace sdx::media
