#pragma once
// What this machine can run models on.

#include <string>
#include <string_view>
#include <vector>

#include <sdx/export.hpp>

namespace sdx {

struct ProviderInfo {
  std::string name;      // "cpu", "cuda", …: what users type
  std::string ort_name;  // "CPUExecutionProvider", …
  std::string hardware;  // "any CPU", "NVIDIA GPU", …
  bool available = false;
  std::string reason;   // why not, exactly; empty when available
  std::string hint;     // what to do about it; may be empty
  std::string version;  // of the runtime behind it; may be empty
  std::vector<std::string> devices;
  bool accelerator = false;  // has a device other than the CPU that our own engine uses
};

// Every provider that has a name, available or not, in the order of automatic selection. Thread-safe.
SDX_API std::vector<ProviderInfo> providers();

// The version of this library, "0.1.0".
SDX_API std::string_view version() noexcept;

}  // namespace sdx
