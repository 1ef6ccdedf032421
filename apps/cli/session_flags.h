#pragma once
// The options by which every command that opens a model says how.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include <sdx/project.hpp>
#include <sdx/registry.hpp>

namespace CLI {
class App;
}

namespace sdx {
class ConvertedModel;
}

namespace sdx::cli {

struct SessionFlags {
  std::string model;
  SessionOptions
      given;  // what was typed of the options of sessions (src/session/option_table.cc); commands may set their own defaults
  std::string dtype;
  bool keep_io = false;  // a converted model's inputs and outputs stay as they are; set by commands

  void add_to(CLI::App& command, bool positional_model = true);
  // Throws UsageError for values that make no sense.
  SessionOptions options() const;
  // The same over a project's settings: what was typed wins.
  SessionOptions options(const ProjectConfig& project) const;
  // Opens the model and shows its warnings and fallbacks on stderr.
  Session open() const;
  // The same with a project's settings and, where that is up to date, its built model.
  Session open(const std::optional<Project>& project) const;
  // The model file that `model` names, converted where --dtype or the registry asks for it.
  std::filesystem::path model_file() const;
  // Whether the option was given ("--runs").
  bool typed(const char* option) const;

 private:
  std::filesystem::path converted(const std::filesystem::path& file, DataType type, bool io_stays, const SessionOptions& o) const;

  const CLI::App* command_ = nullptr;  // outlives these flags
  mutable std::map<std::filesystem::path, std::shared_ptr<ConvertedModel>> converted_;
};

// The project whose name or file `text` is; nullopt for a model file.
std::optional<ProjectConfig> find_project(const std::string& text);
std::optional<Project> locate_project(const std::string& text);

// What the registry says of the model that `text` names; null where that is not how it was found.
std::shared_ptr<const RegistryEntry> find_entry(const std::string& text);
// Its default shapes as values of --shape ("input=[1,3]") in front of `shapes`, which win, and a note where its element type is
// not the model's. Throws Error(invalid_argument) where the entry names an input that the model does not have.
void apply_entry(const RegistryEntry& entry, const std::vector<ValueSpec>& specs, std::vector<std::string>& shapes);

// What puts names of backends.yaml into a session's options (BenchOptions::resolve); empty where there is no such file.
std::function<void(SessionOptions&)> backend_names();

// The model file that `text` names. Throws Error(io) listing files with similar names in the same folder.
std::filesystem::path find_model(const std::string& text);

// "float16", "bfloat16". Throws UsageError.
DataType parse_precision(const std::string& text);
// "512MB", "2GiB", "1000000": bytes. Throws UsageError.
std::size_t parse_bytes(const std::string& text);
// "2.5" or "2.5s" seconds, "300ms". Throws UsageError.
std::chrono::milliseconds parse_duration(const std::string& text);
// "1x3x224x224", "1,3,224,224" or "[1,3]"; "" is a scalar. Throws UsageError.
Shape parse_shape(const std::string& text);
// Splits at the first '='. Throws UsageError naming `option` when there is none.
std::pair<std::string, std::string> split_pair(const std::string& text, const char* option);

}  // namespace sdx::cli
