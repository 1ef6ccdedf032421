#pragma once
// Many inputs for one model: folders and lists of files, JSON Lines, JSON arrays.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "cli/values/inputs.h"

namespace sdx::cli {

struct Samples {
  std::int64_t total = -1;      // -1: as many as come (standard input)
  bool files = false;           // each has a file, and its name is that of the file: "sub/photo.jpg"
  std::string unit = "sample";  // the word for one sample
  // Identifies the samples and their source: an interrupted run may continue if this is equal. Empty: it may not.
  std::string identity;
  std::function<std::string(std::int64_t index)> name;  // for people, and for result files
  // The inputs of sample `index`; indices are requested in order, and some may be left out. nullopt: there are no more. Throws
  // Error for a sample that cannot be read; later ones may still be requested.
  std::function<std::optional<NamedValues>(std::int64_t index)> read;
};

// Finds the samples if the flags name a folder, a pattern, several files, a .jsonl file, '-' or a .json file with a list; nullopt
// if they give one set of inputs. The other inputs are shared by all samples and read once. `output`: the destination of results,
// which is never read as a sample. Throws UsageError if two flags name samples. `flags` must live as long as the result.
std::optional<Samples> find_samples(const InputFlags& flags, const std::vector<ValueSpec>& specs, const std::string& output);

}  // namespace sdx::cli
