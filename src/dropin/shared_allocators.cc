// Allocators that sessions of an environment share. The engine has memory of its own for what it computes, so these serve the
// program's own tensors alone.
#include <algorithm>
#include <map>

#include "dropin/allocator.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {

struct OrtArenaCfg {
  std::map<std::string, std::size_t, std::less<>> values;
};

namespace {

// One that the environment made for a registration; the program's own are told from it by the type.
bool made_by_us(const OrtAllocator* allocator) { return allocator->Free == default_allocator()->Free; }

void check_new(const OrtEnv& env, const OrtMemoryInfo& info) {
  if (info.device != DEVICE_CPU) fail_ort(ORT_INVALID_ARGUMENT, "Only CPU devices are supported for now.");
  for (const auto& [there, allocator] : env.allocators) {
    if (there == info) {
      fail_ort(ORT_INVALID_ARGUMENT, "An allocator for this device has already been registered for sharing.");
    }
  }
}

OrtStatus* create_and_register(OrtEnv* env, const OrtMemoryInfo* info, const OrtArenaCfg*) {
  return guarded([&] {
    OrtEnv& e = require(env, "env");
    if (info == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "OrtMemoryInfo is null");
    const std::lock_guard lock(e.mutex);
    check_new(e, *info);
    e.allocators.emplace_back(*info, new_allocator(*info));
  });
}

OrtStatus* create_and_register_v2(OrtEnv* env, const char* provider, const OrtMemoryInfo* info, const OrtArenaCfg* arena,
                                  const char* const*, const char* const*, std::size_t) {
  if (provider != nullptr && std::string_view(provider) != "CPUExecutionProvider") {
    return make_status(ORT_NOT_IMPLEMENTED,
                       std::string("CreateAndRegisterAllocatorV2: there is no allocator of ") + provider + " in this process");
  }
  return create_and_register(env, info, arena);
}

OrtStatus* register_allocator(OrtEnv* env, OrtAllocator* allocator) {
  return guarded([&] {
    OrtEnv& e = require(env, "env");
    if (allocator == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Provided OrtAllocator is null");
    const OrtMemoryInfo* const info = allocator->Info(allocator);
    if (info == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "OrtAllocator returned a null OrtMemoryInfo pointer from Info");
    if (info->type == OrtArenaAllocator) {
      fail_ort(ORT_INVALID_ARGUMENT, "OrtAllocator must not be an arena allocator: arenas are made by the library");
    }
    const std::lock_guard lock(e.mutex);
    check_new(e, *info);
    e.allocators.emplace_back(*info, allocator);
  });
}

OrtStatus* unregister_allocator(OrtEnv* env, const OrtMemoryInfo* info) {
  return guarded([&] {
    OrtEnv& e = require(env, "env");
    if (info == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Provided OrtMemoryInfo is null");
    const std::lock_guard lock(e.mutex);
    const auto it = std::find_if(e.allocators.begin(), e.allocators.end(), [&](const auto& a) { return a.first == *info; });
    if (it == e.allocators.end()) {
      fail_ort(ORT_INVALID_ARGUMENT, "No allocator for this device has been registered for sharing.");
    }
    release_shared(it->first, it->second);
    e.allocators.erase(it);
  });
}

OrtStatus* get_shared(OrtEnv* env, const OrtMemoryInfo* info, OrtAllocator** out) {
  return guarded([&] {
    OrtEnv& e = require(env, "env");
    const OrtMemoryInfo& asked = require(info, "mem_info");
    require(out, "allocator") = nullptr;
    const std::lock_guard lock(e.mutex);
    for (const auto& [there, allocator] : e.allocators) {
      if (there == asked) *out = allocator;
    }
    if (*out == nullptr && asked.device == DEVICE_CPU) *out = default_allocator();
  });
}

OrtStatus* create_arena_config(std::size_t max_mem, int strategy, int initial, int dead, OrtArenaCfg** out) {
  return guarded([&] {
    auto made = std::make_unique<OrtArenaCfg>();
    made->values = {{"max_mem", max_mem},
                    {"arena_extend_strategy", static_cast<std::size_t>(strategy)},
                    {"initial_chunk_size_bytes", static_cast<std::size_t>(initial)},
                    {"max_dead_bytes_per_chunk", static_cast<std::size_t>(dead)}};
    require(out, "out");
    *out = made.release();
  });
}

OrtStatus* create_arena_config_v2(const char* const* keys, const std::size_t* values, std::size_t count, OrtArenaCfg** out) {
  return guarded([&] {
    static constexpr std::string_view kKnown[] = {"max_mem",
                                                  "arena_extend_strategy",
                                                  "initial_chunk_size_bytes",
                                                  "max_dead_bytes_per_chunk",
                                                  "initial_growth_chunk_size_bytes",
                                                  "max_power_of_two_extend_bytes"};
    auto made = std::make_unique<OrtArenaCfg>();
    for (std::size_t i = 0; i < count; ++i) {
      const std::string key = &require(keys[i], "a key of the arena's configuration");
      if (std::find(std::begin(kKnown), std::end(kKnown), key) == std::end(kKnown)) {
        fail_ort(ORT_INVALID_ARGUMENT, "Invalid key found: " + key);
      }
      made->values[key] = values[i];
    }
    require(out, "out");
    *out = made.release();
  });
}

void release_arena_config(OrtArenaCfg* config) { delete config; }

}  // namespace

void release_shared(const OrtMemoryInfo&, OrtAllocator* allocator) {
  if (made_by_us(allocator)) release_allocator(allocator);
}

void fill_shared_allocators(Table& table) {
  table.set(Slot::CreateAndRegisterAllocator, &create_and_register);
  table.set(Slot::CreateAndRegisterAllocatorV2, &create_and_register_v2);
  table.set(Slot::RegisterAllocator, &register_allocator);
  table.set(Slot::UnregisterAllocator, &unregister_allocator);
  table.set(Slot::GetSharedAllocator, &get_shared);
  table.set(Slot::CreateArenaCfg, &create_arena_config);
  table.set(Slot::CreateArenaCfgV2, &create_arena_config_v2);
  table.set(Slot::ReleaseArenaCfg, &release_arena_config);
}

}  // namespace sdx::dropin
