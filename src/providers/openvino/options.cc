#include "providers/openvino/options.h"

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/control_group.h"
#include "providers/openvino/functions.h"

namespace sdx::openvino {
namespace {

const std::vector<std::string>& names() {
  static const std::vector<std::string> list{"device_type", "precision", "num_of_threads", "num_streams", "cache_dir"};
  return list;
}

bool is_property(const std::string& key) {
  return !key.empty() &&
         std::all_of(key.begin(), key.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9'); });
}

[[noreturn]] void wrong(const std::string& key, const std::string& value, const char* expected) {
  fail(ErrorCode::invalid_argument, "option '{}' of provider 'openvino' must be {}, received '{}'", key, expected, value);
}

// "GPU", "GPU.1", "AUTO", "AUTO:GPU,CPU", "HETERO:NPU,CPU", …
bool is_device(std::string text) {
  for (const std::string_view kind : {"AUTO:", "HETERO:", "MULTI:"}) {
    if (text.starts_with(kind)) text = text.substr(kind.size());
  }
  if (text.empty()) return false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    const std::string kind = one.substr(0, one.find('.'));
    if (kind != "CPU" && kind != "GPU" && kind != "NPU" && kind != "AUTO") return false;
    const std::string number = one.size() > kind.size() ? one.substr(kind.size() + 1) : "0";
    if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) return false;
    at = end + 1;
  }
  return true;
}

}  // namespace

Settings settings_of(const ProviderSettings& settings) {
  Settings out;
  std::string precision, threads, streams, cache = settings.cache.string();
  if (settings.threads > 0) {
    threads = std::to_string(settings.threads);
  } else if (cpu_quota()) {  // OpenVINO counts cores
    threads = std::to_string(usable_cpus());
  }
  std::vector<std::pair<std::string, std::string>> own;
  for (const auto& [key, value] : settings.options) {
    const auto number = [&, &key = key, &value = value] {
      if (value.empty() || value.size() > 6 || value.find_first_not_of("0123456789") != std::string::npos) {
        wrong(key, value, "a whole number");
      }
      return value;
    };
    if (key == "device_type") {
      if (!is_device(value))
        wrong(key, value, "CPU, GPU, NPU, one of several (GPU.1), AUTO, or AUTO:, HETERO: or MULTI: with a list of them");
      out.device = value;
    } else if (key == "precision") {
      if (value != "FP32" && value != "FP16" && value != "ACCURACY") wrong(key, value, "FP32, FP16 or ACCURACY");
      precision = value;
    } else if (key == "num_of_threads") {
      threads = number();
    } else if (key == "num_streams") {
      streams = number();
    } else if (key == "cache_dir") {
      cache = value;
    } else if (is_property(key)) {
      own.emplace_back(key, value);
    } else {
      const std::string near = closest(key, names());
      fail(ErrorCode::invalid_argument,
           "provider 'openvino' has no option '{}'{}. Known: {}; and OpenVINO's own properties, in capital letters", key,
           near.empty() ? "" : "; did you mean '" + near + "'?", join(names()));
    }
  }
  const auto add = [&](const char* key, const std::string& value) {
    const bool given = std::any_of(own.begin(), own.end(), [&](const auto& p) { return p.first == key; });
    if (!given && !value.empty()) out.properties.emplace_back(key, value);
  };
  const bool cpu = out.device.starts_with("CPU");
  add("PERFORMANCE_HINT", "LATENCY");  // a caller waits for each run
  // Without being asked to, the CPU's plugin computes in bfloat16 where the processor has instructions for it.
  if (precision == "FP32" || (precision.empty() && cpu)) add("INFERENCE_PRECISION_HINT", "f32");
  if (precision == "FP16") add("INFERENCE_PRECISION_HINT", "f16");
  if (precision == "ACCURACY") add("EXECUTION_MODE_HINT", "ACCURACY");
  // Otherwise it moves quantisation across layers: 8-bit models then answer otherwise than their authors measured (0.68 instead
  // of 1e-6 off, on a classifier of digits).
  if (cpu) add("LP_TRANSFORMS_MODE", "NO");
  if (cpu) add("INFERENCE_NUM_THREADS", threads);
  add("NUM_STREAMS", streams);
  add("CACHE_DIR", cache);
  out.properties.insert(out.properties.end(), own.begin(), own.end());
  if (out.properties.size() > c::kMostProperties) {
    fail(ErrorCode::invalid_argument, "at most {} options for OpenVINO, received {}", c::kMostProperties, out.properties.size());
  }
  return out;
}

}  // namespace sdx::openvino
