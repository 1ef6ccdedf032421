// sdx faces

#include <memory>

#include <sdx/error.hpp>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/faces/faces.h"
#include "cli/faces/flags.h"
#include "cli/resolve.h"
#include "vision/batch/tools.h"

namespace sdx::cli {
namespace {

using vision::Request;
using vision::Task;

constexpr const char* kFacesExamples =
    "Examples:\n"
    "  sdx faces detect photo.jpg --json\n"
    "  sdx faces crop photos/ -o crops/ --preset passport\n"
    "Detectors: YuNet, SCRFD, RetinaFace, UltraFace, CenterFace or BlazeFace. -m names the model; without it, the first "
    "detector\n"
    "among your models is used (`sdx models ls`).\n";

constexpr const char* kDetectExamples =
    "Examples:\n"
    "  sdx faces detect photo.jpg\n"
    "  sdx faces detect 'photos/**/*.jpg' --json > faces.json\n"
    "  sdx faces detect group.jpg --min-face 12 --annotate marked/\n"
    "  ffmpeg -i film.mp4 -f image2pipe -c:v mjpeg - | sdx faces detect - --json\n";

constexpr const char* kCropExamples =
    "Examples:\n"
    "  sdx faces crop photos/ -o crops/ --preset linkedin\n"
    "  sdx faces crop anna.jpg -o id/ --mm 35x45 --dpi 300 --fill white --face largest\n"
    "  sdx faces crop photos/ -o crops/ --name '{quality}/{stem}_{index}.{ext}' --min-quality medium --report sheet.html\n"
    "  sdx faces crop --map staff.csv --source-col photo --output-col number photos/ -o badges/\n"
    "  sdx faces crop photos/ -o crops/ --resume\n";

constexpr const char* kAlignExamples =
    "Examples:\n"
    "  sdx faces align photos/ -o aligned/ --format png\n"
    "  sdx faces align photos/ -o aligned/ --size 224 --face best\n";

constexpr const char* kBlurExamples =
    "Examples:\n"
    "  sdx faces blur street/ -o hidden/\n"
    "  sdx faces blur crowd.jpg -o hidden/ --method mosaic --min-face 10 --score 0.4\n";

constexpr const char* kBenchExamples =
    "Examples:\n"
    "  sdx faces bench photos/\n"
    "  sdx faces bench photo.jpg --runs 50 --on native,ort --json\n";

struct FacesCommand {
  Request request;
  SessionFlags session;

  void fill();
  int run();
  int bench();
};

void FacesCommand::fill() { find_model(session, request); }

int FacesCommand::run() {
  check_request(load_module<vision::Tools>().check, request);
  fill();
  return load_module<vision::Tools>().run(request, console());
}

int FacesCommand::bench() {
  check_request(load_module<vision::Tools>().check_bench, request);
  fill();
  return load_module<vision::Tools>().bench(request, console());
}

// Returns the subcommand and its arguments.
std::pair<Command, std::shared_ptr<FacesCommand>> add_task(const Command& faces, const char* name, const char* help,
                                                           const char* examples, Task task, Action& action) {
  const Command command = faces.add_subcommand(name, help);
  const auto c = std::make_shared<FacesCommand>();
  c->request.task = task;
  add_paths(command, c->request);
  add_detector_flags(command, c->session, c->request);
  add_batch_flags(command, c->request);
  command.footer(examples);
  command.callback([c, &action] { action = [c] { return c->run(); }; });
  return {command, c};
}

void add_faces_bench(const Command& faces, Action& action) {
  const Command command = faces.add_subcommand("bench", "Measure each stage with each runtime");
  const auto c = std::make_shared<FacesCommand>();
  add_paths(command, c->request);
  add_detector_flags(command, c->session, c->request);
  command.remove_option("--runtime");
  add_bench_flags(command, c->request);
  command.footer(kBenchExamples);
  command.callback([c, &action] { action = [c] { return c->bench(); }; });
}

}  // namespace

void check_request(void (*with)(const Request&), const Request& request) {
  try {
    with(request);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::invalid_argument) throw UsageError(e.message());
    throw;
  }
}

void find_model(SessionFlags& session, Request& request) {
  static_cast<void>(session.asked());  // says what is wrong with it, whether or not there is a model
  if (session.model.empty()) {
    session.model = load_module<vision::Tools>().find_detector().string();
    note("note: the detector is " + session.model);
  }
  const project::ResolvedModel model = resolve(session);
  request.model = model.model;
  request.session = model.options;
}

void add_faces(const Command& app, Action& action) {
  const Command faces = app.add_subcommand("faces", "Find, crop, align and hide faces in pictures");
  faces.require_subcommand(1);
  faces.footer(kFacesExamples);
  const auto detect =
      add_task(faces, "detect", "Find faces and print boxes, points and quality", kDetectExamples, Task::detect, action);
  add_table_flags(detect.first, detect.second->request);
  const auto crop = add_task(faces, "crop", "Crop faces to a preset or size", kCropExamples, Task::crop, action);
  add_crop_flags(crop.first, crop.second->request);
  add_choice_flags(crop.first, crop.second->request);
  add_file_flags(crop.first, crop.second->request);
  add_table_flags(crop.first, crop.second->request);
  const auto align = add_task(faces, "align", "Crop and align faces for face recognition", kAlignExamples, Task::align, action);
  add_align_flags(align.first, align.second->request);
  add_choice_flags(align.first, align.second->request);
  add_file_flags(align.first, align.second->request);
  add_table_flags(align.first, align.second->request);
  const auto blur = add_task(faces, "blur", "Make faces unrecognisable", kBlurExamples, Task::blur, action);
  add_blur_flags(blur.first, blur.second->request);
  add_file_flags(blur.first, blur.second->request);
  add_table_flags(blur.first, blur.second->request);
  add_faces_bench(faces, action);
  add_faces_page(faces, action);
}

}  // namespace sdx::cli
