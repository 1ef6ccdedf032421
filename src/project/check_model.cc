#include "project/check_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/suggest.h"
#include "project/process.h"

namespace sdx::project {
namespace {

const ValueSpec* find_spec(const std::vector<ValueSpec>& specs, const std::string& name) {
  const auto it = std::find_if(specs.begin(), specs.end(), [&](const ValueSpec& s) { return s.name == name; });
  return it == specs.end() ? nullptr : &*it;
}

class Checker {
 public:
  Checker(const ProjectConfig& config, const PlaceOf& place) : config_(config), place_(place) {}

  void inputs(const std::vector<ValueSpec>& specs) {
    for (const ProjectInput& input : config_.inputs) {
      const std::string key = "inputs." + input.name;
      const bool text = input.dtype == DataType::string || !input.preprocessing.tokenizer.empty();
      const ValueSpec* spec = spec_of(input, config_.inputs.size(), specs, key, text, "input");
      if (spec == nullptr) continue;
      if (text && spec->dtype != DataType::string) {
        warn(key, fmt::format("text for '{}' ({}) needs a tokenizer; give token numbers", spec->name, spec->type));
        continue;
      }
      compare(input, *spec, key);
      if (!input.required && !spec->has_default) warn(key, "required: false, but the model has no default for it");
    }
    for (const ValueSpec& s : specs) {
      if (config_.inputs.empty() || s.has_default) continue;
      const bool declared = std::any_of(config_.inputs.begin(), config_.inputs.end(), [&](const ProjectInput& i) {
        return model_name(i.name, config_.inputs.size(), specs) == s.name;
      });
      if (!declared)
        warnings_.push_back(fmt::format("{}the model's input '{}' ({}) is not listed", place_("name"), s.name, s.type));
    }
  }

  void outputs(const std::vector<ValueSpec>& specs) {
    for (const ProjectOutput& output : config_.outputs) {
      const std::string key = "outputs." + output.name;
      const ValueSpec* spec = spec_of(output, config_.outputs.size(), specs, key, false, "output");
      if (spec == nullptr) continue;
      compare(output, *spec, key);
      labels(output.postprocessing, *spec, key);
    }
  }

  void runtime() {
    const ProjectRuntime& r = config_.runtime;
    if (r.gpu_memory == 0) return;
    static constexpr std::array<std::string_view, 7> kLimited{"auto", "gpu", "cuda", "tensorrt", "rocm", "migraphx", "npu"};
    std::vector<std::string> chain = r.session.providers;
    if (chain.empty()) chain.push_back(r.session.runtime == Runtime::native ? "cpu" : r.gpu_backend);
    const bool limited = std::any_of(chain.begin(), chain.end(), [](std::string p) {
      if (p.starts_with("ort:")) p.erase(0, 4);
      return std::find(kLimited.begin(), kLimited.end(), p) != kLimited.end();
    });
    if (!limited) warn("runtime.gpu.memory", fmt::format("has no effect: none of {} has such a limit", join(chain)));
  }

  std::vector<std::string> warnings() { return std::move(warnings_); }

 private:
  void warn(const std::string& key, const std::string& what) { warnings_.push_back(place_(key) + what); }
  [[noreturn]] void stop(const std::string& key, const std::string& what) const {
    fail(ErrorCode::invalid_argument, "{}{}", place_(key), what);
  }

  const ValueSpec* spec_of(const ProjectValue& value, std::size_t declared, const std::vector<ValueSpec>& specs,
                           const std::string& key, bool text, const char* what) {
    const std::string name = model_name(value.name, declared, specs);
    if (const ValueSpec* spec = find_spec(specs, name)) {
      if (name != value.name) warn(key, fmt::format("the model calls its only {} '{}'", what, name));
      return spec;
    }
    std::vector<std::string> names;
    for (const ValueSpec& s : specs) names.push_back(s.name);
    if (text) {  // files of other systems name what a tokenizer turns into several inputs
      warn(key, fmt::format("the model has no such input; it would come from a tokenizer. It has: {}", join(names)));
      return nullptr;
    }
    const std::string near = closest(value.name, names);
    stop(key, fmt::format("the model has no {} '{}'{}; it has: {}", what, value.name,
                          near.empty() ? "" : ", did you mean '" + near + "'?", join(names)));
  }

  void compare(const ProjectValue& value, const ValueSpec& spec, const std::string& key) const {
    if (value.dtype != DataType::undefined && spec.dtype != DataType::undefined && value.dtype != spec.dtype) {
      stop(key, fmt::format("type: {} in the model, {} in the file", spec.type, name(value.dtype)));
    }
    if (!value.shape || !spec.has_shape) return;
    bool same = value.shape->size() == spec.shape.size();
    for (std::size_t i = 0; same && i < spec.shape.size(); ++i) {
      same = (*value.shape)[i] < 0 || spec.shape[i] < 0 || (*value.shape)[i] == spec.shape[i];
    }
    if (!same) stop(key, fmt::format("shape: {} in the model, [{}] in the file", spec.type, fmt::join(*value.shape, ",")));
  }

  void labels(const Postprocessing& p, const ValueSpec& spec, const std::string& key) {
    if (!spec.has_shape) return;
    if (p.activation == Activation::none && !p.ranks()) return;
    std::int64_t classes = 1;
    try {
      if (!spec.shape.empty()) classes = spec.shape[class_axis(spec.shape, p.axis)];
    } catch (const Error& e) {
      stop(key, e.message());
    }
    if (classes < 0 || p.labels.empty() || static_cast<std::int64_t>(p.labels.size()) == classes) return;
    warn(key, fmt::format("{} labels for {} classes", p.labels.size(), classes));
  }

  const ProjectConfig& config_;
  const PlaceOf& place_;
  std::vector<std::string> warnings_;
};

}  // namespace

std::string model_name(const std::string& name, std::size_t declared, const std::vector<ValueSpec>& specs) {
  if (find_spec(specs, name) != nullptr) return name;
  const auto required = [](const ValueSpec& s) { return !s.has_default; };
  const auto only = std::find_if(specs.begin(), specs.end(), required);
  return declared == 1 && std::count_if(specs.begin(), specs.end(), required) == 1 ? only->name : "";
}

std::vector<std::string> check_against_model(const ProjectConfig& config, const std::vector<ValueSpec>& inputs,
                                             const std::vector<ValueSpec>& outputs, const PlaceOf& place) {
  Checker checker(config, place);
  checker.inputs(inputs);
  checker.outputs(outputs);
  checker.runtime();
  return checker.warnings();
}

}  // namespace sdx::project
