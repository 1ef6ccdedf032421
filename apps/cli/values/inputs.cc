#include "cli/values/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "base/system/printable.h"
#include "base/text/ascii.h"
#include "cli/command.h"
#include "cli/session_flags.h"
#include "cli/values/media_input.h"
#include "inputs/input_plan.h"
#include "media/image.h"
#include "media/sound/sound.h"
#include "session/given/given_inputs.h"
#include "tensor/element.h"
#include "tensor/json.h"
#include "tensor/npy.h"
#include "tensor/npz.h"
#include "tensor/pb.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

std::string ending_of(const std::string& path) { return ascii_lower(fs::path(path).extension().string()); }

bool has_known_ending(const std::string& path) {
  static const std::vector<std::string> kEndings{".json", ".npy", ".npz", ".pb", ".jpg", ".jpeg", ".png", ".webp"};
  return media::has_sound_ending(path) || std::find(kEndings.begin(), kEndings.end(), ending_of(path)) != kEndings.end();
}

JsonHint hint_of(const ValueSpec* spec) {
  JsonHint hint;
  if (spec != nullptr && spec->is_tensor) {
    hint.dtype = spec->dtype;
    if (spec->has_shape) hint.shape = spec->shape;
  }
  return hint;
}

std::string name_of(const ValueSpec* spec) { return spec != nullptr ? spec->name : "value"; }

PbKind pb_kind(const ValueSpec* spec) {
  if (spec == nullptr || spec->is_tensor) return PbKind::tensor;
  if (spec->type.starts_with("sequence")) return PbKind::sequence;
  if (spec->type.starts_with("optional")) return PbKind::optional;
  if (spec->type.starts_with("map")) return PbKind::map;
  return PbKind::tensor;
}

Value converted(Tensor t, const ValueSpec* spec) {
  if (spec == nullptr || !spec->is_tensor || spec->dtype == DataType::undefined) return t;
  return convert_elements(t, spec->dtype, spec->name);
}

// The only array, or the one with the input's name.
Tensor from_npz(const std::string& path, const ValueSpec* spec) {
  const NamedTensors arrays = read_npz(path);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : arrays) {
    if (spec != nullptr && name == spec->name) return tensor;
    names.push_back(name);
  }
  if (arrays.size() == 1) return arrays.front().second;
  fail(ErrorCode::invalid_argument, "'{}' contains {} arrays ({}), none named '{}'", path, arrays.size(), join(names),
       name_of(spec));
}

// Words, and not the start of JSON or a number that went wrong.
bool is_text(const std::string& text) {
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0 || c >= 0x80; };
  if (text.starts_with('"')) return true;
  return !text.empty() && letter(static_cast<unsigned char>(text[0])) && text.find('/') == std::string::npos;
}

// "clip.mp4", "data/values": no JSON, and most likely a file.
bool is_file_name(const std::string& text) {
  if (text.find_first_of("[{\"") != std::string::npos) return false;
  if (text.find('/') != std::string::npos) return true;
  const std::string ending = ending_of(text);
  const auto letter_or_digit = [](unsigned char c) { return std::isalnum(c) != 0; };
  return ending.size() >= 2 && ending.size() <= 6 && text.find(' ') == std::string::npos &&
         std::isalpha(static_cast<unsigned char>(ending[1])) != 0 &&
         std::all_of(ending.begin() + 1, ending.end(), letter_or_digit);
}

[[noreturn]] void refuse_text(const std::string& text, const ValueSpec& spec) {
  const bool quoted = text.starts_with('"');
  const bool tokens = is_integer(spec.dtype);  // what language models take
  fail(ErrorCode::invalid_argument, "input '{}' takes {}, not text{}; give {}", spec.name, spec.type,
       quoted ? "" : fmt::format(", and there is no file '{}'", text),
       tokens ? fmt::format("numbers, for example -i {}='[[101, 7592, 102]]' (sdx tokenize converts text for language models)",
                            spec.name)
              : "numbers as JSON, or a file: .json, .npy, .npz, .pb, a picture or sound");
}

Value inline_value(const std::string& text, const ValueSpec& spec) {
  if (spec.is_tensor && spec.dtype == DataType::string && !text.starts_with('[') && !text.starts_with('{') &&
      !text.starts_with('"')) {
    Tensor t = Tensor::scalar<std::string>(text);
    const bool one =
        spec.has_shape && std::all_of(spec.shape.begin(), spec.shape.end(), [](std::int64_t d) { return d == 1 || d < 0; });
    return one ? t.reshaped(Shape(spec.shape.size(), 1)) : t;
  }
  try {
    return tensor_from_json(parse_json(text, "the value of input '" + spec.name + "'"), hint_of(&spec), spec.name);
  } catch (const Error&) {
    if (is_file_name(text)) fail(ErrorCode::io, "input '{}': there is no file '{}'", spec.name, text);
    if (is_text(text) && spec.is_tensor && spec.dtype != DataType::string) refuse_text(text, spec);
    throw;
  }
}

// A word that names a file: "@file", something with a known ending, or an existing file.
std::string as_file(const std::string& text) {
  if (text.starts_with('@')) return text.substr(1);
  std::error_code ignored;
  const bool bracket = text.starts_with('[') || text.starts_with('{') || text.starts_with('"');
  if (bracket || text.empty() || text.size() > 4096) return "";
  return has_known_ending(text) || fs::is_regular_file(text, ignored) ? text : "";
}

const ValueSpec* find_spec(const std::vector<ValueSpec>& specs, std::string_view name) {
  const auto it = std::find_if(specs.begin(), specs.end(), [&](const ValueSpec& s) { return s.name == name; });
  return it == specs.end() ? nullptr : &*it;
}

[[noreturn]] void unknown_input(const std::string& name, const std::vector<ValueSpec>& specs) {
  const std::string near = closest(name, session::names_of(specs));
  throw UsageError(fmt::format("the model has no input '{}'{}\nIts inputs:\n{}", name,
                               near.empty() ? "" : "; did you mean '" + near + "'?", describe_inputs(specs)));
}

const ValueSpec& required_spec(const std::vector<ValueSpec>& specs, const std::string& name) {
  if (const ValueSpec* spec = find_spec(specs, name)) return *spec;
  unknown_input(name, specs);
}

}  // namespace

const ValueSpec& only_input(const std::vector<ValueSpec>& specs, const std::string& text) {
  const ValueSpec* found = nullptr;
  int required = 0;
  for (const ValueSpec& s : specs) {
    if (s.has_default) continue;
    ++required;
    found = &s;
  }
  if (required == 1) return *found;
  throw UsageError(fmt::format("-i {}: the model has {} inputs, say which one: -i NAME=VALUE\nIts inputs:\n{}",
                               text.substr(0, 60), required, describe_inputs(specs)));
}

NamedText split_input(const std::vector<ValueSpec>& specs, const std::string& text) {
  // A name may hold '=', so every '=' is tried.
  for (std::size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
    if (const ValueSpec* spec = find_spec(specs, text.substr(0, at))) return {spec, text.substr(at + 1)};
  }
  const std::size_t at = text.find('=');
  std::error_code ignored;  // a file's name may hold '=', too
  const bool named = at != std::string::npos && at > 0 && text.find_first_of("[{\"@/") > at && !fs::exists(text, ignored);
  if (named) unknown_input(text.substr(0, at), specs);
  return {nullptr, text};
}

NamedValues values_from_json(const std::string& text, const std::string& what, const std::vector<ValueSpec>& specs) {
  const nlohmann::json json = parse_json(text, what);
  NamedValues out;
  const bool value = json.is_object() && json.contains("data") && find_spec(specs, "data") == nullptr;
  if (!json.is_object() || value) {
    const ValueSpec& spec = only_input(specs, text);
    out.add(spec.name, tensor_from_json(json, hint_of(&spec), spec.name));
    return out;
  }
  for (const auto& [name, item] : json.items()) {
    const ValueSpec& spec = required_spec(specs, name);
    out.add(spec.name, tensor_from_json(item, hint_of(&spec), name));
  }
  return out;
}

namespace {

class Collector {
 public:
  Collector(const std::vector<ValueSpec>& specs, const InputFlags& flags) : specs_(specs), flags_(flags) {}

  void add(const ValueSpec& spec, Value value) {
    if (values_.find(spec.name) != nullptr) throw UsageError(fmt::format("input '{}' is given twice", spec.name));
    values_.add(spec.name, std::move(value));
  }

  void add_argument(const std::string& text) {
    const NamedText named = split_input(specs_, text);
    if (named.spec != nullptr) return add_value(*named.spec, named.text);
    const std::string file = as_file(text);
    if (ending_of(file) == ".npz") return add_npz(file);
    add_value(only_input(specs_, text), text);
  }

  void add_file(const std::string& path) {
    const std::string ending = ending_of(path);
    if (ending == ".npz") return add_npz(path);
    if (ending != ".json") throw UsageError(fmt::format("-f {}: expected a .json or .npz file with all inputs", path));
    const nlohmann::json json = parse_json(read_file(path), "'" + path + "'");
    if (!json.is_object()) fail(ErrorCode::invalid_argument, "'{}': expected an object {{\"input name\": values}}", path);
    for (const auto& [name, value] : json.items()) {
      const ValueSpec& spec = required_spec(specs_, name);
      add(spec, tensor_from_json(value, hint_of(&spec), name));
    }
  }

  void add_all() {
    for (const std::string& f : flags_.files) add_file(f);
    for (const std::string& i : flags_.inputs) add_argument(i);
  }

  NamedValues& values() { return values_; }

 private:
  void add_value(const ValueSpec& spec, const std::string& text) {
    if (text == "-") return add(spec, read_standard_input(spec, flags_));
    const std::string file = as_file(text);
    add(spec, file.empty() ? inline_value(text, spec) : read_value_file(file, &spec, flags_));
  }

  void add_npz(const std::string& path) {
    const NamedTensors arrays = read_npz(path);
    if (arrays.size() == 1 && find_spec(specs_, arrays.front().first) == nullptr && specs_.size() == 1) {
      return add(specs_.front(), converted(arrays.front().second, &specs_.front()));
    }
    for (const auto& [name, tensor] : arrays) {
      const ValueSpec& spec = required_spec(specs_, name);
      add(spec, converted(tensor, &spec));
    }
  }

  const std::vector<ValueSpec>& specs_;
  const InputFlags& flags_;
  NamedValues values_;
};

bool fits(double v, DataType type) {
  const int bits = bit_width(type);
  const bool is_unsigned = name(type).starts_with('u');
  if (type == DataType::boolean) return v == 0 || v == 1;
  const double high = std::ldexp(1.0, is_unsigned ? bits : bits - 1);
  return v == std::floor(v) && v < high && v >= (is_unsigned ? 0 : -high);
}

}  // namespace

Tensor convert_elements(const Tensor& t, DataType wanted, std::string_view input) {
  if (t.dtype() == wanted) return t;
  const auto number = [](DataType d) { return is_floating(d) || is_integer(d) || d == DataType::boolean; };
  if (!number(t.dtype()) || !number(wanted)) {
    fail(ErrorCode::invalid_argument, "input '{}' must be {}, received {}", input, name(wanted), t.type_string());
  }
  Tensor out(wanted, t.shape());
  const bool to_float = is_floating(wanted);
  for (std::int64_t i = 0; i < t.size(); ++i) {
    if (is_integer(t.dtype()) && is_integer(wanted)) {
      const std::int64_t v = element_as_int(t, i);
      set_element_int(out, i, v);
      if (element_as_int(out, i) == v) continue;
      fail(ErrorCode::invalid_argument, "input '{}' must be {}: element {} is {}, which does not fit", input, name(wanted), i, v);
    }
    const double v = element_as_double(t, i);
    if (!to_float && !fits(v, wanted)) {
      fail(ErrorCode::invalid_argument, "input '{}' must be {}, received {}: element {} is {}, which does not fit", input,
           name(wanted), t.type_string(), i, v);
    }
    set_element(out, i, v);
  }
  return out;
}

// Files of IR version 3 list every weight as an input with a default: where there are many, their number must do.
std::string describe_inputs(const std::vector<ValueSpec>& specs) {
  constexpr std::ptrdiff_t kDefaultsShown = 4;
  const std::ptrdiff_t defaults = std::count_if(specs.begin(), specs.end(), [](const ValueSpec& s) { return s.has_default; });
  std::string out;
  for (const ValueSpec& s : specs) {
    if (s.has_default && defaults > kDefaultsShown) continue;
    out += fmt::format("  {}: {}{}\n", one_line(s.name), one_line(s.type), s.has_default ? "  (optional)" : "");
  }
  if (defaults > kDefaultsShown) out += fmt::format("  and {} weights that may be given, too\n", defaults);
  if (!out.empty()) out.pop_back();
  return out;
}

Value read_value_file(const std::string& path, const ValueSpec* spec, const InputFlags& flags) {
  const std::string ending = ending_of(path);
  if (ending == ".npy") return converted(read_npy(path, spec != nullptr ? spec->dtype : DataType::undefined), spec);
  if (ending == ".npz") return converted(from_npz(path, spec), spec);
  if (ending == ".pb") return read_value_pb(path, pb_kind(spec));
  if (ending == ".json") return tensor_from_json(parse_json(read_file(path), "'" + path + "'"), hint_of(spec), name_of(spec));
  if (media::has_sound_ending(path)) return sound_input(path, spec, flags);
  if (ending == ".jpg" || ending == ".jpeg" || ending == ".png" || ending == ".webp") return image_input(path, spec, flags);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) fail(ErrorCode::io, "there is no file '{}'", path);
  const auto file = MappedFile::open(path);
  if (!media::image_format(file->bytes()).empty()) return image_input(path, spec, flags);
  if (media::is_sound(file->bytes())) return sound_input(path, spec, flags);
  fail(ErrorCode::invalid_argument, "'{}': unknown kind of file; expected .json, .npy, .npz, .pb, a picture or sound", path);
}

Value read_standard_input(const ValueSpec& spec, const InputFlags& flags) {
  const std::string all{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  const auto bytes = std::as_bytes(std::span(all.data(), all.size()));
  if (bytes.empty()) fail(ErrorCode::io, "input '{}': standard input is empty", spec.name);
  if (!media::image_format(bytes).empty()) return image_input(bytes, &spec, flags);
  if (all.starts_with("\x93NUMPY")) {
    const auto owner = std::make_shared<const std::string>(all);
    return converted(parse_npy(std::as_bytes(std::span(owner->data(), owner->size())), owner, spec.dtype), &spec);
  }
  if (media::is_sound(bytes)) return sound_input(bytes, &spec, flags);
  return tensor_from_json(parse_json(all, "standard input, the value of input '" + spec.name + "'"), hint_of(&spec), spec.name);
}

NamedValues InputFlags::given(const std::vector<ValueSpec>& specs) const {
  Collector collector(specs, *this);
  collector.add_all();
  return std::move(collector.values());
}

std::vector<std::pair<std::string, Shape>> InputFlags::given_shapes(const std::vector<ValueSpec>& specs) const {
  std::vector<std::pair<std::string, Shape>> out;
  for (const std::string& s : shapes) {
    const auto at = s.rfind('=');
    Shape shape = parse_shape(at == std::string::npos ? s : s.substr(at + 1), "--shape");
    const std::string input = at == std::string::npos ? only_input(specs, s).name : s.substr(0, at);
    const std::string& name = required_spec(specs, input).name;
    const bool twice = std::any_of(out.begin(), out.end(), [&](const auto& other) { return other.first == name; });
    if (twice) throw UsageError(fmt::format("--shape: the input '{}' is given twice", name));
    out.emplace_back(name, std::move(shape));
  }
  return out;
}

ReadInputs InputFlags::read(const std::vector<ValueSpec>& specs, const std::filesystem::path& model,
                            const SessionOptions& options) const {
  Collector collector(specs, *this);
  collector.add_all();
  const std::vector<std::pair<std::string, Shape>> sizes = given_shapes(specs);
  std::vector<inputs::ChosenExtent> chosen;
  const inputs::Dimensions dimensions =
      inputs::with_symbols(specs, inputs::with_shapes_of(collector.values(), sizes), options.dimensions, &chosen);
  std::vector<std::string> missing;
  std::vector<std::pair<std::string, Shape>> made;
  for (const ValueSpec& spec : specs) {
    if (spec.has_default || collector.values().find(spec.name) != nullptr || spec.type.starts_with("optional")) continue;
    if (!random) {
      missing.push_back("'" + spec.name + "'");
      continue;
    }
    if (!spec.is_tensor)
      throw UsageError(fmt::format("--random generates only tensors; give input '{}' ({}) with -i", spec.name, spec.type));
    const auto size = std::find_if(sizes.begin(), sizes.end(), [&](const auto& s) { return s.first == spec.name; });
    made.emplace_back(spec.name, size != sizes.end() ? size->second : inputs::concrete_shape(spec, dimensions, &chosen));
  }
  if (!missing.empty()) {
    throw UsageError(
        fmt::format("missing input{} {}: give -i NAME=VALUE, or --random for made-up values\nThe model's inputs:\n{}",
                    missing.size() == 1 ? "" : "s", join(missing), describe_inputs(specs)));
  }
  if (const std::string idle = without_effect(); !idle.empty()) throw UsageError(idle);
  const std::string choice = inputs::describe(chosen);
  if (!choice.empty()) note("note: the model leaves extents open; chosen: " + choice + " (--dim or --shape for others)");
  const inputs::IndexBounds bounds = inputs::bounds_of(model, options, specs, collector.values(), made);
  return {inputs::with_made_up(specs, std::move(collector.values()), made, seed, bounds),
          inputs::made_up_note(specs, made, bounds)};
}

}  // namespace sdx::cli
