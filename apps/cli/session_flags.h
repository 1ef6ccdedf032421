#pragma once
// The options that all commands which open a model have in common.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "cli/arguments.h"
#include "project/resolve.h"

namespace sdx::cli {

struct SessionFlags {
  std::string model;
  project::Asked given;  // commands may set their own defaults

  void add_to(const Command& command, bool positional_model = true);
  // What was typed, with what backends.yaml says. Throws UsageError for values that make no sense.
  project::Asked asked() const;
  // Whether the option was given ("--runs").
  bool typed(const char* option) const;

 private:
  Command command_;  // outlives these flags
};

// Applies names from backends.yaml to a session's options (BenchOptions::resolve); empty without such a file.
std::function<void(SessionOptions&)> backend_names();

// "float16", "bfloat16". Throws UsageError.
DataType parse_precision(const std::string& text);
// "512MB", "2GiB", "1000000": bytes. Throws UsageError that names the option, as those below do.
std::size_t parse_bytes(const std::string& text, const char* option);
// "2.5" or "2.5s" seconds, "300ms". Throws UsageError.
std::chrono::milliseconds parse_duration(const std::string& text, const char* option);
// Parses "1x3x224x224", "1,3,224,224" or "[1,3]"; "" is a scalar. Returns nullopt for any other text.
std::optional<Shape> shape_from_text(const std::string& text);
// The same; throws UsageError.
Shape parse_shape(const std::string& text, const char* option);
// Splits at the first '='. Throws UsageError naming `option` when there is none.
std::pair<std::string, std::string> split_pair(const std::string& text, const char* option);

}  // namespace sdx::cli
