#include "cli/values/file_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/glob.h"
#include "base/text/ascii.h"
#include "cli/command.h"
#include "media/image.h"
#include "media/sound/sound.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

enum class Kind { picture, value, other };

Kind kind_of(const fs::path& file) {
  const std::string ending = ascii_lower(file.extension().string());
  if (media::has_picture_ending(file)) return Kind::picture;
  if (media::has_sound_ending(file)) return Kind::value;
  for (const char* e : {".json", ".npy", ".npz", ".pb"}) {
    if (ending == e) return Kind::value;
  }
  std::array<char, 64> start{};
  std::ifstream in(file, std::ios::binary);
  in.read(start.data(), start.size());
  const auto bytes = std::as_bytes(std::span(start.data(), static_cast<std::size_t>(in.gcount())));
  return media::image_format(bytes).empty() ? Kind::other : Kind::picture;
}

void add_folder(const fs::path& folder, const fs::path& output, std::vector<ListedFile>& files) {
  const std::size_t first = files.size();
  FolderWalk walk;
  walk.skips = [&](const fs::path& below) {
    std::error_code ignored;
    return !output.empty() && fs::equivalent(below, output, ignored);
  };
  walk.file = [&](const fs::path& file) {
    if (!file.filename().string().starts_with('.')) files.push_back({file, file.lexically_relative(folder).string()});
  };
  walk.unreadable = [&](const fs::path&, const std::error_code& why) {
    fail(ErrorCode::io, "cannot read the folder '{}': {}", folder.string(), why.message());
  };
  walk_folder(folder, walk);
  if (files.size() == first) fail(ErrorCode::io, "the folder '{}' contains no files", folder.string());
}

void add_pattern(const std::string& pattern, std::vector<ListedFile>& files) {
  const Matched matched = expand_pattern(pattern);
  if (matched.files.empty()) fail(ErrorCode::io, "no file fits the pattern '{}'", pattern);
  for (const fs::path& path : matched.files) {
    files.push_back({path, matched.base.empty() ? path.string() : path.lexically_relative(matched.base).string()});
  }
}

// Without the files that are not meant.
FileList readable(std::vector<ListedFile> files) {
  std::vector<Kind> kinds;
  std::size_t pictures = 0, values = 0;
  for (const ListedFile& f : files) {
    kinds.push_back(kind_of(f.path));
    pictures += kinds.back() == Kind::picture ? 1 : 0;
    values += kinds.back() == Kind::value ? 1 : 0;
  }
  const bool only_pictures = pictures > values;
  FileList out;
  std::vector<std::string> left_out;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool kept = kinds[i] == Kind::picture || (kinds[i] == Kind::value && !only_pictures);
    if (kept) {
      out.files.push_back(std::move(files[i]));
    } else {
      left_out.push_back(files[i].name);
    }
  }
  out.pictures = only_pictures || (pictures > 0 && values == 0);
  if (out.files.empty()) return out;
  if (!left_out.empty()) {
    constexpr std::size_t kShown = 3;
    const std::size_t more = left_out.size() > kShown ? left_out.size() - kShown : 0;
    const std::size_t count = left_out.size();
    left_out.resize(count - more);
    note(fmt::format("note: {} file{} left out, {}: {}{}", count, count == 1 ? " is" : "s are",
                     only_pictures ? "as most others are pictures" : "which nothing reads", join(left_out),
                     more > 0 ? fmt::format(" and {} more", more) : ""));
  }
  return out;
}

// Different files have different names, and in a folder their results have.
void name_apart(std::vector<ListedFile>& files, bool folder) {
  std::map<std::string, std::vector<ListedFile*>> by_name;
  for (ListedFile& f : files) by_name[folder ? result_name(f.name) : f.name].push_back(&f);
  for (const auto& [name, same] : by_name) {
    const auto other = std::find_if(same.begin(), same.end(), [&](const ListedFile* f) { return f->path != same[0]->path; });
    if (other == same.end()) continue;
    if (folder) {
      throw UsageError(fmt::format("the results of '{}' and '{}' would have the same name; name the folder above both",
                                   same[0]->path.string(), (*other)->path.string()));
    }
    for (ListedFile* f : same) f->name = f->path.string();
  }
}

}  // namespace

bool goes_to_folder(const std::string& output) {
  const fs::path ending = fs::path(output).extension();
  return !output.empty() && output != "-" && ending != ".json" && ending != ".jsonl";
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && path.size() < 4096 && fs::is_directory(path, ignored);
}

bool is_pattern_argument(const std::string& text) {
  std::error_code ignored;
  return is_pattern(text) && text.size() < 4096 && text.find_first_of("{\"") == std::string::npos && text[0] != '[' &&
         !fs::exists(text, ignored);
}

std::string result_name(const std::string& name) { return name.ends_with(".json") ? name : name + ".json"; }

FileList list_files(const std::vector<std::string>& paths, const std::string& output) {
  std::vector<ListedFile> files;
  for (const std::string& path : paths) {
    if (is_folder(path)) {
      add_folder(path, output, files);
    } else if (is_pattern_argument(path)) {
      add_pattern(path, files);
    } else {
      files.push_back({path, fs::path(path).filename().string()});
    }
  }
  FileList list = readable(std::move(files));
  if (list.files.empty()) {
    fail(ErrorCode::io, "'{}' contains no readable files: pictures, .json, .npy, .npz, .pb or sound", join(paths));
  }
  name_apart(list.files, goes_to_folder(output));
  return list;
}

}  // namespace sdx::cli
