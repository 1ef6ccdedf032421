#include <cstdlib>
#include <cstring>
#include <new>

#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

constexpr std::size_t kAlignment = 64;  // of a cache line, which kernels like best

// Ours. All of them give memory of the process's heap; what differs is what they say of it, and their figures.
struct Ours : OrtAllocator {
  OrtMemoryInfo info;
  std::atomic<std::uint64_t> count{0}, reserves{0}, bytes{0}, largest{0};
};

void* get_memory(OrtAllocator* self, std::size_t size) {
  if (size == 0) return nullptr;
  if (size > static_cast<std::size_t>(PTRDIFF_MAX) - kAlignment) return nullptr;
  void* const memory = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) return nullptr;
  Ours& ours = *static_cast<Ours*>(self);
  ours.count.fetch_add(1, std::memory_order_relaxed);
  ours.bytes.fetch_add(size, std::memory_order_relaxed);
  std::uint64_t largest = ours.largest.load(std::memory_order_relaxed);
  while (size > largest && !ours.largest.compare_exchange_weak(largest, size, std::memory_order_relaxed)) {
  }
  return memory;
}
void* reserve_memory(OrtAllocator* self, std::size_t size) {
  static_cast<Ours*>(self)->reserves.fetch_add(1, std::memory_order_relaxed);
  return get_memory(self, size);
}
void* get_memory_on_stream(OrtAllocator* self, std::size_t size, OrtSyncStream*) { return get_memory(self, size); }
void free_memory(OrtAllocator*, void* memory) { std::free(memory); }
const OrtMemoryInfo* info_of(const OrtAllocator* self) { return &static_cast<const Ours*>(self)->info; }
OrtStatus* shrink(OrtAllocator*) { return nullptr; }  // what is freed is given back already

OrtStatus* statistics(const OrtAllocator* self, OrtKeyValuePairs** out) {
  return guarded([&] {
    const Ours& ours = *static_cast<const Ours*>(self);
    auto pairs = std::make_unique<OrtKeyValuePairs>();
    pairs->set("NumAllocs", std::to_string(ours.count.load()));
    pairs->set("NumReserves", std::to_string(ours.reserves.load()));
    pairs->set("TotalAllocated", std::to_string(ours.bytes.load()));
    pairs->set("MaxAllocSize", std::to_string(ours.largest.load()));
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

OrtStatus* create(const OrtSession* session, const OrtMemoryInfo* info, OrtAllocator** out) {
  return guarded([&] {
    require(session, "session");
    const OrtMemoryInfo& asked = require(info, "mem_info");
    if (asked.device != DEVICE_CPU) fail_ort(ORT_INVALID_ARGUMENT, "No requested allocator available");
    auto made = std::make_unique<Ours>();
    fill(*made, asked);
    require(out, "out");
    *out = made.release();
  });
}

void release(OrtAllocator* allocator) {
  if (allocator != nullptr && allocator != default_allocator()) delete static_cast<Ours*>(allocator);
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
