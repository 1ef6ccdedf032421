// Arrays in files of NumPy and safetensors.

#include <sdx/array/io.hpp>

#include <algorithm>

#include <sdx/array.hpp>

#include "array/ops/common.h"
#include "tensor/npy.h"
#include "tensor/npz.h"
#include "tensor/safetensors.h"

namespace sdx::array {
namespace {

std::filesystem::path with_ending(const std::filesystem::path& file, const char* ending) {
  return file.extension() == ending ? file : std::filesystem::path(file) += ending;
}

NamedTensors tensors_of(const NamedArrays& arrays) {
  std::vector<array> all;
  for (const auto& [name, a] : arrays) all.push_back(a);
  eval(all);
  NamedTensors tensors;
  for (const auto& [name, a] : arrays) tensors.emplace_back(name, a.tensor());
  return tensors;
}

bool is_byte_float(Dtype type) {
  return type == Dtype::float8e4m3fn || type == Dtype::float8e4m3fnuz || type == Dtype::float8e5m2 ||
         type == Dtype::float8e5m2fnuz || type == Dtype::float8e8m0;
}

// Returns the tensor as an array. Data that is not aligned to its elements is copied, as kernels need it. Floats of 8 bits become
// bytes, which from_fp8() takes.
array array_of(const Tensor& tensor) {
  if (tensor.dtype() == Dtype::string) fail(ErrorCode::invalid_argument, "[load] arrays hold numbers, but the file holds text");
  if (!is_byte_float(tensor.dtype())) return array(tensor.aligned());
  const auto kept = std::make_shared<const Tensor>(tensor);
  return array(Tensor::view(kept->data(), Dtype::uint8, kept->shape(), kept));
}

NamedArrays arrays_of(const NamedTensors& tensors) {
  NamedArrays arrays;
  for (const auto& [name, tensor] : tensors) arrays.emplace_back(name, array_of(tensor));
  return arrays;
}

GgufMetadata as_values(const Metadata& metadata) {
  GgufMetadata values;
  for (const auto& [key, value] : metadata) values.emplace(key, value);
  return values;
}

}  // namespace

void save(const std::filesystem::path& file, const array& a) { write_npy(with_ending(file, ".npy"), a.tensor()); }

void savez(const std::filesystem::path& file, const NamedArrays& arrays) {
  write_npz(with_ending(file, ".npz"), tensors_of(arrays), false);
}

void savez_compressed(const std::filesystem::path& file, const NamedArrays& arrays) {
  write_npz(with_ending(file, ".npz"), tensors_of(arrays), true);
}

void save_safetensors(const std::filesystem::path& file, const NamedArrays& arrays, const Metadata& metadata) {
  write_safetensors(with_ending(file, ".safetensors"), tensors_of(arrays), metadata);
}

array load_npy(const std::filesystem::path& file) { return array_of(read_npy(file)); }

NamedArrays load_npz(const std::filesystem::path& file) { return arrays_of(read_npz(file)); }

std::pair<NamedArrays, Metadata> load_safetensors(const std::filesystem::path& file) {
  SafeTensors all = read_safetensors(file);
  return {arrays_of({all.tensors.begin(), all.tensors.end()}), std::move(all.metadata)};
}

Loaded load(const std::filesystem::path& file, const std::string& format) {
  const std::string ending = file.extension().string(), kind = format.empty() && !ending.empty() ? ending.substr(1) : format;
  if (kind == "npy") return {{{"", load_npy(file)}}, {}};
  if (kind == "npz") return {load_npz(file), {}};
  if (kind == "safetensors") {
    auto [arrays, metadata] = load_safetensors(file);
    return {std::move(arrays), as_values(metadata)};
  }
  if (kind == "gguf") {
    auto [arrays, metadata] = load_gguf(file);
    return {std::move(arrays), std::move(metadata)};
  }
  detail::refuse("load", "{}: unknown format \"{}\"; expected npy, npz, safetensors or gguf", file.string(), kind);
}

}  // namespace sdx::array
