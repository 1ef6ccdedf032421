#include "project/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "base/text/ascii.h"
#include "base/words.h"
#include "media/preprocess.h"
#include "project/config_keys.h"
#include "project/config_options.h"
#include "providers/interface/provider.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;
using namespace config_keys;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr int kMaxSide = 65535;
constexpr std::array<std::string_view, 3> kActivations{"none", "softmax", "sigmoid"};

std::string text_or(const YamlValue& value, std::string fallback) { return value ? value.text() : std::move(fallback); }

std::chrono::milliseconds parse_time(const YamlValue& value) {
  const auto time = time_from_text(value.string());
  if (!time || time->count() < 1) {
    value.fail(fmt::format("expected a time above 0 such as 30 (seconds), 500ms or 2m, found {}", value.found()));
  }
  return *time;
}

// A number that is not negative and nothing behind it.
std::optional<double> plain_number(const std::string& text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  return end == last ? std::optional(number) : std::nullopt;
}

std::vector<float> parse_floats(const YamlValue& value) {
  std::vector<float> out;
  if (value.is_scalar()) return {static_cast<float>(value.number(-1e9, 1e9))};
  for (const YamlValue& item : value.list()) out.push_back(static_cast<float>(item.number(-1e9, 1e9)));
  if (out.size() != 1 && out.size() != 3) value.fail(fmt::format("expected one number or three, found {}", out.size()));
  return out;
}

// 0.5 or "1/255".
float parse_fraction(const YamlValue& value) {
  const std::string text = value.string();
  const auto slash = text.find('/');
  if (slash == std::string::npos) return static_cast<float>(value.number(-1e9, 1e9));
  const auto top = plain_number(text.substr(0, slash));
  const auto bottom = plain_number(text.substr(slash + 1));
  if (!top || !bottom || *bottom == 0) {
    value.fail(fmt::format("expected a number or a fraction such as 1/255, found {}", value.found()));
  }
  return static_cast<float>(*top / *bottom);
}

// [width, height], "640x480", or one number.
struct Size {
  int width = 0, height = 0;
  bool one = false;
};

Size parse_size_pair(const YamlValue& value) {
  const auto wrong = [&]() {
    value.fail(fmt::format("expected [width, height] from 1 to {}, found {}", kMaxSide, value.found()));
  };
  std::vector<std::int64_t> sides;
  if (value.is_list()) {
    sides = value.integers(1, kMaxSide);
  } else {
    const std::string text = value.string();
    const auto x = text.find_first_of("xX");
    for (const std::string& part : {text.substr(0, x), x == std::string::npos ? "" : text.substr(x + 1)}) {
      if (part.empty() && x == std::string::npos) continue;
      int side = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), side);
      if (error != std::errc{} || end != part.data() + part.size() || side < 1 || side > kMaxSide) wrong();
      sides.push_back(side);
    }
  }
  if (sides.empty() || sides.size() > 2) wrong();
  return {static_cast<int>(sides[0]), static_cast<int>(sides.back()), sides.size() == 1};
}

// Lists name what they hold; a map says it with {key: {...}}.
std::vector<std::pair<std::string, YamlValue>> named_items(const YamlValue& section) {
  if (section.is_map()) return section.entries();
  std::vector<std::pair<std::string, YamlValue>> out;
  std::set<std::string> seen;
  for (const YamlValue& item : section.list()) {
    const std::string name = item.require("name").string();
    if (!seen.insert(name).second) item.fail(fmt::format("'{}' is listed twice", name));
    out.emplace_back(name, item);
  }
  return out;
}

void parse_value(ProjectValue& out, const std::string& name, const YamlValue& item) {
  out.name = name;
  if (const YamlValue inner = item.get("name"); inner && inner.string() != name) {
    inner.fail(fmt::format("is called '{}' by its key", name));
  }
  if (const YamlValue type = item.get("type")) {
    out.dtype = parse_data_type(type.string());
    if (out.dtype == DataType::undefined) {
      std::vector<std::string> known;
      for (int i = 1; i < kDataTypeCount; ++i) known.emplace_back(sdx::name(static_cast<DataType>(i)));
      const std::string near = closest(type.string(), known);
      type.fail(fmt::format("unknown element type {}{}", type.found(),
                            near.empty() ? "; for example float32, int64, string" : "; did you mean '" + near + "'?"));
    }
  }
  if (const YamlValue shape = item.get("shape")) {
    out.shape.emplace();
    for (const YamlValue& extent : shape.list()) {
      // A word stands for any extent, as symbols in a model do.
      const bool symbol =
          extent.is_null() || (extent.is_scalar() && !extent.string().empty() &&
                               (std::isalpha(static_cast<unsigned char>(extent.string()[0])) != 0 || extent.string() == "?"));
      out.shape->push_back(symbol ? -1 : extent.integer(-1, std::int64_t{1} << 40));
    }
    if (out.shape->size() > 64) shape.fail("more than 64 dimensions");
  }
  out.description = text_or(item.get("description"), "");
}

std::vector<std::string> read_label_file(const YamlValue& value, const fs::path& folder) {
  const fs::path path = folder / value.string();
  std::string text;
  try {
    text = read_file(path, std::size_t{64} << 20);
  } catch (const Error& e) {
    value.fail(e.message());
  }
  std::vector<std::string> labels;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    labels.push_back(std::move(line));
    at = end + 1;
  }
  if (labels.empty()) value.fail(fmt::format("'{}' contains no labels", path.string()));
  return labels;
}

Postprocessing parse_postprocessing(const YamlValue& section, Postprocessing p, const fs::path& folder) {
  if (const YamlValue v = section.get("activation")) {
    p.activation = at_place(v, [&] { return parse_word<Activation>(kActivations, v.text()); });
  }
  const YamlValue softmax = section.get("softmax"), sigmoid = section.get("sigmoid");
  if (softmax && softmax.boolean()) p.activation = Activation::softmax;
  if (sigmoid && sigmoid.boolean()) {
    if (softmax && softmax.boolean()) sigmoid.fail("softmax and sigmoid exclude each other");
    p.activation = Activation::sigmoid;
  }
  if (const YamlValue v = section.get("axis")) p.axis = static_cast<int>(v.integer(-64, 63));
  if (const YamlValue v = section.get("top_k")) p.top_k = v.integer(1, 1'000'000);
  if (const YamlValue v = section.get("threshold")) p.threshold = v.number(-1e30, 1e30);
  if (const YamlValue v = section.get("labels")) {
    p.labels.clear();
    if (v.is_scalar()) {
      p.labels = read_label_file(v, folder);
    } else {
      for (const YamlValue& label : v.list()) p.labels.push_back(label.text());
    }
  }
  return p;
}

std::string provider_name(const YamlValue& value) {
  const std::string text = value.string();
  return at_place(value, [&] { return canonical_provider(text); });
}

// The engine alone has one provider.
void check_native(const ProjectRuntime& r, const YamlValue& section) {
  if (r.session.runtime != Runtime::native) return;
  if (r.gpu_backend != "auto" && r.gpu_backend != "cpu") {
    section.get("gpu").get("backend").fail(fmt::format("runtime: native has no provider '{}'", r.gpu_backend));
  }
  for (const std::string& p : r.session.providers) {
    if (p != "cpu" && p != "auto") section.get("providers").fail(fmt::format("runtime: native has no provider '{}'", p));
  }
}

ProjectRuntime parse_runtime(const YamlValue& section) {
  ProjectRuntime r;
  section.only_keys(runtime_keys());
  read_session_options(section, r.session);
  const YamlValue gpu = section.get("gpu");
  gpu.only_keys(kGpu);
  if (const YamlValue v = gpu.get("memory")) r.gpu_memory = parse_size(v);
  if (const YamlValue v = gpu.get("backend")) r.gpu_backend = provider_name(v);
  if (const YamlValue v = section.get("providers")) {
    if (v.is_scalar()) r.session.providers.push_back(provider_name(v));
    if (!v.is_scalar()) {
      for (const YamlValue& item : v.list()) r.session.providers.push_back(provider_name(item));
    }
  }
  check_native(r, section);
  if (const YamlValue v = section.get("timeout")) r.timeout = parse_time(v);
  if (const YamlValue v = section.get("batch_size")) r.batch_size = v.integer(1, 1 << 20);
  return r;
}

// The second name is the one that other systems' files use.
YamlValue either(const YamlValue& section, const char* name, const char* other) {
  const YamlValue value = section.get(name), alias = section.get(other);
  if (value && alias) alias.fail(fmt::format("means the same as '{}', which is also given", name));
  return value ? value : alias;
}

// Nothing reads the section yet; its values are checked all the same, so that files stay right.
ProjectServing parse_serving(const YamlValue& section) {
  ProjectServing s;
  section.only_keys(kServing);
  if (const YamlValue v = section.get("host")) s.host = v.string();
  if (const YamlValue v = section.get("port")) s.port = static_cast<int>(v.integer(0, 65535));
  if (const YamlValue v = either(section, "max_batch_size", "batch_size")) s.max_batch_size = v.integer(1, 1 << 20);
  if (const YamlValue v = section.get("max_queue_delay_ms")) s.max_queue_delay_ms = v.number(0, 1e7);
  if (const YamlValue v = section.get("timeout")) s.timeout = static_cast<double>(parse_time(v).count()) / 1e3;
  if (const YamlValue v = either(section, "workers", "max_workers")) s.workers = static_cast<int>(v.integer(1, 4096));
  return s;
}

void flatten(const YamlValue& value, const std::string& key, std::vector<std::pair<std::string, std::string>>& out) {
  if (value.is_map()) {
    for (const auto& [name, item] : value.entries()) flatten(item, key.empty() ? name : key + "." + name, out);
  } else if (value.is_list()) {
    std::size_t i = 0;
    for (const YamlValue& item : value.list()) flatten(item, fmt::format("{}[{}]", key, i++), out);
  } else {
    out.emplace_back(key, value.is_null() ? "" : value.text());
  }
}

void parse_model(ProjectConfig& c, const YamlValue& root) {
  const YamlValue model = root.require("model");
  if (model.is_scalar()) {  // "model: ./x.onnx" says the same
    c.model_source = model.string();
    return;
  }
  model.only_keys(kModel);
  c.model_source = model.require("source").string();
  if (c.model_source.find("://") != std::string::npos) {
    model.get("source").fail("this is an address; fetch the model with `sdx pull` and give its file");
  }
  if (const YamlValue v = model.get("format")) {
    const std::string format = ascii_lower(v.string());
    if (format != "onnx" && format != "auto") v.fail(fmt::format("only onnx can be run, found {}", v.found()));
  }
  c.model_version = text_or(model.get("version"), "");
}

std::string parse_name(const YamlValue& value) {
  std::string name = value.string();
  const bool bad = name.size() > 200 || name.front() == '.' ||
                   std::any_of(name.begin(), name.end(), [](unsigned char ch) { return ch < 0x20 || ch == '/' || ch == '\\'; });
  if (bad) value.fail("a name has at most 200 characters, no slashes, and does not start with '.'");
  return name;
}

}  // namespace

std::string_view name(Activation activation) noexcept { return kActivations[static_cast<std::size_t>(activation)]; }

std::string ParsedProject::place(const std::string& path) const {
  const auto it = places.find(path);
  return it == places.end() ? config.name : it->second;
}

std::uint64_t parse_size(const YamlValue& value) {
  const std::string text = value.string();
  const auto bytes = size_from_text(text);
  const bool has_unit = std::isalpha(static_cast<unsigned char>(text.back())) != 0;
  if (!bytes || *bytes == 0 || !has_unit) {
    value.fail(fmt::format("expected a size with its unit, such as 512MB or 2GB, found {}", value.found()));
  }
  return *bytes;
}

Preprocessing parse_preprocessing(const YamlValue& section, Preprocessing p) {
  section.only_keys(kPreprocessing);
  if (const YamlValue v = section.get("normalize")) {
    p.normalize = v.one_of({"imagenet", "clip", "0-1", "-1-1", "none", "unit", "signed", "0..1", "-1..1", "custom"});
    if (p.normalize == "0..1" || p.normalize == "unit") p.normalize = "0-1";
    if (p.normalize == "-1..1" || p.normalize == "signed") p.normalize = "-1-1";
    p.scale.reset();
    p.mean.clear();
    p.deviation.clear();
  }
  if (const YamlValue v = section.get("resize")) {
    const Size size = parse_size_pair(v);
    p.width = size.one ? 0 : size.width;
    p.height = size.one ? 0 : size.height;
    p.shorter_side = size.one ? size.width : 0;
  }
  if (const YamlValue v = section.get("crop")) {
    const Size size = parse_size_pair(v);
    p.crop_width = size.width;
    p.crop_height = size.height;
  }
  if (const YamlValue v = section.get("fit"))
    p.fit = media::parse_fit(v.one_of({"stretch", "letterbox", "letterbox-corner", "crop"}));
  if (const YamlValue v = section.get("interpolation")) {
    const std::string name = v.one_of({"bilinear", "bicubic", "area", "nearest", "linear", "cubic"});
    p.filter = media::parse_filter(name == "linear" || name == "cubic" ? "bi" + name : name);
  }
  if (const YamlValue v = section.get("fill")) p.fill = static_cast<int>(v.integer(0, 255));
  if (const YamlValue v = section.get("layout")) p.layout = media::parse_layout(v.one_of({"nchw", "nhwc", "chw", "hwc", "hw"}));
  if (const YamlValue v = section.get("color")) p.color = media::parse_color(v.one_of({"rgb", "bgr", "gray", "grey"}));
  if (const YamlValue v = section.get("scale")) p.scale = parse_fraction(v);
  if (const YamlValue v = section.get("mean")) p.mean = parse_floats(v);
  if (const YamlValue v = section.get("std")) {
    p.deviation = parse_floats(v);
    if (std::find(p.deviation.begin(), p.deviation.end(), 0.0F) != p.deviation.end()) v.fail("dividing by 0");
  }
  if (const YamlValue v = section.get("sample_rate")) p.sample_rate = static_cast<int>(v.integer(100, 768000));
  if (const YamlValue v = section.get("mono"); v && !v.boolean()) v.fail("sound is always mixed to one channel");
  if (const YamlValue v = section.get("tokenizer")) p.tokenizer = v.string();
  if (const YamlValue v = section.get("max_length")) p.max_length = static_cast<int>(v.integer(1, 1 << 30));
  if (const YamlValue v = section.get("custom")) p = parse_preprocessing(v, std::move(p));
  if (p.normalize == "custom" && section.get("normalize") && !p.scale && p.mean.empty() && p.deviation.empty()) {
    section.get("normalize").fail("'custom' needs mean, std or scale beside it");
  }
  return p;
}

ParsedProject parse_project(const YamlDocument& document, const fs::path& folder) {
  ParsedProject out;
  ProjectConfig& c = out.config;
  const YamlValue root = document.root();
  if (root.is_null()) fail(ErrorCode::invalid_argument, "{}: the file is empty", document.name());
  root.only_keys(kProject);
  c.name = parse_name(root.require("name"));
  if (const YamlValue v = root.get("version")) c.version = v.string();
  c.description = text_or(root.get("description"), "");
  parse_model(c, root);
  const auto remember = [&](const YamlValue& v) { out.places[v.path()] = v.at(""); };
  const YamlValue model = root.get("model");
  remember(model);
  const YamlValue gpu = root.get("runtime").get("gpu");
  if (gpu.get("memory")) remember(gpu.get("memory"));
  out.places["model"] = (model.is_map() ? model.get("source") : model).at("");
  c.preprocessing = parse_preprocessing(root.get("preprocessing"), {});
  const YamlValue post = root.get("postprocessing");
  post.only_keys(kPostprocessing);
  c.postprocessing = parse_postprocessing(post, {}, folder);
  if (const YamlValue section = root.get("inputs")) {
    for (const auto& [name, item] : named_items(section)) {
      item.only_keys(kInput);
      ProjectInput& input = c.inputs.emplace_back();
      parse_value(input, name, item);
      if (const YamlValue v = item.get("required")) input.required = v.boolean();
      if (const YamlValue v = item.get("max_length")) input.max_length = v.integer(1, kMost);
      input.preprocessing = parse_preprocessing(item.get("preprocessing"), c.preprocessing);
      out.places["inputs." + name] = item.at("");
    }
  }
  if (const YamlValue section = root.get("outputs")) {
    for (const auto& [name, item] : named_items(section)) {
      item.only_keys(kOutput);
      ProjectOutput& output = c.outputs.emplace_back();
      parse_value(output, name, item);
      const YamlValue own = item.get("postprocessing");
      own.only_keys(kPostprocessing);
      output.postprocessing = parse_postprocessing(own, parse_postprocessing(item, {}, folder), folder);
      out.places["outputs." + name] = item.at("");
    }
  }
  c.runtime = parse_runtime(root.get("runtime"));
  c.serving = parse_serving(root.get("serving"));
  if (const YamlValue v = root.get("metadata")) {
    if (!v.is_map()) v.fail(fmt::format("expected a map, found {}", v.found()));
    flatten(v, "", c.metadata);
  }
  return out;
}

ParsedProject read_project(const fs::path& file) {
  YamlDocument document = YamlDocument::read(file);
  document.expand_environment();
  return parse_project(document, file.has_parent_path() ? file.parent_path() : fs::path("."));
}

SessionOptions session_options_of(const ProjectConfig& config) {
  const ProjectRuntime& r = config.runtime;
  SessionOptions o = r.session;
  if (o.providers.empty() && r.gpu_backend != "auto") o.providers = {r.gpu_backend};
  if (r.gpu_memory == 0) return o;
  static constexpr std::array<std::pair<const char*, const char*>, 4> kLimits{{{"cuda", "gpu_mem_limit"},
                                                                               {"rocm", "gpu_mem_limit"},
                                                                               {"migraphx", "migraphx_mem_limit"},
                                                                               {"tensorrt", "trt_max_workspace_size"}}};
  for (const auto& [provider, option] : kLimits) {
    auto it =
        std::find_if(o.provider_options.begin(), o.provider_options.end(), [&](const auto& p) { return p.first == provider; });
    if (it == o.provider_options.end()) {
      o.provider_options.emplace_back(provider, std::vector<std::pair<std::string, std::string>>{});
      it = o.provider_options.end() - 1;
    }
    const bool given = std::any_of(it->second.begin(), it->second.end(), [&](const auto& p) { return p.first == option; });
    if (!given) it->second.emplace_back(option, std::to_string(r.gpu_memory));
  }
  return o;
}

}  // namespace sdx
