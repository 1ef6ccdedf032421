#pragma once
// Projects: a model with a file (sdx.yml) that says how to run it, and what `sdx build` makes of both.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/dtype.hpp>
#include <sdx/export.hpp>
#include <sdx/preprocessing.hpp>
#include <sdx/session.hpp>

namespace sdx {

// What turns scores into probabilities. As text: "none", "softmax", "sigmoid".
enum class Activation { none, softmax, sigmoid };
SDX_API std::string_view name(Activation activation) noexcept;

// What is done with an output of scores.
struct Postprocessing {
  Activation activation = Activation::none;
  int axis = -1;                    // the axis of classes
  std::int64_t top_k = 0;           // classes to list; 0: 5 where there are labels, else none
  std::optional<double> threshold;  // list only classes with at least this score
  std::vector<std::string> labels;  // names of the classes
  bool ranks() const { return top_k > 0 || threshold.has_value() || !labels.empty(); }
};

struct ProjectValue {
  std::string name;
  DataType dtype = DataType::undefined;            // undefined: not declared
  std::optional<std::vector<std::int64_t>> shape;  // -1: any extent
  std::string description;
};

struct ProjectInput : ProjectValue {
  bool required = true;
  std::int64_t max_length = 0;  // most elements along the last axis, of text most characters; 0: any number
  Preprocessing preprocessing;  // the project's, with this input's own changes
};

struct ProjectOutput : ProjectValue {
  Postprocessing postprocessing;
};

struct ProjectRuntime {
  SessionOptions session;            // what the section says of it; `providers` is empty where only gpu_backend speaks
  std::uint64_t gpu_memory = 0;      // bytes; 0: no limit
  std::string gpu_backend = "auto";  // or a provider
  std::optional<std::chrono::milliseconds> timeout;  // of one run
  std::int64_t batch_size = 1;                       // samples that one run takes, where the model lets it vary
};

// What `sdx serve` does where no flag says otherwise.
struct ProjectServing {
  std::string host = "127.0.0.1";
  int port = 8080;
  std::int64_t max_batch_size = 1;
  double max_queue_delay_ms = 2;
  double timeout = 5;  // seconds
  int workers = 4;
};

struct ProjectConfig {
  std::string name;
  std::string version = "1.0.0";
  std::string description;
  std::string model_source;  // as written: relative to the file's folder
  std::string model_version;
  std::vector<ProjectInput> inputs;
  std::vector<ProjectOutput> outputs;
  ProjectRuntime runtime;
  ProjectServing serving;
  Preprocessing preprocessing;    // of inputs that are not listed
  Postprocessing postprocessing;  // of the first output of floating-point numbers, unless it is listed
  std::vector<std::pair<std::string, std::string>> metadata;  // nested keys joined by '.'
};

struct BuildOptions {
  std::vector<std::string> providers;  // the chain to build for; empty: the project's
  bool optimize = true;
  std::function<void(std::string_view step)> progress;  // called before each step; may be empty
};

// What a build did.
struct BuildReport {
  std::filesystem::path folder;        // .sdx
  std::filesystem::path compiled;      // the model in it
  std::vector<std::string> providers;  // that run at least one node
  std::vector<std::string> fallbacks;  // "wanted X, took Y: reason"
  std::vector<std::string> warnings;   // about project file and model
  bool optimized = false;
  std::string not_optimized;  // why not; empty where it was
  std::int64_t nodes_before = 0, nodes_after = 0;
  std::uint64_t source_bytes = 0, compiled_bytes = 0;  // external data included
  double build_ms = 0;                                 // all of it
  double open_ms = 0;                                  // opening the result: choosing kernels, compiling for the providers
};

// Whether a project's build can stand in for its model.
struct BuildState {
  enum class Kind {
    none,   // nothing was built
    fresh,  // usable
    stale,  // model or settings have changed since, or it was built by another version
    other,  // it was built for other options than those asked for
  };
  Kind kind = Kind::none;
  std::string why;                     // for stale and other
  std::filesystem::path compiled;      // where fresh: the model to open, and
  SessionOptions options;              // the options to open it with
  std::vector<std::string> providers;  // where fresh: those that the build found
};

// A project file, read and checked; or a bare model, which is a project without settings. Immutable; safe to share.
class SDX_API Project {
 public:
  // A project file, a folder with one, or a model file. Throws Error(io) where there is none, and Error(invalid_argument)
  // "FILE:LINE:COLUMN: key: …" for anything wrong with the file.
  static Project open(const std::filesystem::path& path);
  // The same by name: an explicit path, ./sdx.yml, the registry, ~/.sdx/models/, ./.sdx/, in this order. Throws Error(io) with
  // the closest name.
  static Project find(const std::string& name);

  const ProjectConfig& config() const noexcept { return config_; }
  const std::filesystem::path& file() const noexcept { return file_; }      // empty for a bare model
  const std::filesystem::path& folder() const noexcept { return folder_; }  // that .sdx/ is in
  std::filesystem::path model() const;                                      // the model file, whether or not it is there

  // The settings of the runtime section.
  SessionOptions options() const;
  // Reads the model and compares what the file declares with it: names, types, shapes, labels. Returns what is odd but works.
  // Throws Error(invalid_argument) with the place in the file for what cannot work, and what Session::open throws.
  std::vector<std::string> validate() const;
  // The same against a session of the model.
  std::vector<std::string> validate(const Session& session) const;

  // Checks everything, optimises the model, compiles it for the providers, and puts the result into .sdx/ beside the project
  // file: the model, model_info.json and provider_info.json (docs/projects.md). Whatever happens, .sdx/ holds either the old
  // build or the new one. Throws Error, also where another build of this project is at work.
  BuildReport build(const BuildOptions& options = {}) const;
  // Looks at the build without opening it. Reads the model only where its time stamp differs from the build's.
  BuildState build_state(const SessionOptions& options) const;

  // Opens the built model where it is fresh, else the model itself.
  Session session() const { return session(options()); }
  Session session(const SessionOptions& options) const;

 private:
  ProjectConfig config_;
  std::filesystem::path file_, folder_;
  std::vector<std::pair<std::string, std::string>> places_;  // key path -> "FILE:LINE:COLUMN: key"

  std::string place(const std::string& key) const;
};

struct InitOptions {
  std::string name;              // empty: the model file's
  std::filesystem::path folder;  // that the project file will be in; empty: the current one
};

// The text of a project file for a model: its inputs and outputs, and preprocessing that fits what they look like (pictures by
// shape, sound and text by name and type, labels and tokenizers found beside the model), with comments. Throws what reading the
// model throws.
SDX_API std::string project_text(const std::filesystem::path& model, const InitOptions& options = {});

}  // namespace sdx
