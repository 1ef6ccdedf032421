#include "hub/registry_api.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/ascii.h"

namespace sdx::hub {
namespace {

using nlohmann::json;

constexpr std::size_t kMostLayers = 1000;
constexpr std::string_view kLayer = "application/vnd.ollama.image.";

Url below(const Url& endpoint, const std::string& path) {
  Url url = endpoint;
  url.path = (endpoint.path == "/" ? "" : endpoint.path) + path;
  return url;
}

std::string text_of(const json& object, const char* key) {
  const json value = object.is_object() ? object.value(key, json()) : json();
  return value.is_string() ? value.get<std::string>() : "";
}

// "sha256:HEX" -> HEX; "": something else.
std::string hex_of(const std::string& digest) {
  constexpr std::string_view start = "sha256:";
  if (!digest.starts_with(start)) return "";
  const std::string hex = ascii_lower(digest.substr(start.size()));
  const bool good =
      hex.size() == 64 && std::all_of(hex.begin(), hex.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  return good ? hex : "";
}

// The file that a layer becomes; "": one without a meaning here, such as a template in another language than Jinja. `earlier`:
// layers of that kind; models may have several licences.
std::string name_of_layer(const std::string& kind, std::size_t earlier) {
  if (kind == "license") return earlier == 0 ? "LICENSE" : fmt::format("LICENSE-{}", earlier + 1);
  if (earlier > 0) return "";
  return kind == "model" ? "model.gguf" : kind == "projector" ? "mmproj.gguf" : "";
}

}  // namespace

std::vector<RegistryFile> registry_files(const Url& endpoint, const std::string& id, const std::string& tag,
                                         const NetworkOptions& options) {
  const Url url = below(endpoint, fmt::format("/v2/{}/manifests/{}", percent_encode(id, true), percent_encode(tag, false)));
  const std::string shown = id + ":" + tag;
  const json document = json::parse(get_text(url, shown, options), nullptr, false);
  const json layers = document.is_object() ? document.value("layers", json()) : json();
  if (!layers.is_array() || layers.size() > kMostLayers) {
    fail(ErrorCode::io, "{}: {} does not answer like a registry of models", shown, url.text());
  }
  std::vector<RegistryFile> out;
  std::string kinds;
  std::map<std::string, std::size_t> seen;
  for (const json& layer : layers) {
    std::string kind = text_of(layer, "mediaType");
    if (kind.starts_with(kLayer)) kind.erase(0, kLayer.size());
    kinds += (kinds.empty() ? "" : ", ") + kind.substr(0, 80);
    const std::size_t earlier = seen[kind]++;
    if (kind == "model" && earlier > 0) fail(ErrorCode::not_implemented, "{}: a model in several parts", shown);
    const std::string name = name_of_layer(kind, earlier);
    if (name.empty()) continue;
    const std::string hex = hex_of(text_of(layer, "digest"));
    if (hex.empty() || !layer.value("size", json()).is_number_unsigned()) {
      fail(ErrorCode::io, "{}: the manifest has a layer without a size and a SHA-256 digest", shown);
    }
    out.push_back({name, layer["size"].get<std::uint64_t>(), hex});
  }
  const auto model = std::find_if(out.begin(), out.end(), [](const RegistryFile& f) { return f.name == "model.gguf"; });
  if (model == out.end()) {
    fail(ErrorCode::invalid_argument, "{} is no model in a GGUF file; it has the layers {}", shown,
         kinds.empty() ? "none" : kinds);
  }
  std::rotate(out.begin(), model, model + 1);
  return out;
}

Url blob_url(const Url& endpoint, const std::string& id, const std::string& sha256) {
  return below(endpoint, fmt::format("/v2/{}/blobs/sha256:{}", percent_encode(id, true), sha256));
}

}  // namespace sdx::hub
