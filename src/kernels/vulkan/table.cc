#include "kernels/vulkan/table.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "kernels/vulkan/recorder.h"

namespace sdx::vulkan {

struct Device {
  std::shared_ptr<OpenDevice> open;
};
struct Recording {
  std::shared_ptr<OpenDevice> device;
  Recorder recorder;
};

namespace {

Outcome say(MessagePlace error, Outcome outcome, const char* message) {
  if (error.text != nullptr) std::snprintf(error.text, error.size, "%s", message);
  return outcome;
}

template <class F>
Outcome guarded(MessagePlace error, F&& f) {
  try {
    f();
    return Outcome::ok;
  } catch (const Failure& e) {
    return say(error, e.outcome(), e.what());
  } catch (const std::bad_alloc&) {
    return say(error, Outcome::out_of_memory, "the host is out of memory");
  } catch (const std::exception& e) {
    return say(error, Outcome::failed, e.what());
  }
}

Outcome list(DeviceFacts* out, std::size_t room, std::size_t* count, MessagePlace error) {
  return guarded(error, [&] {
    const auto& devices = Instance::get().devices();
    *count = devices.size();
    for (std::size_t i = 0; i < std::min(room, devices.size()); ++i) out[i] = devices[i].facts;
  });
}

Outcome open(std::size_t index, Device** out, MessagePlace error) {
  return guarded(error, [&] { *out = new Device{OpenDevice::open(index)}; });
}

void close(Device* device) { delete device; }

Outcome allocate(Device* device, std::uint64_t bytes, MemoryKind kind, Memory* out, MessagePlace error) {
  return guarded(error, [&] { *out = device->open->allocate(bytes, kind); });
}

void release(Device* device, Memory* memory) { device->open->release(*memory); }

Outcome upload(Device* device, const Memory* to, std::uint64_t offset, const void* data, std::uint64_t bytes,
               MessagePlace error) {
  return guarded(error, [&] { device->open->upload(*to, offset, data, bytes); });
}

Outcome record(Device* device, const Command* commands, std::size_t count, Recording** out, MessagePlace error) {
  return guarded(error, [&] { *out = new Recording{device->open, Recorder(*device->open, commands, count)}; });
}

void discard(Recording* recording) { delete recording; }

Outcome run(Recording* recording, StopQuestion stop, RunFacts* facts, MessagePlace error) {
  return guarded(error, [&] { recording->recorder.run(stop, facts); });
}

Outcome add_pipelines(Device* device, const void* data, std::size_t bytes, MessagePlace error) {
  return guarded(error, [&] { device->open->add_pipelines(data, bytes); });
}

Outcome pipelines(Device* device, void* out, std::size_t room, std::size_t* bytes, MessagePlace error) {
  return guarded(error, [&] { *bytes = device->open->pipelines(out, room); });
}

constexpr Table kTable{module_head<Table>(SDX_VERSION),
                       list,
                       open,
                       close,
                       allocate,
                       release,
                       upload,
                       record,
                       discard,
                       run,
                       add_pipelines,
                       pipelines};

}  // namespace

const Table& own_table() { return kTable; }

}  // namespace sdx::vulkan

extern "C" __attribute__((visibility("default"))) const sdx::ModuleHead* sdx_vulkan_module() {
  return &sdx::vulkan::own_table().head;
}
