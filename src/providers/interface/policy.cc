#include "providers/interface/policy.h"

#include <algorithm>
#include <map>

#include "base/suggest.h"
#include "base/text/ascii.h"
#include "providers/interface/provider.h"

namespace sdx {
namespace {

// A provider to try, before its availability is checked.
struct Wish {
  std::string provider;
  std::string device;
  bool asked_for = false;
  bool by_auto = false;  // then a device that is merely the CPU does not count
  std::string intent;    // the word that it stands for: "npu"
  bool granted = false;  // the chain has it
};

std::string plain_name(const std::string& provider) { return provider.starts_with("ort:") ? provider.substr(4) : provider; }

// The chain that a name stands for. Names of single providers stand for their chain only if they are requested alone.
std::vector<Wish> expand(const std::string& name, bool alone, const PolicyInput& in) {
  std::vector<Wish> wishes;
  const auto add = [&](const std::string& provider, bool asked_for, const std::string& device = {}) {
    wishes.push_back({provider, device, asked_for, false, name, false});
  };
  if (name == "gpu") {
    for (const std::string& p : gpu_order(in.machine.platform)) add(p, false, p == "openvino" ? "GPU" : "");
  } else if (name == "npu") {
    for (const char* p : {"vitisai", "qnn", "directml"}) add(p, false);
    add("openvino", false, "NPU");
  } else if (name == "metal") {
    add("coreml", true);
  } else if (name == "vulkan") {
    add("vulkan", false);
    add("webgpu", false);
  } else if (name == "tensorrt" && alone) {
    add("tensorrt", true);
    add("cuda", true);
  } else if (name == "rocm" && alone) {
    add("migraphx", false);
    add("rocm", true);
  } else {
    add(name, true);
  }
  return wishes;
}

std::vector<Wish> automatic(const PolicyInput& in, std::string& why) {
  std::vector<std::string> order;
  for (const std::string& key : platform_keys(in.machine)) {
    for (const auto& [k, provider] : in.platform_defaults) {
      if (k != key) continue;
      order.push_back(canonical_provider(provider));
      why = "the default for " + key + ", then ";
    }
  }
  if (!in.provider_priority.empty()) {
    for (const std::string& p : in.provider_priority) order.push_back(canonical_provider(p));
    why += "the configured order";
  } else {
    for (const std::string& p : auto_order(in.machine.platform, in.machine.arm)) order.push_back(p);
    why += "the automatic order of " + std::string(platform_name(in.machine.platform));
  }
  std::vector<Wish> wishes;
  for (const std::string& p : order) {
    if (p == "auto") continue;
    for (Wish w : expand(p, false, in)) {
      w.asked_for = false;
      w.by_auto = true;
      w.intent.clear();
      wishes.push_back(std::move(w));
    }
  }
  return wishes;
}

std::vector<Wish> wishes_of(const PolicyInput& in, std::string& why) {
  std::vector<std::string> names;
  for (const std::string& text : in.asked) names.push_back(canonical_provider(text));
  const bool auto_only = std::all_of(names.begin(), names.end(), [](const std::string& n) { return n == "auto"; });
  if (auto_only) return automatic(in, why);
  why = "asked for " + join(names);
  std::vector<Wish> wishes;
  for (const std::string& name : names) {
    const bool bridged = name.starts_with("ort:");
    const std::string plain = bridged ? name.substr(4) : name;
    std::string unused;
    std::vector<Wish> more = plain == "auto" ? automatic(in, unused) : expand(plain, names.size() == 1, in);
    for (Wish& w : more) {
      if (bridged) w.provider = "ort:" + w.provider;
      wishes.push_back(std::move(w));
    }
  }
  return wishes;
}

// The runtime narrows what the names stand for.
void apply_runtime(std::vector<Wish>& wishes, Runtime runtime, std::vector<ChainGap>& gaps) {
  if (runtime == Runtime::ort) {
    for (Wish& w : wishes) {
      if (!w.provider.starts_with("ort:")) w.provider = "ort:" + w.provider;
    }
    const bool cpu = std::any_of(wishes.begin(), wishes.end(), [](const Wish& w) { return w.provider == "ort:cpu"; });
    if (!cpu) wishes.push_back({"ort:cpu", "", false, false, "", false});
    // Nobody named a provider, but the runtime was: that it cannot be had must not be silent.
    if (std::none_of(wishes.begin(), wishes.end(), [](const Wish& w) { return w.asked_for; })) wishes.back().asked_for = true;
  } else if (runtime == Runtime::native) {
    std::vector<Wish> kept;
    for (Wish& w : wishes) {
      if (w.provider == "cpu") {
        kept.push_back(std::move(w));
      } else if (w.asked_for) {
        gaps.push_back({w.provider, "the requested runtime `native` is our own engine, which has no such provider",
                        "omit `--runtime native`", true});
      }
    }
    wishes = std::move(kept);
  }
}

constexpr const char* kMerelyCpu = "its only device is the CPU, which our own engine already uses";

constexpr const char* kSimulated = "its only device is the CPU, which counts only if the provider is named";

// The reason why an available provider is not suitable; empty: it is.
std::string unsuitable(const Wish& w, const ProviderInfo& info) {
  const std::string p = plain_name(w.provider);
  // A software driver of Vulkan, a simulator of the NPU.
  if ((p == "webgpu" || p == "qnn") && !w.asked_for && !info.devices.empty() && merely_cpu(info)) return kSimulated;
  if (p != "openvino") return {};
  if (!w.device.empty() && !has_device(info, w.device)) {
    return "it has no " + w.device + " here; its devices: " + (info.devices.empty() ? "none" : join(info.devices));
  }
  if (w.by_auto && merely_cpu(info)) return kMerelyCpu;
  return {};
}

// `webgpu` of an order of ours: see gpu_order(). The provider that makes it unnecessary, or empty.
std::string instead_of(const Wish& w, const std::vector<Wish>& wishes) {
  if (w.asked_for || plain_name(w.provider) != "webgpu") return {};
  const auto serves = [&](const Wish& other) {
    return other.granted && !other.asked_for && other.intent == w.intent && plain_name(other.provider) != "cpu";
  };
  const auto other = std::find_if(wishes.begin(), wishes.end(), serves);
  return other == wishes.end() ? std::string() : other->provider;
}

// True if no provider that an intent stands for can be used.
bool found_nothing(const std::vector<Wish>& wishes, const std::string& intent) {
  return !intent.empty() &&
         std::none_of(wishes.begin(), wishes.end(), [&](const Wish& w) { return w.intent == intent && w.granted; });
}

// A provider is in the chain once. Where another kind of its devices is wanted as well, OpenVINO chooses among them in that
// order.
void add_link(std::vector<ChainLink>& links, const Wish& w) {
  const auto same = std::find_if(links.begin(), links.end(), [&](const ChainLink& link) { return link.provider == w.provider; });
  if (same == links.end()) {
    links.push_back({w.provider, w.device});
  } else if (!same->device.empty() && !w.device.empty() && same->device.find(w.device) == std::string::npos) {
    same->device = (same->device.starts_with("AUTO:") ? "" : "AUTO:") + same->device + "," + w.device;
  }
}

void add_gap(std::vector<ChainGap>& gaps, ChainGap gap) {
  for (ChainGap& g : gaps) {
    if (g.provider != gap.provider || g.reason != gap.reason) continue;
    g.asked_for = g.asked_for || gap.asked_for;
    return;
  }
  gaps.push_back(std::move(gap));
}

// Why a provider need not be looked for on this machine: it has no device for it. Empty: it is worth a look. Finding vendors'
// libraries takes a thousand file accesses, and loading OpenVINO longer than a small model's run.
std::string pointless_here(std::string_view provider, const MachineFacts& m) {
  if (m.platform != Platform::linux_os) return {};
  const bool nvidia = !m.nvidia_gpus.empty() || m.nvidia_nodes || !m.nvidia_driver.empty();
  const bool amd = !m.amd_gpus.empty() || m.amd_node;
  if ((provider == "cuda" || provider == "tensorrt") && !nvidia) return "this machine has no NVIDIA GPU";
  if ((provider == "rocm" || provider == "migraphx") && !amd) return "this machine has no AMD GPU";
  if (provider == "openvino" && m.intel_gpus.empty() && m.npus.empty()) {
    return "there is no Intel GPU or NPU: it would use the CPU, which our own engine already uses";
  }
  if (provider == "webgpu" && !nvidia && !amd && m.intel_gpus.empty() && !m.render_nodes) return "this machine has no GPU";
  return {};
}

// Why a provider that only an order of ours names is not looked for; empty: it is.
std::string not_looked_for(const Wish& w, const std::vector<Wish>& wishes, const MachineFacts& machine) {
  if (const std::string other = instead_of(w, wishes); !other.empty()) return "not needed beside " + other;
  return w.by_auto ? pointless_here(plain_name(w.provider), machine) : std::string();
}

}  // namespace

std::vector<std::string> gpu_order(Platform platform) {
  switch (platform) {
    case Platform::linux_os: return {"tensorrt", "cuda", "migraphx", "rocm", "openvino", "vulkan", "webgpu"};
    case Platform::windows: return {"tensorrt", "cuda", "directml", "openvino", "webgpu"};
    case Platform::macos: return {"coreml", "webgpu"};
  }
  return {};
}

std::vector<std::string> auto_order(Platform platform, bool arm) {
  switch (platform) {
    case Platform::linux_os: return {"tensorrt", "cuda", "migraphx", "rocm", "openvino", "webgpu", "cpu"};
    case Platform::windows: return {"tensorrt", "cuda", "directml", "openvino", "vitisai", "webgpu", "cpu"};
    case Platform::macos: return arm ? std::vector<std::string>{"coreml", "webgpu", "cpu"} : std::vector<std::string>{"cpu"};
  }
  return {"cpu"};
}

bool has_device(const ProviderInfo& info, std::string_view kind) {
  return std::any_of(info.devices.begin(), info.devices.end(),
                     [&](const std::string& d) { return ascii_lower(d).starts_with(ascii_lower(kind)); });
}

bool merely_cpu(const ProviderInfo& info) {
  return std::all_of(info.devices.begin(), info.devices.end(),
                     [](const std::string& d) { return ascii_lower(d).starts_with("cpu"); });
}

std::vector<std::string> platform_keys(const MachineFacts& m) {
  const std::string system = m.platform == Platform::linux_os ? "linux" : m.platform == Platform::windows ? "windows" : "darwin";
  std::vector<std::string> keys;
  if (!m.nvidia_gpus.empty() || m.nvidia_nodes) keys.push_back(system + "_nvidia");
  if (!m.amd_gpus.empty() || m.amd_node) keys.push_back(system + "_amd");
  if (!m.intel_gpus.empty()) keys.push_back(system + "_intel");
  keys.push_back(system);
  if (m.platform == Platform::macos) keys.emplace_back("macos");
  return keys;
}

Chain decide_chain(const PolicyInput& in) {
  Chain chain;
  std::vector<Wish> wishes = wishes_of(in, chain.why);
  apply_runtime(wishes, in.runtime, chain.gaps);
  std::map<std::string, ProviderInfo> known;
  for (Wish& w : wishes) {
    if (std::string why = not_looked_for(w, wishes, in.machine); !why.empty()) {
      add_gap(chain.gaps, {w.provider, std::move(why), "", false});
      continue;
    }
    auto at = known.find(w.provider);
    if (at == known.end()) at = known.emplace(w.provider, in.probe(w.provider)).first;
    const ProviderInfo& info = at->second;
    const std::string misfit = info.available ? unsuitable(w, info) : std::string();
    w.granted = info.available && misfit.empty();
    if (w.granted) {
      add_link(chain.links, w);
    } else {
      add_gap(chain.gaps, {w.provider, info.available ? misfit : info.reason, info.available ? "" : info.hint, w.asked_for});
    }
  }
  // Strict: the first provider must be usable; for an intent, any but the CPU after it; for `auto`, any at all.
  const bool first_missing = !wishes.empty() && wishes.front().asked_for &&
                             (chain.links.empty() || chain.links.front().provider != wishes.front().provider);
  const bool intent_missing = !wishes.empty() && found_nothing(wishes, wishes.front().intent);
  const bool runtime_missing = in.runtime == Runtime::native && wishes.empty() && !chain.gaps.empty();
  const bool bridge_missing = in.runtime == Runtime::ort && chain.links.empty();
  if (in.strict && (first_missing || intent_missing || runtime_missing || bridge_missing)) {
    for (const ChainGap& g : chain.gaps) {
      chain.broken +=
          (chain.broken.empty() ? "" : "; ") + g.provider + ": " + g.reason + (g.hint.empty() ? "" : " (" + g.hint + ")");
    }
  }
  // An intent that found nothing deserves the reasons of all it tried.
  for (ChainGap& g : chain.gaps) {
    for (const Wish& w : wishes) {
      g.asked_for = g.asked_for || (w.provider == g.provider && found_nothing(wishes, w.intent));
    }
  }
  const bool has_cpu = std::any_of(wishes.begin(), wishes.end(), [](const Wish& w) { return w.provider == "cpu"; });
  if (!has_cpu) chain.links.push_back({"cpu", ""});
  return chain;
}

}  // namespace sdx
