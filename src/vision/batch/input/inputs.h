#pragma once
// The pictures that a request means.

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "vision/batch/request.h"
#include "vision/batch/settings.h"

namespace sdx::vision::batch {

struct Input {
  std::filesystem::path path;
  std::string shown;   // for people and JSON
  std::string folder;  // below the folder or pattern that was named: where the outputs go below the output's folder; "" for none
  std::string stem;    // the stem of the outputs' names
  std::string ending;  // of the name that a table gives: "png"; "" for none
  std::string label;   // distinguishes it from other pictures of the same file: the name that a table gives
  bool by_table = false;
  bool named = false;  // `stem` is its own among those of its folder
  std::string error;   // why it cannot be read, where that is known already
};

struct Collected {
  std::vector<Input> inputs;                   // in the order of the request; folders sorted by name
  std::size_t hidden = 0, others = 0;          // left out of folders: hidden files, and files that are not pictures
  std::map<std::string, std::size_t> endings;  // of the latter, how many of each: ".txt"; "" for names without one
};

// `outputs`: folders of results, which are not read even if they are inside an input folder. Throws Error if a table cannot be
// read, or if an input folder is one of `outputs`: the next run, or --watch, would read its results as pictures.
Collected collect(const Request& request, const Settings& settings, const std::vector<std::filesystem::path>& outputs);

// Absolute, without links and without a slash at the end, whether or not it is there already.
std::filesystem::path real_folder(const std::filesystem::path& folder);

// Whether this folder, under any name, is one of `folders`, which are in the form that real_folder() returns.
bool is_one_of(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& folder);

// A file of a folder: nothing where it is hidden or no picture.
bool looks_like_picture(const std::filesystem::path& file);
Input input_of(const std::filesystem::path& file, const std::filesystem::path& root);

}  // namespace sdx::vision::batch
