// Tensors, strings, sequences, maps, sparse tensors, and what is asked of them.

#include <algorithm>

#include "fuzz/dropin/world.h"

namespace sdx::fuzz {
namespace {

std::int64_t count_of(const std::vector<std::int64_t>& extents) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0 || extent > 64) return -1;
    count *= extent;
  }
  return count;
}

void create_tensor(World& w) {
  const auto extents = w.extents();
  w.make(w.values, Slot::CreateTensorAsOrtValue, w.random.chance(90) ? default_allocator() : w.any(w.allocators), w.list(extents),
         extents.size(), w.element());
}

// Memory of as many bytes as the call says, which may be too few for the shape.
void create_with_data(World& w) {
  const auto extents = w.extents();
  const std::int64_t count = count_of(extents);
  std::size_t size = count < 0 || count > 1 << 16
                         ? 64
                         : static_cast<std::size_t>(count) * w.random.pick(std::vector<std::size_t>{1, 4, 4, 4, 8});
  char* const data = w.random.chance(4) ? nullptr : w.memory(size);
  if (data == nullptr && w.random.chance(50)) size = 0;
  for (std::size_t i = 0; data != nullptr && i < size; ++i) data[i] = static_cast<char>(w.random.below(3));
  w.make(w.values, Slot::CreateTensorWithDataAsOrtValue, w.random.chance(85) ? cpu_memory() : w.any(w.memories),
         static_cast<void*>(data), data == nullptr ? 0 : size, w.list(extents), extents.size(), w.element());
}

// A tensor that the models take: float32 of two extents.
void create_plain(World& w) {
  const std::vector<std::int64_t> extents{2, w.random.between(0, 3)};
  const std::size_t size = static_cast<std::size_t>(count_of(extents)) * 4;
  char* const data = w.memory(size);
  w.make(w.values, Slot::CreateTensorWithDataAsOrtValue, cpu_memory(), static_cast<void*>(data), size, extents.data(),
         extents.size(), ELEMENT_FLOAT);
}

void fill_strings(World& w) {
  const std::vector<const char*> texts{w.text(), w.text(), w.text(), w.text()};
  w.call(Slot::FillStringTensor, w.any(w.values), w.list(texts), w.count());
}
void fill_string(World& w) { w.call(Slot::FillStringTensorElement, w.any(w.values), w.text(), w.count()); }

void read_strings(World& w) {
  const OrtValue* const value = w.any(w.values);
  std::size_t total = 0, length = 0;
  w.call(Slot::GetStringTensorDataLength, value, w.out(total));
  const std::size_t elements = w.random.below(10);
  std::vector<std::size_t> offsets(elements + 1);
  const std::size_t size = w.random.chance(70) ? total : w.random.below(total + 2);
  w.call(Slot::GetStringTensorContent, value, static_cast<void*>(w.memory(size)), size, offsets.data(), elements);
  const std::size_t index = w.count();
  if (w.call(Slot::GetStringTensorElementLength, value, index, w.out(length))) {
    w.call(Slot::GetStringTensorElement, value, length, index, static_cast<void*>(w.memory(length)));
  }
  char* buffer = nullptr;
  const std::size_t resized = w.random.below(20);
  if (w.call(Slot::GetResizedStringTensorElementBuffer, w.any(w.values), index, resized, w.out(buffer)) && buffer != nullptr) {
    std::fill_n(buffer, resized, 'a');
  }
}

// What is read must be there.
void read_tensor(World& w) {
  OrtValue* const value = w.any(w.values);
  void* data = nullptr;
  const void* constant = nullptr;
  std::size_t bytes = 0;
  w.call(Slot::GetTensorData, static_cast<const OrtValue*>(value), w.out(constant));
  const bool sized = w.call(Slot::GetTensorSizeInBytes, static_cast<const OrtValue*>(value), &bytes);
  const bool given = w.call(Slot::GetTensorMutableData, value, w.out(data));
  if (sized && given && data != nullptr && bytes > 0 && value->where()->device == DEVICE_CPU) {
    volatile char* const at = static_cast<char*>(data);
    at[0] = 0;
    at[bytes - 1] = 0;
  }
  const auto place = w.extents();
  w.call(Slot::TensorAt, value, w.list(place), place.size(), w.out(data));
  const OrtMemoryInfo* memory = nullptr;
  w.call(Slot::GetTensorMemoryInfo, static_cast<const OrtValue*>(value), w.out(memory));
}

void ask_kind(World& w) {
  const OrtValue* const value = w.any(w.values);
  int answer = 0;
  OnnxType type = ONNX_TYPE_UNKNOWN;
  w.call(Slot::IsTensor, value, w.out(answer));
  w.call(Slot::HasValue, value, w.out(answer));
  w.call(Slot::IsSparseTensor, value, w.out(answer));
  w.call(Slot::GetValueType, value, w.out(type));
  ElementType element = ELEMENT_UNDEFINED;
  const std::int64_t* extents = nullptr;
  std::size_t rank = 0;
  w.call(Slot::GetTensorElementTypeAndShapeDataReference, value, w.out(element), w.out(extents), w.out(rank));
  OrtTypeInfo* made = nullptr;  // stays NULL for an optional without a value
  if (w.call(Slot::GetTypeInfo, value, w.out(made)) && made != nullptr) w.types.all.push_back(made);
  w.make(w.shapes, Slot::GetTensorTypeAndShape, value);
}

void containers(World& w) {
  const std::vector<const OrtValue*> parts{w.any(w.values), w.any(w.values), w.any(w.values)};
  const int kind = static_cast<int>(w.random.below(8));
  w.make(w.values, Slot::CreateValue, w.list(parts), w.random.chance(50) ? std::size_t{2} : w.random.below(4),
         static_cast<OnnxType>(kind));
  const OrtValue* const value = w.any(w.values);
  std::size_t count = 0;
  w.call(Slot::GetValueCount, value, w.out(count));
  w.make(w.values, Slot::GetValue, value, static_cast<int>(w.random.between(-1, 3)),
         w.random.chance(90) ? default_allocator() : w.any(w.allocators));
}

void make_sparse(World& w) {
  const auto extents = w.extents();
  if (w.random.chance(50)) {
    w.make(w.values, Slot::CreateSparseTensorAsOrtValue, default_allocator(), w.list(extents), extents.size(), w.element());
    return;
  }
  const std::vector<std::int64_t> values{w.random.between(-1, 8)};
  w.make(w.values, Slot::CreateSparseTensorWithValuesAsOrtValue, cpu_memory(), static_cast<void*>(w.memory(64)), w.list(extents),
         extents.size(), w.list(values), values.size(), w.element());
}

// Indices small enough to be right at times. Values have eight elements of at most eight bytes.
void fill_sparse(World& w) {
  OrtValue* const value = w.any(w.values);
  std::vector<std::int64_t> some(12), rising(12);
  std::generate(some.begin(), some.end(), [&] { return w.random.between(w.random.chance(5) ? -1 : 0, 2); });
  for (std::size_t i = 1; i < rising.size(); ++i) rising[i] = rising[i - 1] + w.random.between(0, 1);
  const std::vector<std::int64_t> extents{w.random.between(0, 4)}, blocks{w.random.between(0, 2), 2, 2},
      places{2, w.random.between(0, 2)};
  std::vector<const char*> texts(8, "text");
  const int element = value != nullptr && value->sparse ? static_cast<int>(value->sparse->dtype == DataType::string) : 0;
  const void* const data = element == 1 ? static_cast<const void*>(texts.data()) : static_cast<const void*>(w.memory(128));
  std::vector<std::int32_t> narrow(8);
  const std::size_t n = w.random.chance(70) ? static_cast<std::size_t>(extents[0]) : w.random.below(9), m = w.random.below(5);
  std::int64_t* const first = w.random.chance(4) ? nullptr : some.data();
  std::int64_t* const second = w.random.chance(4) ? nullptr : rising.data();
  switch (w.random.below(6)) {
    case 0:
      w.call(Slot::FillSparseTensorCoo, value, cpu_memory(), extents.data(), extents.size(), data,
             static_cast<const std::int64_t*>(first), n);
      break;
    case 1:
      w.call(Slot::FillSparseTensorCsr, value, cpu_memory(), extents.data(), extents.size(), data,
             static_cast<const std::int64_t*>(first), n, static_cast<const std::int64_t*>(second), m);
      break;
    case 2:
      w.call(Slot::FillSparseTensorBlockSparse, value, cpu_memory(), blocks.data(), blocks.size(), data, places.data(),
             places.size(), static_cast<const std::int32_t*>(narrow.data()));
      break;
    case 3: w.call(Slot::UseCooIndices, value, first, n); break;
    case 4: w.call(Slot::UseCsrIndices, value, first, n, second, m); break;
    default: w.call(Slot::UseBlockSparseIndices, value, places.data(), places.size(), narrow.data());
  }
}

void read_sparse(World& w) {
  const OrtValue* const value = w.any(w.values);
  OrtSparseFormat format = ORT_SPARSE_UNDEFINED;
  w.call(Slot::GetSparseTensorFormat, value, w.out(format));
  w.make(w.shapes, Slot::GetSparseTensorValuesTypeAndShape, value);
  const void* data = nullptr;
  std::size_t count = 0;
  w.call(Slot::GetSparseTensorValues, value, w.out(data));
  const auto indices = static_cast<OrtSparseIndicesFormat>(w.random.below(6));
  w.make(w.shapes, Slot::GetSparseTensorIndicesTypeShape, value, indices);
  w.call(Slot::GetSparseTensorIndices, value, indices, w.out(count), w.out(data));
}

void copy_tensors(World& w) {
  const std::vector<const OrtValue*> from{w.any(w.values), w.any(w.values)};
  const std::vector<OrtValue*> to{w.any(w.values), w.any(w.values)};
  w.call(Slot::CopyTensors, w.any(w.envs), w.list(from), w.list(to), static_cast<OrtSyncStream*>(nullptr), w.random.below(3));
}

void forget(World& w) { w.release(w.values); }

}  // namespace

const std::vector<Action> kValueActions{create_tensor, create_with_data, create_plain, fill_strings, fill_string,
                                        read_strings,  read_tensor,      ask_kind,     containers,   make_sparse,
                                        fill_sparse,   read_sparse,      copy_tensors, forget};

}  // namespace sdx::fuzz
