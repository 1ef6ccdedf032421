#pragma once
// The backend that computes arrays. The environment variable SDX_BACKEND, else MLX_BACKEND, selects it before the first
// operation: cpu (Sardonyx's own engine), cuda, metal (Core ML), webgpu (any GPU), onnx (ONNX Runtime) or auto; case is ignored.
// auto, the default, takes the first of metal, cuda and cpu that this machine has; onnx and webgpu must be named. What the
// backend cannot compute runs on the CPU.

#include <string>
#include <string_view>
#include <vector>

#include <sdx/export.hpp>

namespace sdx::array {

// The backend in use: "cpu", "cuda", "metal", "webgpu" or "onnx". Throws Error(invalid_argument) if the environment names an
// unknown backend. If it names one that is unavailable, falls back as `auto` would, with a warning.
SDX_API std::string get_backend();

// Switches the backend of all threads. Throws Error(invalid_argument) for an unknown name, with the list, and
// Error(provider_unavailable), with the reason, for one that is unavailable; nothing changes then.
SDX_API void set_backend(std::string_view name);

struct BackendInfo {
  std::string name;  // "cuda"
  bool available = false;
  std::string reason;   // why not, and what to do; for auto's choice: why it is not the one
  std::string device;   // "AMD EPYC 9B14 (2 threads)"; may be empty
  std::string version;  // of the runtime; Sardonyx's own for cpu; may be empty
};

// The one in use first, then all others in auto's order.
SDX_API std::vector<BackendInfo> backend_info();

}  // namespace sdx::array
