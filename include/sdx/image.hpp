#pragma once
// Images: decode them from files and memory, convert them to model inputs, draw on them and write them back.
//
//   const sdx::media::Image picture = sdx::media::read_image("photo.jpg");
//   const sdx::ValueSpec& input = session.inputs().front();
//   const sdx::NamedValues outputs = session.run({{input.name, sdx::media::to_tensor(picture, {.normalize = "imagenet"},
//   &input)}});
//
// Images are plain values that own their pixels. Functions keep no references to their arguments; any number of threads may call
// them at once, with different images or with one that nobody changes. All throw sdx::Error.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/export.hpp>
#include <sdx/preprocessing.hpp>
#include <sdx/session.hpp>
#include <sdx/tensor.hpp>

namespace sdx::media {

// 8 bits per channel, uint8[height, width, channels]: rows from top to bottom without padding. 3 channels are red, green, blue;
// the fourth is opacity (255 = opaque); a single one is grey.
struct SDX_API Image {
  int width = 0;  // pixels
  int height = 0;
  int channels = 3;
  std::vector<std::uint8_t> pixels;  // width * height * channels

  // Zeroed. Throws Error(invalid_argument) unless width and height are 1 to 65535 and channels is 1, 3 or 4.
  static Image blank(int width, int height, int channels = 3);
  // The first byte of a row; valid as long as `pixels` keeps its size.
  const std::uint8_t* row(int y) const { return pixels.data() + static_cast<std::size_t>(y) * stride(); }
  std::uint8_t* row(int y) { return pixels.data() + static_cast<std::size_t>(y) * stride(); }
  std::size_t stride() const { return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels); }  // bytes
};

struct DecodeLimits {
  std::int64_t pixels = 128'000'000;  // of the whole picture, checked against the header before allocating
  bool upright = true;                // false: the file's orientation is ignored (HEIC and AVIF are always turned)
};

// Decodes JPEG, PNG, WebP, GIF, BMP, TGA, PNM, PAM, TIFF, JPEG 2000, JPEG XL, HEIC, AVIF or a camera's raw file, whatever the
// file's name; of an animation the first picture. Returns three channels, or four if the file has opacity. Grey, palette, CMYK,
// interlaced and progressive files are converted; of 16-bit values the high byte is kept; colour profiles and gamma are not
// applied. The picture is turned upright by the file's orientation; an invalid orientation is ignored. Throws
// Error(invalid_argument) for other formats and damaged or truncated files, Error(out_of_memory) beyond `limits`, Error(io) if
// the library that a format needs (libtiff, libheif, libjxl, libraw) cannot be loaded, naming Debian's package; read_image() also
// throws Error(io) if it cannot read the file.
SDX_API Image decode_image(std::span<const std::byte> bytes, const DecodeLimits& limits = {});
SDX_API Image read_image(const std::filesystem::path& path, const DecodeLimits& limits = {});

// A region in pixels, from the upper left corner.
struct Rectangle {
  int x = 0, y = 0;
  int width = 0, height = 0;
};

// A file's metadata: the raw bytes that the standards define, without the container format's wrapping.
struct Metadata {
  std::string exif;  // a TIFF structure that begins with "II*" or "MM"; the file's own, its orientation included
  std::string xmp;   // an XMP packet: XML in UTF-8
  std::string icc;   // a colour profile
  std::string iptc;  // IPTC-IIM records
  double dpi = 0;    // pixels per inch; 0: not specified
  // Custom text, name and value in UTF-8. Written, never read: PNG as text chunks, other formats inside XMP in the namespace
  // urn:sardonyx:tags:1.0/.
  std::vector<std::pair<std::string, std::string>> tags;
};

struct DecodeOptions {
  DecodeLimits limits{};
  // > 0: a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size, as long as the longer side of the result (the whole picture, or
  // the region) has at least this many pixels: for images that are shrunk anyway, 1.2 to 1.6 times as fast, with a fraction of
  // the memory. Other formats are decoded whole; for a raw file the embedded preview may be used.
  int at_least = 0;
  // Decode only this part, in pixels of the whole upright picture; clipped to it. A JPEG is decoded only as far as needed; other
  // formats are decoded whole and cropped. Throws Error(invalid_argument) if no part of it lies inside.
  std::optional<Rectangle> region = std::nullopt;
  bool to_srgb = false;  // apply the colour profile (liblcms2); without one, nothing happens
  bool metadata = true;  // fill DecodedImage::metadata
};

struct DecodedImage {
  Image image;
  int full_width = 0, full_height = 0;  // of the whole upright picture, in the file's own pixels
  double scale = 1;                     // 1, 1/2, 1/4, 1/8: pixels of `image` for one of the file's
  Rectangle region;                     // the part shown by `image`, in pixels of the whole upright picture
  std::string_view
      format;           // "jpeg", "png", "webp", "gif", "bmp", "tga", "pnm", "tiff", "jpeg2000", "jpegxl", "heic", "avif", "raw"
  int orientation = 1;  // 1 to 8, as EXIF numbers it: what the file asked for; `image` has been turned
  Metadata metadata;    // with to_srgb: without the profile, once applied
  std::vector<std::string> warnings;  // harmless anomalies, e.g. a profile that cannot be applied
};

// Like decode_image() and read_image(), with options. Pixel (x, y) of `image` shows the square of side 1/scale at region.x +
// x/scale, region.y + y/scale of the whole picture.
SDX_API DecodedImage decode_picture(std::span<const std::byte> bytes, const DecodeOptions& options = {});
SDX_API DecodedImage open_picture(const std::filesystem::path& path, const DecodeOptions& options = {});

struct ImageInfo {
  std::string_view format;                  // as DecodedImage has it
  int width = 0, height = 0;                // upright
  int stored_width = 0, stored_height = 0;  // as the file has them
  int orientation = 1;
  bool alpha = false;      // decoding gives four channels
  bool icc = false;        // there is a colour profile
  bool animation = false;  // decoding gives the first picture
};

// Reads only the header: decodes no pixels and checks no limit. Throws as decode_image() does.
SDX_API ImageInfo probe_image(std::span<const std::byte> bytes);
SDX_API ImageInfo probe_image(const std::filesystem::path& path);

// Encode to the bytes of a file. Throw Error(invalid_argument) for an Image whose `pixels` do not fit its other fields, as every
// function that takes one does, and for a quality out of range.
SDX_API std::string encode_png(const Image& image);
SDX_API std::string encode_jpeg(const Image& image, int quality = 90);  // quality 1 to 100; opacity is dropped

enum class FileFormat { png, jpeg, webp, tiff, bmp, avif };

// The format's name from a name or ending, with or without a dot, in any case: "png", "jpg", "jpeg", "webp", "tif", "tiff",
// "bmp", "avif"; also from DecodedImage::format. Empty for others.
SDX_API std::optional<FileFormat> file_format(std::string_view name);
SDX_API std::string_view ending_of(FileFormat format);  // ".png", ".jpg", ".webp", ".tif", ".bmp", ".avif"

struct Ink {
  std::uint8_t red = 0, green = 0, blue = 0;
};

struct EncodeOptions {
  std::optional<FileFormat> format = std::nullopt;  // empty: write_image() goes by the name's ending, encode() takes PNG
  int quality = 90;                                 // 1 to 100: JPEG, WebP (100: lossless) and AVIF; the others lose nothing
  double dpi = 0;                                   // pixels per inch, up to 65535; 0: from `metadata`
  Ink background{255, 255, 255};                    // shows through transparent pixels in JPEG, which has no opacity
  // Metadata are kept as far as the format allows: BMP stores only the resolution; PNG, WebP and AVIF have no place for IPTC;
  // TIFF keeps EXIF tags of its main, EXIF and GPS directories, but no maker notes. The image is assumed to be upright:
  // orientations become 1, sizes become those of the image, and the thumbnail, which would show what was cropped away, is
  // dropped.
  Metadata metadata{};
  // The image shows only a part of the picture that the metadata is from. Metadata about places in that picture, and about
  // persons in it, are dropped: regions of faces with their names (MWG, Microsoft, IPTC, ACDSee), IPTC's persons, SubjectArea,
  // SubjectLocation. Places are also dropped if the orientation in EXIF is not 1.
  bool cropped = false;
};

// Opacity is kept where the format has it, all but JPEG. Throws Error(invalid_argument) for an image or a number out of range,
// Error(io) where the library of the format (libtiff, libheif) cannot be loaded.
SDX_API std::string encode(const Image& image, const EncodeOptions& options = {});
// The file appears whole or not at all. Throws Error(invalid_argument) for other endings (.png .jpg .jpeg .webp .tif .tiff .bmp
// .avif), and what encoding throws, Error(io).
SDX_API void write_image(const std::filesystem::path& path, const Image& image, const EncodeOptions& options = {});

struct FrameLimits {
  DecodeLimits decode{};
  std::size_t bytes = std::size_t{64} << 20;  // per encoded frame; at most two are held in memory
};

// Reads frames from an endless stream: concatenated JPEGs (MJPEG), or PPM, PGM, PBM, PAM (as `ffmpeg -f image2pipe` writes).
// After a damaged JPEG, reading resumes at the next one; after a damaged PNM header there is no way to resynchronise, and the
// stream ends. Use from one thread at a time.
class SDX_API FrameReader {
 public:
  explicit FrameReader(std::istream& in, const FrameLimits& limits = {});  // keeps a reference to `in`
  // Returns the next whole frame; empty at the end. Throws Error(io) if reading fails, Error(invalid_argument) if the data is
  // neither JPEG nor PNM.
  std::optional<Image> next();
  std::int64_t frames() const;            // returned so far
  std::int64_t damaged() const;           // damaged frames skipped
  const std::string& last_error() const;  // reason why the last skipped frame was skipped; "" if none was

  FrameReader(FrameReader&&) noexcept;
  FrameReader& operator=(FrameReader&&) noexcept;
  ~FrameReader();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Pixel centres are at half-integers (as in Pillow, OpenCV and ONNX's half_pixel). `antialias` widens the filter when
// shrinking, as Pillow does; without it four (bicubic: sixteen) neighbours count, as in OpenCV. Nearest and area ignore
// it. Throws Error(invalid_argument) for sizes outside 1 to 65535.
SDX_API Image resize(const Image& image, int width, int height, Preprocessing::Filter filter = Preprocessing::Filter::bilinear,
                     bool antialias = true);

// Maps picture coordinates to a model's input: input = picture * scale + offset, in pixels.
struct Placement {
  double scale_x = 1, scale_y = 1;
  double offset_x = 0, offset_y = 0;
};

// The tensor, owning, of shape [1,C,H,W], [1,H,W,C], [C,H,W], [H,W,C] or [H,W] by the layout; C is 1 or 3, opacity is dropped. It
// is for `input`, which says what `p` leaves open; null: float32[1,C,H,W]. Element types: float32, float16, bfloat16, float64 and
// all integers of 8 bits and more (rounded to nearest, clamped). `placement` is filled unless it is null. Throws
// Error(invalid_argument) for sizes, numbers and element types that make no sense.
SDX_API Tensor to_tensor(const Image& image, const Preprocessing& p = {}, const ValueSpec* input = nullptr,
                         Placement* placement = nullptr);

// Drawing, in pixels from the upper left corner. Shapes are clipped to the picture; any coordinates are accepted.
SDX_API void fill_rectangle(Image& image, int x, int y, int width, int height, Ink ink);
SDX_API void draw_rectangle(Image& image, int x, int y, int width, int height, Ink ink, int thickness = 2);  // grows inwards
SDX_API void draw_disc(Image& image, int x, int y, int radius, Ink ink);
// Digits, '.', '%', '-' and ' ' in a 3 x 5 grid of squares of `size` pixels, 4 squares apart; other letters leave a gap.
SDX_API void draw_number(Image& image, int x, int y, std::string_view text, Ink ink, int size = 2);

}  // namespace sdx::media
