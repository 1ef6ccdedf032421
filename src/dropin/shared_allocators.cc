// Allocators that sessions of an environment share. The engine computes in memory of its own, so these serve only the program's
// own tensors.
#include <algorithm>
#include <map>
#include <utility>

#include "base/words.h"
#include "dropin/allocator.h"
#include "dropin/devices/devices.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {

struct OrtArenaCfg {
  std::map<std::string, std::size_t, std::less<>> values;
};

namespace {

// Whether the environment made it for a registration. The type distinguishes it from a program's own allocators.
bool made_by_us(const OrtAllocator* allocator) { return allocator->Free == default_allocator()->Free; }

// Replaces an existing allocator for the same memory; one of ours is freed. The caller holds the lock.
void put(OrtEnv& env, const OrtMemoryInfo& info, OrtAllocator* allocator) {
  const auto it = std::find_if(env.allocators.begin(), env.allocators.end(), [&](const auto& a) { return a.first == info; });
  if (it == env.allocators.end()) {
    env.allocators.emplace_back(info, allocator);
  } else if (it->second != allocator) {
    release_shared(it->first, std::exchange(it->second, allocator));
  }
}

void check_device(const OrtMemoryInfo& info) {
  if (info.device != DEVICE_CPU) fail_ort(ORT_INVALID_ARGUMENT, "Only CPU devices are supported for now.");
}

OrtStatus* create_and_register(OrtEnv* env, const OrtMemoryInfo* info, const OrtArenaCfg*) {
  return guarded([&] {
    OrtEnv& e = require(env, "env");
    if (info == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "OrtMemoryInfo is null");
    check_device(*info);
    OrtAllocator* const made = new_allocator(*info);
    const std::lock_guard lock(e.mutex);
    put(e, *info, made);
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
    check_device(*info);
    const std::lock_guard lock(e.mutex);
    put(e, *info, allocator);
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

const OrtMemoryInfo& memory_of(const OrtEpDevice* device, OrtDeviceMemoryType type) {
  require(device, "ep_device");
  if (device != cpu_device() || type != OrtDeviceMemoryType_DEFAULT) {
    fail_ort(ORT_INVALID_ARGUMENT, "Invalid memory type for OrtEpDevice.");
  }
  return *cpu_memory();
}

// Replaces an existing allocator, which is freed. `out` may be NULL.
OrtStatus* create_for_device(OrtEnv* env, const OrtEpDevice* device, OrtDeviceMemoryType memory, OrtAllocatorType type,
                             const OrtKeyValuePairs*, OrtAllocator** out) {
  return guarded([&] {
    OrtEnv& e = require(env, "env");
    const OrtMemoryInfo& info = memory_of(device, memory);
    if (type == OrtArenaAllocator) {
      fail_ort(ORT_FAIL, "OrtAllocatorType::OrtArenaAllocator is reserved for internal use; ask for OrtDeviceAllocator");
    }
    OrtAllocator* const made = new_allocator(info);
    const std::lock_guard lock(e.mutex);
    put(e, info, made);
    if (out != nullptr) *out = made;
  });
}

OrtStatus* release_for_device(OrtEnv* env, const OrtEpDevice* device, OrtDeviceMemoryType memory) {
  const OrtMemoryInfo* info = nullptr;
  OrtStatus* const status = guarded([&] { info = &memory_of(device, memory); });
  return status != nullptr ? status : unregister_allocator(env, info);
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
    constexpr std::string_view kKnown =
        "max_mem arena_extend_strategy initial_chunk_size_bytes max_dead_bytes_per_chunk initial_growth_chunk_size_bytes "
        "max_power_of_two_extend_bytes";
    auto made = std::make_unique<OrtArenaCfg>();
    for (std::size_t i = 0; i < count; ++i) {
      const std::string key = &require(keys[i], "a key of the arena's configuration");
      if (!has_word(kKnown, key)) {
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
  table.set(Slot::CreateSharedAllocator, &create_for_device);
  table.set(Slot::ReleaseSharedAllocator, &release_for_device);
  table.set(Slot::CreateArenaCfg, &create_arena_config);
  table.set(Slot::CreateArenaCfgV2, &create_arena_config_v2);
  table.set(Slot::ReleaseArenaCfg, &release_arena_config);
}

}  // namespace sdx::dropin
