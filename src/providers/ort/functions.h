#pragma once
// The part of ONNX Runtime's C interface that the bridge uses. The interface is one table of function pointers that only grows at
// its end: a function is its place in the table and the version that brought it.

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace sdx::ort {

using PathChar = std::filesystem::path::value_type;  // wide on Windows

namespace c {
struct Env;
struct Status;
struct MemoryInfo;
struct Session;
struct Value;
struct RunOptions;
struct SessionOptions;
struct TypeAndShape;
struct Allocator;
struct ProviderOptions;  // CUDA's, TensorRT's, ROCm's, …: each made, filled and released by functions of its own
struct IoBinding;
struct Stream;
struct AssignedSubgraph;
struct AssignedNode;
struct EpDevice;
struct HardwareDevice;
using LogFunction = void (*)(void* param, int severity, const char* category, const char* id, const char* location,
                             const char* message);
using Strings = const char* const*;
}  // namespace c

// X(place, version, result, name, (arguments)). A null c::Status* means success.
#define SDX_ORT_FUNCTIONS(X)                                                                                                   \
  X(1, 1, int, get_error_code, (const c::Status*))                                                                             \
  X(2, 1, const char*, get_error_message, (const c::Status*))                                                                  \
  X(4, 1, c::Status*, create_env, (c::LogFunction, void*, int, const char*, c::Env**))                                         \
  X(7, 1, c::Status*, create_session, (const c::Env*, const PathChar*, const c::SessionOptions*, c::Session**))                \
  X(8, 1, c::Status*, create_session_from_array,                                                                               \
    (const c::Env*, const void*, std::size_t, const c::SessionOptions*, c::Session**))                                         \
  X(9, 1, c::Status*, run,                                                                                                     \
    (c::Session*, const c::RunOptions*, c::Strings, const c::Value* const*, std::size_t, c::Strings, std::size_t, c::Value**)) \
  X(10, 1, c::Status*, create_session_options, (c::SessionOptions**))                                                          \
  X(14, 1, c::Status*, enable_profiling, (c::SessionOptions*, const PathChar*))                                                \
  X(22, 1, c::Status*, set_log_level, (c::SessionOptions*, int))                                                               \
  X(23, 1, c::Status*, set_optimization, (c::SessionOptions*, int))                                                            \
  X(24, 1, c::Status*, set_intra_threads, (c::SessionOptions*, int))                                                           \
  X(39, 1, c::Status*, create_run_options, (c::RunOptions**))                                                                  \
  X(46, 1, c::Status*, terminate, (c::RunOptions*))                                                                            \
  X(48, 1, c::Status*, create_tensor, (c::Allocator*, const std::int64_t*, std::size_t, int, c::Value**))                      \
  X(49, 1, c::Status*, wrap_tensor,                                                                                            \
    (const c::MemoryInfo*, void*, std::size_t, const std::int64_t*, std::size_t, int, c::Value**))                             \
  X(51, 1, c::Status*, tensor_data, (c::Value*, void**))                                                                       \
  X(52, 1, c::Status*, fill_strings, (c::Value*, c::Strings, std::size_t))                                                     \
  X(53, 1, c::Status*, strings_length, (const c::Value*, std::size_t*))                                                        \
  X(54, 1, c::Status*, strings_content, (const c::Value*, void*, std::size_t, std::size_t*, std::size_t))                      \
  X(60, 1, c::Status*, element_type, (const c::TypeAndShape*, int*))                                                           \
  X(61, 1, c::Status*, rank, (const c::TypeAndShape*, std::size_t*))                                                           \
  X(62, 1, c::Status*, extents, (const c::TypeAndShape*, std::int64_t*, std::size_t))                                          \
  X(65, 1, c::Status*, type_and_shape, (const c::Value*, c::TypeAndShape**))                                                   \
  X(67, 1, c::Status*, value_type, (const c::Value*, int*))                                                                    \
  X(68, 1, c::Status*, create_memory_info, (const char*, int, int, int, c::MemoryInfo**))                                      \
  X(69, 1, c::Status*, create_cpu_memory_info, (int, int, c::MemoryInfo**))                                                    \
  X(76, 1, c::Status*, allocator_free, (c::Allocator*, void*))                                                                 \
  X(78, 1, c::Status*, default_allocator, (c::Allocator**))                                                                    \
  X(80, 1, c::Status*, get_value, (const c::Value*, int, c::Allocator*, c::Value**))                                           \
  X(81, 1, c::Status*, value_count, (const c::Value*, std::size_t*))                                                           \
  X(82, 1, c::Status*, create_value, (const c::Value* const*, std::size_t, int, c::Value**))                                   \
  X(92, 1, void, release_env, (c::Env*))                                                                                       \
  X(93, 1, void, release_status, (c::Status*))                                                                                 \
  X(94, 1, void, release_memory_info, (c::MemoryInfo*))                                                                        \
  X(95, 1, void, release_session, (c::Session*))                                                                               \
  X(96, 1, void, release_value, (c::Value*))                                                                                   \
  X(97, 1, void, release_run_options, (c::RunOptions*))                                                                        \
  X(99, 1, void, release_type_and_shape, (c::TypeAndShape*))                                                                   \
  X(100, 1, void, release_session_options, (c::SessionOptions*))                                                               \
  X(110, 2, c::Status*, end_profiling, (c::Session*, c::Allocator*, char**))                                                   \
  X(125, 4, c::Status*, available_providers, (char***, int*))                                                                  \
  X(126, 4, c::Status*, release_available_providers, (char**, int))                                                            \
  X(130, 5, c::Status*, add_config, (c::SessionOptions*, const char*, const char*))                                            \
  X(131, 5, c::Status*, create_allocator, (const c::Session*, const c::MemoryInfo*, c::Allocator**))                           \
  X(132, 5, void, release_allocator, (c::Allocator*))                                                                          \
  X(133, 5, c::Status*, run_with_binding, (c::Session*, const c::RunOptions*, const c::IoBinding*))                            \
  X(134, 5, c::Status*, create_binding, (c::Session*, c::IoBinding**))                                                         \
  X(135, 5, void, release_binding, (c::IoBinding*))                                                                            \
  X(136, 5, c::Status*, bind_input, (c::IoBinding*, const char*, const c::Value*))                                             \
  X(138, 5, c::Status*, bind_output, (c::IoBinding*, const char*, const c::MemoryInfo*))                                       \
  X(140, 5, c::Status*, bound_outputs, (const c::IoBinding*, c::Allocator*, c::Value***, std::size_t*))                        \
  X(141, 5, void, clear_inputs, (c::IoBinding*))                                                                               \
  X(142, 5, void, clear_outputs, (c::IoBinding*))                                                                              \
  X(153, 6, c::Status*, append_rocm, (c::SessionOptions*, const c::ProviderOptions*))                                          \
  X(170, 9, c::Status*, append_tensorrt, (c::SessionOptions*, const c::ProviderOptions*))                                      \
  X(171, 9, c::Status*, create_tensorrt, (c::ProviderOptions**))                                                               \
  X(172, 9, c::Status*, update_tensorrt, (c::ProviderOptions*, c::Strings, c::Strings, std::size_t))                           \
  X(174, 9, void, release_tensorrt, (c::ProviderOptions*))                                                                     \
  X(192, 10, c::Status*, has_value, (const c::Value*, int*))                                                                   \
  X(202, 10, c::Status*, synchronize_inputs, (c::IoBinding*))                                                                  \
  X(203, 10, c::Status*, synchronize_outputs, (c::IoBinding*))                                                                 \
  X(204, 11, c::Status*, append_cuda, (c::SessionOptions*, const c::ProviderOptions*))                                         \
  X(205, 11, c::Status*, create_cuda, (c::ProviderOptions**))                                                                  \
  X(206, 11, c::Status*, update_cuda, (c::ProviderOptions*, c::Strings, c::Strings, std::size_t))                              \
  X(208, 11, void, release_cuda, (c::ProviderOptions*))                                                                        \
  X(216, 12, c::Status*, append_provider, (c::SessionOptions*, const char*, c::Strings, c::Strings, std::size_t))              \
  X(225, 14, void, memory_device, (const c::MemoryInfo*, int*))                                                                \
  X(239, 15, c::Status*, append_dnnl, (c::SessionOptions*, const c::ProviderOptions*))                                         \
  X(240, 15, c::Status*, create_dnnl, (c::ProviderOptions**))                                                                  \
  X(241, 15, c::Status*, update_dnnl, (c::ProviderOptions*, c::Strings, c::Strings, std::size_t))                              \
  X(243, 15, void, release_dnnl, (c::ProviderOptions*))                                                                        \
  X(255, 16, c::Status*, create_rocm, (c::ProviderOptions**))                                                                  \
  X(256, 16, c::Status*, update_rocm, (c::ProviderOptions*, c::Strings, c::Strings, std::size_t))                              \
  X(258, 16, void, release_rocm, (c::ProviderOptions*))                                                                        \
  X(275, 17, c::Status*, append_openvino, (c::SessionOptions*, c::Strings, c::Strings, std::size_t))                           \
  X(276, 18, c::Status*, append_vitisai, (c::SessionOptions*, c::Strings, c::Strings, std::size_t))                            \
  X(301, 22, c::Status*, register_plugin, (c::Env*, const char*, const PathChar*))                                             \
  X(303, 22, c::Status*, ep_devices, (const c::Env*, const c::EpDevice* const**, std::size_t*))                                \
  X(304, 22, c::Status*, append_devices,                                                                                       \
    (c::SessionOptions*, c::Env*, const c::EpDevice* const*, std::size_t, c::Strings, c::Strings, std::size_t))                \
  X(307, 22, int, device_type, (const c::HardwareDevice*))                                                                     \
  X(309, 22, const char*, device_vendor, (const c::HardwareDevice*))                                                           \
  X(312, 22, const char*, ep_name, (const c::EpDevice*))                                                                       \
  X(316, 22, const c::HardwareDevice*, ep_device, (const c::EpDevice*))                                                        \
  X(380, 23, c::Status*, input_memory, (const c::Session*, const c::MemoryInfo**, std::size_t))                                \
  X(386, 23, c::Status*, copy_tensors, (const c::Env*, const c::Value* const*, c::Value* const*, c::Stream*, std::size_t))     \
  X(407, 24, c::Status*, assignment, (const c::Session*, const c::AssignedSubgraph* const**, std::size_t*))                    \
  X(408, 24, c::Status*, assigned_provider, (const c::AssignedSubgraph*, const char**))                                        \
  X(409, 24, c::Status*, assigned_nodes, (const c::AssignedSubgraph*, const c::AssignedNode* const**, std::size_t*))           \
  X(410, 24, c::Status*, assigned_name, (const c::AssignedNode*, const char**))                                                \
  X(412, 24, c::Status*, assigned_op, (const c::AssignedNode*, const char**))

// Null: the library is older than the function.
struct Functions {
  int version = 0;
#define SDX_ORT_MEMBER(place, since, result, name, arguments) result(*name) arguments = nullptr;
  SDX_ORT_FUNCTIONS(SDX_ORT_MEMBER)
#undef SDX_ORT_MEMBER
};

inline constexpr int kOldestVersion = 17;
inline constexpr int kNewestVersion = 60;  // what is asked for first; the library says what it has

// Of OrtGetApiBase().
struct ApiBase {
  const void* const* (*get_api)(std::uint32_t version);
  const char* (*version)();
};

// Fills in what a table of that version holds, and touches nothing beyond it.
inline Functions functions_of(const void* const* table, int version) {
  Functions f;
  f.version = version;
#define SDX_ORT_LOAD(place, since, result, name, arguments) \
  if (version >= (since)) f.name = reinterpret_cast<decltype(f.name)>(const_cast<void*>(table[place]));
  SDX_ORT_FUNCTIONS(SDX_ORT_LOAD)
#undef SDX_ORT_LOAD
  return f;
}

}  // namespace sdx::ort
