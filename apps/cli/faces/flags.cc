#include "cli/faces/flags.h"

namespace sdx::cli {

using vision::Request;
using vision::Task;

namespace {

constexpr int kMostPixels = 16384;

}  // namespace

void add_paths(const Command& command, Request& r) {
  command.add_option("PATH", r.paths,
                     "Pictures: files, folders (with their subfolders), quoted patterns (*, ?, [a-z], **), or '-' for "
                     "JPEG or PPM frames on standard input");
}

void add_detector_flags(const Command& command, SessionFlags& session, Request& r) {
  const char* group = "Detector";
  command.add_option("-m,--model", session.model, "Detector: a file, a project or a name; default: one found among your models")
      ->type_name("MODEL");
  session.add_to(command, false);
  command.remove_option("--runtime");
  command.add_option("--runtime", r.runtime, "auto, native (our own engine) or ort (ONNX Runtime's library)")
      ->one_of({"auto", "native", "ort"})
      ->type_name("NAME");
  command.add_option("--score", r.score, "Minimum score of a face, 0 to 1 (0.6)")->type_name("X")->group(group);
  command.add_option("--nms", r.nms, "Maximum overlap of two faces, 0 to 1 (0.3; for some models 0.4 or 0.5)")
      ->type_name("X")
      ->group(group);
  command.add_option("--top-k", r.top_k, "Number of candidates to examine (5000)")
      ->range(1, 1'000'000)
      ->type_name("N")
      ->group(group);
  if (r.task != Task::align) {
    command.add_option("--size", r.size, "Input size of the detector: auto, native (the picture's size) or WxH")
        ->type_name("WxH")
        ->group(group);
  }
  const bool blur = r.task == Task::blur;
  command
      .add_option("--min-face", r.min_face,
                  blur ? "Look closely enough for faces of so many pixels (0: as closely as the picture allows)"
                       : "Smallest face to find, in pixels; small faces need slower passes (0: automatic)")
      ->range(0, kMostPixels)
      ->type_name("N")
      ->group(group);
  command
      .add_flag("--any-orientation", r.any_orientation, "If nothing is found, try the picture rotated by 90, 180 and 270 degrees")
      ->group(group);
  command.add_flag("--json", r.json, "Print the results as JSON");
}

void add_crop_flags(const Command& command, Request& r) {
  const char* group = "Crop";
  command
      .add_option("--preset", r.preset,
                  "linkedin, passport, instagram, idcard, avatar, headshot, …: docs/faces/faces.md lists them")
      ->type_name("NAME")
      ->completed_by({"linkedin", "passport", "instagram", "idcard", "avatar", "headshot"})
      ->group(group);
  command.add_option("--width", r.width, "Width of the crop (512)")->range(1, kMostPixels)->type_name("N")->group(group);
  command.add_option("--height", r.height, "Height of the crop; with only one of the two: a square")
      ->range(1, kMostPixels)
      ->type_name("N")
      ->group(group);
  command.add_option("--mm", r.mm, "Size of the crop in millimetres, for example 35x45")->type_name("WxH")->group(group);
  command.add_option("--dpi", r.dpi, "Pixels per inch for --mm (300), also written to the file")
      ->range(1, 4800)
      ->type_name("N")
      ->group(group);
  command.add_option("--face-height", r.face_height, "Height of the face in per cent of the crop's height (70)")
      ->type_name("PERCENT")
      ->group(group);
  command.add_option("--position", r.position, "Position of the face: center, rule-of-thirds or custom")
      ->type_name("PLACE")
      ->group(group);
  command.add_option("--offset-x", r.offset_x, "For custom: -1 to 1; 1 puts the face's centre on the right edge")
      ->type_name("X")
      ->group(group);
  command.add_option("--offset-y", r.offset_y, "For custom: -1 to 1; 1 puts the face's centre on the lower edge")
      ->type_name("X")
      ->group(group);
  command.add_option("--fill", r.fill, "Area outside the picture: a colour, blur, edge, or shift (the crop moves inside)")
      ->type_name("FILL")
      ->group(group);
  command.add_flag("--align-eyes", r.align_eyes, "Rotate the picture so that the eyes are level")->group(group);
  command.add_option("--shape", r.shape, "rectangle, rounded or ellipse; transparent outside")->type_name("SHAPE")->group(group);
  command.add_option("--radius", r.radius, "Corner radius for rounded, as a share of the shorter side, 0 to 0.5 (0.1)")
      ->type_name("X")
      ->group(group);
}

void add_align_flags(const Command& command, Request& r) {
  command.add_option("--template", r.align_template, "Target positions of eyes, nose and mouth: arcface")
      ->one_of({"arcface"})
      ->type_name("NAME")
      ->group("Align");
  command.add_option("--size", r.align_size, "Side length of the result: a multiple of 112 or 128 (112)")
      ->range(112, 8192)
      ->type_name("N")
      ->group("Align");
}

void add_blur_flags(const Command& command, Request& r) {
  command.add_option("--method", r.blur_method, "blur, mosaic or box")
      ->one_of({"blur", "mosaic", "box"})
      ->type_name("HOW")
      ->group("Blur");
  command.add_option("--margin", r.blur_margin, "How far the hidden area extends beyond the face, as a share of its size (0.1)")
      ->type_name("X")
      ->group("Blur");
}

void add_choice_flags(const Command& command, Request& r) {
  const char* group = "Which faces";
  command.add_option("--face", r.face, "all, largest, best, or a number: the Nth by score")->type_name("WHICH")->group(group);
  command.add_option("--min-quality", r.min_quality, "Skip faces below this quality: low, medium or high")
      ->type_name("LEVEL")
      ->group(group);
  command
      .add_option("--enhance", r.enhance,
                  "none, natural, vivid, professional, and single settings, for example natural,sharpen=0.8")
      ->type_name("SETTINGS")
      ->group(group);
}

void add_file_flags(const Command& command, Request& r) {
  const char* group = "Files";
  command.add_option("-o,--output", r.output, "Folder for the results")->type_name("FOLDER")->group(group);
  command
      .add_option("--format", r.format,
                  "png, jpeg, webp, tiff, bmp, avif, or auto: the picture's own format if it can be written (auto)")
      ->type_name("FORMAT")
      ->group(group);
  command.add_option("--quality", r.quality, "Quality of JPEG, WebP and AVIF, 1 to 100 (90)")
      ->range(1, 100)
      ->type_name("N")
      ->group(group);
  command
      .add_option("--name", r.name,
                  "Template for names: {stem} {index} {width} {height} {ext} {quality} {timestamp}; '/' makes folders")
      ->type_name("TEMPLATE")
      ->group(group);
  command
      .add_option("--metadata", r.metadata,
                  r.task == Task::blur ? "preserve, strip or custom: only --tag (strip)"
                                       : "preserve (EXIF, XMP, colour profile), strip or custom: only --tag (preserve)")
      ->type_name("MODE")
      ->group(group);
  command.add_option("--tag", r.tags, "Text to write into the file; may be repeated")
      ->one_word()
      ->type_name("NAME=VALUE")
      ->group(group);
  command.add_flag("--dry-run", r.dry_run, "Show what would be written, but write nothing")->group(group);
}

void add_table_flags(const Command& command, Request& r) {
  const char* group = "Table";
  command.add_option("--map", r.map, "Read pictures and output names from a .csv, .jsonl or .sqlite file")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--source-col", r.source_column, "Column of the pictures: a name, or a number from 1")
      ->type_name("COLUMN")
      ->group(group);
  command.add_option("--output-col", r.output_column, "Column of the output names")->type_name("COLUMN")->group(group);
  command.add_option("--map-table", r.map_table, "Table to use, if an SQLite file has several")->type_name("TABLE")->group(group);
  command.add_option("--map-query", r.map_query, "Query of an SQLite file")->type_name("SQL")->group(group);
  command.add_option("--map-delimiter", r.map_delimiter, "Column separator of a CSV file: a character, or tab")
      ->type_name("LETTER")
      ->group(group);
  command.add_flag("--map-no-header", r.map_no_header, "CSV files have no header line; refer to columns by number")->group(group);
}

void add_batch_flags(const Command& command, Request& r) {
  const char* group = "Batch";
  command.add_option("--annotate", r.annotate, "Folder for copies of the pictures with boxes and points")
      ->type_name("FOLDER")
      ->group(group);
  command.add_option("--workers", r.workers, "Pictures processed at once (one per core)")
      ->range(1, 256)
      ->type_name("N")
      ->group(group);
  command.add_flag("--resume", r.resume, "Continue an earlier run with the same settings")->group(group);
  command.add_flag("--overwrite", r.overwrite, "Replace existing results")->group(group);
  command.add_flag("--watch", r.watch, "Then wait for new pictures in the folders, until Ctrl-C")->group(group);
  command.add_option("--report", r.report, "Write a report: FILE.jsonl, .csv, or .html (a contact sheet)")
      ->type_name("FILE")
      ->group(group);
}

void add_bench_flags(const Command& command, Request& r) {
  command.add_option("--runs", r.runs, "Measurements per picture (5)")->range(1, 100'000)->type_name("N");
  command
      .add_option("--on", r.runtimes,
                  "Runtimes to measure, comma-separated: native, ort (default: both, if ONNX Runtime is available)")
      ->delimiter(',')
      ->one_word()
      ->one_of({"native", "ort"})
      ->type_name("NAME");
}

}  // namespace sdx::cli
