#include "providers/ort/options.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/suggest.h"
#include "providers/ort/plugins.h"

namespace sdx::ort {
namespace {

// The form of a value: "" anything, "#" a whole number, "?" 0 or 1 (or true or false), else one of a list; in a list, a trailing
// "*" stands for any continuation.
struct Option {
  std::string name;
  std::string values;
};

const std::map<std::string, std::vector<Option>, std::less<>>& known_options() {
  static const std::map<std::string, std::vector<Option>, std::less<>> table{
      {"cuda",
       {{"device_id", "#"},
        {"gpu_mem_limit", "#"},
        {"arena_extend_strategy", "kNextPowerOfTwo kSameAsRequested"},
        {"cudnn_conv_algo_search", "EXHAUSTIVE HEURISTIC DEFAULT"},
        {"do_copy_in_default_stream", "?"},
        {"cudnn_conv_use_max_workspace", "?"},
        {"use_tf32", "?"},
        {"prefer_nhwc", "?"}}},
      {"tensorrt",
       {{"device_id", "#"},
        {"trt_max_workspace_size", "#"},
        {"trt_fp16_enable", "?"},
        {"trt_int8_enable", "?"},
        {"trt_engine_cache_enable", "?"},
        {"trt_engine_cache_path", ""},
        {"trt_timing_cache_enable", "?"},
        {"trt_timing_cache_path", ""},
        {"trt_max_partition_iterations", "#"},
        {"trt_min_subgraph_size", "#"}}},
      {"openvino",
       {{"device_type", "CPU GPU NPU CPU.* GPU.* NPU.* CPU_* GPU_* AUTO AUTO:* HETERO:* MULTI:* BATCH:*"},
        {"precision", "FP32 FP16 ACCURACY"},
        {"num_of_threads", "#"},
        {"cache_dir", ""},
        {"num_streams", "#"},
        {"load_config", ""},
        {"disable_dynamic_shapes", "?"}}},
      {"coreml",
       {{"ModelFormat", "NeuralNetwork MLProgram"},
        {"MLComputeUnits", "ALL CPUOnly CPUAndGPU CPUAndNeuralEngine"},
        {"RequireStaticInputShapes", "?"},
        {"EnableOnSubgraphs", "?"},
        {"ModelCacheDirectory", ""},
        {"coreml_flags", "#"}}},
      {"directml", {{"device_id", "#"}}},
      {"migraphx",
       {{"device_id", "#"},
        {"migraphx_fp16_enable", "?"},
        {"migraphx_int8_enable", "?"},
        {"migraphx_mem_limit", "#"},
        {"migraphx_model_cache_dir", ""}}},
      {"vitisai", {{"config_file", ""}, {"cache_dir", ""}, {"cache_key", ""}}},
  };
  return table;
}

bool is_one_of(std::string_view list, std::string_view value) {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(' ', at), list.size());
    const std::string_view item = list.substr(at, end - at);
    if (item.ends_with('*') ? value.starts_with(item.substr(0, item.size() - 1)) : value == item) return true;
    at = end + 1;
  }
  return false;
}

void check_value(std::string_view provider, const Option& option, const std::string& value) {
  const auto wrong = [&](std::string_view expected) {
    fail(ErrorCode::invalid_argument, "option '{}' of provider '{}' must be {}, received '{}'", option.name, provider, expected,
         value);
  };
  if (option.values.empty()) return;
  if (option.values == "#") {
    const bool prefixed = value.starts_with("0x") && value.size() > 2;
    const std::string digits = prefixed ? value.substr(2) : value;
    if (digits.empty() || digits.find_first_not_of(prefixed ? "0123456789abcdefABCDEF" : "0123456789") != std::string::npos) {
      wrong("a whole number");
    }
  } else if (option.values == "?") {
    if (!is_one_of("0 1 true false True False", value)) wrong("0 or 1");
  } else if (!is_one_of(option.values, value)) {
    wrong("one of: " + option.values);
  }
}

// Options of our own, for every provider. The library does not know them.
bool is_ours(const std::string& key) { return key == kProfilePrefix || key == kIoBinding; }

// Replaying a recorded graph of kernels reads and writes the addresses of the run that was recorded; here every run brings memory
// of its own, and would get the results of the first.
bool replays(const std::string& key, const std::string& value) {
  static const std::array<std::string_view, 5> keys{"enable_cuda_graph", "trt_cuda_graph_enable", "enableGraphCapture",
                                                    "ep.webgpuexecutionprovider.enableGraphCapture",
                                                    "ep.dml.enable_graph_capture"};
  return std::find(keys.begin(), keys.end(), key) != keys.end() && value != "0" && value != "false" && value != "False";
}

bool is_config(const std::string& key) {
  return key.starts_with("session.") || key.starts_with("ep.") || key.starts_with("optimization.") || key.starts_with("mlas.");
}

// The bits of the old integer become the options that replaced it.
void translate_coreml_flags(const std::string& text, Pairs& out) {
  const unsigned long flags = std::strtoul(text.c_str(), nullptr, 0);
  if ((flags & 0x001) != 0) out.emplace_back("MLComputeUnits", "CPUOnly");
  if ((flags & 0x020) != 0) out.emplace_back("MLComputeUnits", "CPUAndGPU");
  if ((flags & 0x004) != 0) out.emplace_back("MLComputeUnits", "CPUAndNeuralEngine");
  if ((flags & 0x002) != 0) out.emplace_back("EnableOnSubgraphs", "1");
  if ((flags & 0x008) != 0) out.emplace_back("RequireStaticInputShapes", "1");
  if ((flags & 0x010) != 0) out.emplace_back("ModelFormat", "MLProgram");
}

struct Arrays {
  explicit Arrays(const Pairs& pairs) {
    for (const auto& [k, v] : pairs) {
      keys.push_back(k.c_str());
      values.push_back(v.c_str());
    }
  }
  std::vector<const char*> keys, values;
};

// CUDA, TensorRT, ROCm and oneDNN have options objects of their own, all handled alike.
struct Custom {
  c::Status* (*create)(c::ProviderOptions**);
  c::Status* (*update)(c::ProviderOptions*, c::Strings, c::Strings, std::size_t);
  void (*release)(c::ProviderOptions*);
  c::Status* (*append)(c::SessionOptions*, const c::ProviderOptions*);
};

Custom custom_of(const Functions& f, std::string_view provider) {
  if (provider == "cuda") return {f.create_cuda, f.update_cuda, f.release_cuda, f.append_cuda};
  if (provider == "tensorrt") return {f.create_tensorrt, f.update_tensorrt, f.release_tensorrt, f.append_tensorrt};
  if (provider == "rocm") return {f.create_rocm, f.update_rocm, f.release_rocm, f.append_rocm};
  if (provider == "dnnl") return {f.create_dnnl, f.update_dnnl, f.release_dnnl, f.append_dnnl};
  return {};
}

// The generic function's name for a provider: without "ExecutionProvider", apart from a few that are spelt in their own way.
std::string generic_name(std::string_view provider) {
  static const std::map<std::string, std::string, std::less<>> table{
      {"directml", "DML"}, {"qnn", "QNN"}, {"xnnpack", "XNNPACK"}, {"webgpu", "WebGPU"}, {"azure", "AZURE"}, {"nnapi", "NNAPI"}};
  if (const auto it = table.find(provider); it != table.end()) return it->second;
  const std::string_view full = vendor_name(provider);
  return std::string(full.substr(0, full.find("ExecutionProvider")));
}

}  // namespace

std::string_view vendor_name(std::string_view provider) {
  for (const ProviderName& p : provider_names()) {
    if (p.name == provider) return p.ort_name;
  }
  return provider;
}

Pairs provider_options(std::string_view provider, const ProviderSettings& settings) {
  Pairs out;
  const auto set = [&](const std::string& key, const std::string& value) {
    std::erase_if(out, [&](const auto& p) { return p.first == key; });
    out.emplace_back(key, value);
  };
  if (!settings.cache.empty()) {
    const std::string folder = settings.cache.string();
    if (provider == "tensorrt") {
      set("trt_engine_cache_enable", "1");
      set("trt_engine_cache_path", folder);
      set("trt_timing_cache_enable", "1");
      set("trt_timing_cache_path", folder);
    }
    if (provider == "openvino") set("cache_dir", folder);
    if (provider == "coreml") set("ModelCacheDirectory", folder);
    if (provider == "migraphx") set("migraphx_model_cache_dir", folder);
    if (provider == "vitisai") {
      set("cache_dir", folder);
      set("cache_key", "model");
    }
  }
  for (const auto& [key, value] : settings.options) {
    if (is_config(key) || is_ours(key)) continue;
    if (key != "coreml_flags") {
      set(key, value);
      continue;
    }
    Pairs translated;
    translate_coreml_flags(value, translated);
    for (const auto& [k, v] : translated) set(k, v);
  }
  return out;
}

bool keeps_context(std::string_view provider) { return provider == "qnn"; }

bool keeps_compiled(std::string_view provider) {
  ProviderSettings somewhere;
  somewhere.cache = "somewhere";
  return keeps_context(provider) || !provider_options(provider, somewhere).empty();
}

Pairs context_config(std::string_view provider, const std::filesystem::path& model) {
  if (!keeps_context(provider)) return {};
  return {{"ep.context_enable", "1"}, {"ep.context_file_path", model.string()}, {"ep.context_embed_mode", "0"}};
}

void check_options(std::string_view provider, const ProviderSettings& settings) {
  for (const auto& [key, value] : settings.options) {
    if (key == kIoBinding) check_value(provider, {key, "?"}, value);
    if (replays(key, value)) {
      fail(ErrorCode::invalid_argument,
           "option '{}' of provider '{}' must be 0: a recorded graph reads the memory of its first run, but here each run has "
           "its own memory",
           key, provider);
    }
  }
  const auto known = known_options().find(provider);
  if (known == known_options().end()) return;
  std::vector<std::string> names;
  for (const Option& o : known->second) names.push_back(o.name);
  for (const auto& [key, value] : settings.options) {
    if (is_config(key) || is_ours(key)) continue;
    const auto it = std::find(names.begin(), names.end(), key);
    if (it != names.end()) {
      check_value(provider, known->second[static_cast<std::size_t>(it - names.begin())], value);
      continue;
    }
    const std::string near = closest(key, names);
    if (near.empty()) continue;
    fail(ErrorCode::invalid_argument, "provider '{}' has no option '{}'; did you mean '{}'? Known: {}", provider, key, near,
         join(names));
  }
}

void append_provider(const Library& library, c::SessionOptions* options, std::string_view provider,
                     const ProviderSettings& settings) {
  const Functions& f = library.f();
  for (const auto& [key, value] : settings.options) {
    if (is_config(key)) library.check(f.add_config(options, key.c_str(), value.c_str()), ErrorCode::invalid_argument);
  }
  if (provider == "cpu") return;
  if (!settings.cache.empty()) {
    std::error_code none;  // where it cannot be made the vendor says so
    std::filesystem::create_directories(settings.cache, none);
  }
  const Pairs pairs = provider_options(provider, settings);
  const Arrays a(pairs);
  const auto& built_in = library.providers();
  if (std::find(built_in.begin(), built_in.end(), vendor_name(provider)) == built_in.end() && f.append_devices != nullptr) {
    std::vector<std::string> problems;
    if (!plugin_devices(library, provider, problems).empty()) return append_plugin(library, options, provider, pairs);
  }
  const Custom custom = custom_of(f, provider);
  constexpr ErrorCode kUnavailable = ErrorCode::provider_unavailable;
  if (custom.create != nullptr && custom.append != nullptr) {
    c::ProviderOptions* made = nullptr;
    library.check(custom.create(&made), kUnavailable);
    const std::unique_ptr<c::ProviderOptions, void (*)(c::ProviderOptions*)> release(made, custom.release);
    library.check(custom.update(made, a.keys.data(), a.values.data(), pairs.size()), ErrorCode::invalid_argument);
    library.check(custom.append(options, made), kUnavailable);
  } else if (provider == "openvino" && f.append_openvino != nullptr) {
    library.check(f.append_openvino(options, a.keys.data(), a.values.data(), pairs.size()), kUnavailable);
  } else if (provider == "vitisai" && f.append_vitisai != nullptr) {
    library.check(f.append_vitisai(options, a.keys.data(), a.values.data(), pairs.size()), kUnavailable);
  } else {
    library.check(f.append_provider(options, generic_name(provider).c_str(), a.keys.data(), a.values.data(), pairs.size()),
                  kUnavailable);
  }
}

}  // namespace sdx::ort
