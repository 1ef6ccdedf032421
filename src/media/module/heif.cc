// libsdx_heif.so: HEIC and AVIF by libheif, which turns and mirrors pictures itself.

#include <libheif/heif.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "media/module/support.h"

namespace sdx::media {
namespace {

struct Free {
  void operator()(heif_context* c) const { heif_context_free(c); }
  void operator()(heif_image_handle* h) const { heif_image_handle_release(h); }
  void operator()(heif_image* i) const { heif_image_release(i); }
  void operator()(heif_encoder* e) const { heif_encoder_release(e); }
  void operator()(heif_decoding_options* o) const { heif_decoding_options_free(o); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

Outcome outcome_of(const heif_error& e) {
  const bool kind = e.code == heif_error_Unsupported_feature || e.code == heif_error_Unsupported_filetype ||
                    e.code == heif_error_Plugin_loading_error;
  if (kind) return Outcome::unsupported;
  return e.code == heif_error_Memory_allocation_error ? Outcome::failed : Outcome::damaged;
}

bool send(const ModuleSink& sink, Block kind, const std::vector<unsigned char>& bytes, std::size_t from = 0) {
  return from >= bytes.size() || sink.block(sink.context, kind, bytes.data() + from, bytes.size() - from);
}

// The block begins with four bytes that say where behind them the TIFF structure begins.
std::size_t exif_start(const std::vector<unsigned char>& bytes) {
  if (bytes.size() < 4) return bytes.size();
  const std::size_t skip = std::size_t{bytes[0]} << 24 | std::size_t{bytes[1]} << 16 | std::size_t{bytes[2]} << 8 | bytes[3];
  return std::min(bytes.size(), 4 + skip);
}

bool send_blocks(const heif_image_handle* handle, const ModuleSink& sink) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  heif_item_id ids[16];
  const int count = heif_image_handle_get_list_of_metadata_block_IDs(handle, nullptr, ids, 16);
  for (int i = 0; i < std::min(count, 16); ++i) {
    const char* type = heif_image_handle_get_metadata_type(handle, ids[i]);
    const char* content = heif_image_handle_get_metadata_content_type(handle, ids[i]);
    const std::size_t size = heif_image_handle_get_metadata_size(handle, ids[i]);
    if (type == nullptr || size == 0 || size > kMost) continue;
    std::vector<unsigned char> bytes(size);
    if (heif_image_handle_get_metadata(handle, ids[i], bytes.data()).code != heif_error_Ok) continue;
    if (std::strcmp(type, "Exif") == 0 && !send(sink, Block::exif, bytes, exif_start(bytes))) return false;
    const bool xmp = content != nullptr && std::strcmp(content, "application/rdf+xml") == 0;
    if (xmp && !send(sink, Block::xmp, bytes)) return false;
  }
  std::vector<unsigned char> profile(std::min(heif_image_handle_get_raw_color_profile_size(handle), kMost));
  if (profile.empty() || heif_image_handle_get_raw_color_profile(handle, profile.data()).code != heif_error_Ok) return true;
  return send(sink, Block::icc, profile);
}

void undo_premultiplication(unsigned char* row, int width) {
  for (int x = 0; x < width; ++x, row += 4) {
    for (int c = 0; c < 3 && row[3] != 0; ++c) {
      row[c] = static_cast<unsigned char>(std::min(255, (row[c] * 255 + row[3] / 2) / row[3]));
    }
  }
}

Outcome read_pixels(heif_image_handle* handle, bool alpha, const ModuleSink& sink, ModuleText error) {
  const Owned<heif_decoding_options> options(heif_decoding_options_alloc());
  if (!options) return say(error, Outcome::failed, "there is not enough memory");
  options->strict_decoding = 1;
  options->convert_hdr_to_8bit = 1;
  heif_image* raw = nullptr;
  const heif_error e = heif_decode_image(handle, &raw, heif_colorspace_RGB,
                                         alpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, options.get());
  const Owned<heif_image> image(raw);
  if (e.code != heif_error_Ok) return say(error, outcome_of(e), e.message);
  const int width = heif_image_get_width(raw, heif_channel_interleaved),
            height = heif_image_get_height(raw, heif_channel_interleaved);
  int stride = 0;
  const std::uint8_t* plane = heif_image_get_plane_readonly(raw, heif_channel_interleaved, &stride);
  const int channels = alpha ? 4 : 3;
  if (plane == nullptr || width < 1 || height < 1 || stride / channels < width)
    return say(error, Outcome::damaged, "it has no pixels");
  unsigned char* out = sink.pixels(sink.context, width, height, channels);
  if (out == nullptr) return Outcome::stopped;
  const bool premultiplied = alpha && heif_image_handle_is_premultiplied_alpha(handle) != 0;
  const std::size_t line = static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
  for (int y = 0; y < height; ++y, out += line) {
    std::memcpy(out, plane + static_cast<std::size_t>(y) * static_cast<std::size_t>(stride), line);
    if (premultiplied) undo_premultiplication(out, width);
  }
  return Outcome::ok;
}

Outcome read(const ModuleRead* request, const ModuleSink* sink, ModuleText error) {
  return guarded(error, [&] {
    const Owned<heif_context> context(heif_context_alloc());
    if (!context) return say(error, Outcome::failed, "there is not enough memory");
    heif_context_set_maximum_image_size_limit(context.get(), 65535);
    heif_error e = heif_context_read_from_memory_without_copy(context.get(), request->data, request->size, nullptr);
    if (e.code != heif_error_Ok) return say(error, outcome_of(e), e.message);
    heif_image_handle* raw = nullptr;
    e = heif_context_get_primary_image_handle(context.get(), &raw);
    const Owned<heif_image_handle> handle(raw);
    if (e.code != heif_error_Ok) return say(error, outcome_of(e), e.message);
    const bool alpha = heif_image_handle_has_alpha_channel(raw) != 0;
    const bool icc = heif_image_handle_get_raw_color_profile_size(raw) > 0;
    const ModuleFacts facts{
        heif_image_handle_get_width(raw), heif_image_handle_get_height(raw), 1, alpha, false, false, icc, 0, false};
    // Before it is turned, the picture may be larger, by the part that is cut off.
    const std::int64_t stored = std::int64_t{heif_image_handle_get_ispe_width(raw)} * heif_image_handle_get_ispe_height(raw);
    if (!sink->facts(sink->context, &facts)) return Outcome::stopped;
    if (stored > request->most_pixels)
      return say(error, Outcome::unsupported, "it has more pixels than the limit before it is cut");
    if (request->header) return Outcome::ok;
    // The limit holds for the tiles, too, which a file may declare larger than the picture that they make up.
    const double side = std::ceil(std::sqrt(static_cast<double>(request->most_pixels)));
    heif_context_set_maximum_image_size_limit(context.get(), static_cast<int>(std::min(side, 65535.0)));
    if (request->metadata && !send_blocks(raw, *sink)) return Outcome::stopped;
    return read_pixels(raw, alpha, *sink, error);
  });
}

heif_error fill(heif_image* image, const ModuleWrite& w) {
  const int channels = w.channels == 4 ? 4 : 3;
  const heif_error e = heif_image_add_plane(image, heif_channel_interleaved, w.width, w.height, 8);
  if (e.code != heif_error_Ok) return e;
  int stride = 0;
  std::uint8_t* plane = heif_image_get_plane(image, heif_channel_interleaved, &stride);
  const unsigned char* from = w.pixels;
  for (int y = 0; y < w.height; ++y) {
    std::uint8_t* to = plane + static_cast<std::size_t>(y) * static_cast<std::size_t>(stride);
    for (int x = 0; x < w.width; ++x, from += w.channels, to += channels) {
      for (int c = 0; c < channels; ++c) to[c] = from[w.channels == 1 ? 0 : c];
    }
  }
  if (w.icc.size == 0) return e;
  return heif_image_set_raw_color_profile(image, "prof", w.icc.data, w.icc.size);
}

heif_error on_write(heif_context*, const void* data, std::size_t size, void* user) {
  const auto* w = static_cast<const ModuleWrite*>(user);
  if (w->write(w->context, data, size)) return {heif_error_Ok, heif_suberror_Unspecified, "Success"};
  return {heif_error_Encoding_error, heif_suberror_Cannot_write_output_data, "there is not enough memory"};
}

// libheif keeps an error's message in the context or the image: it is copied before they go.
Outcome failed(const heif_error& e, ModuleText error) { return say(error, Outcome::failed, e.message); }

Outcome write_all(const ModuleWrite& w, ModuleText error) {
  const Owned<heif_context> context(heif_context_alloc());
  heif_encoder* raw_encoder = nullptr;
  heif_error e = heif_context_get_encoder_for_format(context.get(), heif_compression_AV1, &raw_encoder);
  const Owned<heif_encoder> encoder(raw_encoder);
  if (e.code != heif_error_Ok) {
    return say(error, Outcome::failed,
               "libheif has no encoder for AV1 here; from Debian 13 on, the package libheif-plugin-aomenc brings one");
  }
  heif_encoder_set_lossy_quality(raw_encoder, w.quality);
  if (w.quality >= 90) heif_encoder_set_parameter_string(raw_encoder, "chroma", "444");
  heif_encoder_set_parameter_integer(raw_encoder, "speed", 8);
  heif_image* raw_image = nullptr;
  e = heif_image_create(w.width, w.height, heif_colorspace_RGB,
                        w.channels == 4 ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, &raw_image);
  const Owned<heif_image> image(raw_image);
  if (e.code == heif_error_Ok) e = fill(raw_image, w);
  if (e.code != heif_error_Ok) return failed(e, error);
  heif_image_handle* raw_handle = nullptr;
  e = heif_context_encode_image(context.get(), raw_image, raw_encoder, nullptr, &raw_handle);
  const Owned<heif_image_handle> handle(raw_handle);
  if (e.code != heif_error_Ok) return failed(e, error);
  if (w.exif.size > 0) {
    e = heif_context_add_exif_metadata(context.get(), raw_handle, w.exif.data, static_cast<int>(w.exif.size));
  }
  if (e.code == heif_error_Ok && w.xmp.size > 0) {
    e = heif_context_add_XMP_metadata(context.get(), raw_handle, w.xmp.data, static_cast<int>(w.xmp.size));
  }
  if (e.code != heif_error_Ok) return failed(e, error);
  heif_writer writer{1, &on_write};
  e = heif_context_write(context.get(), &writer, const_cast<ModuleWrite*>(&w));
  return e.code == heif_error_Ok ? Outcome::ok : failed(e, error);
}

Outcome write(const ModuleWrite* w, ModuleText error) {
  return guarded(error, [&] { return write_all(*w, error); });
}

const PictureModule kModule{module_head<PictureModule>(SDX_VERSION), &read, &write};

}  // namespace
}  // namespace sdx::media

extern "C" __attribute__((visibility("default"))) const sdx::ModuleHead* sdx_heif_module() { return &sdx::media::kModule.head; }
