#include "media/modules.h"

#include <utility>

#include "base/error.h"
#include "media/metadata/exif.h"

namespace sdx::media {
namespace {

constexpr ModuleName kTiff{"sardonyx/libsdx_tiff.so", "sdx_tiff_module", "SDX_TIFF_LIB", "a TIFF picture", "libtiff6"};
constexpr ModuleName kHeif{"sardonyx/libsdx_heif.so", "sdx_heif_module", "SDX_HEIF_LIB", "a HEIC or AVIF picture", "libheif1"};
constexpr ModuleName kJxl{"sardonyx/libsdx_jxl.so", "sdx_jxl_module", "SDX_JXL_LIB", "a JPEG XL picture", "libjxl0.7"};
constexpr ModuleName kRaw{"sardonyx/libsdx_raw.so", "sdx_raw_module", "SDX_RAW_LIB", "a camera's raw file", "libraw20"};
constexpr ModuleName kColor{"sardonyx/libsdx_color.so", "sdx_color_module", "SDX_COLOR_LIB", "a colour profile", "liblcms2-2"};

// Receives the output of a module.
struct Received : CallbackError {
  const Request* request = nullptr;
  Stored stored;
  ModuleFacts facts{};
  std::string jpeg;
};

bool on_facts(void* context, const ModuleFacts* facts) {
  auto* r = static_cast<Received*>(context);
  return r->guarded([&] {
    if (r->request != nullptr) check_size(facts->width, facts->height, r->request->limits);
    r->facts = *facts;
  });
}

bool on_block(void* context, Block kind, const void* data, std::size_t size) {
  auto* r = static_cast<Received*>(context);
  return r->guarded([&] {
    Metadata& m = r->stored.metadata;
    std::string* const places[] = {&m.exif, &m.xmp, &m.icc, &m.iptc, &r->jpeg};
    places[static_cast<int>(kind)]->assign(static_cast<const char*>(data), size);
  });
}

unsigned char* on_pixels(void* context, int width, int height, int channels) {
  auto* r = static_cast<Received*>(context);
  const bool good = r->guarded([&] {
    check_size(width, height, r->request->limits);
    r->stored.image = Image::blank(width, height, channels);
  });
  return good ? r->stored.image.pixels.data() : nullptr;
}

[[noreturn]] void failed(Outcome outcome, const char* format, const char* message, bool reading) {
  if (outcome == Outcome::damaged) fail(ErrorCode::invalid_argument, "the {} image is damaged: {}", format, message);
  if (outcome == Outcome::unsupported) {
    fail(ErrorCode::invalid_argument, "the {} image is of a kind that is not supported: {}", format, message);
  }
  fail(ErrorCode::runtime_failure, "cannot {} the {} image: {}", reading ? "read" : "write", format, message);
}

void read(const PictureModule& module, const char* format, const ModuleRead& request, Received& received) {
  char message[256] = "";
  const ModuleSink sink{&received, on_facts, on_block, on_pixels};
  const Outcome outcome = module.read(&request, &sink, {message, sizeof message});
  received.rethrow();
  if (outcome != Outcome::ok) failed(outcome, format, message, true);
}

Received decode(const PictureModule& module, const char* format, std::span<const std::byte> bytes, const Request& request) {
  Received r;
  r.request = &request;
  read(module, format, {bytes.data(), bytes.size(), request.limits.pixels, request.at_least, false, request.metadata}, r);
  r.stored.width = r.stored.image.width;
  r.stored.height = r.stored.image.height;
  r.stored.orientation = r.facts.orientation;
  r.stored.inks = r.facts.inks;
  r.stored.grey = r.facts.grey;
  r.stored.metadata.dpi = r.facts.dpi > 0 ? r.facts.dpi : read_exif(r.stored.metadata.exif).dpi;
  return r;
}

ImageInfo probe(const PictureModule& module, const char* format, std::span<const std::byte> bytes) {
  Received r;
  read(module, format, {bytes.data(), bytes.size(), INT64_MAX, 0, true, false}, r);
  ImageInfo info;
  info.stored_width = static_cast<int>(r.facts.width);
  info.stored_height = static_cast<int>(r.facts.height);
  info.orientation = r.facts.orientation;
  info.alpha = r.facts.alpha;
  info.icc = r.facts.icc;
  info.animation = r.facts.animation;
  return info;
}

bool on_write(void* context, const void* data, std::size_t size) {
  try {
    static_cast<std::string*>(context)->append(static_cast<const char*>(data), size);
    return true;
  } catch (...) {
    return false;
  }
}

ModuleBytes bytes_of(const std::string& text) { return {text.data(), text.size()}; }

ModuleWrite request_for(const Image& image, const Writing& writing, std::string& out) {
  const Metadata& m = writing.metadata;
  ModuleWrite request{};
  request.pixels = image.pixels.data();
  request.width = image.width;
  request.height = image.height;
  request.channels = image.channels;
  request.quality = writing.quality;
  request.dpi = writing.dpi;
  request.exif = bytes_of(m.exif);
  request.xmp = bytes_of(m.xmp);
  request.icc = bytes_of(m.icc);
  request.iptc = bytes_of(m.iptc);
  request.context = &out;
  request.write = on_write;
  return request;
}

void write(const PictureModule& module, const char* format, const ModuleWrite& request) {
  char message[256] = "";
  const Outcome outcome = module.write(&request, {message, sizeof message});
  if (outcome != Outcome::ok) failed(Outcome::failed, format, message, false);
}

}  // namespace

std::vector<FormatModule> format_modules() {
  return {{"tiff", "TIFF pictures", ask_for<PictureModule, kTiff>()},
          {"heif", "HEIC and AVIF pictures", ask_for<PictureModule, kHeif>()},
          {"jxl", "JPEG XL pictures", ask_for<PictureModule, kJxl>()},
          {"raw", "raw files of cameras", ask_for<PictureModule, kRaw>()},
          {"color", "colour profiles of pictures", ask_for<ColorModule, kColor>()}};
}

Stored decode_tiff(std::span<const std::byte> bytes, const Request& request) {
  Received r = decode(load_module<PictureModule, kTiff>(), "TIFF", bytes, request);
  if (request.metadata) {
    r.stored.metadata.exif = exif_of_tiff({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return std::move(r.stored);
}

Stored decode_heif(std::span<const std::byte> bytes, const Request& request) {
  return decode(load_module<PictureModule, kHeif>(), "HEIC or AVIF", bytes, request).stored;
}

Stored decode_jxl(std::span<const std::byte> bytes, const Request& request) {
  return decode(load_module<PictureModule, kJxl>(), "JPEG XL", bytes, request).stored;
}

Stored decode_raw(std::span<const std::byte> bytes, const Request& request) {
  Received r = decode(load_module<PictureModule, kRaw>(), "raw", bytes, request);
  if (r.jpeg.empty()) return std::move(r.stored);
  Request inner = request;
  inner.region.reset();  // of another size; cut afterwards
  if (request.region) inner.at_least = 0;
  Stored preview = decode_jpeg(std::as_bytes(std::span<const char>(r.jpeg)), inner);
  // Some cameras turn the preview itself, and leave its own orientation at 1 or out.
  const bool lies = r.facts.width >= r.facts.height, preview_lies = preview.width >= preview.height;
  if (preview.orientation == 1 && lies == preview_lies) preview.orientation = r.facts.orientation;
  return preview;
}

ImageInfo probe_tiff(std::span<const std::byte> bytes) { return probe(load_module<PictureModule, kTiff>(), "TIFF", bytes); }
ImageInfo probe_heif(std::span<const std::byte> bytes) {
  return probe(load_module<PictureModule, kHeif>(), "HEIC or AVIF", bytes);
}
ImageInfo probe_jxl(std::span<const std::byte> bytes) { return probe(load_module<PictureModule, kJxl>(), "JPEG XL", bytes); }
ImageInfo probe_raw(std::span<const std::byte> bytes) { return probe(load_module<PictureModule, kRaw>(), "raw", bytes); }

std::string write_tiff(const Image& image, const Writing& writing) {
  // The directories and tags of a TIFF's main directory that belong to EXIF: description, maker, model, software, date, artist,
  // copyright.
  constexpr unsigned kTags[] = {0x010E, 0x010F, 0x0110, 0x0131, 0x0132, 0x013B, 0x8298};
  const std::string& exif = writing.metadata.exif;
  std::vector<std::string> texts;
  std::vector<unsigned> tags;
  for (const unsigned tag : kTags) {
    if (std::string text = exif_text(exif, tag); !text.empty()) {
      tags.push_back(tag);
      texts.push_back(std::move(text));
    }
  }
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  std::string out;
  ModuleWrite request = request_for(image, writing, out);
  request.big_endian = exif_is_big_endian(exif);
  request.exif_directory = exif_has_directory(exif, 0x8769);
  request.gps_directory = exif_has_directory(exif, 0x8825);
  request.tags = tags.data();
  request.texts = pointers.data();
  request.tag_count = tags.size();
  write(load_module<PictureModule, kTiff>(), "TIFF", request);
  append_exif(out, exif);
  return out;
}

std::string write_avif(const Image& image, const Writing& writing) {
  std::string out;
  write(load_module<PictureModule, kHeif>(), "AVIF", request_for(image, writing, out));
  return out;
}

bool apply_profile(Stored& picture, std::string& why) {
  Image& image = picture.image;
  const std::string& icc = picture.metadata.icc;
  const ColorModule& module = load_module<ColorModule, kColor>();
  const auto run = [&](Colors colors) {
    char message[256] = "";
    const int channels = colors == Colors::inks ? 3 : image.channels;
    const ModuleTransform request{icc.data(),   icc.size(),     colors,  image.pixels.data(), image.pixels.data(), image.width,
                                  image.height, image.channels, channels};
    const Outcome outcome = module.to_srgb(&request, {message, sizeof message});
    why = message;
    return outcome;
  };
  const Outcome outcome = picture.inks ? run(Colors::inks) : run(Colors::rgb);
  if (outcome == Outcome::unsupported && picture.grey) return run(Colors::grey) == Outcome::ok;
  if (outcome != Outcome::ok) return false;
  if (picture.inks) {
    image.channels = 3;
    image.pixels.resize(image.stride() * static_cast<std::size_t>(image.height));
    picture.inks = false;
  }
  return true;
}

}  // namespace sdx::media
