// LoRA adapters: tensors by the names of inputs, from a file of ONNX Runtime's format. A run that has one gets its tensors as
// inputs.

#include <cstring>
#include <memory>
#include <span>

#include "base/system/mapped_file.h"
#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"
#include "lora_generated.h"

namespace sdx::dropin {
namespace {

constexpr std::int32_t kFormat = 1;
constexpr std::size_t kMostExtents = 64;

[[noreturn]] void damaged(const std::string& why) { fail_ort(ORT_FAIL, "The adapter file cannot be read: " + why); }

const file::Adapter& verified(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) damaged("it is larger than its format permits");
  if (bytes.size() < 2 * sizeof(flatbuffers::uoffset_t) || !file::AdapterBufferHasIdentifier(data)) {
    fail_ort(ORT_FAIL, "The buffer does not appear to be a valid lora parameter format");
  }
  flatbuffers::Verifier verifier(data, bytes.size());
  if (!file::VerifyAdapterBuffer(verifier)) damaged("an offset leads astray; it may be cut short");
  const file::Adapter& adapter = *file::GetAdapter(data);
  if (adapter.format_version() != kFormat) {
    fail_ort(ORT_FAIL, "The lora file is from a different format version: " + std::to_string(adapter.format_version()));
  }
  return adapter;
}

Tensor tensor_of(const file::Parameter& p, const std::string& name, const std::shared_ptr<const void>& owner) {
  Shape shape;
  if (p.extents() != nullptr) {
    if (p.extents()->size() > kMostExtents)
      damaged("parameter '" + name + "' has " + std::to_string(p.extents()->size()) + " dimensions");
    shape.assign(p.extents()->begin(), p.extents()->end());
  }
  const DataType type = type_of_element(static_cast<ElementType>(p.type()));
  if (type == DataType::undefined || type == DataType::string)
    damaged("parameter '" + name + "' has element type " + std::to_string(p.type()));
  const std::size_t given = p.content() != nullptr ? p.content()->size() : 0;
  // Before anything is made of them: a few bytes can declare any extents.
  for (const std::int64_t d : shape) {
    if (d < 0) damaged("parameter '" + name + "' has a negative dimension");
  }
  const std::int64_t count = element_count(shape);
  if (static_cast<std::size_t>(count) / 8 > given || byte_size(type, count) != given) {
    damaged("parameter '" + name + "' has " + std::to_string(given) + " bytes, which its shape " + to_string(shape) +
            " does not fit");
  }
  if (given == 0) return Tensor(type, std::move(shape));
  return Tensor::view(p.content()->data(), type, std::move(shape), owner).aligned();
}

OrtLoraAdapter* make_adapter(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
  const file::Adapter& adapter = verified(bytes);
  auto made = std::make_unique<OrtLoraAdapter>();
  if (adapter.parameters() != nullptr) {
    for (const file::Parameter* p : *adapter.parameters()) {
      if (p == nullptr || p->name() == nullptr) damaged("a parameter has no name");
      const std::string name = p->name()->str();
      for (const auto& [other, value] : made->parameters) {
        if (other == name) damaged("parameter '" + name + "' is there twice");
      }
      OrtValue value;
      value.value = tensor_of(*p, name, owner);
      made->parameters.emplace_back(name, std::move(value));
    }
  }
  return made.release();
}

// Offsets are read as whole words: the copy begins where processors can read them.
struct Copy {
  std::unique_ptr<std::uint64_t[]> words;
  std::span<const std::byte> bytes;
};

std::shared_ptr<const Copy> copy_of(std::span<const std::byte> bytes) {
  auto copy = std::make_shared<Copy>();
  copy->words = std::make_unique<std::uint64_t[]>(bytes.size() / sizeof(std::uint64_t) + 1);
  std::memcpy(copy->words.get(), bytes.data(), bytes.size());
  copy->bytes = {reinterpret_cast<const std::byte*>(copy->words.get()), bytes.size()};
  return copy;
}

// ONNX Runtime copies the tensors to the device of the allocator; here the CPU is the only one.
OrtStatus* create(const char* path, OrtAllocator*, OrtLoraAdapter** out) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    const std::shared_ptr<const MappedFile> file = MappedFile::open(&require(path, "adapter_file_path"));
    const auto place = reinterpret_cast<std::uintptr_t>(file->bytes().data());
    if (place % sizeof(std::uint64_t) == 0) {
      *out = make_adapter(file->bytes(), file);
    } else {
      const std::shared_ptr<const Copy> copy = copy_of(file->bytes());
      *out = make_adapter(copy->bytes, copy);
    }
  });
}

OrtStatus* create_from_array(const void* bytes, std::size_t size, OrtAllocator*, OrtLoraAdapter** out) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    const auto* data = static_cast<const std::byte*>(bytes);
    const std::shared_ptr<const Copy> copy = copy_of({&require(data, "bytes"), size});
    *out = make_adapter(copy->bytes, copy);
  });
}

void release(OrtLoraAdapter* adapter) noexcept { delete adapter; }

}  // namespace

void fill_lora(Table& table) {
  table.set(Slot::CreateLoraAdapter, &create);
  table.set(Slot::CreateLoraAdapterFromArray, &create_from_array);
  table.set(Slot::ReleaseLoraAdapter, &release);
}

}  // namespace sdx::dropin
