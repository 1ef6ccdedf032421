// Functions with which kernels query their nodes.

#include <cstring>
#include <memory>

#include "dropin/custom/attribute.h"
#include "dropin/custom/operators.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

using Argument = OrtKernelInfo::Argument;

template <class T>
const T& attribute(const OrtKernelInfo* info, const char* name) {
  const AttributeValue* value = require(info, "info").attributes.find(&require(name, "name"));
  if (value == nullptr) fail_ort(ORT_FAIL, std::string("No attribute with name:'") + name + "'is defined.");
  const T* held = std::get_if<T>(value);
  if (held == nullptr) fail_ort(ORT_FAIL, std::string("Attribute ") + name + " has another type than the one that is asked for.");
  return *held;
}

template <class T>
OrtStatus* attribute_scalar(const OrtKernelInfo* info, const char* name, T* out) noexcept {
  return guarded([&] { require(out, "out") = attribute<T>(info, name); });
}

template <class T>
OrtStatus* attribute_list(const OrtKernelInfo* info, const char* name, T* out, std::size_t* size) noexcept {
  return guarded([&] {
    const auto& values = attribute<std::vector<T>>(info, name);
    const std::size_t room = require(size, "size");
    *size = values.size();
    if (out == nullptr) return;
    if (room < values.size()) fail_ort(ORT_INVALID_ARGUMENT, "Result buffer is not large enough");
    if (!values.empty()) std::memcpy(out, values.data(), values.size() * sizeof(T));
  });
}

OrtStatus* attribute_string(const OrtKernelInfo* info, const char* name, char* out, std::size_t* size) noexcept {
  return guarded([&] { copy_text(attribute<std::string>(info, name), out, size, "Result buffer is not large enough"); });
}

OrtStatus* attribute_strings(const OrtKernelInfo* info, const char* name, OrtAllocator* allocator, char*** out,
                             std::size_t* size) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    require(size, "size") = 0;
    const auto& texts = attribute<std::vector<std::string>>(info, name);
    if (texts.empty()) return;
    OrtAllocator& a = require(allocator, "allocator");
    auto** const list = static_cast<char**>(allocate(&a, texts.size() * sizeof(char*)));
    std::size_t made = 0;
    try {
      for (; made < texts.size(); ++made) list[made] = copy_text(&a, texts[made]);
    } catch (...) {
      while (made-- > 0) a.Free(&a, list[made]);
      a.Free(&a, list);
      throw;
    }
    *out = list;
    *size = texts.size();
  });
}

OrtStatus* attribute_tensor(const OrtKernelInfo* info, const char* name, OrtAllocator*, OrtValue** out) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    *out = make_value(attribute<Tensor>(info, name).clone());
  });
}

const Argument& argument(const std::vector<Argument>& all, std::size_t index, const char* what) {
  if (index >= all.size()) fail_ort(ORT_INVALID_ARGUMENT, std::string("::OrtKernelInfo ") + what + " index is out of bounds");
  return all[index];
}

OrtStatus* input_count(const OrtKernelInfo* info, std::size_t* out) noexcept {
  return guarded([&] { require(out, "out") = require(info, "info").inputs.size(); });
}
OrtStatus* output_count(const OrtKernelInfo* info, std::size_t* out) noexcept {
  return guarded([&] { require(out, "out") = require(info, "info").outputs.size(); });
}
OrtStatus* input_name(const OrtKernelInfo* info, std::size_t index, char* out, std::size_t* size) noexcept {
  return guarded([&] {
    copy_text(argument(require(info, "info").inputs, index, "input").name, out, size,
              "Output buffer is not large enough for ::OrtKernelInfo input name");
  });
}
OrtStatus* output_name(const OrtKernelInfo* info, std::size_t index, char* out, std::size_t* size) noexcept {
  return guarded([&] {
    copy_text(argument(require(info, "info").outputs, index, "output").name, out, size,
              "Output buffer is not large enough for ::OrtKernelInfo output name");
  });
}

void give_type(const Argument& a, const char* what, OrtTypeInfo** out) {
  require(out, "type_info") = nullptr;
  if (a.type.empty() || a.type == "unknown")
    fail_ort(ORT_INVALID_GRAPH, std::string("::OrtKernelInfo ") + what + " does not have a type");
  *out = std::make_unique<OrtTypeInfo>(type_of_text(a.type)).release();
}

OrtStatus* input_type(const OrtKernelInfo* info, std::size_t index, OrtTypeInfo** out) noexcept {
  return guarded([&] { give_type(argument(require(info, "info").inputs, index, "input"), "input", out); });
}
OrtStatus* output_type(const OrtKernelInfo* info, std::size_t index, OrtTypeInfo** out) noexcept {
  return guarded([&] { give_type(argument(require(info, "info").outputs, index, "output"), "output", out); });
}

OrtStatus* constant_input(const OrtKernelInfo* info, std::size_t index, int* is_constant, const OrtValue** out) noexcept {
  return guarded([&] {
    const auto& inputs = require(info, "info").inputs;
    const bool constant = index < inputs.size() && inputs[index].constant.has_value();
    require(is_constant, "is_constant") = constant ? 1 : 0;
    require(out, "out") = constant ? &*inputs[index].constant : nullptr;
  });
}

OrtStatus* node_name(const OrtKernelInfo* info, char* out, std::size_t* size) noexcept {
  return guarded([&] {
    copy_text(require(info, "info").node_name, out, size, "Output buffer is not large enough for ::OrtKernelInfo node name");
  });
}
OrtStatus* op_domain(const OrtKernelInfo* info, char* out, std::size_t* size) noexcept {
  return guarded([&] {
    copy_text(require(info, "info").domain, out, size, "Output buffer is not large enough for ::OrtKernelInfo operator domain");
  });
}
OrtStatus* op_type(const OrtKernelInfo* info, char* out, std::size_t* size) noexcept {
  return guarded([&] {
    copy_text(require(info, "info").op_type, out, size, "Output buffer is not large enough for ::OrtKernelInfo operator type");
  });
}
OrtStatus* since_version(const OrtKernelInfo* info, int* out) noexcept {
  return guarded([&] { require(out, "since_version") = require(info, "info").since_version; });
}

OrtStatus* get_logger(const OrtKernelInfo* info, const OrtLogger** out) noexcept {
  return guarded([&] { require(out, "logger") = &require(info, "info").host->logger; });
}

OrtStatus* config_entries(const OrtKernelInfo* info, OrtKeyValuePairs** out) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    auto pairs = std::make_unique<OrtKeyValuePairs>();
    for (const auto& [key, value] : require(info, "info").host->config) pairs->set(key, value);
    *out = pairs.release();
  });
}

OrtStatus* get_allocator(const OrtKernelInfo*, OrtMemType, OrtAllocator** out) noexcept {
  return guarded([&] { require(out, "out") = default_allocator(); });
}

OrtStatus* copy_info(const OrtKernelInfo* info, OrtKernelInfo** out) noexcept {
  return guarded([&] {
    require(out, "info_copy") = nullptr;
    *out = std::make_unique<OrtKernelInfo>(require(info, "info")).release();
  });
}
void release_info(OrtKernelInfo* info) noexcept { delete info; }

}  // namespace

void fill_kernel_infos(Table& table) {
  table.set(Slot::KernelInfoGetAttribute_float, &attribute_scalar<float>);
  table.set(Slot::KernelInfoGetAttribute_int64, &attribute_scalar<std::int64_t>);
  table.set(Slot::KernelInfoGetAttribute_string, &attribute_string);
  table.set(Slot::KernelInfoGetAttributeArray_float, &attribute_list<float>);
  table.set(Slot::KernelInfoGetAttributeArray_int64, &attribute_list<std::int64_t>);
  table.set(Slot::KernelInfoGetAttributeArray_string, &attribute_strings);
  table.set(Slot::KernelInfoGetAttribute_tensor, &attribute_tensor);
  table.set(Slot::KernelInfo_GetInputCount, &input_count);
  table.set(Slot::KernelInfo_GetOutputCount, &output_count);
  table.set(Slot::KernelInfo_GetInputName, &input_name);
  table.set(Slot::KernelInfo_GetOutputName, &output_name);
  table.set(Slot::KernelInfo_GetInputTypeInfo, &input_type);
  table.set(Slot::KernelInfo_GetOutputTypeInfo, &output_type);
  table.set(Slot::KernelInfoGetConstantInput_tensor, &constant_input);
  table.set(Slot::KernelInfo_GetNodeName, &node_name);
  table.set(Slot::KernelInfo_GetOperatorDomain, &op_domain);
  table.set(Slot::KernelInfo_GetOperatorType, &op_type);
  table.set(Slot::KernelInfo_GetOperatorSinceVersion, &since_version);
  table.set(Slot::KernelInfo_GetLogger, &get_logger);
  table.set(Slot::KernelInfo_GetConfigEntries, &config_entries);
  table.set(Slot::KernelInfoGetAllocator, &get_allocator);
  table.set(Slot::CopyKernelInfo, &copy_info);
  table.set(Slot::ReleaseKernelInfo, &release_info);
}

}  // namespace sdx::dropin
