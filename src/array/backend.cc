#include "array/backend.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"
#include "base/text/ascii.h"

namespace sdx::array {
namespace {

struct Named {
  std::string_view name, provider;
  bool gpu, by_itself;  // taken by auto
};

// In auto's order.
constexpr std::array<Named, 5> kBackends = {{{"metal", "coreml", true, true},
                                             {"cuda", "cuda", true, true},
                                             {"webgpu", "webgpu", true, false},
                                             {"onnx", "ort:cpu", false, false},
                                             {"cpu", "cpu", false, true}}};

struct Choice {
  const Named* backend = nullptr;
  std::shared_ptr<const session::Selection> chain, cpu_chain;
};

std::shared_ptr<const session::Selection> chain_of(const Named& backend) {
  SessionOptions options;
  options.providers = {std::string(backend.provider)};
  if (backend.provider != "cpu") options.providers.emplace_back("cpu");
  return std::make_shared<const session::Selection>(session::select_providers(options));
}

ProviderInfo look_at(const Named& backend, Effort effort) {
  return session::look_at_provider(std::string(backend.provider), {}, effort);
}

std::string why_not(const ProviderInfo& info) { return info.reason + (info.hint.empty() ? "" : ". To fix it: " + info.hint); }

Choice choice_of(const Named& backend) { return {&backend, chain_of(backend), chain_of(kBackends.back())}; }

Choice automatic() {
  for (const Named& b : kBackends) {
    if (b.by_itself && (b.provider == "cpu" || look_at(b, Effort::quick).available)) return choice_of(b);
  }
  return choice_of(kBackends.back());
}

// Null for auto.
const Named* find_backend(std::string_view text, std::string_view where) {
  const std::string wanted = ascii_lower(text);
  std::vector<std::string> known = {"auto"};
  for (const Named& b : kBackends) {
    if (wanted == b.name) return &b;
    known.emplace_back(b.name);
  }
  if (wanted == "auto") return nullptr;
  fail(ErrorCode::invalid_argument, "unknown backend '{}'{}; known: {}", text, where, join(known));
}

Choice from_environment() {
  for (const char* variable : {"SDX_BACKEND", "MLX_BACKEND"}) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') continue;
    const Named* backend = find_backend(text, fmt::format(" in the environment variable {}", variable));
    if (backend == nullptr) break;
    if (backend->provider == "cpu") return choice_of(*backend);
    const ProviderInfo info = look_at(*backend, Effort::quick);
    if (info.available) return choice_of(*backend);
    Choice other = automatic();
    log::warning("{} asks for {}; using {} instead: {}", variable, backend->name, other.backend->name, why_not(info));
    return other;
  }
  return automatic();
}

// Never destroyed: arrays may be computed while the process ends.
struct State {
  std::mutex mutex;
  Choice choice;
  std::atomic<std::uint64_t> number{1};
};

State& state() {
  static State& instance = *new State;
  return instance;
}

Choice current() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.choice.backend == nullptr) s.choice = from_environment();
  return s.choice;
}

}  // namespace

std::string get_backend() { return std::string(current().backend->name); }

void set_backend(std::string_view name) {
  const Named* backend = find_backend(name, "");
  if (backend != nullptr && backend->provider != "cpu") {
    const ProviderInfo info = look_at(*backend, Effort::quick);
    if (!info.available) fail(ErrorCode::provider_unavailable, "the backend {} cannot be used: {}", backend->name, why_not(info));
  }
  Choice choice = backend == nullptr ? automatic() : choice_of(*backend);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.choice = std::move(choice);
  s.number.fetch_add(1);
}

std::vector<BackendInfo> backend_info() {
  const Named* used = current().backend;
  std::vector<BackendInfo> out;
  for (const Named& b : kBackends) {
    const ProviderInfo info = look_at(b, Effort::full);
    BackendInfo shown{std::string(b.name), info.available, info.available ? "" : why_not(info),
                      info.devices.empty() ? "" : info.devices[0], b.provider == "cpu" ? std::string(version()) : info.version};
    if (info.available && &b != used && !b.by_itself) shown.reason = "used only when it is named";
    if (&b == used) {
      out.insert(out.begin(), std::move(shown));
    } else {
      out.push_back(std::move(shown));
    }
  }
  return out;
}

namespace detail {

std::shared_ptr<const session::Selection> backend_chain(Device::Type device) {
  const Choice choice = current();
  return choice.backend->gpu && device == Device::Type::cpu ? choice.cpu_chain : choice.chain;
}

bool backend_has_gpu() { return current().backend->gpu; }
std::uint64_t backend_number() noexcept { return state().number.load(std::memory_order_acquire); }

}  // namespace detail
}  // namespace sdx::array
