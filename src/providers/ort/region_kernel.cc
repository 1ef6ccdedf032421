#include "providers/ort/region_kernel.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <span>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/system/file.h"
#include "base/thread_pool.h"
#include "providers/interface/strict.h"
#include "providers/ort/device_runs.h"
#include "providers/ort/options.h"
#include "providers/ort/values.h"
#include "providers/vendor/model_cache.h"
#include "providers/vendor/region_bytes.h"

namespace sdx::ort {
namespace {

// The longest time that a run continues after its deadline or cancellation, apart from the time that the library needs to notice.
constexpr std::chrono::milliseconds kWatchEvery{2};

using RunOptionsHandle = std::unique_ptr<c::RunOptions, void (*)(c::RunOptions*)>;

// Ends a run in progress when its deadline passes or it is cancelled. Costs a thread, so it exists only for runs that can be
// stopped.
class Watch {
 public:
  Watch(const Library& library, const StopCondition& stop) : options_(nullptr, library.f().release_run_options) {
    if (!stop.cancelled && !stop.deadline) return;
    c::RunOptions* made = nullptr;
    library.check(library.f().create_run_options(&made), ErrorCode::runtime_failure);
    options_.reset(made);
    thread_ = std::thread([this, &library, &stop] {
      std::unique_lock lock(mutex_);
      while (!done_.wait_for(lock, kWatchEvery, [this] { return over_; })) {
        const bool late = stop.deadline && std::chrono::steady_clock::now() > *stop.deadline;
        if (!late && !(stop.cancelled && stop.cancelled->load(std::memory_order_relaxed))) continue;
        if (c::Status* s = library.f().terminate(options_.get())) library.f().release_status(s);
        return;
      }
    });
  }
  ~Watch() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    done_.notify_one();
    thread_.join();
  }
  const c::RunOptions* options() const { return options_.get(); }

 private:
  RunOptionsHandle options_;
  std::mutex mutex_;
  std::condition_variable done_;
  bool over_ = false;
  std::thread thread_;
};

// " (12 nodes on CUDAExecutionProvider, 3 on CPUExecutionProvider)": after its own fusions, where the library tells it (1.24).
std::string assignment(const Library& library, const c::Session* session) {
  const Functions& f = library.f();
  const c::AssignedSubgraph* const* parts = nullptr;
  std::size_t count = 0;
  if (f.assignment == nullptr) return "";
  if (c::Status* status = f.assignment(session, &parts, &count)) {
    f.release_status(status);
    return "";
  }
  std::map<std::string, std::size_t> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    const char* provider = nullptr;
    const c::AssignedNode* const* list = nullptr;
    std::size_t size = 0;
    library.check(f.assigned_provider(parts[i], &provider), ErrorCode::internal);
    library.check(f.assigned_nodes(parts[i], &list, &size), ErrorCode::internal);
    nodes[provider == nullptr ? "?" : provider] += size;
  }
  std::string out;
  for (const auto& [provider, size] : nodes) {
    out += fmt::format("{}{}{} on {}", out.empty() ? " (" : ", ", size, out.empty() ? (size == 1 ? " node" : " nodes") : "",
                       provider);
  }
  return out.empty() ? "" : out + ")";
}

class RegionKernel : public Kernel {
 public:
  RegionKernel(std::shared_ptr<const Library> library, c::Session* session, const std::string& provider, const Region& region,
               const ProviderSettings& settings, std::shared_ptr<cache::CacheEntry> cache)
      : library_(std::move(library)),
        cache_(std::move(cache)),
        session_(session),
        name_("onnxruntime " + library_->version() + assignment(*library_, session)) {
    const Graph& graph = *region.graph;
    for (const ValueId v : graph.inputs()) input_names_.push_back(graph.value(v).name);
    for (const std::string& n : graph.output_names()) output_names_.push_back(n);
    for (const std::string& n : input_names_) inputs_.push_back(n.c_str());
    for (const std::string& n : output_names_) outputs_.push_back(n.c_str());
    bound_ = DeviceRuns::make(*library_, session_, provider, region, settings, inputs_, outputs_);
    if (bound_) name_ += ", inputs and outputs bound to " + bound_->memory() + " memory";
  }
  ~RegionKernel() override {
    end_profile();
    bound_.reset();
    library_->f().release_session(session_);
  }

  std::string_view name() const override { return name_; }
  bool allocates_outputs() const override { return true; }
  bool keeps_output(std::size_t i) const override { return bound_ && bound_->stays(i); }

  void run(const KernelContext& context) const override {
    std::vector<c::Value*> results(outputs_.size(), nullptr);
    {
      const Watch watch(*library_, context.services->stop());
      c::Status* status = bound_ ? bound_->run(context.inputs.first(inputs_.size()), watch.options(), results)
                                 : run_unbound(context, watch.options(), results);
      if (status != nullptr) {
        for (c::Value* v : results) {
          if (v != nullptr) library_->f().release_value(v);
        }
        if (watch.options() != nullptr) {
          try {
            context.services->stop().check();
          } catch (...) {
            library_->f().release_status(status);
            throw;
          }
        }
        library_->check(status, ErrorCode::runtime_failure);
      }
    }
    std::vector<Handle> owned;
    for (c::Value* v : results) owned.emplace_back(v, library_->f().release_value);
    std::vector<Value> values(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      c::Value* v = owned[i].release();
      values[i] = bound_ && bound_->stays(i) ? from_device(library_, v) : from_ort(library_, v);
    }
    context.services->stop().check();  // some providers do not let themselves be interrupted
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (context.outputs[i] != nullptr) *context.outputs[i] = std::move(values[i]);
    }
  }

 private:
  c::Status* run_unbound(const KernelContext& context, const c::RunOptions* options, std::span<c::Value*> results) const {
    std::vector<Handle> in;
    std::vector<const c::Value*> pointers;
    in.reserve(inputs_.size());
    pointers.reserve(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const c::Value* there = context.inputs[i]->is_tensor() ? device_value(context.inputs[i]->tensor()) : nullptr;
      if (there == nullptr) in.push_back(to_ort(*library_, *context.inputs[i]));
      pointers.push_back(there != nullptr ? there : in.back().get());
    }
    return library_->f().run(session_, options, inputs_.data(), pointers.data(), pointers.size(), outputs_.data(),
                             outputs_.size(), results.data());
  }

  // Set if the option profile_prefix asked for a profile.
  void end_profile() const noexcept {
    char* file = nullptr;
    c::Status* status = library_->f().end_profiling(session_, library_->allocator(), &file);
    if (status != nullptr) library_->f().release_status(status);
    if (file == nullptr) return;
    if (*file != 0) log::info("ONNX Runtime's profile: {}", file);
    if (c::Status* s = library_->f().allocator_free(library_->allocator(), file)) library_->f().release_status(s);
  }

  std::shared_ptr<const Library> library_;
  std::shared_ptr<cache::CacheEntry> cache_;  // some providers write to it during runs
  c::Session* session_;
  std::string name_;
  std::vector<std::string> input_names_, output_names_;
  std::vector<const char*> inputs_, outputs_;
  std::unique_ptr<DeviceRuns> bound_;  // null: runs are not bound
};

// "max supported IR version: 9" in a message; 0: it is about something else.
std::int64_t newest_ir_in(const std::string& message) {
  const std::string mark = "max supported IR version: ";
  const std::size_t at = message.find(mark);
  return at == std::string::npos ? 0 : std::atoll(message.c_str() + at + mark.size());
}

c::Session* create_from(const Library& library, std::span<const std::byte> bytes, const c::SessionOptions* options) {
  c::Session* session = nullptr;
  library.check(library.f().create_session_from_array(library.env(), bytes.data(), bytes.size(), options, &session),
                ErrorCode::not_implemented);
  return session;
}

// The file itself where it will do: the library maps its weights, and sees functions and metadata. Files newer than the library
// are written anew: the IR version counts additions to the format that the graph need not use.
c::Session* create_session(const Library& library, const Region& region, const c::SessionOptions* options) {
  const ModelSource* source = region.source;
  std::int64_t newest_ir = 0;
  for (int attempt = 0;; ++attempt) {
    try {
      if (source != nullptr && !source->path.empty()) {
        c::Session* session = nullptr;
        library.check(library.f().create_session(library.env(), source->path.c_str(), options, &session),
                      ErrorCode::not_implemented);
        return session;
      }
      if (source != nullptr && source->folder.empty()) return create_from(library, source->bytes, options);
      const std::string bytes = region_bytes(region, newest_ir);
      return create_from(library, std::as_bytes(std::span(bytes)), options);
    } catch (const Error& e) {
      newest_ir = newest_ir_in(e.message());
      if (newest_ir == 0 || attempt > 0) throw;
      source = nullptr;
    }
  }
}

using OptionsHandle = std::unique_ptr<c::SessionOptions, void (*)(c::SessionOptions*)>;

OptionsHandle make_options(const Library& library, const std::string& provider, const ProviderSettings& settings) {
  const Functions& f = library.f();
  c::SessionOptions* made = nullptr;
  library.check(f.create_session_options(&made), ErrorCode::internal);
  OptionsHandle options(made, f.release_session_options);
  constexpr int kAllOptimizations = 99;
  library.check(f.set_optimization(made, settings.optimize ? kAllOptimizations : 0), ErrorCode::internal);
  const int threads = settings.threads > 0 ? settings.threads : ThreadPool::shared()->threads();
  library.check(f.set_intra_threads(made, threads), ErrorCode::internal);
  // Without it, products of u8 and s8 saturate at 16 bits on processors that lack the dot-product instructions: faster, and wrong
  // by more than a rounding.
  library.check(f.add_config(made, "session.x64quantprecision", "1"), ErrorCode::internal);
  if (f.assignment != nullptr) {
    library.check(f.add_config(made, "session.record_ep_graph_assignment_info", "1"), ErrorCode::internal);
  }
  for (const auto& [key, value] : settings.options) {
    if (key == kProfilePrefix) library.check(f.enable_profiling(made, path_of(value).c_str()), ErrorCode::internal);
  }
  if (settings.strict && provider != "cpu") {
    library.check(f.add_config(made, "session.disable_cpu_ep_fallback", "1"), ErrorCode::internal);
  }
  return options;
}

// `cache` may be null.
c::Session* make_session(const Library& library, const std::string& provider, const Region& region,
                         const ProviderSettings& settings, const cache::CacheEntry* cache) {
  const OptionsHandle options = make_options(library, provider, settings);
  ProviderSettings own = settings;
  own.cache = cache == nullptr ? std::filesystem::path() : cache->folder();
  append_provider(library, options.get(), provider, own);
  for (const auto& [next, next_settings] : region.followers) {
    const std::string_view name = next->name();
    const std::string_view plain = name.starts_with("ort:") ? name.substr(4) : name;
    own = next_settings;
    own.cache = cache == nullptr || !keeps_compiled(plain) ? std::filesystem::path() : cache->folder() / plain;
    append_provider(library, options.get(), plain, own);
  }
  if (cache == nullptr || !keeps_context(provider)) return create_session(library, region, options.get());
  const std::filesystem::path context = cache->folder() / "model_ctx.onnx";
  std::error_code none;
  if (std::filesystem::exists(context, none)) {
    c::Session* session = nullptr;
    library.check(library.f().create_session(library.env(), context.c_str(), options.get(), &session),
                  ErrorCode::not_implemented);
    return session;
  }
  for (const auto& [key, value] : context_config(provider, context)) {
    library.check(library.f().add_config(options.get(), key.c_str(), value.c_str()), ErrorCode::internal);
  }
  return create_session(library, region, options.get());
}

// ONNX Runtime keeps nodes that compute shapes on its CPU kernels, also where the provider has kernels for them.
bool needs_the_cpu(const std::string& message) {
  return message.find("session.disable_cpu_ep_fallback") != std::string::npos ||
         message.find("assigned to the default CPU EP") != std::string::npos;
}

}  // namespace

std::unique_ptr<Kernel> make_region_kernel(std::shared_ptr<const Library> library, const std::string&,
                                           const std::string& provider, const Region& region, const ProviderSettings& settings) {
  std::shared_ptr<cache::CacheEntry> cache;
  if (keeps_compiled(provider)) cache = open_cache(region, settings, "onnxruntime " + library->version() + " " + provider);
  c::Session* session = nullptr;
  try {
    session = make_session(*library, provider, region, settings, cache.get());
  } catch (const Error& e) {
    if (settings.strict && needs_the_cpu(e.message())) {
      fail(ErrorCode::provider_unavailable, "ONNX Runtime {} would run some of the nodes on its CPU kernels instead of {}{}",
           library->version(), vendor_name(provider), kOmitStrict);
    }
    if (!cache || !cache->warm()) throw;
    log::info("{}: the cached model cannot be used and is compiled again: {}", provider, e.message());
    cache->discard();
    session = make_session(*library, provider, region, settings, cache.get());
  }
  if (cache) cache->seal();
  return std::make_unique<RegionKernel>(std::move(library), session, provider, region, settings, std::move(cache));
}

}  // namespace sdx::ort
