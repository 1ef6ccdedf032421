#pragma once
// Random calls of the C interface. What a program may hold is kept in pools; calls draw from them, or pass NULL, empty or absurd
// values. Legal or not, no call may crash: objects are of the type that the function takes, and are not used after their release.

#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include "dropin/call.h"
#include "dropin/objects.h"
#include "fuzz/mutate.h"

namespace sdx::fuzz {

using namespace dropin;

// Objects of one type and the function that releases them.
template <class T>
struct Pool {
  Slot release;
  std::vector<T*> all;
};

class World {
 public:
  World(std::uint64_t seed, bool show) : random(seed), show_(show) {}
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // One of the pool's objects; now and then NULL.
  template <class T>
  T* any(const Pool<T>& pool) {
    return pool.all.empty() || random.chance(4) ? nullptr : random.pick(pool.all);
  }
  // Where a function writes what it makes; now and then NULL.
  template <class T>
  T* out(T& place) {
    return random.chance(3) ? nullptr : &place;
  }
  // Names that models know, and others; now and then NULL.
  const char* text();
  // Extents of a tensor: few elements, or more than there is memory for, or negative.
  std::vector<std::int64_t> extents();
  ElementType element();
  // As many elements as a call says, or more than it needs.
  std::size_t count() { return random.below(5); }
  template <class T>
  const T* list(const std::vector<T>& items) {
    return random.chance(3) ? nullptr : items.data();
  }

  // Calls a function that returns a status. True: success. A status without a code or a message ends the process.
  template <class... Args>
  bool call(Slot slot, Args... args) {
    say(slot);
    return succeeded(slot, Caller(api).call(slot, args...));
  }
  template <class... Args>
  void call_void(Slot slot, Args... args) {
    say(slot);
    Caller(api).template call<void>(slot, args...);
  }
  template <class R, class... Args>
  R call_value(Slot slot, Args... args) {
    say(slot);
    return Caller(api).template call<R>(slot, args...);
  }
  // The same, for a function that makes an object and takes `out` as its last argument.
  template <class T, class... Args>
  void make(Pool<T>& pool, Slot slot, Args... args) {
    T* made = nullptr;
    T** const to = out(made);
    const bool good = call(slot, args..., to);
    if (good != (made != nullptr) && (good ? to != nullptr : true))
      broken(slot, good ? "makes nothing" : "fails and makes something");
    if (made != nullptr) pool.all.push_back(made);
  }
  template <class T>
  void release(Pool<T>& pool) {
    if (random.chance(10)) return call_void(pool.release, static_cast<T*>(nullptr));
    if (pool.all.empty()) return;
    const std::size_t at = random.below(pool.all.size());
    T* const object = pool.all[at];
    pool.all.erase(pool.all.begin() + static_cast<std::ptrdiff_t>(at));
    call_void(pool.release, object);
  }
  template <class T>
  void release_all(Pool<T>& pool) {
    for (T* object : pool.all) call_void(pool.release, object);
    pool.all.clear();
  }
  // Memory that stays as long as this world.
  char* memory(std::size_t bytes);
  // Frees what an allocator of ours has given.
  void free(void* memory);
  [[noreturn]] void broken(Slot slot, const char* what) const;

  Random random;
  const OrtApi* api = nullptr;
  std::uint64_t calls = 0, failures = 0;
  Pool<OrtEnv> envs{Slot::ReleaseEnv, {}};
  Pool<OrtSessionOptions> options{Slot::ReleaseSessionOptions, {}};
  Pool<OrtSession> sessions{Slot::ReleaseSession, {}};
  Pool<OrtRunOptions> run_options{Slot::ReleaseRunOptions, {}};
  Pool<OrtValue> values{Slot::ReleaseValue, {}};
  Pool<OrtMemoryInfo> memories{Slot::ReleaseMemoryInfo, {}};
  Pool<OrtTypeInfo> types{Slot::ReleaseTypeInfo, {}};
  Pool<OrtTensorTypeAndShapeInfo> shapes{Slot::ReleaseTensorTypeAndShapeInfo, {}};
  Pool<OrtAllocator> allocators{Slot::ReleaseAllocator, {}};
  Pool<OrtIoBinding> bindings{Slot::ReleaseIoBinding, {}};
  Pool<OrtKeyValuePairs> pairs{Slot::ReleaseKeyValuePairs, {}};
  Pool<OrtModelMetadata> metadata{Slot::ReleaseModelMetadata, {}};
  Pool<OrtThreadingOptions> threads{Slot::ReleaseThreadingOptions, {}};
  Pool<OrtOpAttr> attributes{Slot::ReleaseOpAttr, {}};
  Pool<OrtPrepackedWeightsContainer> containers{Slot::ReleasePrepackedWeightsContainer, {}};
  Pool<OrtLoraAdapter> adapters{Slot::ReleaseLoraAdapter, {}};
  Pool<OrtCustomOpDomain> domains{Slot::ReleaseCustomOpDomain, {}};

 private:
  void say(Slot slot);
  bool succeeded(Slot slot, OrtStatus* status);

  bool show_;
  std::deque<std::vector<char>> kept_;
};

using Action = void (*)(World&);
// By theme.
extern const std::vector<Action> kValueActions, kSessionActions, kInfoActions;

}  // namespace sdx::fuzz
