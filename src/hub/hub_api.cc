#include "hub/hub_api.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/ascii.h"
#include "base/text/safe_name.h"
#include "tensor/gguf/gguf_names.h"

namespace sdx::hub {
namespace {

using nlohmann::json;

constexpr std::size_t kMostFiles = 100000;

std::string hex_or_nothing(const json& value, std::size_t digits) {
  if (!value.is_string()) return "";
  const std::string text = value.get<std::string>();
  const bool hex = std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (text.size() != digits || !hex) return "";
  return ascii_lower(text);
}

HubFile file_of(const json& entry) {
  HubFile file;
  if (!entry.is_object() || !entry.value("rfilename", json()).is_string()) return file;
  file.name = entry["rfilename"].get<std::string>();
  if (entry.value("size", json()).is_number_unsigned()) file.bytes = entry["size"].get<std::uint64_t>();
  const json lfs = entry.value("lfs", json());
  if (lfs.is_object()) {
    file.sha256 = hex_or_nothing(lfs.value("sha256", json()), 64);
    if (lfs.value("size", json()).is_number_unsigned()) file.bytes = lfs["size"].get<std::uint64_t>();
  } else {
    file.git_sha1 = hex_or_nothing(entry.value("blobId", json()), 40);
  }
  return file;
}

std::string folder_of(const std::string& name) {
  const auto slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash + 1);
}

}  // namespace

const HubFile* HubListing::find(const std::string& name) const {
  const auto at = std::find_if(files.begin(), files.end(), [&](const HubFile& f) { return f.name == name; });
  return at == files.end() ? nullptr : &*at;
}

HubListing list_files(const Url& endpoint, const std::string& id, const std::string& revision, const NetworkOptions& options) {
  Url url = endpoint;
  url.path = fmt::format("{}/api/models/{}/revision/{}?blobs=true", endpoint.path == "/" ? "" : endpoint.path,
                         percent_encode(id, true), percent_encode(revision, false));
  const std::string body = get_text(url, id, options);
  const json document = json::parse(body, nullptr, false);
  HubListing listing;
  const json files = document.is_object() ? document.value("siblings", json()) : json();
  if (!files.is_array() || files.size() > kMostFiles) {
    fail(ErrorCode::io, "{}: {} does not answer like a Hugging Face hub", id, url.text());
  }
  if (document.value("sha", json()).is_string()) listing.revision = document["sha"].get<std::string>();
  for (const json& entry : files) {
    HubFile file = file_of(entry);
    if (unsafe_name(file.name).empty()) listing.files.push_back(std::move(file));
  }
  return listing;
}

Url file_url(const Url& endpoint, const std::string& id, const std::string& revision, const std::string& file) {
  Url url = endpoint;
  url.path = fmt::format("{}/{}/resolve/{}/{}", endpoint.path == "/" ? "" : endpoint.path, percent_encode(id, true),
                         percent_encode(revision, false), percent_encode(file, true));
  return url;
}

const HubFile& choose_model(const HubListing& listing, const std::string& wanted, const std::string& id) {
  std::vector<std::string> models;
  for (const HubFile& f : listing.files) {
    if (f.name.ends_with(".onnx")) models.push_back(f.name);
  }
  std::sort(models.begin(), models.end());
  std::string chosen = wanted;
  if (chosen.empty() && models.size() == 1) chosen = models.front();
  for (const std::string& usual :
       {std::string("model.onnx"), std::string("onnx/model.onnx"), id.substr(id.rfind('/') + 1) + ".onnx"}) {
    if (chosen.empty() && listing.find(usual) != nullptr) chosen = usual;
  }
  if (const HubFile* file = chosen.empty() ? nullptr : listing.find(chosen)) return *file;
  if (models.empty())
    fail(ErrorCode::invalid_argument, "{} has no .onnx file{}", id, wanted.empty() ? "" : ", nor '" + wanted + "'");
  const std::string near = closest(wanted, models);
  const std::size_t all = models.size();
  models.resize(std::min<std::size_t>(all, 20));
  fail(ErrorCode::invalid_argument, "{}{}; name one as hf://{}/{}. Models: {}{}", id,
       wanted.empty() ? " has several models" : " has no file '" + wanted + "'", id, near.empty() ? models.front() : near,
       join(models), all > models.size() ? ", …" : "");
}

namespace {

// Whether the name of a file is that of a quantisation, in any case of letters: "model-Q4_K_M", "model.q4_k_m", "Q4_K_M".
bool ends_in_tag(const std::string& name, const std::string& tag) {
  const std::string stem = ascii_lower(model_name_of(name)), end = ascii_lower(tag);
  if (!stem.ends_with(end)) return false;
  return stem.size() == end.size() || std::string_view("-._").find(stem[stem.size() - end.size() - 1]) != std::string_view::npos;
}

}  // namespace

std::vector<HubFile> choose_gguf(const HubListing& listing, const std::string& tag, const std::string& id) {
  std::vector<std::string> models;
  for (const HubFile& f : listing.files) {
    if (is_whole_gguf(f.name)) models.push_back(f.name);
  }
  // Of "model-Q4_K_M" and "model-UD-Q4_K_M" the shorter one is meant.
  std::sort(models.begin(), models.end(),
            [](const std::string& a, const std::string& b) { return std::pair(a.size(), a) < std::pair(b.size(), b); });
  const std::string wanted = tag.empty() ? "Q4_K_M" : tag;
  auto found = std::find_if(models.begin(), models.end(), [&](const std::string& name) { return ends_in_tag(name, wanted); });
  if (found == models.end() && tag.empty()) found = std::min_element(models.begin(), models.end());
  if (found == models.end()) {
    const std::size_t all = models.size();
    models.resize(std::min<std::size_t>(all, 20));
    fail(ErrorCode::invalid_argument, "{} has no GGUF file{}; it has {}{}", id,
         tag.empty() ? "" : fmt::format(" of the quantisation '{}'", tag), models.empty() ? "none at all" : join(models),
         all > models.size() ? ", …" : "");
  }
  std::vector<HubFile> out;
  for (const std::filesystem::path& part : gguf_parts(*found)) {
    const HubFile* file = listing.find(part.generic_string());
    if (file == nullptr) fail(ErrorCode::io, "{} has '{}', but not its part '{}'", id, *found, part.generic_string());
    out.push_back(*file);
  }
  return out;
}

std::vector<HubFile> companions(const HubListing& listing, const std::string& model) {
  static const std::vector<std::string> usual = split_list(
      "config.json,tokenizer.json,tokenizer_config.json,special_tokens_map.json,vocab.txt,vocab.json,merges.txt,"
      "tokenizer.model,labels.txt,labels.json,preprocessor_config.json,generation_config.json,id2label.json,sdx.yml,"
      "gpux.yml,spiece.model");
  std::vector<HubFile> out;
  for (const std::string& name : usual) {
    const HubFile* file = listing.find(folder_of(model) + name);
    if (file == nullptr) file = listing.find(name);
    if (file != nullptr) out.push_back(*file);
  }
  return out;
}

}  // namespace sdx::hub
