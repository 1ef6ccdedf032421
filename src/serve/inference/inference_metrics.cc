// A model's metrics under Triton's names.

#include <functional>

#include "serve/inference/http_routes.h"

namespace sdx::serve {
namespace {

struct Family {
  const char* name;
  const char* help;
  const char* kind;
  std::function<double(const BatchStatistics&)> value;
};

double microseconds(const BatchStatistics::Duration& d) { return static_cast<double>(d.ns) / 1000; }

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {"nv_inference_request_success", "Requests that were answered", "counter",
       [](const auto& s) { return static_cast<double>(s.success.count); }},
      {"nv_inference_request_failure", "Requests that failed", "counter",
       [](const auto& s) { return static_cast<double>(s.fail.count); }},
      {"nv_inference_count", "Samples in requests that were answered", "counter",
       [](const auto& s) { return static_cast<double>(s.inferences); }},
      {"nv_inference_exec_count", "Runs of the model", "counter",
       [](const auto& s) { return static_cast<double>(s.executions); }},
      {"nv_inference_pending_request_count", "Requests that wait for a run", "gauge",
       [](const auto& s) { return static_cast<double>(s.pending); }},
      {"nv_inference_request_duration_us", "Time from asking to the end, of all answered requests", "counter",
       [](const auto& s) { return microseconds(s.success); }},
      {"nv_inference_queue_duration_us", "Time that requests waited for a run", "counter",
       [](const auto& s) { return microseconds(s.queue); }},
      {"nv_inference_compute_input_duration_us", "Time for joining inputs", "counter",
       [](const auto& s) { return microseconds(s.input); }},
      {"nv_inference_compute_infer_duration_us", "Time of the model's runs, whole for each request", "counter",
       [](const auto& s) { return microseconds(s.infer); }},
      {"nv_inference_compute_output_duration_us", "Time for cutting outputs", "counter",
       [](const auto& s) { return microseconds(s.output); }}};
  return all;
}

}  // namespace

void add_inference_metrics(Metrics& metrics, const Catalog& catalog) {
  for (const Family& family : families()) {
    metrics.collect(family.name, family.help, family.kind, [&catalog, name = std::string(family.name), value = family.value] {
      std::vector<Metrics::Sample> out;
      for (const ModelPtr& model : catalog.loaded()) {
        if (!model->tensors) continue;
        out.push_back(
            {name, {{"model", model->name}, {"version", model->version}}, value(model->tensors->batcher->statistics())});
      }
      return out;
    });
  }
}

}  // namespace sdx::serve
