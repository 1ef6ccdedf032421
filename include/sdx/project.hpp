#pragma once
// Projects: a model together with a file (sdx.yml) that says how to run it, and the result of `sdx build`.

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

// The function that turns scores into probabilities. As text: "none", "softmax", "sigmoid".
enum class Activation { none, softmax, sigmoid };
SDX_API std::string_view name(Activation activation) noexcept;

// The postprocessing of an output of scores.
struct Postprocessing {
  Activation activation = Activation::none;
  int axis = -1;                    // the axis of classes
  std::int64_t top_k = 0;           // classes to list; 0: 5 if there are labels, else none
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
  std::int64_t max_length = 0;  // maximum number of elements along the last axis, or of characters in text; 0: unlimited
  Preprocessing preprocessing;  // the project's, overridden by this input's own settings
};

struct ProjectOutput : ProjectValue {
  Postprocessing postprocessing;
};

struct ProjectRuntime {
  SessionOptions session;            // session options from the runtime section; `providers` is empty if only gpu_backend is set
  std::uint64_t gpu_memory = 0;      // bytes; 0: no limit
  std::string gpu_backend = "auto";  // or a provider
  std::optional<std::chrono::milliseconds> timeout;  // of one run
  std::int64_t batch_size = 1;                       // samples per run, where the model's batch size is variable
};

// Defaults of `sdx serve`, used where no flag overrides them.
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
  std::string model_source;  // as written, relative to the file's folder
  std::string model_version;
  std::vector<ProjectInput> inputs;
  std::vector<ProjectOutput> outputs;
  ProjectRuntime runtime;
  ProjectServing serving;
  Preprocessing preprocessing;                                // for inputs that are not listed
  Postprocessing postprocessing;                              // for the first floating-point output, unless it is listed
  std::vector<std::pair<std::string, std::string>> metadata;  // nested keys joined by '.'
};

struct BuildOptions {
  std::vector<std::string> providers;  // the provider chain to build for; empty: the project's
  bool optimize = true;
  bool dry_run = false;                                 // optimise in memory, compile and write nothing; see BuildReport
  std::function<void(std::string_view step)> progress;  // called before each step; may be empty
};

// Result of a build. After a dry run `providers` is the chain to compile for, and there are no fallbacks and no open_ms.
struct BuildReport {
  std::filesystem::path folder;        // .sdx
  std::filesystem::path compiled;      // the model in it
  std::vector<std::string> providers;  // those that run at least one node
  std::vector<std::string> fallbacks;  // "wanted X, took Y: reason"
  std::vector<std::string> warnings;   // about the project file and the model
  bool optimized = false;
  std::string not_optimized;  // why not; empty if it was
  std::int64_t nodes_before = 0, nodes_after = 0;
  std::uint64_t source_bytes = 0, compiled_bytes = 0;  // external data included
  double build_ms = 0;                                 // total time
  double open_ms = 0;                                  // opening the result: choosing kernels, compiling for the providers
  bool up_to_date = false;                             // a dry run's: the build that is there is of this model and these settings
};

// Whether a project's build can replace its model.
struct BuildState {
  enum class Kind {
    none,   // nothing was built
    fresh,  // usable
    stale,  // the model or the settings have changed since, or another version built it
    other,  // built for other options than those requested
  };
  Kind kind = Kind::none;
  std::string why;                     // for stale and other
  std::filesystem::path compiled;      // if fresh: the model to open
  SessionOptions options;              // if fresh: the options to open it with
  std::vector<std::string> providers;  // if fresh: the providers that the build found
};

// A project file, read and validated, or a bare model, which is a project without settings. Immutable; safe to share.
class SDX_API Project {
 public:
  // Opens a project file, a folder with one, or a model file. Throws Error(io) if there is none, and Error(invalid_argument)
  // "FILE:LINE:COLUMN: key: …" for anything wrong with the file.
  static Project open(const std::filesystem::path& path);
  // Finds a project by name: an explicit path, ./sdx.yml, the registry, ~/.sdx/models/, ./.sdx/, in this order. Throws Error(io)
  // with the closest name.
  static Project find(const std::string& name);

  const ProjectConfig& config() const noexcept { return config_; }
  const std::filesystem::path& file() const noexcept { return file_; }      // empty for a bare model
  const std::filesystem::path& folder() const noexcept { return folder_; }  // contains .sdx/
  std::filesystem::path model() const;                                      // the model file, which may not exist

  // The settings of the runtime section.
  SessionOptions options() const;
  // Reads the model and checks the file's declarations against it: names, types, shapes, labels. Returns warnings. Throws
  // Error(invalid_argument) with the place in the file for errors, and whatever Session::open throws.
  std::vector<std::string> validate() const;
  // The same with an open session of the model.
  std::vector<std::string> validate(const Session& session) const;

  // Validates the project, optimises the model, compiles it for the providers, and writes the result to .sdx/ beside the project
  // file: the model, model_info.json and provider_info.json (docs/projects.md). On any failure .sdx/ keeps the old build. Throws
  // Error, also if another build of this project is running.
  BuildReport build(const BuildOptions& options = {}) const;
  // Checks the build without opening it. Reads the model only if its time stamp differs from the build's.
  BuildState build_state(const SessionOptions& options) const;

  // Opens the built model if it is fresh, else the model itself.
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
  std::filesystem::path folder;  // destination of the project file; empty: the current folder
};

// Generates the text of a project file: the model's inputs and outputs, and preprocessing guessed from them (images by shape,
// sound and text by name and type, labels and tokenizers found beside the model), with comments. Throws the same errors as
// reading the model.
SDX_API std::string project_text(const std::filesystem::path& model, const InitOptions& options = {});

}  // namespace sdx
