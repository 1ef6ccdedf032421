// A project file for a model that has none.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sdx/project.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/ascii.h"
#include "onnx/reader.h"
#include "project/config.h"
#include "session/pipeline.h"
#include "session/specs.h"
#include "tensor/json.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

bool contains_any(std::string_view text, std::initializer_list<const char*> words) {
  const std::string low = ascii_lower(text);
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return low.find(w) != std::string::npos; });
}

// The kind of data that an input seems to take; guesses are written with a comment that says so.
enum class Kind { picture, sound, tokens, other };

struct PictureAxes {
  std::int64_t channels, height, width;
  const char* layout;
};

std::optional<PictureAxes> picture_axes(const ValueSpec& s) {
  if (!s.has_shape || s.shape.size() != 4 || !(is_floating(s.dtype) || s.dtype == DataType::uint8)) return std::nullopt;
  const auto colours = [](std::int64_t d) { return d == 1 || d == 3; };
  if (colours(s.shape[1])) return PictureAxes{s.shape[1], s.shape[2], s.shape[3], "nchw"};
  if (colours(s.shape[3])) return PictureAxes{s.shape[3], s.shape[1], s.shape[2], "nhwc"};
  return std::nullopt;
}

Kind kind_of(const ValueSpec& s) {
  if (picture_axes(s)) return Kind::picture;
  const bool flat = s.has_shape && (s.shape.size() == 1 || s.shape.size() == 2);
  if (flat && is_floating(s.dtype) && contains_any(s.name, {"wav", "audio", "sound", "speech", "pcm", "samples"})) {
    return Kind::sound;
  }
  const bool text = s.dtype == DataType::string;
  if (text || (is_integer(s.dtype) && contains_any(s.name, {"input_ids", "token", "attention_mask"}))) return Kind::tokens;
  return Kind::other;
}

std::string shape_text(const ValueSpec& s) {
  std::string out = "[";
  for (std::size_t i = 0; i < s.shape.size(); ++i) {
    if (i != 0) out += ", ";
    const std::string symbol = i < s.symbols.size() ? s.symbols[i] : "";
    const bool word = !symbol.empty() && std::isalpha(static_cast<unsigned char>(symbol[0])) != 0;
    out += s.shape[i] >= 0 ? std::to_string(s.shape[i]) : word ? yaml_scalar(symbol) : "-1";
  }
  return out + "]";
}

std::string value_text(const ValueSpec& s) {
  std::string out;
  if (s.dtype != DataType::undefined) out += fmt::format("type: {}", name(s.dtype));
  if (s.has_shape) out += fmt::format("{}shape: {}", out.empty() ? "" : ", ", shape_text(s));
  return out;
}

class Writer {
 public:
  Writer(const fs::path& model, const InitOptions& options) : model_(model), options_(options) {
    Model m = read_model(model);
    session::prepare(m, {}, true);
    inputs_ = session::input_specs(m.graph);
    for (std::size_t i = 0; i < m.graph.outputs().size(); ++i) {
      const ValueInfo& info = m.graph.value(m.graph.outputs()[i]);
      outputs_.push_back(session::spec_of(m.graph.output_names()[i], info.type.known() ? info.type : info.declared));
    }
    doc_ = m.doc;
    beside_ = model.has_parent_path() ? model.parent_path() : fs::path(".");
  }

  std::string text() {
    const std::string name = options_.name.empty() ? model_.stem().string() : options_.name;
    out_ = fmt::format("# How to run {}; every key: docs/projects.md\n", model_.filename().string());
    out_ += fmt::format("name: {}\nversion: 1.0.0\n", yaml_scalar(name));
    const std::string first_line = doc_.substr(0, std::min(doc_.find('\n'), std::size_t{200}));
    if (!first_line.empty()) out_ += fmt::format("description: {}\n", yaml_scalar(first_line));
    out_ += fmt::format("model: {{source: {}}}\n", yaml_scalar(from_folder(model_)));
    inputs();
    outputs();
    out_ += "\nruntime:\n  providers: [auto]  # or a chain in order of preference: [cuda, cpu]\n";
    out_ += "  fallback: warn     # strict: fail instead of taking the next provider\n";
    dimensions();
    return out_;
  }

 private:
  std::string from_folder(const fs::path& file) const {
    std::error_code error;
    const fs::path folder = options_.folder.empty() ? fs::path(".") : options_.folder;
    const fs::path relative = fs::relative(fs::absolute(file), fs::absolute(folder), error);
    return error || relative.empty() ? fs::absolute(file).string() : relative.string();
  }

  bool beside(const char* name) const {
    std::error_code ignored;
    return fs::is_regular_file(beside_ / name, ignored);
  }

  void inputs() {
    std::string list;
    for (const ValueSpec& s : inputs_) {
      if (s.has_default || !s.is_tensor) continue;  // a run may leave them out, or they have no form in this file
      list += fmt::format("  {}:\n", yaml_scalar(s.name));
      if (s.dtype != DataType::undefined) list += fmt::format("    type: {}\n", name(s.dtype));
      if (s.has_shape) list += fmt::format("    shape: {}\n", shape_text(s));
      const Kind kind = kind_of(s);
      if (kind == Kind::picture) list += picture(s);
      if (kind == Kind::sound) list += "    preprocessing:\n      sample_rate: 16000  # assumed: what most speech models take\n";
      if (kind == Kind::tokens) list += tokens(s);
    }
    if (!list.empty()) out_ += "\ninputs:\n" + list;
  }

  std::string picture(const ValueSpec& s) const {
    const PictureAxes axes = *picture_axes(s);
    std::string text = "    preprocessing:\n";
    const auto fixed = [](std::int64_t extent) { return extent >= 1 && extent <= 65535; };
    if (fixed(axes.width) && fixed(axes.height)) {
      text += fmt::format("      resize: [{}, {}]  # width, height\n", axes.width, axes.height);
    }
    text += "      fit: stretch      # or letterbox, letterbox-corner, crop\n";
    text += fmt::format("      layout: {}\n      color: {}\n", axes.layout, axes.channels == 1 ? "gray" : "rgb");
    if (!is_floating(s.dtype)) return text + "      normalize: none\n";
    const bool imagenet = axes.channels == 3 && classes() == 1000;
    return text + fmt::format("      normalize: {}  # assumed{}; or 0-1, -1-1, imagenet, clip, none, or mean and std\n",
                              imagenet ? "imagenet" : "0-1", imagenet ? ": 1000 classes" : "");
  }

  std::string tokens(const ValueSpec& s) const {
    if (!beside("tokenizer.json")) return "";
    std::string text = "    preprocessing:\n";
    text += fmt::format("      tokenizer: {}\n", yaml_scalar(from_folder(beside_ / "tokenizer.json")));
    if (s.has_shape && !s.shape.empty() && s.shape.back() > 1) text += fmt::format("      max_length: {}\n", s.shape.back());
    return text;
  }

  // The extent of the last axis of the first output of floating-point numbers; -1 where it is open.
  std::int64_t classes() const {
    const ValueSpec* scores = score_output();
    return scores == nullptr ? -1 : scores->shape.back();
  }
  const ValueSpec* score_output() const {
    const auto it = std::find_if(outputs_.begin(), outputs_.end(),
                                 [](const ValueSpec& s) { return is_floating(s.dtype) && s.has_shape && s.shape.size() == 2; });
    return it == outputs_.end() ? nullptr : &*it;
  }

  void outputs() {
    std::string list;
    const ValueSpec* scores = score_output();
    for (const ValueSpec& s : outputs_) {
      if (!s.is_tensor) continue;
      list += fmt::format("  {}: {{{}}}\n", yaml_scalar(s.name), value_text(s));
      const std::string labels = &s == scores ? label_list() : "";
      if (labels.empty()) continue;
      list.resize(list.size() - 2);
      list += fmt::format(", labels: {}}}\n", labels);
    }
    if (!list.empty()) out_ += "\noutputs:\n" + list;
  }

  // A file of names, or the `id2label` that Transformers' config.json has.
  std::string label_list() const {
    for (const char* name : {"labels.txt", "classes.txt", "imagenet_classes.txt"}) {
      if (beside(name)) return yaml_scalar(from_folder(beside_ / name));
    }
    if (!beside("config.json")) return "";
    try {
      const nlohmann::json config = parse_json(read_file(beside_ / "config.json", std::size_t{16} << 20), "config.json");
      const auto labels = config.is_object() ? config.find("id2label") : config.end();
      if (labels == config.end() || !labels->is_object() || labels->size() > 1000) return "";
      std::string list;
      for (std::size_t i = 0; i < labels->size(); ++i) {
        const auto label = labels->find(std::to_string(i));
        if (label == labels->end() || !label->is_string()) return "";
        list += (i != 0 ? ", " : "") + yaml_scalar(label->get<std::string>());
      }
      return list.empty() ? "" : "[" + list + "]";
    } catch (const Error&) {
      return "";  // a file of another program: nothing depends on it
    }
  }

  void dimensions() {
    std::vector<std::string> symbols;
    for (const ValueSpec& s : inputs_) {
      for (const std::string& symbol : s.symbols) {
        const bool plain = !symbol.empty() && std::all_of(symbol.begin(), symbol.end(),
                                                          [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
        if (plain && std::find(symbols.begin(), symbols.end(), symbol) == symbols.end()) symbols.push_back(symbol);
      }
    }
    if (symbols.empty()) return;
    out_ += "  # dimensions: {";
    for (const std::string& s : symbols) out_ += fmt::format("{}{}: 1", &s == &symbols.front() ? "" : ", ", yaml_scalar(s));
    out_ += "}  # fix them for a faster start\n";
  }

  const fs::path& model_;
  const InitOptions& options_;
  std::vector<ValueSpec> inputs_, outputs_;
  std::string doc_, out_;
  fs::path beside_;
};

}  // namespace

std::string project_text(const fs::path& model, const InitOptions& options) {
  std::string text = Writer(model, options).text();
  // Names in models may be arbitrary, but the written file must read back.
  YamlDocument document = YamlDocument::parse(text, "the new project file");
  document.expand_environment();
  parse_project(document, options.folder.empty() ? fs::path(".") : options.folder);
  return text;
}

}  // namespace sdx
