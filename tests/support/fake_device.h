#pragma once
// An ONNX Runtime for tests whose device keeps every element of its memory with the other sign, so that whoever reads it without
// copying is found out. Each session doubles its inputs: output i is twice input i, of floats.

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "providers/ort/functions.h"

namespace sdx::ort::fake {

struct Counters {
  int inputs_bound = 0, outputs_bound = 0, copied_to_device = 0, copied_to_host = 0, refills = 0, runs = 0, plain_runs = 0;
  int values = 0, bindings = 0, allocators = 0, infos = 0;  // alive
};
inline Counters counters;
inline bool can_refill = true, has_memory = true, fails = false;

struct Memory {
  bool device = false;
};
struct Value {
  bool device = false;
  std::vector<std::int64_t> shape;
  std::vector<float> own;
  float* data = nullptr;
  int holders = 1;
};
struct Binding {
  std::map<std::string, Value*> inputs;
  std::vector<std::pair<std::string, bool>> outputs;  // on the device?
  std::vector<Value*> results;
};
struct Status {
  std::string message;
};
inline Memory host{false};
inline Status* error(const char* message) { return new Status{message}; }

inline std::size_t count_of(const std::vector<std::int64_t>& shape) {
  std::size_t n = 1;
  for (const std::int64_t e : shape) n *= static_cast<std::size_t>(e);
  return n;
}
inline Value* make(bool device, std::vector<std::int64_t> shape) {
  auto* v = new Value{device, std::move(shape), {}, nullptr, 1};
  v->own.resize(count_of(v->shape));
  v->data = v->own.data();
  ++counters.values;
  return v;
}
inline void release(Value* v) {
  if (v == nullptr || --v->holders > 0) return;
  --counters.values;
  delete v;
}
inline void copy(const Value& from, Value& to) {
  ++(to.device ? counters.copied_to_device : counters.copied_to_host);
  const float sign = from.device == to.device ? 1.0F : -1.0F;
  for (std::size_t i = 0; i < count_of(from.shape); ++i) to.data[i] = sign * from.data[i];
}
inline void release_results(Binding& b) {
  for (Value* v : b.results) release(v);
  b.results.clear();
}

// The function table by place, as version 23 has it.
class Table {
 public:
  Table() : places_(390, nullptr) {}
  template <class F>
  void set(std::size_t place, F* function) {
    places_[place] = reinterpret_cast<const void*>(function);
  }
  std::vector<const void*> take() { return std::move(places_); }

 private:
  std::vector<const void*> places_;
};

inline void set_memory(Table& t) {
  t.set(
      1, +[](const Status*) { return 1; });
  t.set(
      2, +[](const Status* s) { return s->message.c_str(); });
  t.set(
      68, +[](const char* name, int, int, int, Memory** out) -> Status* {
        ++counters.infos;
        *out = new Memory{std::strcmp(name, "Cpu") != 0};
        return nullptr;
      });
  t.set(
      69, +[](int, int, Memory** out) -> Status* {
        ++counters.infos;
        *out = new Memory{false};
        return nullptr;
      });
  t.set(
      76, +[](void*, void* p) -> Status* {
        delete[] static_cast<Value**>(p);
        return nullptr;
      });
  t.set(
      78, +[](Memory** out) -> Status* { return *out = &host, nullptr; });
  t.set(
      92, +[](void*) {});
  t.set(
      93, +[](Status* s) { delete s; });
  t.set(
      94, +[](Memory* m) {
        --counters.infos;
        delete m;
      });
  t.set(
      95, +[](void*) {});
  t.set(
      99, +[](const Value*) {});
  t.set(
      100, +[](void*) {});
  t.set(
      131, +[](void*, const Memory* m, Memory** out) -> Status* {
        if (!has_memory) return error("no such memory");
        ++counters.allocators;
        *out = new Memory(*m);
        return nullptr;
      });
  t.set(
      132, +[](Memory* m) {
        --counters.allocators;
        delete m;
      });
  t.set(
      208, +[](void*) {});
  t.set(
      225, +[](const Memory* m, int* out) { *out = m->device ? 1 : 0; });
}

inline void set_values(Table& t) {
  t.set(
      48, +[](Memory* allocator, const std::int64_t* shape, std::size_t rank, int, Value** out) -> Status* {
        *out = make(allocator->device, {shape, shape + rank});
        return nullptr;
      });
  t.set(
      49, +[](const Memory*, void* data, std::size_t, const std::int64_t* shape, std::size_t rank, int, Value** out) -> Status* {
        *out = make(false, {shape, shape + rank});
        (*out)->own.clear();
        (*out)->data = static_cast<float*>(data);
        return nullptr;
      });
  t.set(
      51, +[](Value* v, void** out) -> Status* { return *out = v->data, nullptr; });
  t.set(
      60, +[](const Value*, int* out) -> Status* { return *out = 1, nullptr; });
  t.set(
      61, +[](const Value* v, std::size_t* out) -> Status* { return *out = v->shape.size(), nullptr; });
  t.set(
      62, +[](const Value* v, std::int64_t* out, std::size_t n) -> Status* {
        std::memcpy(out, v->shape.data(), n * sizeof *out);
        return nullptr;
      });
  t.set(
      65, +[](const Value* v, const Value** out) -> Status* { return *out = v, nullptr; });
  t.set(
      67, +[](const Value*, int* out) -> Status* { return *out = 1, nullptr; });
  t.set(
      96, +[](Value* v) { release(v); });
  t.set(
      192, +[](const Value*, int* out) -> Status* { return *out = 1, nullptr; });
  t.set(
      380, +[](void*, const Memory** out, std::size_t n) -> Status* {
        static const Memory gpu{true};
        for (std::size_t i = 0; i < n; ++i) out[i] = &gpu;
        return nullptr;
      });
  t.set(
      386, +[](void*, const Value* const* from, Value* const* to, void*, std::size_t n) -> Status* {
        if (!can_refill) return error("nobody copies");
        ++counters.refills;
        for (std::size_t i = 0; i < n; ++i) copy(*from[i], *to[i]);
        return nullptr;
      });
}

inline void set_runs(Table& t) {
  t.set(
      9, +[](void*, void*, c::Strings, const Value* const* in, std::size_t, c::Strings, std::size_t n, Value** out) -> Status* {
        ++counters.plain_runs;
        for (std::size_t i = 0; i < n; ++i) {
          out[i] = make(false, in[i]->shape);
          for (std::size_t k = 0; k < count_of(in[i]->shape); ++k)
            out[i]->data[k] = 2 * (in[i]->device ? -1.0F : 1.0F) * in[i]->data[k];
        }
        return nullptr;
      });
  t.set(
      133, +[](void*, void*, Binding* b) -> Status* {
        if (fails) return error("the device is lost");
        ++counters.runs;
        std::size_t at = 0;
        for (auto& [name, value] : b->inputs) {
          if (at == b->outputs.size()) break;
          const bool stays = b->outputs[at].second;
          Value* on_device = make(true, value->shape);
          if (value->device) {
            std::memcpy(on_device->data, value->data, count_of(value->shape) * sizeof(float));
          } else {
            copy(*value, *on_device);
          }
          for (std::size_t k = 0; k < count_of(value->shape); ++k) on_device->data[k] *= 2;
          if (stays) {
            b->results.push_back(on_device);
          } else {
            b->results.push_back(make(false, value->shape));
            copy(*on_device, *b->results.back());
            release(on_device);
          }
          ++at;
        }
        return nullptr;
      });
  t.set(
      204, +[](void*, void*) -> Status* { return nullptr; });
}

inline void set_bindings(Table& t) {
  t.set(
      134, +[](void*, Binding** out) -> Status* {
        ++counters.bindings;
        *out = new Binding;
        return nullptr;
      });
  t.set(
      135, +[](Binding* b) {
        for (auto& [name, value] : b->inputs) release(value);
        release_results(*b);
        --counters.bindings;
        delete b;
      });
  t.set(
      136, +[](Binding* b, const char* name, Value* v) -> Status* {
        ++counters.inputs_bound;
        Value*& slot = b->inputs[name];
        release(slot);
        if (v->device) {
          slot = v;
          ++v->holders;
        } else {  // as the library does: to the device at once
          slot = make(true, v->shape);
          copy(*v, *slot);
        }
        return nullptr;
      });
  t.set(
      138, +[](Binding* b, const char* name, const Memory* m) -> Status* {
        ++counters.outputs_bound;
        b->outputs.emplace_back(name, m->device);
        return nullptr;
      });
  t.set(
      140, +[](const Binding* b, void*, Value*** out, std::size_t* n) -> Status* {
        *n = b->results.size();
        *out = new Value*[b->results.size()];
        for (std::size_t i = 0; i < *n; ++i) {
          (*out)[i] = b->results[i];
          ++b->results[i]->holders;
        }
        return nullptr;
      });
  t.set(
      142, +[](Binding* b) {
        release_results(*b);
        b->outputs.clear();
      });
  t.set(
      202, +[](Binding*) -> Status* { return nullptr; });
  t.set(
      203, +[](Binding*) -> Status* { return nullptr; });
}

inline void set_sessions(Table& t) {
  t.set(
      4, +[](c::LogFunction, void*, int, const char*, void** out) -> Status* { return *out = &host, nullptr; });
  t.set(
      8, +[](void*, const void*, std::size_t, void*, void** out) -> Status* { return *out = &host, nullptr; });
  t.set(
      10, +[](void** out) -> Status* { return *out = &host, nullptr; });
  t.set(
      23, +[](void*, int) -> Status* { return nullptr; });
  t.set(
      24, +[](void*, int) -> Status* { return nullptr; });
  t.set(
      110, +[](void*, void*, char** out) -> Status* { return *out = nullptr, nullptr; });
  t.set(
      125, +[](char*** names, int* n) -> Status* { return *names = nullptr, *n = 0, nullptr; });
  t.set(
      126, +[](char**, int) -> Status* { return nullptr; });
  t.set(
      130, +[](void*, const char*, const char*) -> Status* { return nullptr; });
  t.set(
      205, +[](void** out) -> Status* { return *out = &host, nullptr; });
  t.set(
      206, +[](void*, c::Strings, c::Strings, std::size_t) -> Status* { return nullptr; });
}

inline std::vector<const void*> table() {
  Table t;
  set_memory(t);
  set_values(t);
  set_runs(t);
  set_bindings(t);
  set_sessions(t);
  return t.take();
}

}  // namespace sdx::ort::fake
