#pragma once
// Turns a user's request into the providers that a session tries, in order. Data in, data out.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/provider.hpp>
#include <sdx/session.hpp>

#include "providers/interface/machine.h"

namespace sdx {

struct PolicyInput {
  MachineFacts machine;
  std::vector<std::string> asked;  // names, intents, "ort:NAME", in any accepted spelling; empty: auto
  bool strict = false;
  Runtime runtime = Runtime::automatic;
  // Settings of backends.yaml: the order that `auto` tries instead of the platform's own, and the provider that it tries first on
  // a kind of machine ("linux_amd", "linux_nvidia", "linux_intel", "windows_amd", …, "linux", "windows", "darwin").
  std::vector<std::string> provider_priority;
  std::vector<std::pair<std::string, std::string>> platform_defaults;
  // Returns facts about a provider of the chain; called only for those that matter, once for each.
  std::function<ProviderInfo(const std::string& name)> probe;
};

// One provider that can be used.
struct ChainLink {
  std::string provider;  // "cuda", "ort:cpu"
  std::string device;    // what the intent wants of a provider with several kinds of device: "NPU", "GPU"; else empty
};

// One that cannot.
struct ChainGap {
  std::string provider;
  std::string reason;
  std::string hint;
  bool asked_for = false;  // by the user, not merely by an order of ours: worth a warning
};

struct Chain {
  std::vector<ChainLink> links;  // never empty unless strict; ends with `cpu` (`ort:cpu` before it where the runtime is `ort`)
  std::vector<ChainGap> gaps;
  std::string why;     // "asked for cuda, cpu", "automatic order of Linux", …
  std::string broken;  // why strict is violated; empty: it is not
};

// The rules of docs/providers.md. Throws Error(invalid_argument) for unknown names.
Chain decide_chain(const PolicyInput& input);

// The order of `auto` on a platform, `cpu` last, and that of `gpu`. `webgpu`, which reaches every vendor's GPU, comes behind the
// vendors' own providers and counts only where none of those can be used: two of them would share one GPU's memory.
std::vector<std::string> auto_order(Platform platform, bool arm);
std::vector<std::string> gpu_order(Platform platform);
// True when none of its devices is more than a CPU ("CPU", "CPU.0: …").
bool merely_cpu(const ProviderInfo& info);
bool has_device(const ProviderInfo& info, std::string_view kind);

// Keys of platform_defaults that fit this machine, most particular first.
std::vector<std::string> platform_keys(const MachineFacts& machine);

}  // namespace sdx
