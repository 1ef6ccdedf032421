#pragma once
// The options by which every command that opens a model says how.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sdx/project.hpp>
#include <sdx/session.hpp>

#include "cli/arguments.h"

namespace sdx::cli {

struct SessionFlags {
  std::string model;
  SessionOptions given;  // what was typed of the options of sessions (src/session/options/option_table.cc); commands may set
                         // their own defaults
  std::string dtype;
  bool keep_io = false;  // a converted model's inputs and outputs stay as they are; set by commands

  void add_to(const Command& command, bool positional_model = true);
  // Throws UsageError for values that make no sense.
  SessionOptions options() const;
  // The same over a project's settings: what was typed wins.
  SessionOptions options(const ProjectConfig& project) const;
  // Whether the option was given ("--runs").
  bool typed(const char* option) const;

 private:
  Command command_;  // outlives these flags
};

// What puts names of backends.yaml into a session's options (BenchOptions::resolve); empty where there is no such file.
std::function<void(SessionOptions&)> backend_names();

// "float16", "bfloat16". Throws UsageError.
DataType parse_precision(const std::string& text);
// "512MB", "2GiB", "1000000": bytes. Throws UsageError that names the option, as those below do.
std::size_t parse_bytes(const std::string& text, const char* option);
// "2.5" or "2.5s" seconds, "300ms". Throws UsageError.
std::chrono::milliseconds parse_duration(const std::string& text, const char* option);
// "1x3x224x224", "1,3,224,224" or "[1,3]"; "" is a scalar. nullopt for what is none of these.
std::optional<Shape> shape_from_text(const std::string& text);
// The same; throws UsageError.
Shape parse_shape(const std::string& text, const char* option);
// Splits at the first '='. Throws UsageError naming `option` when there is none.
std::pair<std::string, std::string> split_pair(const std::string& text, const char* option);

}  // namespace sdx::cli
