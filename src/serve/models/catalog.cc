#include "serve/models/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "serve/models/load_model.h"
#include "serve/models/repository.h"
#include "serve/models/unloader.h"
#include "tensor/gguf/gguf_names.h"

namespace sdx::serve {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr seconds kFirstPause{1}, kLongestPause{60};       // between two attempts to load what failed
constexpr std::chrono::milliseconds kWatchInterval{1000};  // the repository is looked at

// One version of a model. Everything is guarded by the catalogue's mutex; loading happens without it, in the state `loading`.
struct Version {
  std::string number;
  fs::path path;
  std::string stamp;            // of the files as the repository was last seen
  std::string loaded_stamp;     // of those that `model` was loaded from
  std::string seen;             // of the files of a model of the command line, as of the last look
  std::vector<fs::path> files;  // of such a model
  ModelState state = ModelState::unloaded;
  std::string reason;
  std::optional<ModelKind> kind;
  std::shared_ptr<const LoadedModel> model;
  std::exception_ptr failure;  // of the last attempt, where it failed
  Clock::time_point retry_at{};
  seconds pause{0};
  Clock::time_point used{};
  bool loading = false;  // a thread is at it, whether or not an older `model` still serves
  bool leaving = false;  // no longer in the repository, or a newer one has come: serves until that one is loaded
};

struct Family {
  bool pinned = false;     // from the command line: not given back
  bool withdrawn = false;  // unload() was called
  bool gone = false;       // no longer in the repository
  // Folder and settings from the repository; if it has an error, those from before.
  fs::path folder;
  std::string pulled_as;
  ModelSettings settings;
  std::vector<LoraAdapter> loras;  // from the command line
  std::optional<ModelSettings> replaced;
  std::string error, warning;  // of the repository's model as a whole
  std::map<std::int64_t, std::shared_ptr<Version>> versions;
};

std::string stem_of(const fs::path& path) {
  const fs::path clean = path.has_filename() ? path : path.parent_path();
  std::error_code ignored;
  if (fs::is_directory(clean, ignored)) return fs::absolute(clean).lexically_normal().filename().string();
  if (clean.extension() == ".yml" || clean.extension() == ".yaml") return Project::open(clean).config().name;
  return model_name_of(clean);
}

void check_name(const std::string& name) {
  const bool odd = std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F || c == '/'; });
  if (name.empty() || name.size() > 256 || odd) {
    fail(ErrorCode::invalid_argument, "'{}' is not a valid model name: 1 to 256 characters, none of them '/'", name);
  }
}

}  // namespace

std::string_view name(ModelState state) noexcept {
  switch (state) {
    case ModelState::unloaded: return "UNAVAILABLE";
    case ModelState::loading: return "LOADING";
    case ModelState::ready: return "READY";
    case ModelState::failed: return "UNAVAILABLE";
    case ModelState::unloading: return "UNLOADING";
  }
  return "";
}

struct Catalog::Impl {
  std::shared_ptr<Unloader> unloader = std::make_shared<Unloader>();
  CatalogOptions options;
  mutable std::mutex mutex;
  std::condition_variable changed;  // a load has ended, a model has gone, the catalogue closes
  std::map<std::string, Family, std::less<>> families;
  bool closing = false;
  std::thread watcher;

  explicit Impl(CatalogOptions given) : options(std::move(given)) {
    if (!options.log) options.log = [](std::string_view, std::string_view) {};
    for (const ModelSource& source : options.models) add_source(source);
    if (!options.repository.empty()) look(scan_repository(options.repository));
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      closing = true;
    }
    changed.notify_all();
    if (watcher.joinable()) watcher.join();
    families.clear();
    unloader->close();
  }

  void add_source(const ModelSource& source) {
    const std::string name = source.name.empty() ? stem_of(source.path) : source.name;
    check_name(name);
    Family family;
    family.pinned = true;
    family.loras = source.loras;
    auto version = std::make_shared<Version>();
    version->number = "1";
    version->path = source.path;
    family.versions[1] = std::move(version);
    if (!families.emplace(name, std::move(family)).second) {
      fail(ErrorCode::invalid_argument, "two models are called '{}': give one of them another name (NAME=MODEL)", name);
    }
  }

  // ---- The repository ----

  // Takes over what the folder holds. What is loaded stays until its replacement is ready: see refresh().
  void look(const std::map<std::string, RepositoryModel>& found) {
    const std::lock_guard lock(mutex);
    for (auto& [name, family] : families) family.gone = !family.pinned && !found.contains(name);
    for (const auto& [name, model] : found) {
      Family& family = families[name];
      if (family.pinned) continue;
      if (model.error.empty()) {
        family.folder = model.folder;
        family.pulled_as = model.pulled_as;
        family.settings = model.settings;
      }
      if (family.error != model.error && !model.error.empty()) options.log("warning", name + ": " + model.error);
      family.error = model.error;
      if (family.warning != model.warning && !model.warning.empty()) options.log("warning", name + ": " + model.warning);
      family.warning = model.warning;
      for (auto& [number, version] : family.versions) version->leaving = !model.versions.contains(number);
      for (const auto& [number, place] : model.versions) take_over_place(family.versions[number], number, place);
      if (!family.error.empty()) continue;
      std::erase_if(family.versions, [](const auto& item) { return item.second->leaving && !item.second->model; });
    }
    std::erase_if(families, [](const auto& item) { return item.second.gone; });
  }

  static void take_over_place(std::shared_ptr<Version>& version, std::int64_t number, const RepositoryVersion& place) {
    if (!version) version = std::make_shared<Version>();
    version->number = std::to_string(number);
    version->path = place.path;
    if (version->stamp == place.stamp) return;
    version->stamp = place.stamp;
    version->pause = seconds(0);  // what was wrong may be mended
    version->retry_at = {};
  }

  // Whether files of the command line's models have changed. A model whose file is gone continues to serve.
  void look_at_sources() {
    const std::lock_guard lock(mutex);
    for (auto& [name, family] : families) {
      if (!family.pinned || family.withdrawn) continue;
      for (auto& [number, version] : family.versions) {
        if (version->files.empty() || version->loading) continue;
        const std::optional<std::string> stamp = files_stamp(version->files);
        if (!stamp) continue;
        const bool settled = std::exchange(version->seen, *stamp) == *stamp;
        if (!settled || version->stamp == *stamp) continue;
        version->stamp = *stamp;
        version->pause = seconds(0);
        version->retry_at = {};
        options.log("info", fmt::format("model '{}' has changed on disk and is loaded again", name));
      }
    }
  }

  // Looks at the files again and again. A change counts when two looks in a row agree: files are whole by then.
  void watch() {
    std::map<std::string, RepositoryModel> before;
    std::string trouble;
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, kWatchInterval, [&] { return closing; })) {
      lock.unlock();
      try {
        look_at_sources();
        bool settled = true;
        if (!options.repository.empty()) {
          std::map<std::string, RepositoryModel> found = scan_repository(options.repository);
          settled = found == before;
          before = std::move(found);
          if (settled) look(before);
        }
        if (settled) refresh();
        trouble.clear();
      } catch (const std::exception& error) {
        if (trouble != error.what()) options.log("warning", error.what());
        trouble = error.what();
      }
      lock.lock();
    }
  }

  // Loads changed models, and new versions of models in use, while the present ones serve.
  void refresh() {
    std::vector<std::pair<std::string, std::shared_ptr<Version>>> wanted;
    std::unique_lock lock(mutex);
    for (const auto& [name, family] : families) {
      if (family.withdrawn || !family.error.empty()) continue;
      const bool used = std::any_of(family.versions.begin(), family.versions.end(),
                                    [](const auto& item) { return item.second->model != nullptr; });
      for (const auto& [number, version] : family.versions) {
        // A model that was unloaded to make room is loaded by the next request for it.
        const bool stale = version->loaded_stamp != version->stamp && (version->model || used || !options.load_on_demand);
        if (stale && !version->leaving && !version->loading && Clock::now() >= version->retry_at) {
          wanted.emplace_back(name, version);
        }
      }
    }
    for (const auto& [name, version] : wanted) {
      if (closing) return;
      const auto family = families.find(name);  // much may have happened while others were loaded
      if (family == families.end() || family->second.withdrawn || !family->second.error.empty()) continue;
      if (version->leaving || version->loading || version->loaded_stamp == version->stamp) continue;
      try {
        load(lock, name, version);
      } catch (const Error&) {
        // The error is logged, and shown in the list. The previous version continues to serve.
      }
    }
    std::vector<ModelPtr> old;
    for (auto& [name, family] : families) {
      const bool ready = std::any_of(family.versions.begin(), family.versions.end(),
                                     [](const auto& item) { return item.second->model && !item.second->leaving; });
      std::erase_if(family.versions, [&](const auto& item) {
        if (!ready || !item.second->leaving) return false;
        old.push_back(item.second->model);
        return true;
      });
    }
    lock.unlock();  // before `old` goes
  }

  // ---- Finding ----

  // Null where there is none. With the mutex.
  std::shared_ptr<Version> find(std::string_view name, std::string_view version) const {
    const auto family = families.find(name);
    if (family == families.end() || family->second.versions.empty()) return nullptr;
    const auto& versions = family->second.versions;
    if (version.empty()) return newest(family->second);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
    if (error != std::errc() || end != version.data() + version.size()) return nullptr;
    const auto at = versions.find(number);
    // Written as in the list: "01" is not 1.
    return at == versions.end() || at->second->number != version ? nullptr : at->second;
  }

  // The newest that serves; the newest of all where none does. A new version takes over when it is loaded.
  static std::shared_ptr<Version> newest(const Family& family) {
    for (auto at = family.versions.rbegin(); at != family.versions.rend(); ++at) {
      if (at->second->model) return at->second;
    }
    return family.versions.rbegin()->second;
  }

  [[noreturn]] void no_such_model(std::string_view name, std::string_view version) const {
    const auto family = families.find(name);
    if (family != families.end() && !family->second.error.empty()) {
      fail(ErrorCode::invalid_argument, "model '{}' cannot be served: {}", name, family->second.error);
    }
    if (family != families.end() && !version.empty()) {
      std::vector<std::string> numbers;
      for (const auto& [number, one] : family->second.versions) numbers.push_back(std::to_string(number));
      throw UnknownModel(ErrorCode::invalid_argument,
                         fmt::format("model '{}' has no version '{}'; it has {}", name, version, sdx::join(numbers)));
    }
    std::vector<std::string> names;
    for (const auto& [known, one] : families) names.push_back(known);
    const std::string near = closest(std::string(name), names);
    throw UnknownModel(ErrorCode::invalid_argument,
                       fmt::format("there is no model '{}'{}", name, near.empty() ? "" : "; did you mean '" + near + "'?"));
  }

  // ---- Loading ----

  LoadRequest request_for(const std::string& name, const Family& family, const Version& version) const {
    LoadRequest request;
    request.name = name;
    request.version = version.number;
    request.path = version.path;
    request.folder = family.folder;
    request.settings = family.replaced.value_or(family.settings);
    request.session = options.session;
    request.engine = options.engine;
    request.language = options.language;
    request.language.loras = family.loras;
    request.batch = options.batch;
    request.log = options.log;
    if (options.memory_limit == 0) return request;
    request.room = room_for(version);
    if (request.engine.prefix_bytes == 0) request.engine.prefix_bytes = std::max<std::uint64_t>(1, options.memory_limit / 10);
    return request;
  }

  // The part of the limit that all other models leave.
  std::uint64_t room_for(const Version& version) const {
    std::uint64_t room = options.memory_limit;
    for (const auto& [name, family] : families) {
      for (const auto& [number, other] : family.versions) {
        if (other->model && other.get() != &version) room -= std::min(room, other->model->bytes);
      }
    }
    return room;
  }

  // Loads, or waits for the thread that does. Until then an older model of the version serves. Throws what loading throws.
  ModelPtr load(std::unique_lock<std::mutex>& lock, const std::string& name, const std::shared_ptr<Version>& version) {
    if (version->loading) {
      changed.wait(lock, [&] { return !version->loading; });
      if (version->model) return version->model;
      if (version->failure) std::rethrow_exception(version->failure);
      fail(ErrorCode::cancelled, "model '{}' was unloaded while it was being loaded", name);
    }
    const auto family = families.find(name);
    if (family == families.end()) no_such_model(name, {});
    const LoadRequest request = request_for(name, family->second, *version);
    version->loading = true;
    if (!version->model) version->state = ModelState::loading;
    const bool pinned = family->second.pinned;
    std::string stamp = version->stamp;
    std::vector<fs::path> files;
    lock.unlock();
    if (pinned) {  // before it is read: what changes meanwhile is loaded again
      files = files_of_model(version->path);
      stamp = files_stamp(files).value_or("");
    }
    std::unique_ptr<LoadedModel> loaded;
    std::exception_ptr failure;
    std::string reason;
    try {
      loaded = load_model(request);
    } catch (const std::exception& error) {
      failure = std::current_exception();
      reason = error.what();
    }
    lock.lock();
    version->loading = false;
    version->failure = failure;
    if (pinned) version->files = std::move(files), version->stamp = stamp, version->seen = stamp;
    if (failure) {
      failed(*version, reason);
      options.log("error", fmt::format("model '{}' version {}: {}", name, version->number, reason));
      changed.notify_all();
      std::rethrow_exception(failure);
    }
    ModelPtr old = take_over(*version, std::move(loaded));
    version->loaded_stamp = stamp;
    ModelPtr fresh = version->model;
    changed.notify_all();
    lock.unlock();
    options.log("info", fmt::format("model '{}' version {} is loaded", name, fresh->version));
    old.reset();  // if unused, it is destroyed here, not under the mutex
    lock.lock();
    make_room(lock, version);
    return fresh;
  }

  // Loads on request. `alone`: no version has been loaded with these settings; then a failure changes nothing.
  void load_with(std::unique_lock<std::mutex>& lock, const std::string& name, const std::shared_ptr<Version>& version,
                 const std::optional<ModelSettings>& settings, bool alone) {
    const auto family = families.find(name);
    if (family == families.end() || !family->second.error.empty()) no_such_model(name, {});  // perhaps since a moment ago
    const bool withdrawn = std::exchange(family->second.withdrawn, false);
    std::optional<ModelSettings> replaced = std::exchange(family->second.replaced, settings);
    try {
      load(lock, name, version);
    } catch (...) {
      const auto now = families.find(name);
      if (alone && now != families.end()) {
        now->second.withdrawn |= withdrawn;  // or unload() was called meanwhile
        now->second.replaced = std::move(replaced);
      }
      throw;
    }
  }

  static void failed(Version& version, const std::string& reason) {
    version.pause = version.pause.count() == 0 ? kFirstPause : std::min(version.pause * 2, kLongestPause);
    version.retry_at = Clock::now() + version.pause;
    version.reason = reason;
    if (!version.model) version.state = ModelState::failed;
  }

  // Returns the model that it replaces.
  ModelPtr take_over(Version& version, std::unique_ptr<LoadedModel> loaded) {
    ModelPtr old = std::move(version.model);
    version.kind = loaded->kind;
    version.model = unloader->own(std::move(loaded));
    version.state = ModelState::ready;
    version.reason.clear();
    version.pause = seconds(0);
    version.used = Clock::now();
    return old;
  }

  ModelPtr get(std::string_view name, std::string_view number) {
    std::unique_lock lock(mutex);
    const std::shared_ptr<Version> version = find(name, number);
    if (!version) no_such_model(name, number);
    const Family& family = families.find(name)->second;
    version->used = Clock::now();
    if (version->model) return version->model;
    if (!family.error.empty()) no_such_model(name, {});  // says why
    if (family.withdrawn) throw UnknownModel(ErrorCode::invalid_argument, fmt::format("model '{}' is unloaded", name));
    if (version->failure && Clock::now() < version->retry_at) std::rethrow_exception(version->failure);
    return load(lock, std::string(name), version);
  }

  // ---- Giving back ----

  // Unloads models that have not been used for the longest time, while more is loaded than the limit allows. Models in use stay.
  void make_room(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Version>& keep) {
    while (options.memory_limit > 0) {
      std::uint64_t bytes = 0;
      std::shared_ptr<Version> oldest;
      for (const auto& [name, family] : families) {
        for (const auto& [number, version] : family.versions) {
          if (!version->model) continue;
          bytes += version->model->bytes;
          const bool free = version->model.use_count() == 1 && !family.pinned && version != keep && !version->loading;
          if (free && (!oldest || version->used < oldest->used)) oldest = version;
        }
      }
      if (bytes <= options.memory_limit || !oldest) return;
      ModelPtr old = std::move(oldest->model);
      oldest->model.reset();
      oldest->state = ModelState::unloaded;
      oldest->reason = "unloaded to make room for other models";
      lock.unlock();
      options.log("info", fmt::format("model '{}' version {} is unloaded to free memory", old->name, old->version));
      old.reset();
      lock.lock();
    }
  }

  // Returns when no pointer to the model is left.
  void drop(std::unique_lock<std::mutex>& lock, Version& version, const std::string& reason) {
    changed.wait(lock, [&] { return !version.loading && version.state != ModelState::unloading; });
    if (version.model) {
      std::weak_ptr<const LoadedModel> watch = version.model;
      ModelPtr old = std::move(version.model);
      version.model.reset();
      version.state = ModelState::unloading;
      lock.unlock();
      old.reset();
      while (!watch.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      unloader->wait();
      lock.lock();
    }
    if (version.model || version.loading) return;  // somebody has loaded it again
    version.state = ModelState::unloaded;
    version.failure = nullptr;
    version.reason = reason;
    changed.notify_all();
  }

  std::vector<std::shared_ptr<Version>> versions_of(std::string_view name) const {
    std::vector<std::shared_ptr<Version>> out;
    const auto family = families.find(name);
    if (family == families.end() || family->second.versions.empty()) no_such_model(name, {});
    for (const auto& [number, version] : family->second.versions) out.push_back(version);
    return out;
  }
};

Catalog::Catalog(CatalogOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {
  std::vector<std::string> names;
  for (const auto& [name, family] : impl_->families) {
    if (family.pinned) names.push_back(name);
  }
  for (const std::string& name : names) load(name);
  if (!impl_->options.repository.empty() && !impl_->options.load_on_demand) impl_->refresh();
  if (impl_->options.watch) impl_->watcher = std::thread([impl = impl_.get()] { impl->watch(); });
}

Catalog::~Catalog() = default;

std::vector<PulledModel> Catalog::pulled() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<PulledModel> out;
  for (const auto& [name, family] : impl_->families) {
    if (!family.pulled_as.empty()) out.push_back({name, family.pulled_as, family.folder});
  }
  return out;
}

void Catalog::look_at_repository() {
  if (impl_->options.repository.empty()) return;
  impl_->look(scan_repository(impl_->options.repository));
  impl_->refresh();
}

void Catalog::remove_pulled(std::string_view name) {
  const std::vector<PulledModel> all = pulled();
  const auto found = std::find_if(all.begin(), all.end(), [&](const PulledModel& m) { return m.name == name; });
  if (found == all.end()) impl_->no_such_model(name, {});
  unload(name);
  // Under a name that the repository leaves out, so that half of a model is never seen.
  const fs::path aside = found->folder.parent_path() / (".removed-" + found->name);
  std::error_code error;
  fs::remove_all(aside, error);
  fs::rename(found->folder, aside, error);
  if (!error) fs::remove_all(aside, error);
  if (error) fail(ErrorCode::io, "cannot remove '{}': {}", found->folder.string(), error.message());
  impl_->options.log("info", fmt::format("model '{}' is removed", found->name));
  look_at_repository();
}

ModelPtr Catalog::get(std::string_view name, std::string_view version) { return impl_->get(name, version); }

void Catalog::load(std::string_view name, const std::optional<ModelSettings>& settings) {
  std::unique_lock lock(impl_->mutex);
  bool any = false;
  for (const std::shared_ptr<Version>& version : impl_->versions_of(name)) {
    impl_->changed.wait(lock, [&] { return !version->loading; });
    impl_->load_with(lock, std::string(name), version, settings, !any);
    any = true;
  }
}

void Catalog::unload(std::string_view name) {
  std::unique_lock lock(impl_->mutex);
  const auto versions = impl_->versions_of(name);
  impl_->families.find(name)->second.withdrawn = true;
  for (const std::shared_ptr<Version>& version : versions) impl_->drop(lock, *version, "unloaded");
}

std::vector<ModelStatus> Catalog::list() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<ModelStatus> out;
  for (const auto& [name, family] : impl_->families) {
    if (!family.error.empty() && family.versions.empty()) {
      out.push_back({name, "", ModelState::failed, std::nullopt, family.error});
    }
    for (const auto& [number, version] : family.versions) {
      const std::string& reason = version->reason.empty() ? family.error : version->reason;
      out.push_back({name, version->number, version->state, version->kind, reason});
    }
  }
  return out;
}

std::vector<ModelPtr> Catalog::loaded() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<ModelPtr> out;
  for (const auto& [name, family] : impl_->families) {
    for (const auto& [number, version] : family.versions) {
      if (version->model) out.push_back(version->model);
    }
  }
  return out;
}

bool Catalog::ready() const {
  const std::lock_guard lock(impl_->mutex);
  return std::all_of(impl_->families.begin(), impl_->families.end(), [](const auto& item) {
    const auto& versions = item.second.versions;
    return !item.second.pinned || item.second.withdrawn ||
           std::all_of(versions.begin(), versions.end(), [](const auto& v) { return v.second->model != nullptr; });
  });
}

}  // namespace sdx::serve
