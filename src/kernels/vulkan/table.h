#pragma once
// What libsdx_vulkan.so offers: devices, memory on them, and recordings of commands. It knows no graphs, links nothing of the
// engine, and throws nothing across the border.

#include <cstddef>
#include <cstdint>

#include "base/module/module.h"
#include "kernels/vulkan/shaders.h"

namespace sdx::vulkan {

enum class Outcome : int {
  ok,
  unavailable,    // no loader, no driver, no such device
  out_of_memory,  // of the device, or of what one allocation may have
  lost,           // the device; it answers nothing any more
  stopped,        // by the caller
  failed
};

// Where a message goes; it is cut to `size`.
struct MessagePlace {
  char* text;
  std::size_t size;
};

enum class DeviceType : std::uint32_t { other, integrated, discrete, virtual_gpu, cpu };

struct DeviceFacts {
  char name[256];
  char driver[384];  // its name and version
  char lacks[256];   // why it cannot be used; empty: it can
  DeviceType type;
  std::uint32_t vendor, device;
  std::uint32_t api_major, api_minor;
  std::uint32_t driver_version;
  unsigned char cache_id[16];        // differs where compiled pipelines of one driver are of no use to another
  std::uint64_t memory;              // bytes of the largest heap that is the device's own
  std::uint64_t largest_allocation;  // bytes
  std::uint32_t most_groups[3];      // of a dispatch
};

enum class MemoryKind : std::uint32_t {
  device,
  upload,   // mapped, for the host to write
  download  // mapped, for the host to read
};

struct Memory {
  void* handle;           // of the module
  std::uint64_t address;  // on the device
  void* mapped;           // null for MemoryKind::device
  std::uint64_t bytes;
};

struct Copy {
  const Memory* from;
  const Memory* to;
  std::uint64_t from_offset, to_offset, bytes;
};

// A dispatch, or a copy where `copy` is not null.
struct Command {
  const Copy* copy;
  Shader shader;
  std::uint32_t constant_count, push_bytes;
  std::uint32_t constants[kMostConstants];  // of the pipeline: constant_id 0, 1, …
  std::uint32_t groups[3];
  std::uint32_t barrier;  // not 0: waits for all before it
  std::uint64_t cost;     // operations, about
  unsigned char push[kMostPush];
};

// Asked every few milliseconds of a run; not 0 stops it.
struct StopQuestion {
  int (*stop)(void* context);
  void* context;
};

struct RunFacts {
  std::uint32_t submits;
};

struct Device;     // opened; one that several opened is the same
struct Recording;  // commands that can run again and again, one run at a time

// All functions but `discard`, `release` and `close` return an outcome, with a message where it is not ok. Thread-safe, except
// that one recording runs once at a time.
struct Table {
  static constexpr ModuleName kModule{"sardonyx/libsdx_vulkan.so", "sdx_vulkan_module", "SDX_VULKAN_LIB", "Vulkan"};
  static constexpr std::size_t kTypesBytes =
      sizeof(DeviceFacts) + sizeof(Memory) + sizeof(Copy) + sizeof(Command) + static_cast<std::size_t>(Shader::count);

  ModuleHead head;
  // Writes up to `room` devices and how many there are.
  Outcome (*list)(DeviceFacts* out, std::size_t room, std::size_t* count, MessagePlace error);
  // By its place in the list.
  Outcome (*open)(std::size_t index, Device** out, MessagePlace error);
  void (*close)(Device* device);
  Outcome (*allocate)(Device* device, std::uint64_t bytes, MemoryKind kind, Memory* out, MessagePlace error);
  void (*release)(Device* device, Memory* memory);
  // Copies from the host, and waits.
  Outcome (*upload)(Device* device, const Memory* to, std::uint64_t offset, const void* data, std::uint64_t bytes,
                    MessagePlace error);
  // The device must outlive it, and so must the memory that the commands name.
  Outcome (*record)(Device* device, const Command* commands, std::size_t count, Recording** out, MessagePlace error);
  void (*discard)(Recording* recording);
  Outcome (*run)(Recording* recording, StopQuestion stop, RunFacts* facts, MessagePlace error);
  // Compiled pipelines that `pipelines` gave, on a device of the same `cache_id`: making them again costs little then. The driver
  // trusts what it is given.
  Outcome (*add_pipelines)(Device* device, const void* data, std::size_t bytes, MessagePlace error);
  // Writes all that there are now into `out`, if `room` is enough, and sets `bytes` to their size.
  Outcome (*pipelines)(Device* device, void* out, std::size_t room, std::size_t* bytes, MessagePlace error);
};

// The table of this library; for tests, which link it.
const Table& own_table();

}  // namespace sdx::vulkan
