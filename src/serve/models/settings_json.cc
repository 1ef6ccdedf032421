#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"
#include "serve/models/datatypes.h"
#include "serve/models/language_settings.h"
#include "serve/models/settings.h"

namespace sdx::serve {
namespace {

using nlohmann::json;

[[noreturn]] void wrong(const std::string& where, std::string_view what) {
  fail(ErrorCode::invalid_argument, "model configuration: {}: {}", where, what);
}

// Numbers of 64 bits are strings in protobuf's JSON.
std::int64_t number(const json& value, const std::string& where, std::int64_t least, std::int64_t most) {
  std::int64_t out = 0;
  if (value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() < std::uint64_t{1} << 63)) {
    out = value.get<std::int64_t>();
  } else if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) wrong(where, "expected an integer");
  } else {
    wrong(where, "expected an integer");
  }
  if (out < least || out > most) wrong(where, fmt::format("expected a number from {} to {}, received {}", least, most, out));
  return out;
}

std::string text(const json& value, const std::string& where) {
  if (!value.is_string()) wrong(where, "text is needed");
  return value.get<std::string>();
}

bool truth(const json& value, const std::string& where) {
  if (!value.is_boolean()) wrong(where, "expected true or false");
  return value.get<bool>();
}

const json& array(const json& value, const std::string& where) {
  if (!value.is_array() || value.size() > 4096) wrong(where, "expected an array");
  return value;
}

std::vector<std::int64_t> numbers(const json& value, const std::string& where, std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (const json& one : array(value, where)) out.push_back(number(one, where, least, most));
  return out;
}

constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr std::int64_t kUsualBatch = 4;  // with dynamic_batching and without max_batch_size, as Triton has it for ONNX models
constexpr std::int64_t kMostDelay = std::int64_t{3600} * 1'000'000;  // microseconds

DataType type(const json& value, const std::string& where) {
  const DataType out = parse_config_type(text(value, where));
  if (out == DataType::undefined) wrong(where, "no data type: '" + value.get<std::string>() + "'");
  return out;
}

using Member = std::function<void(const json& value, const std::string& where)>;
using Members = std::map<std::string, Member, std::less<>>;

// Calls the functions of known members; names of others are added to `ignored`.
void read_object(const json& object, const std::string& where, const Members& members, std::vector<std::string>& ignored) {
  if (!object.is_object()) wrong(where.empty() ? "the whole" : where, "expected an object");
  for (const auto& [key, value] : object.items()) {
    const std::string at = where.empty() ? key : where + "." + key;
    const auto known = members.find(key);
    if (known == members.end()) {
      ignored.push_back(at);
    } else {
      known->second(value, at);
    }
  }
}

void nothing(const json& /*value*/, const std::string& /*where*/) {}

Member refused(std::string why) {
  return [why = std::move(why)](const json& value, const std::string& where) {
    if (value == json(false) || value.empty()) return;
    wrong(where, why);
  };
}

class SettingsReader {
 public:
  explicit SettingsReader(std::vector<std::string>& ignored) : ignored_(ignored) {}

  ModelSettings read(const json& document) {
    const Members members{
        {"name", nothing},
        {"platform", [this](const json& v, const std::string& at) { platform(v, at); }},
        {"backend", [this](const json& v, const std::string& at) { backend(v, at); }},
        {"max_batch_size", [this](const json& v, const std::string& at) { out_.max_batch_size = number(v, at, 0, 1 << 20); }},
        {"input", [this](const json& v, const std::string& at) { out_.inputs = values(v, at, false); }},
        {"output", [this](const json& v, const std::string& at) { out_.outputs = values(v, at, true); }},
        {"version_policy", [this](const json& v, const std::string& at) { version_policy(v, at); }},
        {"instance_group", [this](const json& v, const std::string& at) { instance_groups(v, at); }},
        {"dynamic_batching", [this](const json& v, const std::string& at) { dynamic_batching(v, at); }},
        {"default_model_filename", [this](const json& v, const std::string& at) { file(v, at); }},
        {"model_warmup", [this](const json& v, const std::string& at) { warm_ups(v, at); }},
        {"parameters", [this](const json& v, const std::string& at) { parameters(v, at); }},
        {"sequence_batching", refused("sequences of requests are not supported")},
        {"ensemble_scheduling", refused("ensembles are not supported")},
        {"batch_input", refused("ragged batches are not supported")},
        {"batch_output", refused("ragged batches are not supported")},
        {"model_transaction_policy", [this](const json& v, const std::string& at) { transactions(v, at); }}};
    read_object(document, "", members, ignored_);
    if (batching_ && !out_.max_batch_size) out_.max_batch_size = kUsualBatch;
    return std::move(out_);
  }

 private:
  void platform(const json& value, const std::string& where) {
    out_.platform = text(value, where);
    if (!out_.platform.empty() && out_.platform != "onnxruntime_onnx" && out_.platform != "sardonyx_onnx") {
      wrong(where, "'" + out_.platform + "' is not served: onnxruntime_onnx and sardonyx_onnx are");
    }
  }
  void backend(const json& value, const std::string& where) {
    out_.backend = text(value, where);
    if (!out_.backend.empty() && out_.backend != "onnxruntime" && out_.backend != "sardonyx") {
      wrong(where, "'" + out_.backend + "' is not served: onnxruntime and sardonyx are");
    }
  }
  void file(const json& value, const std::string& where) {
    out_.file = text(value, where);
    if (out_.file.find('/') != std::string::npos || out_.file.starts_with('.')) {
      wrong(where, "the name of a file in a version's folder is needed, received '" + out_.file + "'");
    }
  }

  std::vector<DeclaredValue> values(const json& list, const std::string& where, bool output) {
    std::vector<DeclaredValue> out;
    for (const json& item : array(list, where)) {
      DeclaredValue one;
      const Members members{{"name", [&](const json& v, const std::string& at) { one.name = text(v, at); }},
                            {"data_type", [&](const json& v, const std::string& at) { one.dtype = type(v, at); }},
                            {"dims", [&](const json& v, const std::string& at) { one.dims = numbers(v, at, -1, kMost); }},
                            {"format", nothing},
                            {"optional", [&](const json& v, const std::string& at) { one.optional = truth(v, at); }},
                            {"label_filename",
                             [&](const json& v, const std::string& at) {
                               if (!output) wrong(at, "inputs have no labels");
                               one.label_file = text(v, at);
                             }},
                            {"reshape", refused("reshaping is not supported: give the model's own extents as dims")},
                            {"is_shape_tensor", refused("shape tensors are not supported")},
                            {"allow_ragged_batch", refused("ragged batches are not supported")}};
      read_object(item, where, members, ignored_);
      if (one.name.empty()) wrong(where, "expected a name");
      out.push_back(std::move(one));
    }
    return out;
  }

  void version_policy(const json& value, const std::string& where) {
    const Members members{
        {"latest",
         [this](const json& v, const std::string& at) {
           out_.newest = 1;
           read_object(
               v, at, {{"num_versions", [this](const json& n, const std::string& to) { out_.newest = number(n, to, 1, kMost); }}},
               ignored_);
         }},
        {"all", [this](const json&, const std::string&) { out_.newest = 0; }},
        {"specific", [this](const json& v, const std::string& at) {
           read_object(v, at,
                       {{"versions", [this](const json& n, const std::string& to) { out_.versions = numbers(n, to, 1, kMost); }}},
                       ignored_);
           if (out_.versions.empty()) wrong(at, "versions are needed");
         }}};
    read_object(value, where, members, ignored_);
  }

  void instance_groups(const json& value, const std::string& where) {
    std::int64_t count = 0;
    for (const json& group : array(value, where)) {
      std::int64_t own = 1;
      const Members members{{"count", [&](const json& v, const std::string& at) { own = number(v, at, 0, 1024); }},
                            {"name", nothing},
                            {"kind", [&](const json& v, const std::string& at) { kind(text(v, at), at); }}};
      read_object(group, where, members, ignored_);
      count += std::max<std::int64_t>(1, own);
    }
    if (count > 1024) wrong(where, "at most 1024 instances");
    if (count > 0) out_.instances = static_cast<int>(count);
  }
  // The server chooses the provider of a model: KIND_GPU does not fail on a machine without one.
  void kind(const std::string& name, const std::string& where) {
    for (const char* known : {"KIND_AUTO", "KIND_CPU", "KIND_MODEL"}) {
      if (name == known) return;
    }
    if (name != "KIND_GPU") wrong(where, "'" + name + "' is not a kind of instance");
    ignored_.push_back(where + " KIND_GPU (providers are chosen with --provider, or in a project file)");
  }

  void dynamic_batching(const json& value, const std::string& where) {
    batching_ = true;
    const Members members{
        {"preferred_batch_size", [this](const json& v, const std::string& at) { out_.preferred = numbers(v, at, 1, 1 << 20); }},
        {"max_queue_delay_microseconds",
         [this](const json& v, const std::string& at) {
           out_.max_queue_delay = std::chrono::microseconds(number(v, at, 0, kMostDelay));
         }},
        {"preserve_ordering", nothing},  // each request has an answer of its own
        {"default_queue_policy", [this](const json& v, const std::string& at) { queue_policy(v, at); }}};
    read_object(value, where, members, ignored_);
  }
  void queue_policy(const json& value, const std::string& where) {
    const Members members{{"max_queue_size",
                           [this](const json& v, const std::string& at) {
                             const std::int64_t size = number(v, at, 0, 1 << 30);
                             if (size > 0) out_.queue = static_cast<int>(size);
                           }},
                          {"default_timeout_microseconds",
                           [this](const json& v, const std::string& at) {
                             const std::int64_t timeout = number(v, at, 0, kMostDelay);
                             if (timeout > 0) out_.timeout = std::chrono::microseconds(timeout);
                           }},
                          {"allow_timeout_override", nothing},
                          {"timeout_action", [](const json& v, const std::string& at) {
                             if (text(v, at) != "REJECT") wrong(at, "only REJECT is supported");
                           }}};
    read_object(value, where, members, ignored_);
  }

  void warm_ups(const json& value, const std::string& where) {
    for (const json& item : array(value, where)) {
      WarmUp one;
      const Members members{{"name", [&](const json& v, const std::string& at) { one.name = text(v, at); }},
                            {"batch_size", [&](const json& v, const std::string& at) { one.batch = number(v, at, 0, 1 << 20); }},
                            {"count",
                             [&](const json& v, const std::string& at) {
                               one.count = static_cast<int>(std::max<std::int64_t>(1, number(v, at, 0, 1000)));
                             }},
                            {"inputs", [&](const json& v, const std::string& at) {
                               if (!v.is_object()) wrong(at, "expected an object");
                               for (const auto& [name, input] : v.items())
                                 one.inputs.push_back(warm_up_input(name, input, at + "." + name));
                             }}};
      read_object(item, where, members, ignored_);
      out_.warm_up.push_back(std::move(one));
    }
  }
  WarmUp::Input warm_up_input(const std::string& name, const json& value, const std::string& where) {
    WarmUp::Input out;
    out.name = name;
    const Members members{{"data_type", [&](const json& v, const std::string& at) { out.dtype = type(v, at); }},
                          {"dims", [&](const json& v, const std::string& at) { out.dims = numbers(v, at, 0, kMost); }},
                          {"zero_data", nothing},
                          {"random_data", [&](const json& v, const std::string& at) { out.random = truth(v, at); }},
                          {"input_data_file", refused("files are not supported: zero_data and random_data are")}};
    read_object(value, where, members, ignored_);
    if (out.dtype == DataType::undefined) wrong(where, "expected a data_type");
    return out;
  }

  void parameters(const json& value, const std::string& where) {
    if (!value.is_object()) wrong(where, "expected an object");
    for (const auto& [key, item] : value.items()) {
      const std::string at = where + "." + key;
      if (!item.is_object()) wrong(at, "expected {string_value: …}");
      const std::string content = item.contains("string_value") ? text(item["string_value"], at) : "";
      if (key == "mask_input") {
        out_.mask_input = content;
      } else if (key == "intra_op_thread_count") {
        out_.threads = static_cast<int>(number(json(content), at, 0, 1024));
      } else if (key == "providers") {
        split(content, out_.providers);
      } else if (!has_word(kLanguageParameters, key)) {
        ignored_.push_back(at);
      }
      out_.parameters.emplace_back(key, content);
    }
  }
  static void split(const std::string& text, std::vector<std::string>& out) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      if (end > at) out.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }

  void transactions(const json& value, const std::string& where) {
    read_object(value, where, {{"decoupled", refused("models with several answers to a request are not supported")}}, ignored_);
  }

  std::vector<std::string>& ignored_;
  ModelSettings out_;
  bool batching_ = false;
};

}  // namespace

ModelSettings settings_of_json(std::string_view text, std::vector<std::string>& ignored) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) fail(ErrorCode::invalid_argument, "the model configuration is not a JSON object");
  return SettingsReader(ignored).read(document);
}

}  // namespace sdx::serve
