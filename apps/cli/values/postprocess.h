#pragma once
// Processes outputs before they are shown: the project's postprocessing sections and --labels, --top-k, --softmax.

#include <string>

#include <sdx/project.hpp>
#include <sdx/session.hpp>

#include "cli/arguments.h"

namespace sdx::cli {

struct PostFlags {
  std::string labels;
  std::int64_t top = 0;
  bool softmax = false;

  void add_to(const Command& command);
  bool any() const { return top > 0 || !labels.empty(); }
};

// Results as they are shown.
struct Shown {
  NamedValues outputs;
  std::string text;  // the best classes for people; empty where none are asked for
  std::string json;  // the same: ",\"top\":[…]", or empty
};

class Postprocessor {
 public:
  // Reads the label file. Throws Error(io).
  Postprocessor(const PostFlags& flags, const ProjectConfig* project);
  // Throws Error(invalid_argument) where an output is not what classes can be read from.
  Shown operator()(NamedValues outputs) const;

 private:
  const Postprocessing* of(const std::string& output, std::size_t outputs) const;

  PostFlags flags_;
  Postprocessing typed_;
  const ProjectConfig* project_;
};

}  // namespace sdx::cli
