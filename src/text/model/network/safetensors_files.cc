#include "text/model/network/safetensors_files.h"

#include <map>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/safe_name.h"
#include "tensor/safetensors.h"
#include "text/model/config_object.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 1000;

std::optional<GgmlType> type_of(DataType t) {
  if (t == DataType::float32) return GgmlType::f32;
  if (t == DataType::float16) return GgmlType::f16;
  if (t == DataType::bfloat16) return GgmlType::bf16;
  return std::nullopt;
}

std::map<std::string, std::vector<std::string>> read_index(const fs::path& path) {
  const nlohmann::json file = read_json_file(path);
  const auto wrong = [&](const std::string& why) { fail(ErrorCode::invalid_model, "'{}': {}", path.string(), why); };
  const auto map = file.is_object() ? file.find("weight_map") : file.end();
  if (map == file.end() || !map->is_object() || map->empty()) wrong("'weight_map' must be an object that names files");
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [name, in] : map->items()) {
    if (!in.is_string()) wrong("'weight_map' gives no file for '" + name + "'");
    const std::string why = unsafe_name(in.get_ref<const std::string&>());
    if (!why.empty() || in.get_ref<const std::string&>().find('/') != std::string::npos) {
      wrong("the file of '" + name + "' must be beside the index" + (why.empty() ? "" : ": " + why));
    }
    files[in.get<std::string>()].push_back(name);
    if (files.size() > kMostFiles) wrong(fmt::format("at most {} files are read", kMostFiles));
  }
  return files;
}

// `wanted`: names that the index assigns to this file; null: all.
void each_in_file(const fs::path& path, const std::vector<std::string>* wanted, TensorFiles& to, const TakeTensor& take) {
  const auto mapped = MappedFile::open(path);
  const std::size_t file = to.paths().size();
  to.add_file(path, mapped->bytes(), mapped);
  try {
    const SafeTensors all = parse_safetensors(mapped->bytes(), mapped);
    mapped->check_unchanged();
    if (wanted == nullptr) {
      for (const auto& [name, tensor] : all.tensors) take(name, tensor, file);
      return;
    }
    for (const std::string& name : *wanted) {
      const auto t = all.tensors.find(name);
      if (t == all.tensors.end()) fail(ErrorCode::invalid_model, "the index says that tensor '{}' is here, but it is not", name);
      take(name, t->second, file);
    }
  } catch (Error& e) {
    if (e.code() != ErrorCode::invalid_argument) throw e.add_context("in '" + path.string() + "'");
    fail(ErrorCode::invalid_model, "'{}': {}", path.string(), e.message());
  }
}

}  // namespace

std::optional<fs::path> find_safetensors(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    std::error_code error;
    if (fs::is_regular_file(folder / name, error)) return folder / name;
  }
  return std::nullopt;
}

void each_safetensor(const fs::path& listing, TensorFiles& to, const TakeTensor& take) {
  if (listing.extension() != ".json") return each_in_file(listing, nullptr, to, take);
  for (const auto& [name, tensors] : read_index(listing)) each_in_file(listing.parent_path() / name, &tensors, to, take);
}

StoredTensor stored_tensor(const std::string& name, const Tensor& tensor, const TensorFiles& files, std::size_t file) {
  StoredTensor t;
  const auto type = type_of(tensor.dtype());
  if (!type) {
    fail(ErrorCode::not_implemented, "tensor '{}' is {}: weights must be F32, F16 or BF16", name, tensor.type_string());
  }
  t.type = static_cast<std::uint32_t>(*type);
  t.shape = tensor.shape();
  t.data = {static_cast<const std::byte*>(tensor.data()), tensor.bytes()};
  t.offset = static_cast<std::uint64_t>(t.data.data() - files.bytes(file).data());
  t.file = file;
  return t;
}

}  // namespace sdx::text
