#include "serve/models/load_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/ascii.h"
#include "base/text/text_file.h"
#include "inputs/index_bounds.h"
#include "inputs/shapes.h"
#include "project/resolve.h"
#include "serve/models/value_specs.h"
#include "speech/tools.h"

namespace sdx::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostWarm = 4 << 20;  // elements
constexpr std::size_t kLabelBytes = std::size_t{16} << 20;

bool open_first(const ValueSpec& spec) { return spec.is_tensor && spec.has_shape && !spec.shape.empty() && spec.shape[0] == -1; }

// Extents that samples of one batch do not share: along them requests must not be joined.
bool is_length(std::string_view symbol) {
  const std::string low = ascii_lower(symbol);
  constexpr std::array kWords{"seq", "time", "length", "token", "frame", "step", "height", "width", "samples_per", "past", "len"};
  return std::any_of(kWords.begin(), kWords.end(), [&](const char* word) { return low.find(word) != std::string::npos; });
}

BatchOptions batch_options(const LoadRequest& request, const std::optional<Project>& project) {
  BatchOptions out = request.batch;
  if (project && !project->file().empty()) {
    const ProjectServing& serving = project->config().serving;
    const ProjectServing defaults;
    if (serving.max_batch_size != defaults.max_batch_size) {
      out.max_batch_size = serving.max_batch_size;
      out.max_queue_delay = std::chrono::microseconds(static_cast<std::int64_t>(serving.max_queue_delay_ms * 1000));
    }
    if (project->config().runtime.timeout) out.timeout = project->config().runtime.timeout;
  }
  const ModelSettings& s = request.settings;
  if (s.max_batch_size) out.max_batch_size = std::max<std::int64_t>(1, *s.max_batch_size);
  if (!s.preferred.empty()) out.preferred = s.preferred;
  if (s.max_queue_delay) out.max_queue_delay = *s.max_queue_delay;
  if (s.queue) out.queue = *s.queue;
  if (s.instances) out.instances = *s.instances;
  if (s.timeout) out.timeout = std::chrono::ceil<std::chrono::milliseconds>(*s.timeout);
  if (!s.mask_input.empty()) out.mask_input = s.mask_input;
  return out;
}

// A configuration that does not fit its model would answer requests wrongly, or none.
void check_declared(const std::vector<DeclaredValue>& declared, const std::vector<ValueSpec>& specs, bool has_batch,
                    std::string_view what) {
  for (const DeclaredValue& d : declared) {
    const ValueSpec* spec = find_spec(specs, d.name);
    if (spec == nullptr) fail(ErrorCode::invalid_argument, "the configuration's {} '{}' is not one of the model's", what, d.name);
    if (d.dtype != DataType::undefined && spec->is_tensor && d.dtype != spec->dtype) {
      fail(ErrorCode::invalid_argument, "{} '{}': {} in the configuration, {} in the model", what, d.name, name(d.dtype),
           spec->type);
    }
    if (!spec->has_shape || d.dims.empty()) continue;
    std::vector<std::int64_t> whole = d.dims;
    if (has_batch) whole.insert(whole.begin(), -1);
    bool fits = whole.size() == spec->shape.size();
    for (std::size_t i = 0; fits && i < whole.size(); ++i)
      fits = whole[i] == spec->shape[i] || whole[i] < 0 || spec->shape[i] < 0;
    if (!fits) {
      fail(ErrorCode::invalid_argument, "{} '{}': the configuration's dims {} do not fit the model's {}{}", what, d.name,
           to_string(d.dims), spec->type, has_batch ? " (the first extent is the batch)" : "");
    }
  }
}

std::vector<std::string> read_labels(const fs::path& file) {
  std::vector<std::string> out;
  const std::string text = to_utf8(read_file(file, kLabelBytes));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    out.push_back(std::move(line));
    at = end + 1;
  }
  return out;
}

// Clients may send a configuration: its files must not be others than the model's own.
fs::path label_file(const DeclaredValue& output, const fs::path& folder) {
  const std::string& name = output.label_file;
  if (folder.empty()) {
    fail(ErrorCode::invalid_argument, "output '{}': label_filename '{}' is for models that have a folder in the repository",
         output.name, name);
  }
  if (name.starts_with('.') || name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
    fail(ErrorCode::invalid_argument, "output '{}': label_filename '{}' must be a file beside config.pbtxt", output.name, name);
  }
  fs::path file = folder / name;
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) {
    fail(ErrorCode::io, "output '{}': there is no file '{}' beside config.pbtxt", output.name, name);
  }
  check_inside(file, folder.parent_path());
  return file;
}

void add_labels(TensorService& service, const LoadRequest& request) {
  if (service.project) {
    const ProjectConfig& config = service.project->config();
    for (const ProjectOutput& o : config.outputs) {
      if (!o.postprocessing.labels.empty()) service.labels.emplace_back(o.name, o.postprocessing.labels);
    }
    if (!config.postprocessing.labels.empty()) service.labels.emplace_back("", config.postprocessing.labels);
  }
  for (const DeclaredValue& o : request.settings.outputs) {
    if (o.label_file.empty()) continue;
    service.labels.emplace_back(o.name, read_labels(label_file(o, request.folder)));
  }
}

Tensor zeros(DataType dtype, const Shape& shape) {
  Tensor out(dtype, shape);
  if (dtype != DataType::string) std::fill_n(static_cast<std::byte*>(out.mutable_data()), out.bytes(), std::byte{0});
  return out;
}

// Runs a sample of zeros of the usual size of such inputs, so that the first request does not pay for the memory and the plan of
// the first run, nor for weights that the second run packs. Results and errors of it do not matter.
void warm_up_with_zeros(const TensorService& service) {
  std::int64_t elements = 0;
  NamedValues inputs;
  const inputs::Dimensions dimensions = inputs::with_symbols(service.inputs, {}, {});
  for (const ValueSpec& spec : service.inputs) {
    if (spec.has_default) continue;
    if (!spec.is_tensor) return;
    const Shape shape = inputs::concrete_shape(spec, dimensions);
    elements += element_count(shape);
    if (elements > kMostWarm) return;
    inputs.add(spec.name, zeros(spec.dtype, shape));
  }
  RunOptions run;
  run.timeout = std::chrono::seconds(5);
  try {
    for (int i = 0; i < 2; ++i) service.batcher->session().run(inputs, run);
  } catch (const Error&) {
  }
}

NamedValues sample_inputs(const TensorService& service, const WarmUp& sample, const fs::path& model,
                          const SessionOptions& options) {
  std::vector<std::pair<std::string, Shape>> shapes;
  bool indices = false;
  for (const WarmUp::Input& input : sample.inputs) {
    Shape shape = input.dims;
    if (sample.batch > 0 && service.has_batch) shape.insert(shape.begin(), sample.batch);
    shapes.emplace_back(input.name, std::move(shape));
    indices = indices || (input.random && is_integer(input.dtype));
  }
  const inputs::IndexBounds bounds = indices ? inputs::index_bounds(model, options, shapes) : inputs::IndexBounds();
  NamedValues out;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const WarmUp::Input& input = sample.inputs[i];
    const bool random = input.random && input.dtype != DataType::string;
    const auto bound = bounds.find(input.name);
    const inputs::IntegerRange range = bound == bounds.end() ? inputs::IntegerRange() : bound->second;
    out.add(input.name,
            random ? inputs::random_tensor(input.dtype, shapes[i].second, 1, range) : zeros(input.dtype, shapes[i].second));
  }
  return out;
}

void warm_up(const TensorService& service, const ModelSettings& settings, const fs::path& model, const SessionOptions& options) {
  if (settings.warm_up.empty()) return warm_up_with_zeros(service);
  for (const WarmUp& sample : settings.warm_up) {
    const NamedValues inputs = sample_inputs(service, sample, model, options);
    for (int i = 0; i < sample.count; ++i) service.batcher->session().run(inputs);
  }
}

// What config.pbtxt says of a session comes before the server's flags.
session::TypedOptions asked_of(const LoadRequest& request) {
  session::TypedOptions asked = request.session;
  if (!request.settings.providers.empty()) {
    asked.values.providers = request.settings.providers;
    asked.typed.push_back("providers");
  }
  if (request.settings.threads) {
    asked.values.threads = *request.settings.threads;
    asked.typed.push_back("threads");
  }
  return asked;
}

std::unique_ptr<TensorService> load_tensors(const LoadRequest& request, const ModelFiles& files) {
  auto service = std::make_unique<TensorService>();
  if (files.project) service->project = Project::open(files.path);
  const SessionOptions options =
      project::options_for(asked_of(request), service->project ? &service->project->config() : nullptr);
  std::shared_ptr<const Session> session;
  if (service->project) {
    session = std::make_shared<const Session>(service->project->session(options));
    for (const std::string& warning : service->project->validate(*session)) request.log("warning", request.name + ": " + warning);
  } else {
    session = std::make_shared<const Session>(Session::open(files.path, options));
  }
  service->inputs = session->inputs();
  service->outputs = session->outputs();
  service->batch = batch_options(request, service->project);
  const bool declared = request.settings.max_batch_size.has_value();
  const bool open = std::all_of(service->inputs.begin(), service->inputs.end(), open_first) &&
                    std::all_of(service->outputs.begin(), service->outputs.end(), open_first);
  if (declared && *request.settings.max_batch_size > 0 && !open) {
    fail(ErrorCode::invalid_argument,
         "the configuration's max_batch_size is {}, but not every input and output of the model leaves its first extent open",
         *request.settings.max_batch_size);
  }
  service->has_batch = declared ? *request.settings.max_batch_size > 0 : looks_batched(service->inputs, service->outputs);
  if (!service->has_batch && service->batch.max_batch_size > 1) {
    request.log("info", fmt::format("{}: requests are not joined: the model has no batch axis", request.name));
    service->batch.max_batch_size = 1;
  }
  check_declared(request.settings.inputs, service->inputs, declared && service->has_batch, "input");
  check_declared(request.settings.outputs, service->outputs, declared && service->has_batch, "output");
  add_labels(*service, request);
  for (const std::string& fallback : session->report().fallbacks) request.log("warning", request.name + ": " + fallback);
  service->batcher = std::make_unique<Batcher>(std::move(session), service->has_batch, service->batch);
  warm_up(*service, request.settings, service->project ? service->project->model() : files.path, options);
  return service;
}

// Half of the room that the model's files leave, so that another model fits beside it.
EngineOptions engine_options(const LoadRequest& request, const LanguageSettings& settings, std::uint64_t files) {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;
  EngineOptions out = request.engine;
  if (settings.parallel > 0) out.max_sequences = settings.parallel;
  if (settings.prompt_cache) {
    out.share_prefixes = *settings.prompt_cache > 0;
    out.prefix_bytes = *settings.prompt_cache;
  }
  if (!request.room || out.cache_bytes > 0) return out;
  out.cache_bytes = std::max(kLeast, (*request.room - std::min(*request.room, files)) / 2);
  return out;
}

std::optional<ChatTemplate> template_of(const LanguageSettings& settings, const fs::path& model) {
  constexpr std::size_t kMost = std::size_t{4} << 20;
  if (settings.chat_template.empty()) {
    return ChatTemplate::has(model) ? std::optional(ChatTemplate::load(model)) : std::nullopt;
  }
  const fs::path& file = settings.chat_template;
  ChatTemplate out(to_utf8(read_file(file, kMost)), file.string());
  out.set_special_tokens(ChatTemplate::special_tokens_of(model));
  return out;
}

std::unique_ptr<LanguageService> load_language(const LoadRequest& request, const fs::path& path, std::uint64_t files) {
  const LanguageSettings settings = language_settings(request.language, request.settings.parameters, request.folder);
  LanguageModelOptions options;
  options.session = request.session.values;
  options.max_context = settings.context;
  options.cache_type = settings.cache_type;
  options.accuracy_level = settings.accuracy_level;
  options.loras = settings.loras;
  LanguageModel model = LanguageModel::load(path, options);
  std::optional<ChatTemplate> chat = template_of(settings, path);
  auto engine = std::make_unique<GenerationEngine>(model, engine_options(request, settings, files));
  return std::make_unique<LanguageService>(
      LanguageService{std::move(model), std::move(chat), std::move(engine), settings.control_tokens});
}

// Includes the weights beside an .onnx file, by the names that exporters use.
std::uint64_t bytes_of(const fs::path& path) {
  std::uint64_t bytes = model_bytes_on_disk(path);
  for (const char* ending : {".data", "_data"}) {
    std::error_code error;
    const std::uint64_t more = fs::file_size(path.string() + ending, error);
    if (!error && !fs::is_directory(path, error)) bytes += more;
  }
  return bytes;
}

}  // namespace

bool looks_batched(const std::vector<ValueSpec>& inputs, const std::vector<ValueSpec>& outputs) {
  if (inputs.empty() || outputs.empty()) return false;
  std::string symbol;
  for (const std::vector<ValueSpec>* specs : {&inputs, &outputs}) {
    for (const ValueSpec& spec : *specs) {
      if (!open_first(spec)) return false;
      const std::string& own = spec.symbols.empty() ? std::string() : spec.symbols[0];
      if (is_length(own)) return false;
      if (specs == &inputs && symbol.empty()) symbol = own;
      if (!own.empty() && own != symbol) return false;
    }
  }
  return true;
}

std::unique_ptr<LoadedModel> load_model(const LoadRequest& request) {
  try {
    const ModelFiles files = recognise_model(request.settings.file.empty() ? request.path : request.path / request.settings.file);
    auto out = std::make_unique<LoadedModel>();
    out->name = request.name;
    out->version = request.version;
    out->kind = files.kind;
    out->path = files.path;
    out->settings = request.settings;
    EmbedderOptions embedder;
    embedder.session = request.session.values;
    switch (files.kind) {
      case ModelKind::tensors: out->tensors = load_tensors(request, files); break;
      case ModelKind::language: out->language = load_language(request, files.path, bytes_of(files.path)); break;
      case ModelKind::embedding: out->embedder = std::make_unique<TextEmbedder>(TextEmbedder::load(files.path, embedder)); break;
      case ModelKind::speech: out->speech = load_module<speech::Tools>().load(files.path, request.session.values); break;
      case ModelKind::reranker: out->reranker = std::make_unique<Reranker>(Reranker::load(files.path, embedder)); break;
    }
    out->file_bytes = bytes_of(files.project ? out->tensors->project->model() : files.path);
    out->bytes = out->file_bytes + (out->language ? out->language->engine->status().cache_limit : 0);
    out->loaded_at = std::chrono::system_clock::now();
    return out;
  } catch (Error& error) {
    error.add_context(
        fmt::format("while loading model '{}' version {} from '{}'", request.name, request.version, request.path.string()));
    throw;
  }
}

}  // namespace sdx::serve
