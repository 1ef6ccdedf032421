#include "project/build_info.h"

#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <sdx/provider.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/process.h"
#include "base/text/json_text.h"
#include "providers/interface/provider.h"
#include "tensor/json.h"

namespace sdx::project {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string word(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

template <class T>
T number(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer() ? it->get<T>() : T{};
}

std::vector<std::string> words(const nlohmann::json& object, const char* key) {
  std::vector<std::string> out;
  const auto it = object.find(key);
  if (it == object.end() || !it->is_array()) return out;
  for (const auto& item : *it) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

std::string dump(const Json& json) { return dump_json(json, 2) + "\n"; }

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

Json spec_json(const ValueSpec& s) {
  Json shape;  // null: any rank
  if (s.has_shape) {
    shape = Json::array();
    for (std::size_t i = 0; i < s.shape.size(); ++i) {
      if (s.shape[i] >= 0) {
        shape.push_back(s.shape[i]);
      } else if (i < s.symbols.size() && !s.symbols[i].empty()) {
        shape.push_back(s.symbols[i]);
      } else {
        shape.push_back(nullptr);
      }
    }
  }
  const Json dtype = s.dtype == DataType::undefined ? Json() : Json(std::string(name(s.dtype)));
  return {{"name", s.name}, {"type", s.type}, {"dtype", dtype}, {"shape", shape}, {"required", !s.has_default}};
}

Json specs_json(const std::vector<ValueSpec>& specs) {
  Json out = Json::array();
  for (const ValueSpec& s : specs) out.push_back(spec_json(s));
  return out;
}

}  // namespace

std::string build_settings(const SessionOptions& o) {
  Json json{{"providers", o.providers}, {"runtime", name(o.runtime)}, {"strict", o.strict}, {"ort_library", o.ort_library}};
  Json dimensions = Json::object();
  for (const auto& [symbol, extent] : std::map<std::string, std::int64_t>(o.dimensions.begin(), o.dimensions.end())) {
    dimensions[symbol] = extent;
  }
  json["dimensions"] = dimensions;
  Json provider_options = Json::object();
  for (const auto& [provider, options] : o.provider_options) {
    for (const auto& [key, value] : options) provider_options[provider][key] = value;
  }
  json["provider_options"] = provider_options;
  return dump_json(json);
}

std::optional<BuildInfo> read_build_info(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_regular_file(folder / "model_info.json", ignored)) return std::nullopt;
  try {
    const nlohmann::json json = parse_json(read_file(folder / "model_info.json", std::size_t{16} << 20), "model_info.json");
    if (!json.is_object()) return std::nullopt;
    BuildInfo info;
    info.source = word(json, "source");
    info.compiled = word(json, "compiled");
    info.settings = word(json, "settings");
    info.version = word(json, "sdx_version");
    info.optimized = json.contains("optimized") && json["optimized"].is_boolean() && json["optimized"].get<bool>();
    info.providers = words(json, "providers");
    const auto files = json.find("files");
    if (files != json.end() && files->is_array()) {
      for (const auto& f : *files) {
        if (!f.is_object()) continue;
        info.files.push_back(
            {word(f, "name"), number<std::uint64_t>(f, "bytes"), number<std::int64_t>(f, "modified_ns"), word(f, "hash")});
      }
    }
    // A name of a file in .sdx and no path out of it: the file may have been edited.
    const bool named = !info.compiled.empty() && fs::path(info.compiled).filename() == info.compiled;
    return named && !info.files.empty() ? std::optional(std::move(info)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // as good as no build; the next one replaces it
  }
}

std::string model_info_json(const BuildFacts& f) {
  Json json;
  json["name"] = f.config.name;
  json["version"] = f.config.version;
  json["description"] = f.config.description;
  json["format"] = "onnx";
  json["config"] = f.config_file;
  json["source"] = f.info.source;
  json["source_hash"] = f.info.files.front().hash;
  json["files"] = Json::array();
  for (const cache::Fingerprint& p : f.info.files) {
    json["files"].push_back({{"name", p.name}, {"bytes", p.bytes}, {"modified_ns", p.modified_ns}, {"hash", p.hash}});
  }
  json["compiled"] = f.info.compiled;
  json["source_bytes"] = f.report.source_bytes;
  json["compiled_bytes"] = f.report.compiled_bytes;
  const auto hundredths = f.report.compiled_bytes / 10000;
  json["size_mb"] = static_cast<double>(hundredths) / 100.0;
  json["optimized"] = f.report.optimized;
  if (!f.report.not_optimized.empty()) json["not_optimized"] = f.report.not_optimized;
  json["nodes_before"] = f.report.nodes_before;
  json["nodes"] = f.report.nodes_after;
  json["providers"] = f.report.providers;
  json["inputs"] = specs_json(f.session.inputs());
  json["outputs"] = specs_json(f.session.outputs());
  Json metadata = Json::object();
  for (const auto& [key, value] : f.config.metadata) metadata[key] = value;
  json["metadata"] = metadata;
  json["settings"] = f.info.settings;
  json["sdx_version"] = f.info.version;
  json["created"] = now();
  return dump(json);
}

std::string provider_info_json(const BuildFacts& f) {
  Json json;
  json["compiled"] = f.info.compiled;
  json["requested"] = f.options.providers.empty() ? std::vector<std::string>{"auto"} : f.options.providers;
  json["strict"] = f.options.strict;
  const std::string selected = f.report.providers.empty() ? "cpu" : f.report.providers.front();
  json["selected_provider"] = selected;
  json["providers_used"] = f.report.providers;
  json["fallbacks"] = f.report.fallbacks;
  std::map<std::string, std::map<std::string, int>> kernels;
  for (const NodeReport& n : f.session.report().nodes) ++kernels[n.provider][n.kernel];
  json["kernels"] = kernels;
  const SystemNames names = system_names();
  json["platform"] = {{"system", names.system}, {"release", names.release}, {"machine", names.machine}};
  json["available_providers"] = Json::array();
  json["providers"] = Json::array();
  for (const ProviderInfo& p : providers()) {
    if (p.available) json["available_providers"].push_back(p.name);
    json["providers"].push_back({{"name", p.name},
                                 {"ort_name", p.ort_name},
                                 {"hardware", p.hardware},
                                 {"available", p.available},
                                 {"reason", p.reason},
                                 {"hint", p.hint},
                                 {"version", p.version},
                                 {"devices", p.devices}});
    if (p.name == selected) json["selected_ort_name"] = p.ort_name;
  }
  json["sdx_version"] = std::string(version());
  return dump(json);
}

}  // namespace sdx::project
