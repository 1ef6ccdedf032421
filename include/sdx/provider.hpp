#pragma once
// The providers available on this machine.

#include <string>
#include <string_view>
#include <vector>

#include <sdx/export.hpp>

namespace sdx {

struct ProviderInfo {
  std::string name;      // the name users type: "cpu", "cuda", …
  std::string ort_name;  // "CPUExecutionProvider", …
  std::string hardware;  // "any CPU", "NVIDIA GPU", …
  bool available = false;
  std::string reason;   // exactly why it is unavailable; empty if available
  std::string hint;     // how to make it available; may be empty
  std::string version;  // version of the runtime behind it; may be empty
  std::vector<std::string> devices;
  bool accelerator = false;  // our own engine can use a device of it other than the CPU
};

// Every known provider, available or not, in the order of automatic selection. Thread-safe.
SDX_API std::vector<ProviderInfo> providers();

// The version of this library, "0.1.0".
SDX_API std::string_view version() noexcept;

}  // namespace sdx
