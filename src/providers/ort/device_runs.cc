#include "providers/ort/device_runs.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "providers/ort/options.h"

namespace sdx::ort {
namespace {

// Bindings that wait for the next run; each holds the inputs of one run on the device.
constexpr std::size_t kMostIdle = 16;

// OrtAllocatorType, OrtMemType
constexpr int kDeviceAllocator = 0, kDefaultMemory = 0;
// OrtMemoryInfoDeviceType
constexpr int kHost = 0;

std::string option(const ProviderSettings& settings, std::string_view key) {
  std::string value;
  for (const auto& [k, v] : settings.options) {
    if (k == key) value = v;
  }
  return value;
}

bool numbers(const Graph& graph, ValueId v) {
  const Type& type = graph.value(v).type;
  return type.kind == Type::Kind::tensor && type.elem != DataType::undefined && type.elem != DataType::string;
}

// One of a chain of calls has failed.
#define SDX_ORT_TRY(call) \
  if (c::Status* failed = (call)) return failed

}  // namespace

std::string device_memory_name(std::string_view provider) {
  if (provider == "cuda" || provider == "tensorrt") return "Cuda";
  if (provider == "rocm" || provider == "migraphx") return "Hip";
  if (provider == "directml") return "DML";
  return "";
}

// A binding, and the tensors on the device that stay bound from run to run.
struct DeviceRuns::Slot {
  explicit Slot(const Functions& functions) : f(functions) {}
  ~Slot() {
    kept.clear();
    if (binding != nullptr) f.release_binding(binding);
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  struct Kept {
    Handle value;
    DataType dtype = DataType::undefined;
    Shape shape;
  };

  const Functions& f;
  c::IoBinding* binding = nullptr;
  std::vector<Kept> kept;  // per input
};

DeviceRuns::DeviceRuns(const Library& library, c::Session* session, std::span<const char* const> inputs,
                       std::span<const char* const> outputs)
    : library_(library),
      session_(session),
      inputs_(inputs),
      outputs_(outputs),
      device_(nullptr, library.f().release_memory_info),
      allocator_(nullptr, library.f().release_allocator) {}

DeviceRuns::~DeviceRuns() { idle_.clear(); }  // before the allocator of their tensors

std::unique_ptr<DeviceRuns> DeviceRuns::make(const Library& library, c::Session* session, std::string_view provider,
                                             const Region& region, const ProviderSettings& settings,
                                             std::span<const char* const> inputs, std::span<const char* const> outputs) {
  const std::string wish = option(settings, kIoBinding);
  std::string memory = device_memory_name(provider);
  if (memory.empty()) memory = "Cpu";
  const bool forced = wish == "1" || wish == "true" || wish == "True";
  if (wish.empty() ? memory == "Cpu" : !forced) return nullptr;
  const Graph& graph = *region.graph;
  const auto is_number = [&](ValueId v) { return numbers(graph, v); };
  if (!std::all_of(graph.inputs().begin(), graph.inputs().end(), is_number) ||
      !std::all_of(graph.outputs().begin(), graph.outputs().end(), is_number)) {
    return nullptr;
  }
  std::unique_ptr<DeviceRuns> made(new DeviceRuns(library, session, inputs, outputs));
  const Functions& f = library.f();
  try {
    c::MemoryInfo* info = nullptr;
    const int device = std::atoi(option(settings, "device_id").c_str());
    library.check(f.create_memory_info(memory.c_str(), kDeviceAllocator, device, kDefaultMemory, &info),
                  ErrorCode::provider_unavailable);
    made->device_.reset(info);
    c::Allocator* allocator = nullptr;
    library.check(f.create_allocator(session, info, &allocator), ErrorCode::provider_unavailable);
    made->allocator_.reset(allocator);
    made->memory_ = memory;
    made->on_device_.assign(inputs.size(), memory == "Cpu");
    // Elsewhere than on the host some inputs are wanted on the host all the same: shapes, say.
    if (f.input_memory != nullptr && f.copy_tensors != nullptr && !inputs.empty()) {
      std::vector<const c::MemoryInfo*> wanted(inputs.size(), nullptr);
      library.check(f.input_memory(session, wanted.data(), wanted.size()), ErrorCode::provider_unavailable);
      for (std::size_t i = 0; i < wanted.size() && memory != "Cpu"; ++i) {
        int kind = kHost;
        if (wanted[i] != nullptr) f.memory_device(wanted[i], &kind);
        made->on_device_[i] = kind != kHost;
      }
      made->refills_ = true;
    }
    made->take();  // what cannot be made at all should show now
  } catch (const Error& e) {
    log::debug("{}: inputs and outputs are not bound to {} memory: {}", provider, memory, e.message());
    return nullptr;
  }
  made->stays_ = region.stays;
  made->stays_.resize(outputs.size(), false);
  return made;
}

std::unique_ptr<DeviceRuns::Slot> DeviceRuns::take() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Slot> slot = std::move(idle_.back());
      idle_.pop_back();
      return slot;
    }
  }
  auto slot = std::make_unique<Slot>(library_.f());
  library_.check(library_.f().create_binding(session_, &slot->binding), ErrorCode::runtime_failure);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    slot->kept.push_back({Handle(nullptr, library_.f().release_value), DataType::undefined, {}});
  }
  return slot;
}

// A tensor on the device for inputs of this type and shape, bound.
c::Status* DeviceRuns::keep_tensor(Slot& slot, std::size_t i, const Tensor& like) const {
  Slot::Kept& kept = slot.kept[i];
  if (kept.value && kept.dtype == like.dtype() && kept.shape == like.shape()) return nullptr;
  kept.value.reset();
  c::Value* made = nullptr;
  SDX_ORT_TRY(library_.f().create_tensor(allocator_.get(), like.shape().data(), like.rank(), element_type(like.dtype()), &made));
  kept.value.reset(made);
  kept.dtype = like.dtype();
  kept.shape = like.shape();
  return library_.f().bind_input(slot.binding, inputs_[i], made);
}

// Copies into the tensors that are bound. A library that cannot is not asked again.
c::Status* DeviceRuns::refill(Slot& slot, std::span<const c::Value* const> from, std::span<const std::size_t> which) const {
  if (which.empty()) return nullptr;
  std::vector<c::Value*> to;
  for (const std::size_t i : which) to.push_back(slot.kept[i].value.get());
  c::Status* failed = library_.f().copy_tensors(library_.env(), from.data(), to.data(), nullptr, to.size());
  if (failed == nullptr) return nullptr;
  log::debug("inputs are bound anew for each run: {}", library_.f().get_error_message(failed));
  library_.f().release_status(failed);
  refills_ = false;
  for (std::size_t k = 0; k < which.size(); ++k) {
    slot.kept[which[k]].value.reset();
    SDX_ORT_TRY(library_.f().bind_input(slot.binding, inputs_[which[k]], from[k]));
  }
  return nullptr;
}

c::Status* DeviceRuns::bind_inputs(Slot& slot, std::span<const Value* const> inputs) const {
  std::vector<Handle> copied;
  std::vector<const c::Value*> from;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& t = inputs[i]->tensor();
    if (const c::Value* there = device_value(t)) {
      slot.kept[i].value.reset();
      SDX_ORT_TRY(library_.f().bind_input(slot.binding, inputs_[i], there));
      continue;
    }
    Handle value = to_ort(library_, *inputs[i]);
    if (refills_ && on_device_[i] && t.bytes() != 0) {
      SDX_ORT_TRY(keep_tensor(slot, i, t));
      from.push_back(value.get());
      which.push_back(i);
      copied.push_back(std::move(value));
    } else {
      slot.kept[i].value.reset();
      SDX_ORT_TRY(library_.f().bind_input(slot.binding, inputs_[i], value.get()));
    }
  }
  return refill(slot, from, which);
}

c::Status* DeviceRuns::fetch(Slot& slot, std::span<c::Value*> results) const {
  const Functions& f = library_.f();
  c::Value** values = nullptr;
  std::size_t count = 0;
  SDX_ORT_TRY(f.bound_outputs(slot.binding, library_.allocator(), &values, &count));
  // The results are in the order in which they were bound.
  std::copy_n(values, std::min(count, results.size()), results.begin());
  if (values != nullptr) {
    if (c::Status* s = f.allocator_free(library_.allocator(), values)) f.release_status(s);
  }
  // They belong to the caller: the next run must not write to them.
  f.clear_outputs(slot.binding);
  return nullptr;
}

c::Status* DeviceRuns::run(std::span<const Value* const> inputs, const c::RunOptions* options,
                           std::span<c::Value*> results) const {
  const Functions& f = library_.f();
  std::unique_ptr<Slot> slot = take();  // one that fails is not used again
  SDX_ORT_TRY(bind_inputs(*slot, inputs));
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    SDX_ORT_TRY(f.bind_output(slot->binding, outputs_[i], stays_[i] ? device_.get() : library_.cpu()));
  }
  SDX_ORT_TRY(f.synchronize_inputs(slot->binding));
  SDX_ORT_TRY(f.run_with_binding(session_, options, slot->binding));
  SDX_ORT_TRY(f.synchronize_outputs(slot->binding));
  SDX_ORT_TRY(fetch(*slot, results));
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(slot));
  return nullptr;
}

#undef SDX_ORT_TRY

}  // namespace sdx::ort
