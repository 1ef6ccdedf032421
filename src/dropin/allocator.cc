#include <malloc.h>

#include <cstdlib>
#include <cstring>

#include "dropin/allocator.h"
#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

constexpr std::size_t kAlignment = 64;  // of a cache line, which kernels like best

// Our allocators. All of them allocate from the process's heap; they differ in their descriptions and in their figures.
struct Ours : OrtAllocator {
  OrtMemoryInfo info;
  std::atomic<std::uint64_t> count{0}, reserves{0}, in_use{0}, most_in_use{0}, largest{0};
};

void raise(std::atomic<std::uint64_t>& most, std::uint64_t value) {
  std::uint64_t seen = most.load(std::memory_order_relaxed);
  while (value > seen && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

// The size that a block counts: the system rounds up by less than the alignment.
std::size_t taken(void* memory) { return ::malloc_usable_size(memory) / kAlignment * kAlignment; }

void* get_memory(OrtAllocator* self, std::size_t size) {
  if (size == 0) return nullptr;
  if (size > static_cast<std::size_t>(PTRDIFF_MAX) - kAlignment) return nullptr;
  void* const memory = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) return nullptr;
  Ours& ours = *static_cast<Ours*>(self);
  ours.count.fetch_add(1, std::memory_order_relaxed);
  raise(ours.largest, size);
  raise(ours.most_in_use, ours.in_use.fetch_add(taken(memory), std::memory_order_relaxed) + taken(memory));
  return memory;
}
void* reserve_memory(OrtAllocator* self, std::size_t size) {
  static_cast<Ours*>(self)->reserves.fetch_add(1, std::memory_order_relaxed);
  return get_memory(self, size);
}
void* get_memory_on_stream(OrtAllocator* self, std::size_t size, OrtSyncStream*) { return get_memory(self, size); }
void free_memory(OrtAllocator* self, void* memory) {
  static_cast<Ours*>(self)->in_use.fetch_sub(taken(memory), std::memory_order_relaxed);
  std::free(memory);
}
const OrtMemoryInfo* info_of(const OrtAllocator* self) { return &static_cast<const Ours*>(self)->info; }
OrtStatus* shrink(OrtAllocator*) { return nullptr; }  // what is freed is given back already

// The figures are those of arenas, which programs look for where an allocator says that it is one.
OrtStatus* statistics(const OrtAllocator* self, OrtKeyValuePairs** out) {
  return guarded([&] {
    const Ours& ours = *static_cast<const Ours*>(self);
    auto pairs = std::make_unique<OrtKeyValuePairs>();
    if (ours.info.type == OrtArenaAllocator) {
      pairs->set("Limit", "-1");
      pairs->set("InUse", std::to_string(ours.in_use.load()));
      pairs->set("MaxInUse", std::to_string(ours.most_in_use.load()));
      pairs->set("MaxAllocSize", std::to_string(ours.largest.load()));
      pairs->set("NumAllocs", std::to_string(ours.count.load()));
      pairs->set("NumReserves", std::to_string(ours.reserves.load()));
      pairs->set("TotalAllocated", std::to_string(ours.in_use.load()));
      pairs->set("NumArenaExtensions", "0");
      pairs->set("NumArenaShrinkages", "0");
    }
    require(out, "out");
    *out = pairs.release();
  });
}

void fill(Ours& ours, OrtMemoryInfo info) {
  static_cast<OrtAllocator&>(ours) = {kNewestApi,      &get_memory, &free_memory,          &info_of,
                                      &reserve_memory, &statistics, &get_memory_on_stream, &shrink};
  ours.info = std::move(info);
}

OrtStatus* default_options(OrtAllocator** out) {
  return guarded([&] { require(out, "out") = default_allocator(); });
}

OrtStatus* get_stats(const OrtAllocator* allocator, OrtKeyValuePairs** out) {
  return guarded([&] {
    const OrtAllocator& from = require(allocator, "ort_allocator");
    require(out, "out");
    if (from.version >= 23 && from.GetStats != nullptr) {
      if (OrtStatus* const status = from.GetStats(&from, out)) {
        OrtError error{status_code(status), status_message(status)};
        release_status(status);
        throw error;
      }
      return;
    }
    *out = new OrtKeyValuePairs();
  });
}

// A program's own allocator that its environment shares: as long as the program holds it, it must not end before.
struct Shared : OrtAllocator {
  OrtAllocator* to;
};
OrtAllocator* behind(const OrtAllocator* self) { return static_cast<const Shared*>(self)->to; }

void* shared_get(OrtAllocator* self, std::size_t size) { return behind(self)->Alloc(behind(self), size); }
void shared_free(OrtAllocator* self, void* memory) { behind(self)->Free(behind(self), memory); }
const OrtMemoryInfo* shared_info(const OrtAllocator* self) { return behind(self)->Info(behind(self)); }
void* shared_reserve(OrtAllocator* self, std::size_t size) {
  OrtAllocator* const to = behind(self);
  return to->version >= 18 && to->Reserve != nullptr ? to->Reserve(to, size) : to->Alloc(to, size);
}
OrtStatus* shared_statistics(const OrtAllocator* self, OrtKeyValuePairs** out) { return get_stats(behind(self), out); }
void* shared_get_on_stream(OrtAllocator* self, std::size_t size, OrtSyncStream*) { return shared_get(self, size); }

OrtAllocator* shared_for(const OrtSession& session, const OrtMemoryInfo& asked) {
  const auto entry = session.options.config.find("session.use_env_allocators");
  OrtEnv* const env = current_env();
  if (entry == session.options.config.end() || entry->second != "1" || env == nullptr) return nullptr;
  const std::lock_guard lock(env->mutex);
  for (const auto& [info, allocator] : env->allocators) {
    if (info != asked || allocator->Free == &free_memory) continue;
    auto made = std::make_unique<Shared>();
    static_cast<OrtAllocator&>(*made) = {kNewestApi,      &shared_get,        &shared_free,          &shared_info,
                                         &shared_reserve, &shared_statistics, &shared_get_on_stream, &shrink};
    made->to = allocator;
    return made.release();
  }
  return nullptr;
}

OrtStatus* create(const OrtSession* session, const OrtMemoryInfo* info, OrtAllocator** out) {
  return guarded([&] {
    const OrtSession& s = require(session, "session");
    const OrtMemoryInfo& asked = require(info, "mem_info");
    if (asked.device != DEVICE_CPU) fail_ort(ORT_INVALID_ARGUMENT, "No requested allocator available");
    require(out, "out") = shared_for(s, asked);
    if (*out == nullptr) *out = new_allocator(asked);
  });
}

void release(OrtAllocator* allocator) {
  if (allocator == nullptr || allocator == default_allocator()) return;
  if (allocator->Free == &shared_free) return delete static_cast<Shared*>(allocator);
  delete static_cast<Ours*>(allocator);
}

OrtStatus* alloc(OrtAllocator* allocator, std::size_t size, void** out) {
  return guarded([&] {
    require(out, "out") = nullptr;
    OrtAllocator& from = require(allocator, "allocator");
    *out = from.Alloc(&from, size);
    if (*out == nullptr && size != 0) fail_ort(ORT_FAIL, "Failed to allocate " + std::to_string(size) + " bytes");
  });
}
OrtStatus* free_of(OrtAllocator* allocator, void* memory) {
  return guarded([&] { require(allocator, "allocator").Free(allocator, memory); });
}
OrtStatus* get_info(const OrtAllocator* allocator, const OrtMemoryInfo** out) {
  return guarded([&] { require(out, "out") = require(allocator, "allocator").Info(allocator); });
}

}  // namespace

OrtAllocator* default_allocator() {
  static Ours* const made = [] {
    auto* const ours = new Ours;  // for good: programs free texts while statics are being destroyed
    fill(*ours, OrtMemoryInfo{});
    return ours;
  }();
  return made;
}

OrtAllocator* new_allocator(const OrtMemoryInfo& info) {
  auto made = std::make_unique<Ours>();
  fill(*made, info);
  return made.release();
}
void release_allocator(OrtAllocator* allocator) { release(allocator); }

void* allocate(OrtAllocator* allocator, std::size_t bytes) {
  OrtAllocator& from = require(allocator, "allocator");
  void* const memory = from.Alloc(&from, bytes);
  if (memory == nullptr && bytes != 0) fail_ort(ORT_FAIL, "the allocator has no memory for " + std::to_string(bytes) + " bytes");
  return memory;
}

char* copy_text(OrtAllocator* allocator, std::string_view text) {
  auto* const copy = static_cast<char*>(allocate(allocator, text.size() + 1));
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

void fill_allocators(Table& table) {
  table.set(Slot::GetAllocatorWithDefaultOptions, &default_options);
  table.set(Slot::CreateAllocator, &create);
  table.set(Slot::ReleaseAllocator, &release);
  table.set(Slot::AllocatorAlloc, &alloc);
  table.set(Slot::AllocatorFree, &free_of);
  table.set(Slot::AllocatorGetInfo, &get_info);
  table.set(Slot::AllocatorGetStats, &get_stats);
}

}  // namespace sdx::dropin
