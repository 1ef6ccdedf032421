#pragma once
// libjpeg reports errors by calling a function that must not return. Throwing through its C frames is undefined, so the
// handler stores the message and longjmps; the functions that call setjmp hold no objects with destructors.

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

namespace sdx::media {

struct JpegError {
  jpeg_error_mgr manager;  // first: libjpeg hands back a pointer to it
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] inline void jpeg_failed(j_common_ptr info) {
  auto* state = reinterpret_cast<JpegError*>(info->err);
  info->err->format_message(info, state->message);
  longjmp(state->jump, 1);
}

// Warnings (level -1) about lost data make the file damaged; oddities such as stray bytes before a marker do not.
inline void jpeg_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC)
    jpeg_failed(info);
}

inline void install(JpegError& state) {
  jpeg_std_error(&state.manager);
  state.manager.error_exit = jpeg_failed;
  state.manager.emit_message = jpeg_message;
  state.message[0] = '\0';
}

}  // namespace sdx::media
