#include "serve/inference/describe.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "serve/models/datatypes.h"

namespace sdx::serve {
namespace {

using nlohmann::json;

// Clients use this only to tell ONNX from other formats; which engine runs the model is "backend" in the
// configuration.
std::string platform_of(const LoadedModel& model) {
  if (!model.settings.platform.empty()) return model.settings.platform;
  switch (model.kind) {
    case ModelKind::tensors: return "sardonyx_onnx";
    case ModelKind::language: return "sardonyx_language";
    case ModelKind::embedding: return "sardonyx_embedding";
    case ModelKind::reranker: return "sardonyx_reranker";
    case ModelKind::speech: return "sardonyx_speech";
  }
  return {};
}

// Models with text in, and text or numbers out, for …/generate and OpenAI's routes. They have no other interface.
json text_value(const char* name, const char* datatype, std::vector<std::int64_t> shape) {
  return {{"name", name}, {"datatype", datatype}, {"shape", shape}};
}

json values_of(const std::vector<ValueSpec>& specs) {
  json out = json::array();
  for (const ValueSpec& spec : specs) {
    const std::string_view datatype = spec.is_tensor ? protocol_name(spec.dtype) : std::string_view();
    json one{{"name", spec.name}, {"datatype", datatype.empty() ? spec.type : std::string(datatype)}};
    one["shape"] = spec.has_shape ? spec.shape : std::vector<std::int64_t>{-1};
    out.push_back(std::move(one));
  }
  return out;
}

json config_values(const std::vector<ValueSpec>& specs, const std::vector<DeclaredValue>& declared, bool batch, bool inputs) {
  json out = json::array();
  for (const ValueSpec& spec : specs) {
    json one{{"name", spec.name}, {"data_type", spec.is_tensor ? config_type_name(spec.dtype) : "TYPE_INVALID"}};
    std::vector<std::int64_t> dims = spec.has_shape ? spec.shape : std::vector<std::int64_t>{-1};
    if (batch && !dims.empty()) dims.erase(dims.begin());
    one["dims"] = std::move(dims);
    if (inputs && spec.has_default) one["optional"] = true;
    const auto at = std::find_if(declared.begin(), declared.end(), [&](const DeclaredValue& d) { return d.name == spec.name; });
    if (at != declared.end() && !at->label_file.empty()) one["label_filename"] = at->label_file;
    if (at != declared.end() && !at->dims.empty()) one["dims"] = at->dims;
    out.push_back(std::move(one));
  }
  return out;
}

json duration(const BatchStatistics::Duration& d) { return {{"count", d.count}, {"ns", d.ns}}; }

json statistics_of(const LoadedModel& model) {
  BatchStatistics s;
  if (model.tensors) s = model.tensors->batcher->statistics();
  json out{{"name", model.name},
           {"version", model.version},
           {"last_inference", s.last_inference_ms},
           {"inference_count", s.inferences},
           {"execution_count", s.executions},
           {"memory_usage", json::array({{{"type", "CPU"}, {"id", 0}, {"byte_size", model.bytes}}})},
           {"response_stats", json::object()}};
  out["inference_stats"] = {{"success", duration(s.success)},
                            {"fail", duration(s.fail)},
                            {"queue", duration(s.queue)},
                            {"compute_input", duration(s.input)},
                            {"compute_infer", duration(s.infer)},
                            {"compute_output", duration(s.output)},
                            {"cache_hit", {{"count", 0}, {"ns", 0}}},
                            {"cache_miss", {{"count", 0}, {"ns", 0}}}};
  out["batch_stats"] = json::array();
  for (const BatchStatistics::OfSize& of : s.sizes) {
    out["batch_stats"].push_back({{"batch_size", of.size},
                                  {"compute_input", duration(of.input)},
                                  {"compute_infer", duration(of.infer)},
                                  {"compute_output", duration(of.output)}});
  }
  return out;
}

}  // namespace

json describe_server() {
  return {{"name", "sardonyx"},
          {"version", SDX_VERSION},
          {"extensions",
           {"classification", "model_repository", "model_repository(unload_dependents)", "schedule_policy", "model_configuration",
            "binary_tensor_data", "parameters", "statistics", "generate"}}};
}

json describe_model(const LoadedModel& model, const std::vector<std::string>& versions) {
  json out{{"name", model.name}, {"versions", versions}, {"platform", platform_of(model)}};
  if (model.tensors) {
    out["inputs"] = values_of(model.tensors->inputs);
    out["outputs"] = values_of(model.tensors->outputs);
    return out;
  }
  switch (model.kind) {
    case ModelKind::language:
      out["inputs"] = {text_value("text_input", "BYTES", {1})};
      out["outputs"] = {text_value("text_output", "BYTES", {1})};
      break;
    case ModelKind::embedding:
      out["inputs"] = {text_value("text", "BYTES", {-1})};
      out["outputs"] = {text_value("embedding", "FP32", {-1, -1})};
      break;
    case ModelKind::speech:
      out["inputs"] = {text_value("sound", "BYTES", {1})};
      out["outputs"] = {text_value("text", "BYTES", {1})};
      break;
    default:
      out["inputs"] = {text_value("query", "BYTES", {1}), text_value("documents", "BYTES", {-1})};
      out["outputs"] = {text_value("scores", "FP32", {-1})};
  }
  return out;
}

json describe_config(const LoadedModel& model) {
  json out{{"name", model.name}, {"platform", platform_of(model)}, {"max_batch_size", 0}};
  out["backend"] = model.settings.backend.empty() ? "sardonyx" : model.settings.backend;
  json policy = json::object();
  if (!model.settings.versions.empty()) {
    policy["specific"] = {{"versions", model.settings.versions}};
  } else if (model.settings.newest == 0) {
    policy["all"] = json::object();
  } else {
    policy["latest"] = {{"num_versions", model.settings.newest}};
  }
  out["version_policy"] = std::move(policy);
  json parameters = json::object();
  for (const auto& [key, value] : model.settings.parameters) parameters[key] = {{"string_value", value}};
  if (model.language) {
    out["input"] = {{{"name", "text_input"}, {"data_type", "TYPE_STRING"}, {"dims", {1}}},
                    {{"name", "stream"}, {"data_type", "TYPE_BOOL"}, {"dims", {1}}, {"optional", true}},
                    {{"name", "sampling_parameters"}, {"data_type", "TYPE_STRING"}, {"dims", {1}}, {"optional", true}}};
    out["output"] = {{{"name", "text_output"}, {"data_type", "TYPE_STRING"}, {"dims", {1}}}};
    out["model_transaction_policy"] = {{"decoupled", true}};
  } else if (!model.tensors) {
    out["input"] = out["output"] = json::array();
  }
  if (!model.tensors) {
    out["parameters"] = std::move(parameters);
    return out;
  }
  const TensorService& service = *model.tensors;
  const bool joins = service.has_batch && service.batch.max_batch_size > 1;
  const std::int64_t most = model.settings.max_batch_size.value_or(joins ? service.batch.max_batch_size : 0);
  out["max_batch_size"] = most;
  out["input"] = config_values(service.inputs, model.settings.inputs, most > 0, true);
  out["output"] = config_values(service.outputs, model.settings.outputs, most > 0, false);
  out["instance_group"] = json::array({{{"name", model.name + "_0"}, {"kind", "KIND_AUTO"}, {"count", service.batch.instances}}});
  if (joins) {
    out["dynamic_batching"] = {{"preferred_batch_size", service.batch.preferred},
                               {"max_queue_delay_microseconds", service.batch.max_queue_delay.count()},
                               {"default_queue_policy", {{"max_queue_size", service.batch.queue}}}};
  }
  out["default_model_filename"] = model.path.filename().string();
  const Report report = service.batcher->session().report();
  parameters["sardonyx.providers"] = {{"string_value", join(report.providers)}};
  if (!report.fallbacks.empty()) parameters["sardonyx.fallbacks"] = {{"string_value", join(report.fallbacks)}};
  out["parameters"] = std::move(parameters);
  return out;
}

json describe_statistics(const Catalog& catalog, std::string_view name, std::string_view version) {
  json all = json::array();
  for (const ModelPtr& model : catalog.loaded()) {
    if (!name.empty() && model->name != name) continue;
    if (!version.empty() && model->version != version) continue;
    all.push_back(statistics_of(*model));
  }
  return {{"model_stats", std::move(all)}};
}

json describe_repository(const Catalog& catalog, bool ready) {
  json out = json::array();
  for (const ModelStatus& status : catalog.list()) {
    if (ready && status.state != ModelState::ready) continue;
    out.push_back({{"name", status.name}, {"version", status.version}, {"state", name(status.state)}, {"reason", status.reason}});
  }
  return out;
}

std::vector<std::string> versions_of(const Catalog& catalog, std::string_view name) {
  std::vector<std::string> out;
  for (const ModelStatus& status : catalog.list()) {
    if (status.name == name) out.push_back(status.version);
  }
  return out;
}

ModelSettings settings_of_request(std::string_view config) {
  std::vector<std::string> ignored;
  ModelSettings settings = settings_of_json(config, ignored);
  if (!ignored.empty()) fail(ErrorCode::invalid_argument, "\"config\" has unknown members: {}", join(ignored));
  return settings;
}

}  // namespace sdx::serve
