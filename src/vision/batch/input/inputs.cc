#include "vision/batch/input/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <span>
#include <string_view>
#include <system_error>

#include <sdx/image.hpp>

#include "base/error.h"
#include "base/system/glob.h"
#include "base/text/ascii.h"
#include "base/text/safe_name.h"
#include "media/image.h"

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;

// Judges by the content, if that is certain: text may begin like a BMP or a PNM, and TGA has no signature.
bool has_picture_start(const fs::path& file) {
  std::array<char, 4096> head{};
  std::ifstream in(file, std::ios::binary);
  in.read(head.data(), head.size());
  const std::string_view format =
      media::image_format(std::as_bytes(std::span<const char>(head.data(), static_cast<std::size_t>(in.gcount()))));
  return !format.empty() && format != "bmp" && format != "pnm" && format != "tga";
}

struct Walk {
  const std::vector<fs::path>& outputs;  // canonical
  Collected& out;

  void folder(const fs::path& root) {
    walk_folder(root, {.skips = [this](const fs::path& below) { return is_output(below); },
                       .file = [&](const fs::path& file) { visit(root, file); },
                       .unreadable =
                           [&](const fs::path& at, const std::error_code& why) {
                             Input unreadable = input_of(at, root);
                             unreadable.error = fmt::format("cannot read the folder: {}", why.message());
                             out.inputs.push_back(std::move(unreadable));
                           }});
  }

  void visit(const fs::path& root, const fs::path& file) {
    if (file.filename().string().starts_with('.')) {
      ++out.hidden;
    } else if (!looks_like_picture(file)) {
      leave_out(file);
    } else {
      out.inputs.push_back(input_of(file, root));
    }
  }

  void leave_out(const fs::path& file) const {
    ++out.others;
    ++out.endings[ascii_lower(file.extension().string())];
  }

  bool is_output(const fs::path& folder) const { return is_one_of(outputs, folder); }

  // Whether a folder between `root` and the file is one of the outputs.
  bool in_output(const fs::path& root, const fs::path& file) const {
    for (fs::path folder = file.parent_path(); folder != root && folder.has_relative_path(); folder = folder.parent_path()) {
      if (is_output(folder)) return true;
    }
    return false;
  }

  void refuse_output(const fs::path& root) const {
    const fs::path named = root.empty() ? fs::path(".") : root;
    if (!is_output(named)) return;
    fail(ErrorCode::invalid_argument,
         "'{}' is read and written: its results would be read as pictures the next time; write to another folder, for example "
         "'{}'",
         named.string(), (named / "faces").string());
  }
};

void add_path(const std::string& text, Walk& walk) {
  std::error_code ignored;
  const fs::path path = text;
  if (fs::is_directory(path, ignored)) {
    walk.refuse_output(path);
    return walk.folder(path);
  }
  if (!fs::exists(path, ignored) && is_pattern(text)) {
    const Matched matched = expand_pattern(text);
    walk.refuse_output(matched.base);
    for (const fs::path& file : matched.files) {
      if (walk.in_output(matched.base, file)) continue;
      if (looks_like_picture(file)) {
        walk.out.inputs.push_back(input_of(file, matched.base));
      } else {
        walk.leave_out(file);
      }
    }
    if (!matched.files.empty()) return;
    Input none = input_of(path, path.parent_path());
    none.error = "no file fits this pattern";
    walk.out.inputs.push_back(std::move(none));
    return;
  }
  walk.out.inputs.push_back(input_of(path, path.parent_path()));
}

// A table's pictures lie in the folders that were named, else beside the table, else in the current folder.
fs::path find_source(const Request& request, const std::string& source) {
  fs::path path = source;
  if (path.is_absolute()) return path;
  std::vector<fs::path> roots(request.paths.begin(), request.paths.end());
  if (roots.empty()) roots = {fs::path(request.map).parent_path(), fs::path()};
  std::error_code ignored;
  for (const fs::path& root : roots) {
    if (fs::exists(root / path, ignored)) return root / path;
  }
  return roots.front() / path;
}

void name_by_table(const Request& request, const TableRow& row, Input& input) {
  input.by_table = true;
  input.label = row.output;
  fs::path name = row.output;
  if (const std::string why = unsafe_name(row.output); !why.empty()) {
    input.error = fmt::format("'{}', row {}: '{}' cannot be the name of an output: {}", request.map, row.line, row.output, why);
    return;
  }
  if (media::file_format(name.extension().string())) {
    input.ending = ascii_lower(name.extension().string().substr(1));
    name.replace_extension();
  }
  input.folder = name.parent_path().string();
  input.stem = name.filename().string();
}

}  // namespace

fs::path real_folder(const fs::path& folder) {
  std::error_code error;
  fs::path real = fs::weakly_canonical(fs::absolute(folder, error), error);  // of a relative path it may stay relative
  if (error) real = folder.lexically_normal();
  return real.has_filename() ? real : real.parent_path();
}

bool is_one_of(const std::vector<fs::path>& folders, const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  return !error && std::find(folders.begin(), folders.end(), real) != folders.end();
}

bool looks_like_picture(const fs::path& file) {
  if (file.filename().string().starts_with('.')) return false;
  return media::has_picture_ending(file) || has_picture_start(file);
}

Input input_of(const fs::path& file, const fs::path& root) {
  Input out;
  out.path = file;
  out.shown = file.string();
  out.stem = safe_stem(file.stem().string());
  const fs::path below = file.parent_path().lexically_relative(root.empty() ? fs::path("") : root);
  const std::string text = below.generic_string();
  if (!text.empty() && text != "." && !text.starts_with("..")) out.folder = text;
  return out;
}

Collected collect(const Request& request, const Settings& settings, const std::vector<fs::path>& outputs) {
  Collected out;
  std::vector<fs::path> real;
  std::transform(outputs.begin(), outputs.end(), std::back_inserter(real), real_folder);
  if (!request.map.empty()) {
    for (const TableRow& row : read_table(request.map, settings.table)) {
      const fs::path path = find_source(request, row.source);
      Input input = input_of(path, path.parent_path());
      if (!row.output.empty()) name_by_table(request, row, input);
      out.inputs.push_back(std::move(input));
    }
    return out;
  }
  Walk walk{real, out};
  for (const std::string& path : request.paths) {
    if (path != "-") add_path(path, walk);
  }
  return out;
}

}  // namespace sdx::vision::batch
