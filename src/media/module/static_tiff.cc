// What libsdx_tiff.so contains besides where libtiff is linked statically.
#include <cstddef>
#include <cstdio>

// Archives whose code would copy the C library's variable read these (cmake/archives.cmake).
extern "C" {
extern std::FILE* sdx_tiff_stderr;
extern std::FILE* sdx_zstd_stderr;
extern std::FILE* sdx_jpeg_stderr;
std::FILE* sdx_tiff_stderr = stderr;
std::FILE* sdx_zstd_stderr = stderr;
std::FILE* sdx_jpeg_stderr = stderr;

// JBIG-KIT, which libtiff uses for one rare compression, is under the GPL. These functions take its place; libtiff gives their
// message as the reason why such a picture cannot be read. We write no such pictures.
void jbg_dec_init(void*) {}
int jbg_dec_in(void*, unsigned char*, std::size_t, std::size_t*) { return 1; }
unsigned char* jbg_dec_getimage(const void*, int) { return nullptr; }
unsigned long jbg_dec_getsize(const void*) { return 0; }
void jbg_dec_free(void*) {}
int jbg_newlen(unsigned char*, std::size_t) { return 1; }
const char* jbg_strerror(int) { return "this build has no decoder for JBIG"; }
void jbg_enc_init(void*, unsigned long, unsigned long, int, unsigned char**, void (*)(unsigned char*, std::size_t, void*),
                  void*) {}
void jbg_enc_out(void*) {}
void jbg_enc_free(void*) {}
}
