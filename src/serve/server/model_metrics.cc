#include "serve/server/model_metrics.h"

#include <utility>

namespace sdx::serve {
namespace {

using Samples = std::vector<Metrics::Sample>;

struct OfEngine {
  const char* name;
  const char* vllm;  // null: vLLM has none
  const char* kind;
  const char* help;
  double (*value)(const EngineStatus&);
};

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

constexpr OfEngine kOfEngine[] = {
    {"sdx_engine_requests_running", "vllm:num_requests_running", "gauge", "Requests that are being answered.",
     [](const EngineStatus& s) { return static_cast<double>(s.running); }},
    {"sdx_engine_requests_waiting", "vllm:num_requests_waiting", "gauge", "Requests that wait to be answered.",
     [](const EngineStatus& s) { return static_cast<double>(s.waiting); }},
    {"sdx_engine_cache_usage_perc", "vllm:kv_cache_usage_perc", "gauge",
     "Share of the memory for keys and values in use, 0 to 1.",
     [](const EngineStatus& s) { return share(s.cache_in_use, s.cache_limit); }},
    {"sdx_engine_cache_bytes", nullptr, "gauge", "Memory for keys and values, including kept prefixes.",
     [](const EngineStatus& s) { return static_cast<double>(s.cache_bytes); }},
    {"sdx_engine_prefix_cache_bytes", nullptr, "gauge", "Memory for keys and values that are kept for later prompts.",
     [](const EngineStatus& s) { return static_cast<double>(s.prefix_bytes); }},
    {"sdx_engine_prefix_cache_limit_bytes", nullptr, "gauge", "The most memory that is kept for later prompts.",
     [](const EngineStatus& s) { return static_cast<double>(s.prefix_limit); }},
    {"sdx_engine_prefix_cache_queries", "vllm:prefix_cache_queries", "counter", "Tokens of prompts that were looked up.",
     [](const EngineStatus& s) { return static_cast<double>(s.prompt_tokens); }},
    {"sdx_engine_prefix_cache_hits", "vllm:prefix_cache_hits", "counter", "Tokens of prompts that were found in the cache.",
     [](const EngineStatus& s) { return static_cast<double>(s.cached_tokens); }},
    {"sdx_engine_steps_total", nullptr, "counter", "Steps, each of which computes tokens of several requests.",
     [](const EngineStatus& s) { return static_cast<double>(s.steps); }},
    {"sdx_engine_generated_tokens_total", nullptr, "counter", "Tokens that were generated.",
     [](const EngineStatus& s) { return static_cast<double>(s.generated_tokens); }},
    {"sdx_engine_preemptions_total", "vllm:num_preemptions_total", "counter",
     "Requests put back into the queue for lack of memory.",
     [](const EngineStatus& s) { return static_cast<double>(s.preempted); }},
    {"sdx_engine_cancelled_total", nullptr, "counter", "Requests that were cancelled.",
     [](const EngineStatus& s) { return static_cast<double>(s.cancelled); }},
    {"sdx_engine_failed_total", nullptr, "counter", "Requests that failed.",
     [](const EngineStatus& s) { return static_cast<double>(s.failed); }},
};

// Histograms and counters that the interfaces keep, by the names that vLLM's dashboards ask for.
constexpr std::pair<const char*, const char*> kNamesOfVllm[] = {
    {"sdx_time_to_first_token_seconds", "vllm:time_to_first_token_seconds"},
    {"sdx_inter_token_latency_seconds", "vllm:inter_token_latency_seconds"},
    {"sdx_e2e_request_latency_seconds", "vllm:e2e_request_latency_seconds"},
    {"sdx_prompt_tokens_total", "vllm:prompt_tokens_total"},
    {"sdx_generation_tokens_total", "vllm:generation_tokens_total"},
    {"sdx_request_success_total", "vllm:request_success_total"},
};

}  // namespace

void watch_models(Metrics& metrics, const Catalog& catalog) {
  metrics.collect("sdx_model_ready", "Models: 1 where one is loaded and answers.", "gauge", [&catalog] {
    Samples samples;
    for (const ModelStatus& model : catalog.list()) {
      samples.push_back({"", {{"model", model.name}, {"version", model.version}}, model.state == ModelState::ready ? 1.0 : 0.0});
    }
    return samples;
  });
  for (const OfEngine& number : kOfEngine) {
    metrics.collect(number.name, number.help, number.kind, [&catalog, value = number.value] {
      Samples samples;
      for (const ModelPtr& model : catalog.loaded()) {
        if (!model->language) continue;
        samples.push_back({"", {{"model", model->name}, {"version", model->version}}, value(model->language->engine->status())});
      }
      return samples;
    });
    if (number.vllm != nullptr) metrics.also_called(number.name, number.vllm);
  }
  for (const auto& [name, other] : kNamesOfVllm) metrics.also_called(name, other);
}

}  // namespace sdx::serve
