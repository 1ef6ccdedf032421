#include "vision/batch/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "vision/batch/cut.h"
#include "vision/batch/picture.h"
#include "vision/box.h"
#include "vision/judge/best.h"
#include "vision/names.h"

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;
using faces::Face;

constexpr std::size_t kLargestFile = std::size_t{1} << 30;
constexpr std::size_t kThumbnails = 8;  // of one picture
constexpr int kThumbnailSize = 96;

class Stopwatch {
 public:
  double ms() const { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class PictureProcess {
 public:
  PictureProcess(const Context& context, const Input& input, Picture& picture, Processed& out)
      : c_(context), s_(context.settings), input_(input), picture_(picture), out_(out) {}

  void run() {
    find();
    if (c_.marked != nullptr) mark();  // first: it needs the whole picture, which serves whatever follows
    if (s_.task == Task::blur) {
      judge();
      hide();
    } else {
      judge();
      cut();
    }
    thumbnails();
  }

 private:
  Record& record() { return out_.record; }

  void find() {
    faces::Detection found = find_faces(picture_, c_.detector);
    Record& r = record();
    r.width = picture_.width();
    r.height = picture_.height();
    r.runtime = std::move(found.runtime);
    r.provider = std::move(found.provider);
    r.turned = found.turned;
    r.warning = warning_of(found);
    r.times.preprocess = found.times.preprocess;
    r.times.inference = found.times.inference;
    r.times.postprocess = found.times.decode;
    for (const Face& f : found.faces) r.faces.push_back({f, {}, ""});
  }

  // A warning about faces that were too small to be seen: with --min-face those that it asks for, and when hiding faces all that
  // the picture shows.
  std::string warning_of(const faces::Detection& found) const {
    constexpr int kRecognisable = 10;
    const int asked = s_.detector.min_face > 0 ? s_.detector.min_face : s_.task == Task::blur ? kRecognisable : 0;
    if (asked == 0 || found.smallest <= asked * 1.02 + 0.5) return "";
    const bool chosen = s_.detector.size != faces::DetectorOptions::Size::automatic;
    return fmt::format("faces of less than {:.0f} pixels cannot be seen at this size of the detector's input{}; {}",
                       std::ceil(found.smallest), s_.task == Task::blur ? " and stay visible" : "",
                       chosen ? "--size auto looks as closely as the picture allows"
                              : "the picture has no more pixels, or the model a fixed size");
  }

  // The part of the picture that the task looks at; there must be faces.
  const PictureView& view() {
    if (view_ == nullptr) view_ = &needed_view();
    return *view_;
  }

  const PictureView& needed_view() {
    if (s_.task == Task::blur) return picture_.whole();
    std::optional<faces::Box> needed;
    for (const FaceRecord& f : record().faces) {
      faces::Box box = f.face.box;
      if (s_.task == Task::crop) {
        const faces::Region r = faces::needed_region(picture_.width(), picture_.height(), f.face, s_.crop);
        box = joined(
            box, {static_cast<float>(r.x), static_cast<float>(r.y), static_cast<float>(r.width), static_cast<float>(r.height)});
      }
      if (s_.task == Task::align) {  // the template's square, turned, takes up to 3 times the box
        box = {box.x - box.width * 1.5F, box.y - box.height * 1.5F, box.width * 4, box.height * 4};
      }
      needed = needed ? joined(*needed, box) : box;
    }
    return picture_.view(*needed, s_.task == Task::align);
  }

  void judge() {
    if (record().faces.empty()) return;
    const PictureView& part = view();
    const Stopwatch watch;
    for (FaceRecord& f : record().faces) f.quality = faces::judge(part.image, part.local(f.face));
    record().times.postprocess += watch.ms();
  }

  std::vector<std::size_t> chosen() {
    if (record().faces.empty()) return {};
    std::vector<Face> all;
    std::vector<faces::Level> levels;
    for (const FaceRecord& f : record().faces) {
      all.push_back(f.face);
      levels.push_back(f.quality.level);
    }
    std::vector<std::size_t> out =
        s_.pick == faces::Pick::best ? std::vector{best_of(all, levels)} : faces::pick({}, all, s_.pick, s_.nth);
    std::erase_if(out, [&](std::size_t i) { return s_.min_quality && record().faces[i].quality.level < *s_.min_quality; });
    return out;
  }

  void cut() {
    if (s_.task == Task::detect) return;
    for (const std::size_t i : chosen()) {
      FaceRecord& f = record().faces[i];
      const PictureView& part = view();
      const Stopwatch watch;
      if (c_.dry) {
        const bool square = s_.task == Task::align;
        f.output = save({}, part, static_cast<int>(i) + 1, square ? s_.align_size : s_.crop.width,
                        square ? s_.align_size : s_.crop.height, name_of(f.quality.level));
        continue;
      }
      media::Image crop;
      if (s_.task == Task::align) {
        crop = faces::align(part.image, part.local(f.face), s_.align_size);
        if (s_.enhance) faces::enhance(crop, *s_.enhance);
      } else {
        crop = cut_face(part, picture_.width(), picture_.height(), f.face, s_);
      }
      record().times.crop += watch.ms();
      f.output = save(crop, part, static_cast<int>(i) + 1, crop.width, crop.height, name_of(f.quality.level));
    }
  }

  void hide() {
    const PictureView& view = picture_.whole();
    const std::vector<std::size_t> which = chosen();
    if (c_.dry) {
      record().output = save({}, view, 1, picture_.width(), picture_.height(), "none");
      return;
    }
    const Stopwatch watch;
    media::Image hidden = view.image;
    for (const std::size_t i : which) faces::anonymise(hidden, record().faces[i].face, s_.blur_method, s_.blur_margin);
    record().times.crop += watch.ms();
    const char* quality = which.empty() ? "none" : name_of(record().faces[which.front()].quality.level);
    record().output = save(hidden, view, 1, hidden.width, hidden.height, quality);
  }

  void mark() {
    const PictureView& view = picture_.whole();
    if (c_.dry) return;
    media::Image image = view.image;
    const int thickness = std::max(2, std::max(image.width, image.height) / 400);
    for (std::size_t i = 0; i < record().faces.size(); ++i) {
      const Face& f = record().faces[i].face;
      const int x = to_int(f.box.x, -100'000, 100'000), y = to_int(f.box.y, -100'000, 100'000);
      media::draw_rectangle(image, x, y, to_int(f.box.width, 1, 100'000), to_int(f.box.height, 1, 100'000), {0, 255, 0},
                            thickness);
      media::draw_number(image, x + 2 * thickness, y + 2 * thickness, std::to_string(i + 1), {0, 255, 0}, thickness);
      for (const NamedPoint& named : kPoints) {
        if (const auto& p = f.points.*named.member)
          media::draw_disc(image, to_int(p->x, -100'000, 100'000), to_int(p->y, -100'000, 100'000), thickness, {255, 0, 0});
      }
    }
    NameValues values{input_.stem, 1, image.width, image.height, "", "none", c_.timestamp};
    const media::FileFormat format = own_format(picture_.format(), image.channels);
    values.extension = std::string(media::ending_of(format).substr(1));
    const std::string name = in_folder(NameTemplate("{stem}.{ext}").make_fitting(values));
    media::EncodeOptions options;
    options.format = format;
    record().annotated = write(*c_.marked, name, image, options);
  }

  std::string in_folder(const std::string& name) const { return input_.folder.empty() ? name : input_.folder + "/" + name; }

  // Returns the file that was, or would be, written.
  std::string save(const media::Image& image, const PictureView& view, int index, int width, int height, const char* quality) {
    const bool shaped = c_.dry && s_.task == Task::crop && s_.crop.shape != faces::Shape::rectangle;
    media::FileFormat format = s_.format.value_or(own_format(picture_.format(), shaped ? 4 : image.channels));
    if (s_.format == std::nullopt && !input_.ending.empty()) format = *media::file_format(input_.ending);
    const std::string extension =
        !input_.ending.empty() && !s_.format ? input_.ending : std::string(media::ending_of(format).substr(1));
    const NameValues values{input_.stem, index, width, height, extension, quality, c_.timestamp};
    const std::string name = in_folder(name_for(values));
    if (c_.discard) {
      const Stopwatch watch;
      static_cast<void>(media::encode(image, encoding(view, format, s_)));
      record().times.encode += watch.ms();
      return "";
    }
    if (c_.outputs == nullptr) return name;
    if (c_.dry) return c_.outputs->claim(name, input_.shown).string();
    return write(*c_.outputs, name, image, encoding(view, format, s_));
  }

  // A table's name is taken as it is for the first face; a template that does not tell faces apart gets their number.
  std::string name_for(const NameValues& values) {
    static const NameTemplate plain("{stem}.{ext}"), numbered("{stem}_face{index}.{ext}");
    const bool first = names_++ == 0;
    if (!s_.name_typed && input_.by_table) return (first ? plain : numbered).make_fitting(values);
    if (first || s_.name.uses("index")) return s_.name.make_fitting(values);
    NameValues with_number = values;
    with_number.stem += "_face" + std::to_string(values.index);
    return s_.name.make_fitting(with_number);
  }

  std::string write(OutputFolder& folder, const std::string& name, const media::Image& image,
                    const media::EncodeOptions& options) {
    const fs::path file = folder.claim(name, input_.shown);
    const Stopwatch watch;
    const std::string content = media::encode(image, options);
    record().times.encode += watch.ms();
    folder.write(file, content);
    std::error_code ignored;
    out_.outputs.emplace_back(fs::absolute(file, ignored).string(), content.size());
    return file.string();
  }

  void thumbnails() {
    if (!c_.thumbnails || record().faces.empty()) return;
    faces::CropOptions small;
    small.width = small.height = kThumbnailSize;
    small.fill = faces::Fill::edge;
    const PictureView& part = view();
    for (const FaceRecord& f : record().faces) {
      if (out_.thumbnails.size() >= kThumbnails) break;
      out_.thumbnails.push_back(media::encode_jpeg(faces::crop(part.image, part.local(f.face), small), 75));
    }
  }

  const Context& c_;
  const Settings& s_;
  const Input& input_;
  Picture& picture_;
  Processed& out_;
  const PictureView* view_ = nullptr;  // view(), of `picture_`
  int names_ = 0;
};

}  // namespace

std::string read_picture(const fs::path& path) { return read_file(path, kLargestFile); }

Processed process(const Context& context, const Input& input, std::optional<media::Image> frame) {
  Processed out;
  out.record.file = input.shown;
  const Stopwatch watch;
  try {
    if (!input.error.empty()) fail(ErrorCode::io, "{}", input.error);
    const Settings& s = context.settings;
    const bool loses_profile = s.format == media::FileFormat::bmp || (!s.format && input.ending == "bmp");
    const bool to_srgb = s.writes() && (s.metadata != MetadataMode::preserve || loses_profile);
    Picture picture = frame ? Picture(std::move(*frame)) : Picture(read_picture(input.path), to_srgb);
    const double before = watch.ms();
    out.record.width = picture.width();
    out.record.height = picture.height();
    PictureProcess(context, input, picture, out).run();
    out.record.times.decode = before + picture.decode_ms();
  } catch (const AlreadyThere& e) {
    out.record.error = e.message();
    out.already_there = true;
  } catch (const Error& e) {
    out.record.error = e.message();
  } catch (const std::bad_alloc&) {
    out.record.error = "there is not enough memory for this picture";
  } catch (const std::exception& e) {
    out.record.error = e.what();
  }
  return out;
}

}  // namespace sdx::vision::batch
