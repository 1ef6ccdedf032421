#pragma once
// The files that folders and patterns mean.

#include <filesystem>
#include <string>
#include <vector>

namespace sdx::cli {

struct ListedFile {
  std::filesystem::path path;
  std::string name;  // below the folder or pattern that was given: "sub/photo.jpg"; of a file that was given, its own
};

struct FileList {
  std::vector<ListedFile> files;
  bool pictures = false;  // all of them are
};

bool is_folder(const std::string& path);
// A pattern for files, and neither a file's name nor JSON.
bool is_pattern_argument(const std::string& text);

// Whether `output` is a folder with a file for each result, and not standard output ("", "-"), FILE.json or FILE.jsonl.
bool goes_to_folder(const std::string& output);

// Folders with their subfolders, patterns and files, in this order, each sorted. Skips hidden files, files in the folder
// `output` and, with a note, files of unknown kinds; if most files are pictures, all others. Files that would have the same name
// are called by their paths. Throws Error if nothing is left, UsageError if two results would be the same file in `output`.
FileList list_files(const std::vector<std::string>& paths, const std::string& output);

// The name of a file's result: "sub/photo.jpg.json". That of a JSON file is its own.
std::string result_name(const std::string& name);

}  // namespace sdx::cli
