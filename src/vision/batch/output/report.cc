#include "vision/batch/output/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/text/base64.h"
#include "base/text/markup.h"

namespace sdx::vision::batch {
namespace {

constexpr const char* kHead =
    "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>Faces</title>\n<style>\n"
    "body{font:14px/1.4 system-ui,sans-serif;margin:1.5rem;background:#fff;color:#222}\n"
    "main{display:grid;grid-template-columns:repeat(auto-fill,minmax(120px,1fr));gap:12px}\n"
    "figure{margin:0;overflow:hidden}img{width:96px;height:96px;border-radius:6px;background:#eee}\n"
    "figcaption{font-size:11px;overflow-wrap:anywhere}.low{color:#b00}.medium{color:#a60}.high{color:#080}\n"
    "@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}}\n"
    "</style>\n<h1>Faces</h1>\n<main>\n";

}  // namespace

Report::Report(const std::filesystem::path& file, ReportKind kind, bool with_outputs)
    : kind_(kind), with_outputs_(with_outputs), file_(file) {
  if (kind_ == ReportKind::csv) write(csv_heading());
  if (kind_ == ReportKind::html) write(kHead);
}

void Report::write(const std::string& text) { file_.append(std::as_bytes(std::span<const char>(text.data(), text.size()))); }

void Report::add(const Record& record, const std::vector<std::string>& thumbnails) {
  ++pictures_;
  faces_ += static_cast<std::int64_t>(record.faces.size());
  failed_ += record.error.empty() ? 0 : 1;
  if (kind_ == ReportKind::jsonl) return write(record_json(record, with_outputs_) + "\n");
  if (kind_ == ReportKind::csv) return write(record_csv(record));
  add_to_sheet(record, thumbnails);
}

void Report::add_to_sheet(const Record& r, const std::vector<std::string>& thumbnails) {
  if (!r.error.empty() && failed_ <= kMostFailures) {
    failures_ += fmt::format("<li>{}: {}</li>\n", markup_text(r.file), markup_text(r.error));
  }
  for (std::size_t i = 0; i < std::min(r.faces.size(), thumbnails.size()) && shown_ < kMostThumbnails; ++i, ++shown_) {
    const FaceRecord& f = r.faces[i];
    const char* level = name_of(f.quality.level);
    write(
        fmt::format("<figure><img alt=\"face {}\" src=\"data:image/jpeg;base64,{}\"><figcaption>{}<br>{:.2f} <span class=\"{}\">"
                    "{}</span></figcaption></figure>\n",
                    i + 1, encode_base64(thumbnails[i]), markup_text(r.file), f.face.score, level, level));
  }
}

void Report::finish(double seconds) {
  if (kind_ == ReportKind::html) {
    std::string tail =
        fmt::format("</main>\n<p>{} pictures, {} faces, {} failed, {:.1f} s.", pictures_, faces_, failed_, seconds);
    if (faces_ > shown_) tail += fmt::format(" {} of the faces are shown.", shown_);
    tail += "</p>\n";
    if (!failures_.empty()) tail += "<h2>Failed</h2>\n<ul>\n" + failures_ + "</ul>\n";
    write(tail + "</html>\n");
  }
  file_.publish();
}

}  // namespace sdx::vision::batch
