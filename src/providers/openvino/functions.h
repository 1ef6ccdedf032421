#pragma once
// The part of OpenVINO's C interface that the bridge uses: functions found by their names in libopenvino_c.so.

#include <cstddef>
#include <cstdint>

namespace sdx::openvino {

namespace c {
struct Core;
struct Model;
struct Compiled;
struct Request;
struct Tensor;
struct Port;
struct Version {
  const char* build;
  const char* description;
};
struct Devices {
  char** names;
  std::size_t count;
};
struct Shape {
  std::int64_t rank;
  std::int64_t* extents;
};
// The number of properties passed to ov_core_compile_model(): fixed; the callee reads as many as it is told.
inline constexpr std::size_t kMostProperties = 16;
}  // namespace c

// ov_status_e
inline constexpr int kOk = 0, kNotReady = -9;

// X(result, name, (arguments)), of the symbol "ov_<name>". Those of SDX_OPENVINO_OPTIONAL may be missing in older versions.
#define SDX_OPENVINO_FUNCTIONS(X)                                                                             \
  X(int, get_openvino_version, (c::Version*))                                                                 \
  X(void, version_free, (c::Version*))                                                                        \
  X(const char*, get_error_info, (int))                                                                       \
  X(void, free, (const char*))                                                                                \
  X(int, core_create, (c::Core**))                                                                            \
  X(int, core_get_available_devices, (const c::Core*, c::Devices*))                                           \
  X(void, available_devices_free, (c::Devices*))                                                              \
  X(int, core_get_property, (const c::Core*, const char*, const char*, char**))                               \
  X(int, core_read_model, (const c::Core*, const char*, const char*, c::Model**))                             \
  X(int, core_compile_model, (const c::Core*, const c::Model*, const char*, std::size_t, c::Compiled**, ...)) \
  X(void, model_free, (c::Model*))                                                                            \
  X(int, compiled_model_input_by_name, (const c::Compiled*, const char*, c::Port**))                          \
  X(int, compiled_model_output_by_name, (const c::Compiled*, const char*, c::Port**))                         \
  X(int, compiled_model_inputs_size, (const c::Compiled*, std::size_t*))                                      \
  X(int, compiled_model_outputs_size, (const c::Compiled*, std::size_t*))                                     \
  X(int, compiled_model_input_by_index, (const c::Compiled*, std::size_t, c::Port**))                         \
  X(int, compiled_model_output_by_index, (const c::Compiled*, std::size_t, c::Port**))                        \
  X(int, compiled_model_get_property, (const c::Compiled*, const char*, char**))                              \
  X(int, compiled_model_create_infer_request, (const c::Compiled*, c::Request**))                             \
  X(void, compiled_model_free, (c::Compiled*))                                                                \
  X(int, port_get_element_type, (const c::Port*, int*))                                                       \
  X(void, output_const_port_free, (c::Port*))                                                                 \
  X(int, infer_request_set_tensor_by_const_port, (c::Request*, const c::Port*, const c::Tensor*))             \
  X(int, infer_request_get_tensor_by_const_port, (const c::Request*, const c::Port*, c::Tensor**))            \
  X(int, infer_request_infer, (c::Request*))                                                                  \
  X(int, infer_request_start_async, (c::Request*))                                                            \
  X(int, infer_request_wait_for, (c::Request*, std::int64_t))                                                 \
  X(int, infer_request_wait, (c::Request*))                                                                   \
  X(int, infer_request_cancel, (c::Request*))                                                                 \
  X(void, infer_request_free, (c::Request*))                                                                  \
  X(int, tensor_create, (int, c::Shape, c::Tensor**))                                                         \
  X(int, tensor_create_from_host_ptr, (int, c::Shape, void*, c::Tensor**))                                    \
  X(int, tensor_get_shape, (const c::Tensor*, c::Shape*))                                                     \
  X(int, shape_free, (c::Shape*))                                                                             \
  X(int, tensor_get_element_type, (const c::Tensor*, int*))                                                   \
  X(int, tensor_get_byte_size, (const c::Tensor*, std::size_t*))                                              \
  X(int, tensor_data, (const c::Tensor*, void**))                                                             \
  X(void, tensor_free, (c::Tensor*))

#define SDX_OPENVINO_OPTIONAL(X)       \
  X(const char*, get_last_err_msg, ()) \
  X(int, core_read_model_from_memory_buffer, (const c::Core*, const char*, std::size_t, const c::Tensor*, c::Model**))

struct Functions {
#define SDX_OPENVINO_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
  SDX_OPENVINO_FUNCTIONS(SDX_OPENVINO_MEMBER)
  SDX_OPENVINO_OPTIONAL(SDX_OPENVINO_MEMBER)
#undef SDX_OPENVINO_MEMBER
};

}  // namespace sdx::openvino
