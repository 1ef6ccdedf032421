#pragma once
// A temporary folder for models that belong to one training.

#include <filesystem>

#include "graph/graph.h"

namespace sdx::train::loop {

// A folder among the system's temporary files, removed at the end.
class WorkFolder {
 public:
  WorkFolder();
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const Model& model, const char* name) const;

 private:
  std::filesystem::path path_;
};

}  // namespace sdx::train::loop
