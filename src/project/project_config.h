#pragma once
// What a project file (sdx.yml) says.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sdx/dtype.hpp>

namespace sdx {

// How pictures, sound and text become a tensor. What is left open follows from the input's declared shape and type.
struct Preprocessing {
  int width = 0, height = 0;            // 0: what the input declares, else the picture's own
  int shorter_side = 0;                 // instead of width and height: the shorter side's new length, proportions kept
  int crop_width = 0, crop_height = 0;  // then the middle is cut out; 0: nothing is
  std::string fit = "stretch";          // "stretch", "letterbox", "letterbox-corner", "crop"
  std::string filter = "bilinear";      // "nearest", "bilinear", "bicubic", "area"
  int fill = 114;                       // of letterboxes, 0 to 255
  std::string layout;                   // "nchw", "nhwc", "chw", "hwc", "hw"
  std::string color;                    // "rgb", "bgr", "gray"
  // value = (pixel * scale - mean) / deviation. `normalize` names a common choice ("imagenet", "clip", "0-1", "-1-1", "none");
  // the others replace its parts. Lists have one number, or one for each channel in the order of `color`.
  std::string normalize;
  std::optional<float> scale;
  std::vector<float> mean, deviation;
  int sample_rate = 0;    // samples a second of sound; 0: as it comes
  std::string tokenizer;  // file or name
  int max_length = 0;     // most tokens; 0: any number
};

// What is done with an output of scores.
struct Postprocessing {
  std::string activation;           // "", "softmax" or "sigmoid"
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
  std::string runtime = "auto";        // "auto", "native", "ort"
  std::uint64_t gpu_memory = 0;        // bytes; 0: no limit
  std::string gpu_backend = "auto";    // or a provider
  std::vector<std::string> providers;  // explicit chain; empty: by gpu_backend
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>> provider_options;
  bool strict = false;  // fallback: strict
  int threads = 0;
  std::optional<std::chrono::milliseconds> timeout;  // of one run
  std::int64_t batch_size = 1;                       // samples that one run takes, where the model lets it vary
  bool enable_profiling = false;
  std::string ort_library;
  std::uint64_t memory_limit = 0;  // bytes; 0: no limit
  std::vector<std::pair<std::string, std::int64_t>> dimensions;
};

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

}  // namespace sdx
