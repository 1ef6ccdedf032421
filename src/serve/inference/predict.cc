// The routes of projects: the server applies a model's sdx.yml to inputs and outputs, so that the client need not.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sdx/image.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/json_text.h"
#include "media/model_input.h"
#include "media/sound/sound.h"
#include "project/process.h"
#include "serve/http/multipart.h"
#include "serve/inference/infer.h"
#include "serve/inference/json_numbers.h"
#include "serve/inference/routes.h"
#include "serve/models/value_specs.h"
#include "tensor/json.h"

namespace sdx::serve {
namespace {

using nlohmann::json;

constexpr std::size_t kMostJson = std::size_t{32} << 20;  // a document takes many times the memory of its text

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// The one that the request names (?model=, or the path), else the only one that takes tensors.
ModelPtr predicted_model(Catalog& catalog, const Request& request) {
  std::string name(request.part("model"));
  if (name.empty()) name = request.parameter("model");
  if (!name.empty()) return catalog.get(name);
  std::vector<std::string> names;
  for (const ModelStatus& status : catalog.list()) {
    const bool other = status.kind && *status.kind != ModelKind::tensors;
    if (!other && (names.empty() || names.back() != status.name)) names.push_back(status.name);
  }
  if (names.size() == 1) return catalog.get(names.front());
  if (names.empty()) throw UnknownModel(ErrorCode::invalid_argument, "no model here takes tensors");
  fail(ErrorCode::invalid_argument, "there are several models: name one of them (/predict/NAME, or ?model=NAME): {}",
       join(names));
}

const TensorService& service_of(const LoadedModel& model) {
  if (!model.tensors) fail(ErrorCode::invalid_argument, "model '{}' takes no tensors", model.name);
  return *model.tensors;
}

// ---- Inputs ----

class InputReader {
 public:
  explicit InputReader(const TensorService& service) : service_(service) {}

  NamedValues read(const Request& request) const {
    const std::string_view type = request.header("Content-Type");
    NamedValues out;
    if (const std::string boundary = multipart_boundary(type); !boundary.empty()) {
      for (const Part& part : parse_multipart(request.body, boundary)) add_part(out, part);
    } else if (type.starts_with("image/") || type.starts_with("audio/")) {
      const ValueSpec& spec = only_input();
      out.add(spec.name, media(request.body, spec));
    } else {
      add_json(out, request.body);
    }
    if (service_.project) project::check_inputs(service_.project->config(), service_.inputs, out);
    return out;
  }

 private:
  const ValueSpec* find(std::string_view name) const { return find_spec(service_.inputs, name); }
  const ValueSpec& only_input() const {
    const ValueSpec* only = nullptr;
    for (const ValueSpec& spec : service_.inputs) {
      if (spec.has_default) continue;
      if (only != nullptr) fail(ErrorCode::invalid_argument, "the model has several inputs: name them. They are: {}", names());
      only = &spec;
    }
    if (only == nullptr) fail(ErrorCode::invalid_argument, "the model has no input that must be given");
    return *only;
  }
  std::string names() const {
    std::vector<std::string> out;
    for (const ValueSpec& spec : service_.inputs) out.push_back(spec.name + ": " + spec.type);
    return join(out);
  }
  // A project's only input may have a name of its own.
  const ValueSpec& named(std::string_view name) const {
    if (const ValueSpec* spec = find(name)) return *spec;
    if (service_.project && service_.inputs.size() == 1) {
      const auto& declared = service_.project->config().inputs;
      if (declared.size() == 1 && declared.front().name == name) return service_.inputs.front();
    }
    fail(ErrorCode::invalid_argument, "the model has no input '{}'; it has {}", name, names());
  }

  void add_json(NamedValues& out, std::string_view text) const {
    check_size(text);
    const json document = parse_json(text, "the request");
    if (!document.is_object()) {
      const ValueSpec& spec = only_input();
      return add(out, spec, value_of(document, spec));
    }
    const auto inner = document.find("inputs");
    const bool wrapped = document.size() == 1 && inner != document.end() && inner->is_object() && find("inputs") == nullptr;
    const json& values = wrapped ? *inner : document;
    for (const auto& [name, value] : values.items()) {
      const ValueSpec& spec = named(name);
      add(out, spec, value_of(value, spec));
    }
  }

  static void check_size(std::string_view text) {
    if (text.size() > kMostJson) {
      fail(ErrorCode::out_of_memory, "{} bytes of JSON are more than this route accepts; /v2/models/NAME/infer accepts more",
           text.size());
    }
  }

  void add_part(NamedValues& out, const Part& part) const {
    const ValueSpec& spec =
        find(part.name) == nullptr && !part.file_name.empty() && part.name == "file" ? only_input() : named(part.name);
    const bool is_json = part.file_name.empty() || part.type == "application/json";
    add(out, spec, is_json ? value_of(text_or_json(part.body, spec), spec) : media(part.body, spec));
  }
  // A field of a form is text: for an input of strings, it is the value.
  static json text_or_json(std::string_view text, const ValueSpec& spec) {
    check_size(text);
    if (spec.dtype != DataType::string) return parse_json(text, "field '" + spec.name + "'");
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || (text[first] != '"' && text[first] != '[')) return json(text);
    try {
      return parse_json(text, "field '" + spec.name + "'");
    } catch (const Error&) {
      return json(text);
    }
  }

  static Tensor value_of(const json& value, const ValueSpec& spec) {
    JsonHint hint;
    hint.dtype = spec.dtype;
    if (spec.has_shape) hint.shape = spec.shape;
    Tensor t = tensor_from_json(value, hint, spec.name);
    // A single value for an input of one element; a single sample where there is a batch.
    while (spec.has_shape && t.rank() < spec.shape.size() &&
           (spec.shape[spec.shape.size() - t.rank() - 1] == -1 || spec.shape[spec.shape.size() - t.rank() - 1] == 1)) {
      Shape shape = t.shape();
      shape.insert(shape.begin(), 1);
      t = t.reshaped(std::move(shape));
    }
    return t;
  }

  Tensor media(std::string_view bytes, const ValueSpec& spec) const {
    const Preprocessing p = service_.project ? project::preprocessing_of(service_.project->config(), spec.name) : Preprocessing{};
    if (media::is_sound(bytes_of(bytes))) return media::decode_sound(bytes_of(bytes), &spec, p);
    return media::to_tensor(media::decode_image(bytes_of(bytes)), p, &spec);
  }

  static void add(NamedValues& out, const ValueSpec& spec, Tensor value) {
    if (out.find(spec.name) != nullptr) fail(ErrorCode::invalid_argument, "input '{}' is given twice", spec.name);
    out.add(spec.name, std::move(value));
  }

  const TensorService& service_;
};

// ---- Outputs ----

// Nested lists.
void append_nested(std::string& to, const Tensor& t, std::size_t axis, std::int64_t& at, const std::string& flat,
                   const std::vector<std::size_t>& ends) {
  if (axis == t.rank()) {
    const std::size_t begin = at == 0 ? 0 : ends[static_cast<std::size_t>(at - 1)] + 1;
    to.append(flat, begin, ends[static_cast<std::size_t>(at)] - begin);
    ++at;
    return;
  }
  to += '[';
  for (std::int64_t i = 0; i < t.dim(axis); ++i) {
    if (i > 0) to += ',';
    append_nested(to, t, axis + 1, at, flat, ends);
  }
  to += ']';
}

void append_nested(std::string& to, const Tensor& t, const std::string& name) {
  std::string flat;
  append_values(flat, t, "output '" + name + "'");
  flat = flat.substr(1, flat.size() - 2);
  std::vector<std::size_t> ends;  // of each value: commas outside of strings
  bool quoted = false;
  for (std::size_t i = 0; i < flat.size(); ++i) {
    if (flat[i] == '\\')
      ++i;
    else if (flat[i] == '"')
      quoted = !quoted;
    else if (flat[i] == ',' && !quoted)
      ends.push_back(i);
  }
  ends.push_back(flat.size());
  std::int64_t at = 0;
  append_nested(to, t, 0, at, flat, ends);
}

const Postprocessing* postprocessing_of(const ProjectConfig& config, const std::string& output, std::size_t outputs, bool first) {
  for (const ProjectOutput& o : config.outputs) {
    if (o.name == output || (outputs == 1 && config.outputs.size() == 1)) return &o.postprocessing;
  }
  return first ? &config.postprocessing : nullptr;
}

// {"scores": [[…]], "top": [{"output", "class", "score", "label"}]}: outputs by name, and the best classes where the project has
// labels.
std::string answer(const LoadedModel& model, const NamedValues& outputs) {
  const std::optional<Project>& project = model.tensors->project;
  std::string out = "{";
  json top = json::array();
  bool first = true, ranks = false;
  for (const NamedValue& item : outputs) {
    if (!item.value.is_tensor()) {
      fail(ErrorCode::not_implemented, "output '{}' is a {}, which cannot be sent", item.name, item.value.type_string());
    }
    Tensor t = item.value.tensor();
    const bool scores = is_floating(t.dtype());
    const Postprocessing* p =
        project ? postprocessing_of(project->config(), item.name, outputs.size(), first && scores) : nullptr;
    first = first && !scores;
    if (p != nullptr && p->activation != Activation::none) t = project::activated(t, *p);
    if (p != nullptr && p->ranks()) {
      ranks = true;
      for (const project::RankedClass& c : project::ranked(t, *p)) {
        json one{{"output", item.name}, {"class", c.index}, {"score", c.score}};
        if (!c.label.empty()) one["label"] = c.label;
        if (t.rank() > 1 && t.dim(0) > 1) one["row"] = c.row;
        top.push_back(std::move(one));
      }
    }
    if (out.size() > 1) out += ',';
    append_json_string(out, item.name);
    out += ':';
    append_nested(out, t, item.name);
  }
  if (ranks && outputs.find("top") == nullptr) {
    out += out.size() > 1 ? "," : "";
    out += "\"top\":" + dump_json(top);
  }
  return out + "}";
}

void predict(Catalog& catalog, const RequestPtr& request, const ResponderPtr& responder) {
  const ModelPtr model = predicted_model(catalog, *request);
  request->notes->set_model(model->name);
  RunOptions run;
  run.cancel = cancel_with(*responder);
  const TensorService& service = service_of(*model);
  std::optional<StageTimer> preprocessing(std::in_place, request->notes.get(), "preprocess");
  NamedValues inputs = InputReader(service).read(*request);
  preprocessing.reset();
  check_batch(*model, inputs);
  const auto begin = Notes::Clock::now();
  service.batcher->submit(std::move(inputs), {}, run,
                          [model, responder, notes = request->notes, begin](const BatchResult& result) {
                            add_stages(*notes, begin, result.times);
                            try {
                              if (result.error) std::rethrow_exception(result.error);
                              responder->respond(json_response(answer(*model, result.outputs)));
                            } catch (...) {
                              responder->respond(error_answer(std::current_exception()));
                            }
                          });
}

json values_of(const std::vector<ValueSpec>& specs, bool inputs) {
  json out = json::array();
  for (const ValueSpec& spec : specs) {
    json one{{"name", spec.name}, {"type", spec.is_tensor ? std::string(name(spec.dtype)) : spec.type}};
    one["shape"] = spec.has_shape ? json(spec.shape) : json();
    if (inputs) one["required"] = !spec.has_default;
    out.push_back(std::move(one));
  }
  return out;
}

// The provider that answers at present; for a model without a node left to run, the one that would.
std::string provider_of(const Report& report) {
  for (const ChainReport& chain : report.chains) {
    if (chain.state == "in use" && !chain.providers.empty()) return chain.providers.front();
  }
  return report.providers.empty() ? "" : report.providers.front();
}

Response info(Catalog& catalog, const Request& request) {
  const ModelPtr model = predicted_model(catalog, request);
  const TensorService& service = service_of(*model);
  const Report report = service.batcher->session().report();
  json out{{"name", model->name},
           {"version", service.project ? service.project->config().version : model->version},
           {"model_version", model->version},
           {"format", "onnx"},
           {"inputs", values_of(service.inputs, true)},
           {"outputs", values_of(service.outputs, false)},
           {"provider", provider_of(report)},
           {"providers", report.providers},
           {"fallbacks", report.fallbacks},
           {"runtime", report.runtime}};
  if (service.project) {
    out["project"] = service.project->config().name;
    out["description"] = service.project->config().description;
  }
  return json_response(dump_json(out));
}

}  // namespace

void add_predict_routes(Router& router, Catalog& catalog, const InferenceOptions& options) {
  for (const char* pattern : {"/predict", "/predict/{model}"}) {
    router.add(protocol_route("POST", pattern, Runs::on_pool, options.body_bytes),
               answering(AsyncHandler([&catalog](const RequestPtr& request, const ResponderPtr& responder) {
                 predict(catalog, request, responder);
               })));
  }
  for (const char* pattern : {"/info", "/info/{model}"}) {
    router.add(protocol_route("GET", pattern),
               answering(Handler([&catalog](const Request& request) { return info(catalog, request); })));
  }
}

}  // namespace sdx::serve
