// Pools of threads: options of the process's pool, threads that programs make themselves, and the pools that come of both.
#include "dropin/threads.h"

#include <algorithm>
#include <cstring>

#include "base/system/thread_maker.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

constexpr std::size_t kLongestAffinity = 4096;

OrtStatus* create_threading(OrtThreadingOptions** out) {
  return guarded([&] {
    require(out, "out");
    *out = new OrtThreadingOptions();
  });
}
void release_threading(OrtThreadingOptions* options) { delete options; }
template <auto member, class T>
OrtStatus* set_threading(OrtThreadingOptions* options, T value) {
  return guarded([&] { require(options, "tp_options").*member = value; });
}
OrtStatus* set_spin(OrtThreadingOptions* options, int spin) {
  return guarded([&] {
    if (spin != 0 && spin != 1)
      fail_ort(ORT_INVALID_ARGUMENT, "Received invalid value for allow_spinning. Valid values are 0 or 1");
    require(options, "tp_options").spin = spin == 1;
  });
}
OrtStatus* set_denormals(OrtThreadingOptions* options) {
  return guarded([&] { require(options, "tp_options").denormals_are_zero = true; });
}
OrtStatus* set_affinity(OrtThreadingOptions* options, const char* affinity) {
  return guarded([&] {
    if (affinity == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Received null affinity_string.");
    const std::size_t length = std::strlen(affinity);
    if (length == 0) fail_ort(ORT_INVALID_ARGUMENT, "Received empty affinity_string.");
    if (length > kLongestAffinity) fail_ort(ORT_INVALID_ARGUMENT, "affinity string is too long");
    require(options, "tp_options").affinity = affinity;
  });
}

// One function or its argument, of the process's pool or of a session's.
template <class Options, auto member, class T>
OrtStatus* set_custom(Options* options, T value) {
  return guarded([&] { require(options, "options").custom_threads.*member = value; });
}

ThreadMaker maker_of(const CustomThreads& custom) {
  if (custom.create == nullptr) return {};
  if (custom.join == nullptr) fail_ort(ORT_RUNTIME_EXCEPTION, "custom join thread function not set");
  return {[custom](ThreadWorker work, void* param) { return custom.create(custom.argument, work, param); }, custom.join};
}

std::shared_ptr<ThreadPool> make_pool(int threads, const CustomThreads& custom) {
  return std::make_shared<ThreadPool>(threads, std::vector<int>(), maker_of(custom));
}

// Made for the first session that asks.
std::shared_ptr<ThreadPool> pool_of_process(OrtEnv& env) {
  const std::lock_guard lock(env.mutex);
  const bool usual = !env.global_threads || (env.threads.intra_op <= 0 && env.threads.custom_threads.create == nullptr);
  if (!usual && env.pool == nullptr) env.pool = make_pool(std::max(env.threads.intra_op, 0), env.threads.custom_threads);
  return env.pool;
}

}  // namespace

std::shared_ptr<ThreadPool> pool_for(OrtEnv& env, const OrtSessionOptions& options) {
  if (!options.own_threads) return pool_of_process(env);
  // If operators may run side by side, the threads for that are added to those inside of operators.
  int threads = options.engine.threads;
  if (threads > 0 && options.mode == ORT_PARALLEL) threads += std::max(options.inter_op - 1, 0);
  if (threads == options.engine.threads && options.custom_threads.create == nullptr) return nullptr;
  return make_pool(threads, options.custom_threads);
}

void fill_threads(Table& table) {
  using Global = OrtThreadingOptions;
  using Own = OrtSessionOptions;
  table.set(Slot::CreateThreadingOptions, &create_threading);
  table.set(Slot::ReleaseThreadingOptions, &release_threading);
  table.set(Slot::SetGlobalIntraOpNumThreads, &set_threading<&Global::intra_op, int>);
  table.set(Slot::SetGlobalInterOpNumThreads, &set_threading<&Global::inter_op, int>);
  table.set(Slot::SetGlobalSpinControl, &set_spin);
  table.set(Slot::SetGlobalDenormalAsZero, &set_denormals);
  table.set(Slot::SetGlobalIntraOpThreadAffinity, &set_affinity);
  table.set(Slot::SetGlobalCustomCreateThreadFn, &set_custom<Global, &CustomThreads::create, CreateThread>);
  table.set(Slot::SetGlobalCustomThreadCreationOptions, &set_custom<Global, &CustomThreads::argument, void*>);
  table.set(Slot::SetGlobalCustomJoinThreadFn, &set_custom<Global, &CustomThreads::join, JoinThread>);
  table.set(Slot::SessionOptionsSetCustomCreateThreadFn, &set_custom<Own, &CustomThreads::create, CreateThread>);
  table.set(Slot::SessionOptionsSetCustomThreadCreationOptions, &set_custom<Own, &CustomThreads::argument, void*>);
  table.set(Slot::SessionOptionsSetCustomJoinThreadFn, &set_custom<Own, &CustomThreads::join, JoinThread>);
}

}  // namespace sdx::dropin
