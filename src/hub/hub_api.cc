#include "hub/hub_api.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/ascii.h"
#include "base/text/safe_name.h"

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

}  // namespace sdx::hub
