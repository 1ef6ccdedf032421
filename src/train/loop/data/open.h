#pragma once
// Opens training data of any supported form.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sdx/preprocessing.hpp>
#include <sdx/train/fit.hpp>

#include "train/loop/data/augment.h"
#include "train/loop/task.h"

namespace sdx::train::loop {

struct DataSettings {
  std::filesystem::path data, eval;  // `eval` empty: none
  double validation_split = 0;       // share of `data` that is kept for validation where there is no `eval`
  std::uint64_t seed = 0;
  std::string label, text;  // columns or keys; empty: the usual names
  std::filesystem::path tokenizer;
  std::int64_t max_length = 0;                    // tokens of a text; 0: what the model takes, else 512
  Preprocessing preprocessing;                    // of pictures
  Augmentation augmentation;                      // of pictures that are trained with
  bool skip_bad = false;                          // unreadable files are left out; otherwise they are an error
  std::uint64_t memory = std::uint64_t{2} << 30;  // bytes of decoded data that are kept
  int workers = 0;                                // threads that decode pictures; 0: all cores
};

struct OpenedData {
  std::unique_ptr<Dataset> train, validation;  // `validation` may be null
  std::vector<std::string> classes;            // names, by number; empty: not known
  std::int64_t batch = 0;                      // of data that come in batches; 0: others
  std::string kind;                            // "3200 samples in 2 arrays": for people
  std::vector<std::string> notes;
};

// Throws Error: io; invalid_argument for data that do not fit the task, with the place.
OpenedData open_data(const Task& task, const DataSettings& settings);

// One source, of one of the kinds. `known`: the classes' names, where they are known already.
struct Source {
  std::unique_ptr<Dataset> data;
  std::unique_ptr<Dataset> eval;  // where the data bring their own
  std::vector<std::string> classes;
  std::int64_t batch = 0;
  std::string kind;
  std::vector<std::string> notes;
};
struct SourceRequest {
  const Task& task;
  const DataSettings& settings;
  std::filesystem::path path;
  const std::vector<std::string>* known = nullptr;
  bool augment = false;
};
Source open_arrays(const SourceRequest& r);    // .npz, or a folder of .npy
Source open_pictures(const SourceRequest& r);  // a folder of folders
Source open_csv(const SourceRequest& r);
Source open_lines(const SourceRequest& r);  // JSONL

}  // namespace sdx::train::loop
