// Answers the page's requests with the functions of a batch, so that both give the same bytes.
#include "vision/page/backend.h"

#include <filesystem>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "vision/batch/cut.h"
#include "vision/page/real_backend.h"

namespace sdx::faces::page {
namespace {

using vision::Request;
namespace batch = vision::batch;

constexpr std::int64_t kMostPixels = 100'000'000;
constexpr std::int64_t kMostCropPixels = 64'000'000;

// One for each runtime, loaded when it is first asked for.
class Detectors {
 public:
  Detectors(std::filesystem::path model, DetectorOptions options) : model_(std::move(model)), options_(std::move(options)) {}

  const FaceDetector& get(Runtime runtime) {
    const std::lock_guard lock(mutex_);
    std::optional<FaceDetector>& detector = runtime == Runtime::ort ? ort_ : native_;
    if (!detector) {
      DetectorOptions options = options_;
      options.runtime = runtime;
      FaceDetector loaded = FaceDetector::load(model_, options);
      if (loaded.runtime() != (runtime == Runtime::ort ? "ort" : "native")) {
        fail(ErrorCode::provider_unavailable, "{}",
             loaded.warnings().empty() ? "ONNX Runtime cannot be used here" : loaded.warnings().front());
      }
      detector.emplace(std::move(loaded));
    }
    return *detector;
  }

 private:
  std::filesystem::path model_;
  DetectorOptions options_;
  std::mutex mutex_;
  std::optional<FaceDetector> native_, ort_;
};

struct Decoded {
  explicit Decoded(std::string bytes) : picture(std::move(bytes), false) {}
  batch::Picture picture;
  const batch::PictureView* whole = nullptr;  // of `picture`
  bool large = false;                         // a detector may look at it in a smaller size
};

Opened open(std::string bytes, const FaceDetector& detector) {
  const auto decoded = std::make_shared<Decoded>(std::move(bytes));
  batch::Picture& picture = decoded->picture;
  const std::int64_t pixels = static_cast<std::int64_t>(picture.width()) * picture.height();
  if (pixels > kMostPixels) {
    fail(ErrorCode::out_of_memory, "the picture has {}x{} pixels; the page takes up to {} million", picture.width(),
         picture.height(), kMostPixels / 1'000'000);
  }
  const batch::Picture::Shrunk shrunk = picture.shrunk(detector.useful_size(picture.width(), picture.height()));
  decoded->large = shrunk.scale != 1;
  decoded->whole = &picture.whole();
  Opened opened;
  opened.image = std::shared_ptr<const media::Image>(decoded, &decoded->whole->image);
  opened.format = std::string(picture.format());
  opened.memory = picture.bytes().size() + opened.image->pixels.size();
  opened.more = decoded;
  return opened;
}

Detection detect(const Opened& opened, const FaceDetector& detector) {
  if (!opened.more) return detector.detect(*opened.image);
  Decoded& decoded = *static_cast<Decoded*>(opened.more.get());
  if (!decoded.large) return batch::find_faces(decoded.picture, detector);  // which is whole already, and stays so
  batch::Picture again(decoded.picture.bytes(), false);
  return batch::find_faces(again, detector);
}

// The equivalent request of the command.
Request crop_request(const CropSettings& settings) {
  Request r;
  r.task = vision::Task::crop;
  r.paths = {"picture"};
  r.output = ".";
  r.preset = settings.preset;
  r.position = settings.position;
  r.fill = settings.fill;
  r.shape = settings.shape;
  r.enhance = settings.enhance;
  if (!settings.format.empty()) r.format = settings.format;
  for (const auto& [name, value] : {std::pair{"width", settings.width}, {"height", settings.height}}) {
    if (value && (*value < 1 || *value > kMaxCropSide))
      fail(ErrorCode::invalid_argument, "--{} {}: expected 1 to {}", name, *value, kMaxCropSide);
  }
  r.width = settings.width.value_or(0);
  r.height = settings.height.value_or(0);
  r.quality = settings.quality.value_or(r.quality);
  r.face_height = settings.face_height;
  r.offset_x = settings.offset_x;
  r.offset_y = settings.offset_y;
  r.radius = settings.radius;
  r.align_eyes = settings.align_eyes;
  return r;
}

const char* type_of(media::FileFormat format) {
  switch (format) {
    case media::FileFormat::png: return "image/png";
    case media::FileFormat::jpeg: return "image/jpeg";
    case media::FileFormat::webp: return "image/webp";
    case media::FileFormat::tiff: return "image/tiff";
    case media::FileFormat::bmp: return "image/bmp";
    case media::FileFormat::avif: return "image/avif";
  }
  return "application/octet-stream";
}

File crop_file(const Opened& opened, const Face& face, const CropSettings& wanted) {
  const vision::batch::Settings settings = batch::parse(crop_request(wanted));
  const CropOptions& size = settings.crop;
  if (static_cast<std::int64_t>(size.width) * size.height > kMostCropPixels) {
    fail(ErrorCode::out_of_memory, "a crop of {}x{} pixels: the page's limit is {} million; `sdx faces crop` has none",
         size.width, size.height, kMostCropPixels / 1'000'000);
  }
  const batch::PictureView& view = *static_cast<const Decoded*>(opened.more.get())->whole;
  const media::Image crop = batch::cut_face(view, view.image.width, view.image.height, face, settings);
  const media::FileFormat format = settings.format.value_or(batch::own_format(opened.format, crop.channels));
  return {media::encode(crop, batch::encoding(view, format, settings)), type_of(format), std::string(media::ending_of(format))};
}

}  // namespace

Backend real_backend(const Request& request) {
  const auto detectors = std::make_shared<Detectors>(request.model, batch::parse_detector(request));
  Backend backend;
  backend.model = request.model.filename().string();
  backend.decoder = detectors->get(Runtime::native).decoder();
  backend.open = [detectors](std::string bytes) { return open(std::move(bytes), detectors->get(Runtime::native)); };
  backend.detect = [detectors](const Opened& opened, Runtime runtime) { return detect(opened, detectors->get(runtime)); };
  backend.judge = [](const Opened& opened, const Face& face) { return judge(*opened.image, face); };
  backend.crop = crop_file;
  backend.presets = presets();
  backend.enhancements = {"none", "natural", "vivid", "professional"};
  return backend;
}

}  // namespace sdx::faces::page
