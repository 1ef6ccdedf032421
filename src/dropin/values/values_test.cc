#include "dropin/values/values.h"

#include <cstring>
#include <limits>

#include "dropin/test_program.h"

namespace sdx::dropin {
namespace {

Value_ strings(std::vector<const char*> texts) {
  OrtValue* value = nullptr;
  const std::int64_t shape[] = {static_cast<std::int64_t>(texts.size())};
  EXPECT_OK(Slot::CreateTensorAsOrtValue, default_allocator(), shape + 0, std::size_t{1}, ELEMENT_STRING, &value);
  EXPECT_OK(Slot::FillStringTensor, value, static_cast<const char* const*>(texts.data()), texts.size());
  return Value_(value);
}

TEST(DropinValues, StringsAreOneAfterTheOther) {
  const Value_ value = strings({"one", "", "\xC3\xA4"});
  std::size_t size = 0;
  EXPECT_OK(Slot::GetStringTensorDataLength, static_cast<const OrtValue*>(value.get()), &size);
  ASSERT_EQ(size, 5U);
  char text[5];
  std::size_t offsets[3];
  EXPECT_OK(Slot::GetStringTensorContent, static_cast<const OrtValue*>(value.get()), static_cast<void*>(text), size, offsets + 0,
            std::size_t{3});
  EXPECT_EQ(std::string(text, 5), "one\xC3\xA4");
  EXPECT_EQ(offsets[1], 3U);
  EXPECT_EQ(offsets[2], 3U);
  EXPECT_EQ(ask(Slot::GetStringTensorContent, static_cast<const OrtValue*>(value.get()), static_cast<void*>(text), std::size_t{4},
                offsets + 0, std::size_t{3}),
            "1: output buffer is too small. Use GetStringTensorDataLength.");
  EXPECT_EQ(ask(Slot::FillStringTensorElement, value.get(), "x", std::size_t{3}), "2: element index is out of bounds");
  char* buffer = nullptr;
  EXPECT_OK(Slot::GetResizedStringTensorElementBuffer, value.get(), std::size_t{1}, std::size_t{2}, &buffer);
  std::memcpy(buffer, "ab", 2);
  EXPECT_OK(Slot::GetStringTensorElementLength, static_cast<const OrtValue*>(value.get()), std::size_t{1}, &size);
  EXPECT_EQ(size, 2U);
}

TEST(DropinValues, BorrowedMemoryIsTheProgramsOwn) {
  std::vector<float> data{1, 2, 3};
  const Value_ value = floats(data, {3});
  void* memory = nullptr;
  EXPECT_OK(Slot::GetTensorMutableData, value.get(), &memory);
  EXPECT_EQ(memory, data.data());
  const std::int64_t place[] = {2};
  EXPECT_OK(Slot::TensorAt, value.get(), place + 0, std::size_t{1}, &memory);
  EXPECT_EQ(memory, data.data() + 2);
  OrtValue* made = nullptr;
  const std::int64_t large[] = {4}, negative[] = {-1};
  EXPECT_EQ(ask(Slot::CreateTensorWithDataAsOrtValue, cpu_memory(), static_cast<void*>(data.data()), std::size_t{12}, large + 0,
                std::size_t{1}, ELEMENT_FLOAT, &made),
            "2: not enough space: expected 16, got 12");
  EXPECT_EQ(ask(Slot::CreateTensorAsOrtValue, default_allocator(), negative + 0, std::size_t{1}, ELEMENT_FLOAT, &made),
            "2: tried creating tensor with negative value in shape");
}

int freed = 0;
void* counted_alloc(OrtAllocator*, std::size_t size) { return ::operator new(size); }
void counted_free(OrtAllocator*, void* memory) {
  ++freed;
  ::operator delete(memory);
}
const OrtMemoryInfo* counted_info(const OrtAllocator*) { return cpu_memory(); }

TEST(DropinValues, AllocatorsOfThePrograms) {
  // A structure of version 17: fields after Info must not be read.
  struct Short {
    std::uint32_t version = 17;
    void* (*alloc)(OrtAllocator*, std::size_t) = &counted_alloc;
    void (*free)(OrtAllocator*, void*) = &counted_free;
    const OrtMemoryInfo* (*info)(const OrtAllocator*) = &counted_info;
  } own;
  auto* const allocator = reinterpret_cast<OrtAllocator*>(&own);
  const std::int64_t shape[] = {5};
  OrtValue* value = nullptr;
  freed = 0;
  EXPECT_OK(Slot::CreateTensorAsOrtValue, allocator, shape + 0, std::size_t{1}, ELEMENT_FLOAT, &value);
  OrtKeyValuePairs* statistics = nullptr;
  EXPECT_OK(Slot::AllocatorGetStats, static_cast<const OrtAllocator*>(allocator), &statistics);
  the_api().call<void>(Slot::ReleaseKeyValuePairs, statistics);
  EXPECT_EQ(freed, 0);
  the_api().call<void>(Slot::ReleaseValue, value);
  EXPECT_EQ(freed, 1);
}

TEST(DropinValues, SequencesAndMaps) {
  std::vector<float> data{1, 2};
  const Value_ a = floats(data, {2}), b = floats(data, {1});
  const OrtValue* items[] = {a.get(), b.get()};
  OrtValue* made = nullptr;
  EXPECT_OK(Slot::CreateValue, items + 0, std::size_t{2}, ONNX_TYPE_SEQUENCE, &made);
  const Value_ sequence(made);
  std::size_t count = 0;
  EXPECT_OK(Slot::GetValueCount, static_cast<const OrtValue*>(made), &count);
  EXPECT_EQ(count, 2U);
  OrtValue* item = nullptr;
  EXPECT_OK(Slot::GetValue, static_cast<const OrtValue*>(made), 1, default_allocator(), &item);
  the_api().call<void>(Slot::ReleaseValue, item);
  EXPECT_EQ(ask(Slot::GetValue, static_cast<const OrtValue*>(made), 2, default_allocator(), &item), "6: index out of range");
  const Value_ keys = strings({"k", "l"});
  const OrtValue* parts[] = {keys.get(), a.get()};
  EXPECT_OK(Slot::CreateValue, parts + 0, std::size_t{2}, ONNX_TYPE_MAP, &made);
  const Value_ map(made);
  OnnxType type = ONNX_TYPE_UNKNOWN;
  EXPECT_OK(Slot::GetValueType, static_cast<const OrtValue*>(made), &type);
  EXPECT_EQ(type, ONNX_TYPE_MAP);
  EXPECT_EQ(ask(Slot::CreateValue, parts + 0, std::size_t{1}, ONNX_TYPE_MAP, &made), "1: For map type num_values MUST be 2");
}

TEST(DropinValues, TensorsAreCopied) {
  std::vector<float> data{1, 2}, other{0, 0};
  const Value_ a = floats(data, {2}), b = floats(other, {2}), c = floats(other, {1, 2}), texts = strings({"k", "l"}),
               to = strings({"", ""});
  const auto copy = [](const OrtValue* from, OrtValue* into, std::size_t count) {
    return ask(Slot::CopyTensors, static_cast<const OrtEnv*>(nullptr), &from, &into, static_cast<OrtSyncStream*>(nullptr), count);
  };
  EXPECT_EQ(copy(a.get(), b.get(), 1), "");
  EXPECT_EQ(other, data);
  EXPECT_EQ(copy(texts.get(), to.get(), 1), "");
  EXPECT_EQ(to->value.tensor().values<std::string>()[1], "l");
  EXPECT_EQ(copy(a.get(), c.get(), 1), "2: tensor 0 is float32[2], its destination float32[1,2]");
  EXPECT_EQ(copy(a.get(), nullptr, 1).substr(0, 2), "2:");
  EXPECT_EQ(copy(a.get(), b.get(), 0).substr(0, 2), "2:");
}

TEST(DropinValues, ArraysThatMustBeGiven) {
  OrtValue* made = nullptr;
  const std::int64_t dense[] = {2, 3}, count[] = {2};
  const float values[] = {5, 6};
  EXPECT_OK(Slot::CreateSparseTensorAsOrtValue, default_allocator(), dense + 0, std::size_t{2}, ELEMENT_FLOAT, &made);
  const Value_ csr(made);
  const std::int64_t* const none = nullptr;
  EXPECT_EQ(ask(Slot::FillSparseTensorCsr, made, cpu_memory(), count + 0, std::size_t{1}, static_cast<const void*>(values), none,
                std::size_t{2}, none, std::size_t{3}),
            "2: inner indices must not be NULL");
  const Value_ texts = strings({"k", "l"});
  EXPECT_EQ(ask(Slot::FillStringTensor, texts.get(), static_cast<const char* const*>(nullptr), std::size_t{2}),
            "2: s must not be NULL");
  void* place = nullptr;
  std::vector<float> data{1, 2};
  const Value_ a = floats(data, {2});
  EXPECT_EQ(ask(Slot::TensorAt, a.get(), none, std::size_t{1}, &place), "2: location_values must not be NULL");
  EXPECT_EQ(ask(Slot::CreateTensorAsOrtValue, default_allocator(), dense + 0, std::size_t{2}, ELEMENT_FLOAT,
                static_cast<OrtValue**>(nullptr))
                .substr(0, 2),
            "2:");
}

// One row more than that does not exist.
TEST(DropinValues, SparseTensorsOfAllRowsThatThereCanBe) {
  OrtValue* made = nullptr;
  const std::int64_t dense[] = {std::numeric_limits<std::int64_t>::max(), 1}, count[] = {1}, inner[] = {0}, outer[] = {0, 1};
  const float values[] = {5};
  EXPECT_OK(Slot::CreateSparseTensorAsOrtValue, default_allocator(), dense + 0, std::size_t{2}, ELEMENT_FLOAT, &made);
  const Value_ csr(made);
  EXPECT_EQ(ask(Slot::FillSparseTensorCsr, made, cpu_memory(), count + 0, std::size_t{1}, static_cast<const void*>(values),
                inner + 0, std::size_t{1}, outer + 0, std::size_t{2}),
            "2: Outer index count must be rows + 1 or zero. Got: 2 rows: 9223372036854775807");
}

TEST(DropinValues, SparseTensorsBecomeDense) {
  OrtValue* made = nullptr;
  const std::int64_t dense[] = {2, 3}, count[] = {2};
  EXPECT_OK(Slot::CreateSparseTensorAsOrtValue, default_allocator(), dense + 0, std::size_t{2}, ELEMENT_FLOAT, &made);
  const Value_ coo(made);
  const float values[] = {5, 6};
  const std::int64_t places[] = {0, 1, 1, 2}, outside[] = {0, 1, 2, 2};
  EXPECT_EQ(ask(Slot::FillSparseTensorCoo, made, cpu_memory(), count + 0, std::size_t{1}, static_cast<const void*>(values),
                outside + 0, std::size_t{4})
                .substr(0, 2),
            "2:");
  EXPECT_OK(Slot::FillSparseTensorCoo, made, cpu_memory(), count + 0, std::size_t{1}, static_cast<const void*>(values),
            places + 0, std::size_t{4});
  const Value full = engine_value(*made);
  EXPECT_EQ(full.tensor().values<float>()[1], 5);
  EXPECT_EQ(full.tensor().values<float>()[5], 6);
  EXPECT_EQ(full.tensor().values<float>()[0], 0);
  OrtSparseFormat format = ORT_SPARSE_UNDEFINED;
  EXPECT_OK(Slot::GetSparseTensorFormat, static_cast<const OrtValue*>(made), &format);
  EXPECT_EQ(format, ORT_SPARSE_COO);
}

TEST(DropinValues, NumbersOfElementTypes) {
  EXPECT_EQ(element_of(DataType::float8e8m0), 26);
  EXPECT_EQ(element_of(DataType::uint2), 24);
  EXPECT_EQ(element_of(DataType::int2), 25);
  for (int i = 1; i <= 26; ++i) EXPECT_EQ(element_of(type_of_element(static_cast<ElementType>(i))), i);
  EXPECT_EQ(type_of_element(static_cast<ElementType>(27)), DataType::undefined);
  EXPECT_EQ(type_of_element(static_cast<ElementType>(-1)), DataType::undefined);
}

TEST(DropinValues, TypesFromText) {
  const OrtTypeInfo tensor = type_of_text("float32[batch,3,?]");
  EXPECT_EQ(tensor.tensor.shape, (Shape{-1, 3, -1}));
  EXPECT_EQ(tensor.tensor.symbols[0], "batch");
  EXPECT_EQ(tensor.tensor.symbols[2], "");
  const OrtTypeInfo nested = type_of_text("sequence(map(int64, float32))");
  ASSERT_EQ(nested.type, ONNX_TYPE_SEQUENCE);
  ASSERT_EQ(nested.sequence.element->type, ONNX_TYPE_MAP);
  EXPECT_EQ(nested.sequence.element->map.key, ELEMENT_INT64);
  EXPECT_EQ(nested.sequence.element->map.value->tensor.element, ELEMENT_FLOAT);
  EXPECT_FALSE(nested.sequence.element->map.value->tensor.has_shape);
  EXPECT_EQ(type_of_text("optional(float32[2])").optional.element->tensor.shape, (Shape{2}));
}

}  // namespace
}  // namespace sdx::dropin
