// Arrays in GGUF files. Specification: ggml/docs/gguf.md, version 3.

#include <sdx/array/io.hpp>

#include <algorithm>
#include <cstring>

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/common.h"
#include "base/parallel.h"
#include "base/system/new_file.h"
#include "tensor/gguf/gguf_model.h"

namespace sdx::array {
namespace detail {
namespace {

constexpr std::uint64_t kAlignment = 32;

// Types of tensors that hold plain numbers, by the numbers that GGUF gives them.
constexpr std::pair<std::uint32_t, Dtype> kPlain[] = {{0, Dtype::float32}, {1, Dtype::float16}, {30, Dtype::bfloat16},
                                                      {24, Dtype::int8},   {25, Dtype::int16},  {26, Dtype::int32},
                                                      {27, Dtype::int64},  {28, Dtype::float64}};
constexpr std::pair<GgufType, Dtype> kNumbers[] = {
    {GgufType::u8, Dtype::uint8},    {GgufType::i8, Dtype::int8},         {GgufType::u16, Dtype::uint16},
    {GgufType::i16, Dtype::int16},   {GgufType::u32, Dtype::uint32},      {GgufType::i32, Dtype::int32},
    {GgufType::f32, Dtype::float32}, {GgufType::boolean, Dtype::boolean}, {GgufType::u64, Dtype::uint64},
    {GgufType::i64, Dtype::int64},   {GgufType::f64, Dtype::float64}};

// --- reading -----------------------------------------------------------------------------------------------------------------

// params.ints holds the type's number, then the shape. Each row consists of whole blocks.
void run_unpack(ops::OpContext& c) {
  const GgmlFormat& format = *find_ggml(static_cast<std::uint32_t>(c.attrs().get_ints("ints")[0]));
  const auto* from = static_cast<const std::byte*>(c.input(0).data());
  Tensor& out = result_tensor(c);
  auto* to = static_cast<float*>(out.mutable_data());
  in_parallel(out.size() / format.block, 64, [&](std::int64_t first, std::int64_t last) {
    ggml_dequantize(format, from + first * format.bytes, last - first, to + first * format.block);
  });
}

void emit_unpack(Emitter& e) { e.results<run_unpack>("UnpackBlocks", e.inputs(), {{"ints", e.params().ints}}); }

const Kind kUnpack{.name = "load_gguf", .emit = emit_unpack};

array tensor_of(const GgufModel& model, const StoredTensor& stored) {
  const std::shared_ptr<const void>& owner = model.owner(stored.file);
  for (const auto& [type, dtype] : kPlain) {
    if (type != stored.type) continue;
    // The reader has checked the bounds of float tensors only.
    const std::span<const std::byte> all = model.bytes(stored.file);
    const auto count = static_cast<std::uint64_t>(element_count(stored.shape)),
               each = static_cast<std::uint64_t>(bit_width(dtype)) / 8;
    if (stored.offset > all.size() || count > (all.size() - stored.offset) / each) {
      fail(ErrorCode::invalid_model,
           "[load_gguf] tensor '{}' has {} elements of {} bytes from byte {} on, and the file has {} bytes", stored.name, count,
           each, stored.offset, all.size());
    }
    return array(Tensor::view(all.data() + stored.offset, dtype, stored.shape, owner).aligned());
  }
  const GgmlFormat* format = find_ggml(stored.type);
  if (format == nullptr) {
    fail(ErrorCode::not_implemented, "[load_gguf] tensor '{}' has the type {} {}, which is not supported", stored.name,
         stored.type, ggml_type_name(stored.type));
  }
  const array blocks(Tensor::view(stored.data.data(), Dtype::uint8, {static_cast<std::int64_t>(stored.data.size())}, owner));
  Params params;
  params.ints = {static_cast<std::int64_t>(stored.type)};
  return astype(make(kUnpack, Dtype::float32, stored.shape, {blocks}, std::move(params)), Dtype::float16);
}

// Returns a number, or an array of numbers, as bytes of an array.
array numbers_of(const GgufModel& model, const GgufValue& v) {
  const bool list = v.type == GgufType::array;
  for (const auto& [type, dtype] : kNumbers) {
    if (type != (list ? v.element : v.type)) continue;
    Tensor t(dtype, list ? Shape{static_cast<std::int64_t>(v.count)} : Shape{});
    std::memcpy(t.mutable_data(), model.bytes(0).data() + v.begin, std::min(t.bytes(), v.end - v.begin));
    if (dtype == Dtype::boolean) {
      auto* bytes = static_cast<std::uint8_t*>(t.mutable_data());
      std::transform(bytes, bytes + t.size(), bytes, [](std::uint8_t b) { return static_cast<std::uint8_t>(b != 0); });
    }
    return array(std::move(t));
  }
  fail(ErrorCode::invalid_model, "[load_gguf] the value '{}' is not a number", v.key);
}

// Returns a value's texts, one after the other from its bytes, which the reader has checked: a search by key is slow in a file
// with a million keys.
std::vector<std::string> texts_of(const GgufModel& model, const GgufValue& v) {
  const auto* at = reinterpret_cast<const char*>(model.bytes(0).data()) + v.begin;
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < v.count; ++i) {
    std::uint64_t size = 0;
    std::memcpy(&size, at, sizeof size);
    texts.emplace_back(at + sizeof size, size);
    at += sizeof size + size;
  }
  return texts;
}

GgufMetadata metadata_of(const GgufModel& model) {
  GgufMetadata made;
  for (const GgufValue& v : model.metadata().values()) {
    if (v.type == GgufType::string) {
      made.emplace(v.key, std::move(texts_of(model, v)[0]));
    } else if (v.type == GgufType::array && v.element == GgufType::string) {
      made.emplace(v.key, texts_of(model, v));
    } else {
      made.emplace(v.key, numbers_of(model, v));
    }
  }
  return made;
}

// --- writing -----------------------------------------------------------------------------------------------------------------

class Bytes {
 public:
  template <class T>
  void number(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number<std::uint64_t>(value.size());
    out_ += value;
  }
  void raw(const Tensor& t) { out_.append(static_cast<const char*>(t.data()), t.bytes()); }
  std::string& out() { return out_; }

 private:
  std::string out_;
};

void put_numbers(Bytes& bytes, const std::string& key, const array& a) {
  const auto* found =
      std::find_if(std::begin(kNumbers), std::end(kNumbers), [&](const auto& n) { return n.second == a.dtype(); });
  if (found == std::end(kNumbers) || a.ndim() > 1) {
    refuse("save_gguf", "the value '{}' is {}{}: expected numbers and one-dimensional arrays of types that the format supports",
           key, name(a.dtype()), to_string(a.shape()));
  }
  if (a.ndim() == 1) {
    bytes.number(static_cast<std::uint32_t>(GgufType::array));
    bytes.number(static_cast<std::uint32_t>(found->first));
    bytes.number(static_cast<std::uint64_t>(a.size()));
  } else {
    bytes.number(static_cast<std::uint32_t>(found->first));
  }
  bytes.raw(a.tensor());
}

void put_value(Bytes& bytes, const std::string& key, const GgufMetadata::mapped_type& value) {
  bytes.text(key);
  if (const auto* a = std::get_if<array>(&value)) return put_numbers(bytes, key, *a);
  if (const auto* text = std::get_if<std::string>(&value)) {
    bytes.number(static_cast<std::uint32_t>(GgufType::string));
    return bytes.text(*text);
  }
  const auto& texts = std::get<std::vector<std::string>>(value);
  bytes.number(static_cast<std::uint32_t>(GgufType::array));
  bytes.number(static_cast<std::uint32_t>(GgufType::string));
  bytes.number<std::uint64_t>(texts.size());
  for (const std::string& text : texts) bytes.text(text);
}

std::uint64_t up(std::uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

std::uint32_t type_of(const std::string& key, const array& a) {
  for (const auto& [type, dtype] : kPlain) {
    if (dtype == a.dtype()) return type;
  }
  refuse("save_gguf", "the array '{}' is of {}, which the format does not support", key, name(a.dtype()));
}

}  // namespace
}  // namespace detail

void save_gguf(const std::filesystem::path& file, const NamedArrays& arrays, const GgufMetadata& metadata) {
  detail::Bytes head;
  head.out() = "GGUF";
  head.number<std::uint32_t>(3);
  head.number<std::uint64_t>(arrays.size());
  head.number<std::uint64_t>(metadata.size());
  for (const auto& [key, value] : metadata) detail::put_value(head, key, value);
  std::vector<array> all;
  std::uint64_t offset = 0;
  for (const auto& [key, a] : arrays) {
    head.text(key);
    head.number(static_cast<std::uint32_t>(a.ndim()));
    for (int i = a.ndim(); i-- > 0;) head.number(static_cast<std::uint64_t>(a.shape(i)));
    head.number(detail::type_of(key, a));
    head.number(offset);
    offset = detail::up(offset + a.nbytes());
    all.push_back(a);
  }
  eval(all);
  NewFile out(file.extension() == ".gguf" ? file : std::filesystem::path(file) += ".gguf");
  head.out().resize(detail::up(head.out().size()), '\0');
  out.append(std::as_bytes(std::span<const char>(head.out())));
  const std::vector<std::byte> zeros(detail::kAlignment);
  for (const array& a : all) {
    out.append({static_cast<const std::byte*>(a.tensor().data()), a.nbytes()});
    out.append({zeros.data(), detail::up(a.nbytes()) - a.nbytes()});
  }
  out.publish();
}

std::pair<NamedArrays, GgufMetadata> load_gguf(const std::filesystem::path& file) {
  const auto model = GgufModel::open(file);
  NamedArrays arrays;
  for (const StoredTensor& t : model->tensors()) arrays.emplace_back(t.name, detail::tensor_of(*model, t));
  return {std::move(arrays), detail::metadata_of(*model)};
}

}  // namespace sdx::array
