#include "serve/ollama/pulls.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <thread>

#include "base/error.h"
#include "base/text/json_text.h"
#include "base/text/model_name.h"
#include "serve/models/model_files.h"
#include "serve/openai/error.h"

namespace sdx::serve::ollama {
namespace {

using openai::ApiError;
using std::chrono::milliseconds;

constexpr std::size_t kJobs = 2;             // models that are fetched at once
constexpr int kListeners = 16;               // requests that wait for them: each keeps a thread
constexpr milliseconds kTick{100};           // between two lines of a file
constexpr int kMostSilentTicks = 100;        // then the last line comes again: proxies end silent connections
constexpr std::size_t kMostNameBytes = 256;  // longer than any

std::string status_line(std::string_view text) { return "{\"status\":" + json_string(std::string(text)) + "}"; }

// Clients draw a bar for each digest.
std::string progress_line(const PullStep& step) {
  const std::string label = step.sha256.empty() ? step.file : step.sha256.substr(0, 12);
  std::string out = "{\"status\":" + json_string("pulling " + label);
  if (!step.sha256.empty()) out += ",\"digest\":" + json_string("sha256:" + step.sha256);
  if (step.total > 0) out += fmt::format(",\"total\":{},\"completed\":{}", step.total, step.done);
  return out + "}";
}

ApiError busy(std::string text) {
  ApiError error(503, std::move(text), "server_error");
  error.retry_after = 10;
  return error;
}

}  // namespace

// A fetch under way. `name` and `folder` never change; what follows is guarded by `mutex`.
struct Pulls::Job {
  std::string name, folder;
  std::thread thread;
  std::mutex mutex;
  std::condition_variable changed;
  PullStep step;
  std::uint64_t steps = 0;  // how often `step` has changed
  int listeners = 0;
  bool cancelled = false, done = false;
  std::exception_ptr failure;
};

Pulls::Pulls(Catalog& catalog, PullOptions options) : catalog_(catalog), options_(std::move(options)) {}

Pulls::~Pulls() {
  stop();
  for (const std::shared_ptr<Job>& job : jobs_) job->thread.join();
}

void Pulls::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (const std::shared_ptr<Job>& job : jobs_) {
    const std::lock_guard inner(job->mutex);
    job->cancelled = true;
  }
}

// The bytes that a model in this folder may have.
std::uint64_t Pulls::room_for(const std::string& folder) const {
  std::uint64_t room = options_.most_bytes;
  for (const PulledModel& model : catalog_.pulled()) {
    if (model.name != folder) room -= std::min(room, model_bytes_on_disk(model.folder));
  }
  return room;
}

void Pulls::run(Job& job) {
  std::exception_ptr failure;
  try {
    ClientPull wanted;
    wanted.name = job.name;
    wanted.most_bytes = room_for(job.folder);
    wanted.step = [&job](const PullStep& step) {
      const std::lock_guard lock(job.mutex);
      job.step = step;
      ++job.steps;
      job.changed.notify_all();
      return !job.cancelled;
    };
    options_.pull(wanted);
    catalog_.look_at_repository();
  } catch (const Error& error) {
    // What the registry lacks, or sends, is not this server's fault.
    ApiError told = openai::api_error(error);
    if (error.code() != ErrorCode::invalid_argument) told.status = 502;
    failure = std::make_exception_ptr(told);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(job.mutex);
  job.failure = failure;
  job.done = true;
  job.changed.notify_all();
}

// The fetch of this model that is under way, or a new one; the caller is one of its listeners.
std::shared_ptr<Pulls::Job> Pulls::join(const std::string& name) {
  const std::string folder = model_folder_name(name);
  const std::lock_guard lock(mutex_);
  if (stopping_) throw busy("the server is stopping");
  std::erase_if(jobs_, [](const std::shared_ptr<Job>& job) {
    std::unique_lock inner(job->mutex);
    if (!job->done) return false;
    inner.unlock();
    job->thread.join();
    return true;
  });
  if (listeners_ >= kListeners) throw busy(fmt::format("{} requests already wait for models; try again later", kListeners));
  for (const std::shared_ptr<Job>& job : jobs_) {
    const std::lock_guard inner(job->mutex);
    if (job->folder != folder) continue;
    if (job->cancelled) throw busy(fmt::format("a fetch of '{}' is just being ended; try again later", name));
    ++job->listeners;
    ++listeners_;
    return job;
  }
  if (jobs_.size() >= kJobs) throw busy(fmt::format("{} models are already being fetched; try again later", kJobs));
  auto job = std::make_shared<Job>();
  job->name = name;
  job->folder = folder;
  job->listeners = 1;
  job->thread = std::thread([this, job] { run(*job); });
  jobs_.push_back(job);
  ++listeners_;
  return job;
}

void Pulls::fetch(const std::string& name, const std::function<bool(std::string_view)>& tell) {
  if (name.size() > kMostNameBytes) openai::refuse("the name of the model is too long");
  const std::shared_ptr<Job> job = join(name);
  std::unique_lock lock(job->mutex);
  std::uint64_t told = 0;
  int silent = 0;
  bool listens = true;
  while (listens && !job->done) {
    job->changed.wait_for(lock, kTick, [&] { return job->done; });
    const bool speaks = job->steps != told || ++silent >= kMostSilentTicks;
    told = job->steps;
    if (speaks) silent = 0;
    const std::string line = !speaks ? "" : told > 0 ? progress_line(job->step) : status_line("pulling manifest");
    lock.unlock();
    listens = tell(line);  // without news the client may have gone
    lock.lock();
  }
  if (--job->listeners == 0 && !job->done) job->cancelled = true;
  const std::exception_ptr failure = job->failure;
  lock.unlock();
  {
    const std::lock_guard all(mutex_);
    --listeners_;
  }
  if (failure) std::rethrow_exception(failure);
  if (!listens) return;
  for (const char* last : {"verifying sha256 digest", "writing manifest", "success"}) tell(status_line(last));
}

void Pulls::remove(const std::string& name) {
  const std::vector<PulledModel> all = catalog_.pulled();
  const bool there = std::any_of(all.begin(), all.end(), [&](const PulledModel& m) { return m.name == name; });
  if (!there) {
    for (const ModelStatus& status : catalog_.list()) {
      if (status.name == name)
        throw ApiError(403, fmt::format("model '{}' was not pulled into the repository: whoever runs this "
                                        "server has put it there, and may remove it",
                                        name));
    }
    throw ApiError(404, fmt::format("model '{}' not found", name.substr(0, kMostNameBytes)), "not_found_error");
  }
  {
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<Job>& job : jobs_) {
      const std::lock_guard inner(job->mutex);
      if (!job->done && job->folder == name) throw ApiError(409, fmt::format("model '{}' is being fetched", name));
    }
  }
  catalog_.remove_pulled(name);
}

}  // namespace sdx::serve::ollama
