#pragma once
// Faces in images: detection with any supported detector model, quality, cropping, alignment and anonymisation. Link
// libsdx_vision (CMake: sardonyx::vision).
//
//   const sdx::faces::FaceDetector detector = sdx::faces::FaceDetector::load("yunet.onnx");
//   const sdx::media::Image picture = sdx::media::read_image("photo.jpg");
//   for (const sdx::faces::Face& face : detector.detect(picture).faces) {
//     sdx::media::write_image("face.jpg", sdx::faces::crop(picture, face, sdx::faces::preset("passport")));
//   }
//
// Coordinates are in pixels of the upright picture, x to the right and y downwards. They are continuous: pixel i covers [i, i+1),
// so its centre is at i + 0.5. Right and left are the subject's: the right eye is on the left of the picture. All types are plain
// values that own their contents. Functions keep no references to their arguments; any number of threads may call them at once.
// All throw sdx::Error.

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/export.hpp>
#include <sdx/image.hpp>
#include <sdx/session.hpp>

namespace sdx::faces {

struct Point {
  float x = 0, y = 0;
};

struct Box {
  float x = 0, y = 0;  // upper left corner; may lie outside the picture
  float width = 0, height = 0;
};

// The landmarks that the detector found; which ones exist depends on the model.
struct Points {
  std::optional<Point> right_eye, left_eye, nose, right_mouth, left_mouth;
  std::optional<Point> mouth, right_ear, left_ear;  // BlazeFace: the middle of the mouth, the ears

  // True if the five points that alignment needs are present.
  bool complete() const { return right_eye && left_eye && nose && right_mouth && left_mouth; }
};

enum class Level { low, medium, high };

struct Quality {
  Level level = Level::low;
  double sharpness = 0;  // variance of the Laplacian, see sharpness()
  double exposure = 0;   // mean luma of the face's box, 0 (black) to 1 (white)
  double size_px = 0;    // the shorter side of the box
  // Degrees, estimated from the points; empty without them. yaw > 0: the subject looks to the picture's right; pitch > 0: it
  // looks up; roll > 0: the head is turned clockwise in the picture.
  std::optional<double> yaw, pitch, roll;
};

struct Face {
  Box box;
  float score = 0;  // 0 to 1
  Points points;
  // Clockwise degrees by which the picture must be turned for the face to be upright: 0, 90, 180 or 270. `box` and `points` are
  // in the picture as it is.
  int turned = 0;
};

// ---- Detection

using sdx::Runtime;

struct DetectorOptions {
  Runtime runtime = Runtime::automatic;  // ort without its library: a warning with the reason, and native answers
  SessionOptions session;                // providers, threads; `runtime` wins over its chain
  std::string decoder;  // "yunet", "yunet2022", "scrfd", "retinaface", "ultraface", "centerface", "blazeface"; "": by the outputs
  std::optional<float> score;  // minimum score; no value: 0.6
  // Maximum overlap of two faces (intersection over union); no value: the decoder's own, 0.3, 0.4 or 0.5.
  std::optional<float> nms;
  int top_k = 5000;  // candidates that non-maximum suppression considers
  // automatic: shrink pictures and examine them at several sizes, as min_face and the picture require; native: the picture's own
  // size; fixed: fit into width x height, keeping proportions. A model of fixed input size always gets that size.
  enum class Size { automatic, native, fixed } size = Size::automatic;
  int width = 0, height = 0;  // for Size::fixed
  // Smallest face of interest: faces whose longer side has fewer pixels are not reported. With Size::automatic it also decides
  // how closely the picture is examined. 0: find faces larger than 1.6 % of the longer side (of pictures longer than 3:2: of a
  // picture of 3:2 with the same area) at once, and go down to 10 pixels if larger or doubtful faces hint at more.
  int min_face = 0;
  // If no face, or none with a score of 0.89, is found, also try the picture turned by 90, 180 and 270 degrees, and use the
  // direction that shows the most.
  bool any_orientation = false;
  // Settings for hiding faces. With Size::automatic, the whole picture is examined as closely as min_face requires, or at its
  // full resolution, and faces smaller than min_face are reported, too.
  bool thorough = false;
};

// Milliseconds.
struct StageTimes {
  double preprocess = 0, inference = 0, decode = 0;
};

struct Detection {
  std::vector<Face> faces;  // highest score first
  std::string runtime;      // runtime that ran: "native" or "ort"
  std::string provider;     // the session's provider that ran: "cpu", "cuda", …; several joined by ','
  StageTimes times;
  // Clockwise degrees by which the picture had to be turned (any_orientation); coordinates still refer to the original picture.
  int turned = 0;
  // With Size::automatic: there are faces, or hints of some, almost too small to see at the picture's full resolution. A larger
  // version may show more.
  bool small_faces = false;
  // Faces whose longer side has fewer pixels of the picture were too small for the closest pass.
  double smallest = 0;
};

class SDX_API FaceDetector {
 public:
  // Opens a model file. Throws Error(invalid_model …) as Session does; Error(invalid_argument) for a model whose outputs fit no
  // decoder, with the outputs seen and the decoders known.
  static FaceDetector load(const std::filesystem::path& model, const DetectorOptions& options = {});

  // Thread-safe. Throws Error for a picture that the model cannot take, or a failed run.
  Detection detect(const media::Image& picture) const;
  // The same for a reduced picture: `scale` is the number of pixels of `picture` for one pixel of the original. min_face is in
  // pixels of the original, coordinates are in pixels of `picture`. Throws Error(invalid_argument) unless 0 < scale <= 1.
  Detection detect(const media::Image& picture, double scale) const;

  const std::string& decoder() const;                // the one in use
  const std::string& runtime() const;                // "native" or "ort"
  const std::vector<std::string>& warnings() const;  // e.g. why ONNX Runtime cannot be used

  // The resolution that detection needs for a picture of this size: shrunk to this many pixels on its longer side, it gives the
  // same faces up to scaling, unless Detection::small_faces says that more pixels may show more. 0: full resolution.
  int useful_size(int width, int height) const;

  FaceDetector(FaceDetector&&) noexcept;
  FaceDetector& operator=(FaceDetector&&) noexcept;
  ~FaceDetector();

 private:
  struct Impl;
  explicit FaceDetector(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// ---- Judging

// Population variance of up + down + left + right - 4 * centre over the interior pixels of the 8-bit luma (299 R + 587 G + 114 B
// + 500) / 1000; pictures whose longer side is over 512 are shrunk to 512 first. 0 for pictures under 3 pixels in either
// direction.
SDX_API double sharpness(const media::Image& picture);
// low <= 300 < medium <= 1000 < high.
SDX_API Level level_of(double sharpness);
// Quality of the face in the picture. Sharpness and exposure use the pixels that `box` touches; both are 0 if it lies outside.
// Throws Error(invalid_argument) for boxes that are not finite or have no area. Pose: a mean face is fitted to the five points;
// typical errors are 5 degrees of yaw and pitch, 2 of roll.
SDX_API Quality judge(const media::Image& picture, const Face& face);

enum class Pick { all, largest, best, nth };  // largest: width * height; best: the highest level, then score; else the first
// Indices into `faces`, in order. `n` counts from 1 in the order of `faces`; outside those: empty. Only `best` looks at the
// picture.
SDX_API std::vector<std::size_t> pick(const media::Image& picture, const std::vector<Face>& faces, Pick which, int n = 1);
// All indices, ordered by the middle of the box; ties keep their order. Boxes with NaN are omitted.
SDX_API std::vector<std::size_t> left_to_right(const std::vector<Face>& faces);

// ---- Cropping

enum class Position { center, rule_of_thirds, custom };
enum class Fill { colour, blur, edge, shift };  // how to fill what lies outside the picture; shift: move the crop inside instead
enum class Shape { rectangle, rounded, ellipse };

inline constexpr int kMaxCropSide = 16384;

struct CropOptions {
  int width = 512, height = 512;  // of the result, in pixels; 1 to kMaxCropSide
  double dpi = 0;                 // resolution written to the file, where set (ID photos)
  double face_height = 70;        // height of the face's box, in per cent of the result's height; 1 to 400
  Position position = Position::center;
  double offset_x = 0, offset_y = 0;  // custom: -1 to 1; +1 puts the face's centre on the right or bottom edge
  Fill fill = Fill::colour;
  std::array<std::uint8_t, 4> colour{0, 0, 0, 255};  // red, green, blue, opacity
  bool align_eyes = false;                           // rotate the picture before cropping so that the eyes are level
  Shape shape = Shape::rectangle;                    // what lies outside the shape is transparent: the result has four channels
  double radius = 0.1;                               // of rounded corners: share of the shorter side, 0 to 0.5
};

// "linkedin", "passport", "instagram", "idcard", "avatar", "headshot", and ID photos with their dpi: see presets(). Throws
// Error(invalid_argument) that lists the names.
SDX_API CropOptions preset(std::string_view name);
struct Preset {
  std::string name, description;
  CropOptions options;
};
SDX_API const std::vector<Preset>& presets();
// Rounded to nearest: 35 mm at 300 dpi are 413 pixels. Throws Error(invalid_argument) outside 1 to kMaxCropSide.
SDX_API int mm_to_pixels(double mm, double dpi);

// The part of the picture that becomes the result, in picture pixels, of an upright face; ignores any shift or rotation from
// `fill` and `align_eyes`.
// Throws Error(invalid_argument) for options out of range.
SDX_API Box crop_box(const Box& face, const CropOptions& options);
SDX_API Box crop_box(const Face& face, const CropOptions& options);  // upright or not
// Crops with Lanczos resampling (a = 3), antialiased when shrinking. The result is upright: the picture is turned by
// Face::turned first. Returns three channels, or four if the shape or the colour
// is transparent or the picture has opacity. With align_eyes the same resampling rotates the picture about the middle of the
// face; without both eyes it is not rotated. With Fill::colour a pixel takes the colour if its centre lies outside the picture,
// and none of it otherwise (if rotated, the slanting border is antialiased). Needs memory only for the result and for the part of
// the picture it reads. Throws Error(invalid_argument) for options out of range and for boxes that are not finite or have no
// area; a face outside the picture is not an error.
SDX_API media::Image crop(const media::Image& picture, const Face& face, const CropOptions& options = {});

// Whole pixels of a picture.
struct Region {
  int x = 0, y = 0, width = 0, height = 0;
};
// The region that crop() reads of a picture of this size: at least one pixel, never beyond the picture. Throws as crop() does.
SDX_API Region needed_region(int width, int height, const Face& face, const CropOptions& options);
// The same as crop() for a picture of width x height of which only `part` is available, with its upper left corner at (x, y). The
// result is bit-identical if the part covers needed_region(); otherwise throws Error(invalid_argument). `face` is in the whole
// picture's coordinates.
SDX_API media::Image crop_part(const media::Image& part, int x, int y, int width, int height, const Face& face,
                               const CropOptions& options);

// ---- Aligning

// Row-major 2x3: picture to template, pixel centres on whole numbers (as OpenCV's and InsightFace's matrices).
using Affine = std::array<double, 6>;
// The least-squares similarity without reflection to the template of ArcFace (112x112), scaled to `size`: a multiple of 112 or of
// 128. Throws Error(invalid_argument) for other sizes and for faces without the five points.
SDX_API Affine alignment(const Face& face, int size = 112);
// size x size, bilinear, black outside the picture; three channels, or one for grey pictures (opacity is dropped). Throws as
// alignment() does.
SDX_API media::Image align(const media::Image& picture, const Face& face, int size = 112);

// ---- Changing

// By default everything is off. Steps are applied in this order.
struct Enhance {
  bool auto_colour = false;    // grey world, gains within 0.5 to 2
  bool red_eye = false;        // only within the eyes; needs points
  double exposure = 0;         // stops, -2 to 2
  double brightness = 1;       // 0.5 to 2
  double contrast = 1;         // 0.5 to 2
  double saturation = 1;       // 0 to 2.5
  double smooth_skin = 0;      // 0 to 1: share of a bilateral filter (3 pixels, 25 levels)
  double sharpen = 0;          // 0 to 2: amount of an unsharp mask
  double sharpen_radius = 1;   // 0.3 to 10 pixels
  double blur_background = 0;  // 0 to 50 pixels, outside an ellipse around the face
};
// "none", "natural", "vivid", "professional", or "key=value,key=value" with the names above, over a preset that comes first
// ("natural,sharpen=0.8"). Throws Error(invalid_argument) that lists the names, or the range.
SDX_API Enhance parse_enhance(std::string_view text);
// `face` is in the coordinates of `picture`; null: steps that need a face are skipped.
SDX_API void enhance(media::Image& picture, const Enhance& settings, const Face* face = nullptr);

enum class Anonymise { blur, mosaic, box };
// Applies within the face's ellipse (box: its rectangle), grown by `margin` of its size. The original cannot be restored.
SDX_API void anonymise(media::Image& picture, const Face& face, Anonymise method = Anonymise::blur, double margin = 0.1);

}  // namespace sdx::faces
