#include "hub/pull.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "base/system/processes/environment.h"
#include "base/text/model_name.h"
#include "base/text/safe_name.h"
#include "hub/hub_api.h"
#include "hub/registry_api.h"
#include "hub/repository_files.h"
#include "hub/source.h"
#include "hub/staging.h"
#include "onnx/external_names.h"
#include "onnx/reader.h"
#include "tensor/gguf/gguf_model.h"
#include "tensor/gguf/gguf_names.h"
#include "tensor/safetensors.h"

namespace sdx::hub {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualEndpoint = "https://huggingface.co";
constexpr const char* kUsualRegistry = "https://registry.ollama.ai";

constexpr std::size_t kMostListing = std::size_t{64} << 20;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_gguf(const std::string& name) { return name.ends_with(".gguf"); }

// What a server gave is no mistake of the user's.
void check_safetensors(const fs::path& file) {
  try {
    read_safetensors(file);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    fail(ErrorCode::invalid_model, "{}", error.what());
  }
}

// Every file that a listing (model.safetensors.index.json) names for a tensor.
void check_listing(const fs::path& file) {
  const auto document = nlohmann::json::parse(read_file(file, kMostListing), nullptr, false);
  const auto map = document.is_object() ? document.value("weight_map", nlohmann::json()) : nlohmann::json();
  if (!map.is_object() || map.empty()) fail(ErrorCode::invalid_model, "'{}' has no 'weight_map'", file.string());
  std::set<std::string> parts;
  for (const auto& part : map) {
    if (!part.is_string() || !unsafe_name(part.get<std::string>()).empty()) {
      fail(ErrorCode::invalid_model, "'{}': 'weight_map' has something else than names of files beside it", file.string());
    }
    parts.insert(part.get<std::string>());
  }
  for (const std::string& part : parts) check_safetensors(file.parent_path() / part);
}

void check_model(const fs::path& file) {
  if (is_safetensors(file.string())) {
    return file.extension() == ".json" ? check_listing(file) : check_safetensors(file);
  }
  if (!is_gguf(file.string())) {
    read_model(file);
    return;
  }
  try {
    GgufModel::open(file);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_implemented) throw;  // sound, with parts that another version may know
  }
}

std::string source_text(const Source& source) {
  switch (source.kind) {
    case Source::Kind::local: return fs::absolute(source.path).lexically_normal().string();
    case Source::Kind::http: return source.url.text();
    case Source::Kind::registry: return (source.url.host.empty() ? "" : source.url.text()) + source.id + ":" + source.tag;
    case Source::Kind::hub: break;
  }
  if (source.gguf) return source.name + (source.revision.empty() ? "" : "@" + source.revision);
  return "hf://" + source.id + (source.revision.empty() ? "" : "@" + source.revision) +
         (source.file.empty() ? "" : "/" + source.file);
}

class Pull {
 public:
  Pull(const std::string& text, const PullOptions& options)
      : source_(options.only_names ? parse_model_name(text) : parse_source(text)), options_(options) {
    if (!options.name.empty()) check_model_name(options.name);
    result_.name = options.name.empty() ? source_.name : options.name;
    const fs::path root = options.folder.empty() && options.root.empty() ? models_folder() : options.root;
    result_.folder =
        fs::absolute(options.folder.empty() ? root / model_folder_name(result_.name) : options.folder).lexically_normal();
    if (!result_.folder.has_filename()) result_.folder = result_.folder.parent_path();
    sha256_ = options.sha256.empty() ? source_.sha256 : checked_sha256(options.sha256);
    if (!options.revision.empty() && source_.kind != Source::Kind::hub) {
      fail(ErrorCode::invalid_argument, "a revision belongs to hf:// sources");
    }
    if (!options.revision.empty()) source_.revision = options.revision;
    result_.source = source_text(source_);
  }

  Pulled run() {
    const bool there = fs::exists(fs::symlink_status(result_.folder));
    result_.replaces = there;
    if (there) before_ = read_manifest(result_.folder);
    if (options_.offline && source_.kind != Source::Kind::local) return offline();
    if (there && before_.source.empty() && !options_.force) {
      fail(ErrorCode::invalid_argument,
           "'{}' exists and was not created by a pull; give another --name, or --force to replace it", result_.folder.string());
    }
    if (there && options_.only_names && before_.source != result_.source) {
      fail(ErrorCode::invalid_argument, "'{}' holds another model, which was pulled from '{}'",
           result_.folder.filename().string(), before_.source);
    }
    try {
      switch (source_.kind) {
        case Source::Kind::local: local(); break;
        case Source::Kind::http: http(); break;
        case Source::Kind::hub: hub(); break;
        case Source::Kind::registry: registry(); break;
      }
    } catch (const Error& e) {
      // Drops what another attempt cannot use: a copy is cheap to repeat, and a file that is no model or has another checksum
      // will not get better.
      const bool comes_back = e.code() == ErrorCode::io || e.code() == ErrorCode::cancelled;
      const bool passing = source_.kind != Source::Kind::local && comes_back;
      if (staging_ && !passing) staging_->drop();
      throw;
    }
    return std::move(result_);
  }

 private:
  Pulled offline() {
    if (before_.files.empty() || before_.source != result_.source) {
      fail(ErrorCode::io, "'{}' is not available: '{}' contains {}; omit --offline to fetch it", result_.source,
           result_.folder.string(), before_.source.empty() ? "nothing pulled before" : "'" + before_.source + "'");
    }
    result_.revision = before_.revision;
    result_.files = before_.files;
    for (PulledFile& f : result_.files) f.origin = "unchanged";
    if (!sha256_.empty() && sha256_of(result_.folder / result_.files.front().name) != sha256_) {
      fail(ErrorCode::io, "'{}' has another checksum than the expected {}", result_.files.front().name, sha256_);
    }
    result_.model = result_.folder / result_.files.front().name;
    return std::move(result_);
  }

  // --- what all sources share

  void start(const std::string& revision) {
    result_.revision = revision;
    if (!options_.dry_run) staging_ = std::make_unique<Staging>(result_.folder, result_.source + "\n" + revision);
  }

  void add(PulledFile file) {
    if (!options_.dry_run) staging_->add(file);
    result_.files.push_back(std::move(file));
  }

  bool has(const std::string& name) const {
    return std::any_of(result_.files.begin(), result_.files.end(), [&](const PulledFile& f) { return f.name == name; });
  }

  void finish() {
    const std::string name = result_.files.front().name;
    result_.model = result_.folder / name;
    if (options_.dry_run) return check_room();
    if (options_.check) check_model(staging_->path_of(name));
    write_manifest(staging_->path_of(name).parent_path(), result_);
    staging_->commit();
  }

  // Checks for a dry run that the folder could be made, and that it could hold the files.
  void check_room() const {
    const fs::path file = result_.folder.parent_path() / (".pull-" + result_.folder.filename().string()) / "state.json";
    NewFile::check_with_folders(file);
    std::uint64_t bytes = 0;
    for (const PulledFile& f : result_.files) bytes += f.origin == "unchanged" ? 0 : f.bytes;
    check_space(nearest_folder(file), bytes, result_.name);
  }

  const PulledFile* earlier(const std::string& name) const {
    const auto at = std::find_if(before_.files.begin(), before_.files.end(), [&](const PulledFile& f) { return f.name == name; });
    return at == before_.files.end() ? nullptr : &*at;
  }

  // Reuses a file of the present folder that is known to be the wanted one: shared where the file system can, and checked again.
  bool reuse(const std::string& name, const std::string& sha256) {
    const fs::path target = staging_->path_of(name), old = result_.folder / name;
    if (sha256.empty() || sha256_of(old) != sha256) return false;
    std::error_code error;
    fs::remove(target, error);
    fs::create_hard_link(old, target, error);
    if (error) fs::copy_file(old, target, fs::copy_options::overwrite_existing, error);
    return !error;
  }

  // Reports the steps that fetch() would take.
  void plan_fetch(const std::string& name, RemoteFile file) {
    const PulledFile* const old = earlier(name);
    const auto kept = [&] {
      return old != nullptr && (file.sha256.empty() || file.sha256 == old->sha256) &&
             sha256_of(result_.folder / name) == old->sha256;
    };
    const std::string from = file.url.text();
    if (!file.sha256.empty() && kept()) return add({name, old->bytes, old->sha256, "unchanged", old->etag, from});
    if (file.bytes) check_allowed(*file.bytes, options_.network, name);
    if (file.bytes) return add({name, *file.bytes, file.sha256, "download", "", from});
    if (old != nullptr && source_.kind == Source::Kind::http && before_.source == result_.source) file.known_etag = old->etag;
    file.name = name;
    const Described found = describe(file, options_.network);
    if (found.unchanged && kept()) return add({name, old->bytes, old->sha256, "unchanged", old->etag, from});
    add({name, found.bytes.value_or(0), file.sha256.empty() ? found.sha256 : file.sha256, "download", found.etag, from,
         found.bytes.has_value()});
  }

  void fetch(const std::string& name, RemoteFile file) {
    if (options_.dry_run) return plan_fetch(name, std::move(file));
    const std::string from = file.url.text();
    if (const PulledFile* staged = staging_->done(name)) {
      // A hub's revision is fixed, and a registry's digest; of a plain address the version is asked for.
      const bool fixed = source_.kind != Source::Kind::http && (file.sha256.empty() || file.sha256 == staged->sha256);
      if (fixed) return add({name, staged->bytes, staged->sha256, "downloaded", staged->etag, from});
      file.known_etag = staged->etag;
    }
    const PulledFile* old = staging_->done(name) != nullptr ? nullptr : earlier(name);
    if (old != nullptr && !file.sha256.empty() && file.sha256 == old->sha256 && reuse(name, old->sha256)) {
      return add({name, old->bytes, old->sha256, "unchanged", old->etag, from});
    }
    if (old != nullptr && source_.kind == Source::Kind::http && before_.source == result_.source) file.known_etag = old->etag;
    file.name = name;
    NetworkOptions network = options_.network;
    if (options_.progress) {
      network.progress = [&](std::uint64_t done, std::uint64_t total) { options_.progress({name, file.sha256, done, total}); };
    }
    Fetched got = download(file, staging_->path_of(name), network);
    result_.received += got.received;
    if (got.unchanged) {
      if (const PulledFile* staged = staging_->done(name);
          staged != nullptr && (file.sha256.empty() || file.sha256 == staged->sha256)) {
        return add({name, staged->bytes, staged->sha256, "downloaded", staged->etag, from});
      }
      if (old != nullptr && (file.sha256.empty() || file.sha256 == old->sha256) && reuse(name, old->sha256)) {
        return add({name, old->bytes, old->sha256, "unchanged", old->etag, from});
      }
      file.known_etag.clear();  // what is here is damaged
      got = download(file, staging_->path_of(name), network);
      result_.received += got.received;
    }
    add({name, got.bytes, got.sha256, "downloaded", got.etag, from});
  }

  // --- from this machine

  void local() {
    const fs::path model = local_model();
    start("");
    const std::string name = model.filename().string();
    copy(model, name);
    if (!sha256_.empty() && result_.files.front().sha256 != sha256_) {
      fail(ErrorCode::io, "'{}' has the checksum {}, {} was expected", model.string(), result_.files.front().sha256, sha256_);
    }
    const std::vector<fs::path> parts = gguf_parts(model);
    for (std::size_t i = 1; i < parts.size(); ++i) copy(parts[i], parts[i].filename().string());
    for (const std::string& external : is_gguf(name) ? std::set<std::string>() : external_names(model)) {
      std::error_code error;
      if (!fs::exists(model.parent_path() / external, error)) {
        fail(ErrorCode::io, "'{}' names the external data '{}', which is not beside it", model.string(), external);
      }
      const fs::path real = fs::canonical(model.parent_path() / external, error);
      const fs::path base = fs::canonical(model.parent_path(), error);
      if (real.lexically_relative(base).string().starts_with("..")) {
        fail(ErrorCode::invalid_model, "'{}' leads out of the model's folder", external);
      }
      copy(real, external);
    }
    if (options_.dry_run && options_.check) check_model(model);
    finish();
  }

  fs::path local_model() const {
    std::error_code ignored;
    if (!fs::exists(source_.path, ignored)) {
      fail(ErrorCode::io, "there is no '{}' (a hub's model is hf://ORG/NAME)", source_.path.string());
    }
    if (!fs::is_directory(source_.path, ignored)) return source_.path;
    if (fs::exists(source_.path / "model.onnx", ignored)) return source_.path / "model.onnx";
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(source_.path, ignored)) {
      if (entry.path().extension() == ".onnx") found.push_back(entry.path());
    }
    if (found.empty()) {
      if (const auto gguf = gguf_in(source_.path)) return *gguf;
    }
    if (found.size() != 1) {
      fail(ErrorCode::invalid_argument, "'{}' has {} .onnx files; name one", source_.path.string(), found.size());
    }
    return found.front();
  }

  void copy(const fs::path& from, const std::string& name) {
    std::error_code error;
    const std::uint64_t bytes = fs::file_size(from, error);
    if (error) fail(ErrorCode::io, "cannot read '{}': {}", from.string(), error.message());
    check_allowed(bytes, options_.network, name);
    if (options_.dry_run) return add({name, bytes, sha256_of(from), "copy", "", from.string()});
    const fs::path to = staging_->path_of(name);
    check_space(to.parent_path(), bytes, name);
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
    if (error) fail(ErrorCode::io, "cannot copy '{}' to '{}': {}", from.string(), to.string(), error.message());
    add({name, fs::file_size(to), sha256_of(to), "copied", "", from.string()});
  }

  // --- from an address

  void http() {
    start("");
    std::string name = file_name(percent_decode(source_.url.path.substr(0, source_.url.path.find('?'))));
    if (!unsafe_name(name).empty() || name == kPullRecord) name = "model.onnx";
    if (!name.ends_with(".onnx") && !is_gguf(name)) name += ".onnx";
    fetch(name, {source_.url, name, std::nullopt, sha256_, "", ""});
    if (is_gguf(name)) {
      const std::vector<fs::path> parts = gguf_parts(name);
      for (std::size_t i = 1; i < parts.size(); ++i) {
        const std::string part = parts[i].string();
        fetch(part, {resolve_location(source_.url, percent_encode(part, true)), part, std::nullopt, "", "", ""});
      }
      return finish();
    }
    if (options_.dry_run) {
      result_.may_be_more = true;
      return finish();
    }
    for (const std::string& external : external_names(staging_->path_of(name))) {
      if (has(external)) continue;
      fetch(external, {resolve_location(source_.url, percent_encode(external, true)), external, std::nullopt, "", "", ""});
    }
    finish();
  }

  // --- from a hub

  void hub() {
    const Url endpoint = endpoint_url(options_.endpoint);
    options_.network.token = options_.network.token.empty() ? environment("HF_TOKEN") : options_.network.token;
    options_.network.token_host = endpoint.origin();
    const std::string asked = source_.revision.empty() ? "main" : source_.revision;
    const HubListing listing = list_files(endpoint, source_.id, asked, options_.network);
    const std::string revision = listing.revision.empty() ? asked : listing.revision;
    const std::vector<HubFile> models = models_of(listing);
    const HubFile& model = models.front();
    start(revision);
    const auto get = [&](const HubFile& f, const std::string& name, const std::string& sha256) {
      fetch(name, {file_url(endpoint, source_.id, revision, f.name), name, f.bytes, sha256.empty() ? f.sha256 : sha256,
                   f.git_sha1, ""});
    };
    if (!sha256_.empty() && !model.sha256.empty() && sha256_ != model.sha256) {
      fail(ErrorCode::io, "'{}' has the checksum {} on the hub, {} was expected", model.name, model.sha256, sha256_);
    }
    const std::string base = model.name.substr(0, model.name.size() - file_name(model.name).size());
    get(model, file_name(model.name), sha256_);
    for (std::size_t i = 1; i < models.size(); ++i) get(models[i], file_name(models[i].name), "");
    if (is_gguf(model.name)) return finish();  // has its tokenizer and all else within
    const bool onnx = !is_safetensors(model.name);
    result_.may_be_more = onnx && options_.dry_run;
    const std::set<std::string> externals =
        options_.dry_run || !onnx ? std::set<std::string>() : external_names(staging_->path_of(file_name(model.name)));
    for (const std::string& external : externals) {
      const HubFile* file = listing.find(base + external);
      if (file == nullptr)
        fail(ErrorCode::io, "'{}' names the external data '{}', which {} does not have", model.name, external, source_.id);
      if (!has(external)) get(*file, external, "");
    }
    if (!options_.only_model) {
      for (const Companion& c : companions(listing, model.name)) {
        if (!has(c.name)) get(c.file, c.name, "");
      }
    }
    finish();
  }

  // A GGUF file with its parts, an ONNX model, or .safetensors files where there is neither.
  std::vector<HubFile> models_of(const HubListing& listing) const {
    const std::string& file = source_.file;
    const auto whole = [](const HubFile& f) { return is_whole_gguf(f.name); };
    const auto onnx = [](const HubFile& f) { return f.name.ends_with(".onnx"); };
    const bool without_onnx = file.empty() && std::none_of(listing.files.begin(), listing.files.end(), onnx);
    if (source_.gguf || (without_onnx && std::any_of(listing.files.begin(), listing.files.end(), whole)))
      return choose_gguf(listing, source_.tag, source_.id);
    if (without_onnx || is_safetensors(file)) {
      if (auto found = choose_safetensors(listing, file); !found.empty()) return found;
    }
    std::vector<HubFile> out{choose_model(listing, file, source_.id)};
    for (const fs::path& part : gguf_parts(file)) {
      if (part == file) continue;
      const HubFile* found = listing.find(part.generic_string());
      if (found == nullptr) fail(ErrorCode::io, "{} has '{}', but not its part '{}'", source_.id, file, part.generic_string());
      out.push_back(*found);
    }
    return out;
  }

  // --- from a registry

  void registry() {
    Url endpoint = source_.url;
    if (endpoint.host.empty() || !options_.endpoint.empty()) endpoint = registry_url(options_.endpoint);
    const std::vector<RegistryFile> files = registry_files(endpoint, source_.id, source_.tag, options_.network);
    if (!sha256_.empty() && files.front().sha256 != sha256_) {
      fail(ErrorCode::io, "{} has the checksum {} in the registry, {} was expected", result_.source, files.front().sha256,
           sha256_);
    }
    start("sha256:" + files.front().sha256);
    for (const RegistryFile& f : files) {
      if (options_.only_model && f.name != files.front().name) continue;
      fetch(f.name, {blob_url(endpoint, source_.id, f.sha256), f.name, f.bytes, f.sha256, "", ""});
    }
    finish();
  }

  Source source_;
  PullOptions options_;
  std::string sha256_;
  Pulled before_, result_;
  std::unique_ptr<Staging> staging_;
};

}  // namespace

namespace {

Url base_url(const std::string& text) {
  Url url = parse_url(text);
  while (url.path.size() > 1 && url.path.ends_with('/')) url.path.pop_back();
  return url;
}

}  // namespace

Url endpoint_url(const std::string& asked) {
  std::string text = asked;
  if (text.empty()) text = environment("SDX_HUB_ENDPOINT");
  if (text.empty()) text = environment("HF_ENDPOINT");
  return base_url(text.empty() ? kUsualEndpoint : text);
}

Url registry_url(const std::string& asked) {
  const std::string text = asked.empty() ? environment("SDX_REGISTRY_ENDPOINT") : asked;
  return base_url(text.empty() ? kUsualRegistry : text);
}

Pulled pull(const std::string& source, const PullOptions& options) { return Pull(source, options).run(); }

fs::path models_folder() {
  if (const std::string own = environment("SDX_HOME"); !own.empty()) return fs::path(own) / "models";
  // Only where names are looked up, too: not in the home folder that the system knows for the user.
  const fs::path home = user_folder();
  if (home.empty()) fail(ErrorCode::io, "there is no folder for models: set SDX_HOME or HOME, or name a folder with --to");
  return home / ".sdx" / "models";
}

}  // namespace sdx::hub
