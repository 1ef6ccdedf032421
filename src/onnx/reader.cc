#include "onnx/reader.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/log.h"
#include "base/system/mapped_file.h"
#include "onnx/external_data.h"
#include "onnx/external_names.h"
#include "onnx/functions.h"
#include "onnx/given_data.h"
#include "onnx/graph_reader.h"
#include "onnx/opsets.h"
#include "onnx/ort/blocked.h"
#include "onnx/ort/ort_model.h"
#include "ops/op.h"
#include "tensor/wire.h"

namespace sdx {
namespace {

using wire::bytes;
using wire::varint;

// Files that people take for ONNX models, by their first bytes.
struct Magic {
  std::size_t at;
  std::string_view bytes;
  std::string_view what;
};

constexpr Magic kMagic[] = {
    {0, "PK\x03\x04", "a zip archive (PyTorch's .pt files are such archives; export the model to ONNX)"},
    {0, "\x1f\x8b", "a gzip file; unpack it first"},
    {0, "\x89HDF", "an HDF5 file (Keras); convert the model to ONNX"},
    {0, "GGUF", "a GGUF file"},
    {4, "TFL3", "a TensorFlow Lite model; convert it to ONNX"},
    {0, "\x80\x02", "a Python pickle (PyTorch); export the model to ONNX"},
    {0, "version https://git-lfs", "a Git LFS pointer: the model itself was not downloaded (git lfs pull)"},
    {0, "\x93NUMPY", "a NumPy array"},
    {0, "\x89PNG", "a picture (PNG)"},
    {0, "\xFF\xD8\xFF", "a picture (JPEG)"},
    {0, "RIFF", "a sound or picture (RIFF: .wav, .webp)"},
    {0, "%PDF", "a PDF file"},
    {0,
     "\x7F"
     "ELF",
     "a program or library (ELF)"},
    {4, "ODTC", "a checkpoint for training; sdx checkpoint shows it"},
    {8, "{\"", "a safetensors file: weights without a graph"},
};

// Names the kind of bytes that are clearly no ONNX model; "" otherwise.
std::string looks_like(std::string_view data) {
  for (const Magic& m : kMagic) {
    if (data.size() >= m.at + m.bytes.size() && data.substr(m.at, m.bytes.size()) == m.bytes) return std::string(m.what);
  }
  const std::string_view head = data.substr(0, 64);
  const bool text = head.size() >= 16 && std::all_of(head.begin(), head.end(), [](unsigned char c) {
                      return std::isprint(c) != 0 || std::isspace(c) != 0;
                    });
  return text ? "text, perhaps an error page or a source file" : "";
}

std::string hint(std::string_view data) {
  const std::string what = looks_like(data);
  return what.empty() ? "" : "; it looks like " + what;
}

struct ModelMessage {
  std::string_view graph;
  bool has_graph = false;
  bool has_training = false;
  std::vector<std::string_view> functions;
};

std::pair<std::string, std::string> read_pair(std::string_view message) {
  std::pair<std::string, std::string> out;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1): out.first = std::string(wire::text(r)); break;
      case bytes(2): out.second = std::string(wire::text(r)); break;
      default: r.skip();
    }
  }
  return out;
}

ModelMessage scan_model(std::string_view data, Model& model) {
  ModelMessage m;
  wire::Reader r = wire::open(data);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case varint(1): model.ir_version = r.get_int64(); break;
      case bytes(2): model.producer_name = std::string(wire::text(r)); break;
      case bytes(3): model.producer_version = std::string(wire::text(r)); break;
      case bytes(4): model.domain = std::string(wire::text(r)); break;
      case varint(5): model.model_version = r.get_int64(); break;
      case bytes(6): model.doc = std::string(wire::text(r)); break;
      case bytes(7):
        if (m.has_graph) fail(ErrorCode::invalid_model, "the file contains two main graphs");
        m.has_graph = true;
        m.graph = wire::text(r);
        break;
      case bytes(8): read_opset(wire::text(r), model.opsets, model.warnings); break;
      case bytes(14): model.metadata.push_back(read_pair(wire::text(r))); break;
      case bytes(20):
        m.has_training = true;
        r.skip();
        break;
      case bytes(25): m.functions.push_back(wire::text(r)); break;
      default: r.skip();
    }
  }
  return m;
}

void check_versions(Model& model) {
  if (model.ir_version > kNewestIrVersion || model.ir_version < 0) {
    fail(ErrorCode::invalid_model,
         "the model has IR version {}; versions up to {} are read; export it with an older IR version, or "
         "update this program",
         model.ir_version, kNewestIrVersion);
  }
  if (model.ir_version < 3) {
    model.warnings.push_back(model.ir_version == 0 ? std::string("the model has no IR version")
                                                   : fmt::format("the model has the old IR version {}", model.ir_version));
    if (model.opsets.empty()) model.opsets.emplace("", 1);  // opset imports came with IR version 3
  }
  check_opsets(model.opsets);
}

void read_functions(const ModelMessage& m, ExternalData* external, std::size_t& dense_budget, Model& model) {
  PbSource source;
  source.external = external;
  source.dense_budget = dense_budget;
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  for (const std::string_view f : m.functions) {
    model.functions.push_back(read_function(f, source));
    const Function& added = model.functions.back();
    if (!seen.emplace(added.domain, added.name, added.overload).second) {
      fail(ErrorCode::invalid_model, "function '{}' of domain '{}' is defined twice", added.name, added.domain);
    }
  }
  dense_budget = source.dense_budget;
}

Model read_checked(std::string_view data, PbSource source) {
  Model model;
  const ModelMessage m = scan_model(data, model);
  if (!m.has_graph) {
    fail(ErrorCode::invalid_model, "this is not an ONNX model: it contains no graph{}", hint(data));
  }
  check_versions(model);
  if (m.has_training) model.warnings.emplace_back("the model's training information is ignored");
  read_functions(m, source.external, source.dense_budget, model);
  reading::State state;
  ExternalData* const external = source.external;
  state.source = std::move(source);
  state.ir_version = model.ir_version;
  state.opsets = &model.opsets;
  state.warnings = &model.warnings;
  for (const Function& f : model.functions) state.function_domains.insert(f.domain);
  reading::Scope scope(model.graph);
  reading::read_graph(state, scope, m.graph);
  // Only here is it known where external data are.
  if (std::any_of(m.functions.begin(), m.functions.end(), names_external_data)) inline_functions(model, external);
  unblock_channels(model);
  return model;
}

// The model is read from its other form, which lives as long as its views.
Model read_ort(std::span<const std::byte> data, const std::shared_ptr<const void>& owner) {
  const auto converted = std::make_shared<const OrtModel>(read_ort_model(data, owner));
  PbSource source;
  source.owner = converted;
  source.external = converted->content.get();
  try {
    Model model = read_checked(converted->proto, std::move(source));
    if (converted->notice) log::info("{}", *converted->notice);
    return model;
  } catch (const protozero::exception& e) {
    fail(ErrorCode::invalid_model, "the .ort file is damaged ({})", wire::damage(e));
  }
}

Model read_bytes(std::span<const std::byte> data, const std::shared_ptr<const void>& owner, ExternalData* external) {
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  if (text.empty()) fail(ErrorCode::invalid_model, "this is not an ONNX model: it is empty");
  if (is_ort_model(text)) return read_ort(data, owner);
  PbSource source;
  source.owner = owner;  // a copy: the bytes are needed for the message when reading fails
  source.external = external;
  try {
    return read_checked(text, std::move(source));
  } catch (const protozero::exception& e) {
    if (!looks_like(text).empty()) fail(ErrorCode::invalid_model, "this is not an ONNX model{}", hint(text));
    fail(ErrorCode::invalid_model, "this is not an ONNX model, or it is damaged or incomplete: {} ({} bytes)", wire::damage(e),
         text.size());
  }
}

}  // namespace

void read_opset(std::string_view message, std::map<std::string, int>& opsets, std::vector<std::string>& warnings) {
  std::string domain;
  std::int64_t version = 0;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1): domain = canonical_domain(wire::text(r)); break;
      case varint(2): version = r.get_int64(); break;
      default: r.skip();
    }
  }
  const std::string shown = domain.empty() ? "ai.onnx" : domain;
  const int newest = ops::newest_version(domain);
  if (newest != 0 && version > newest) {
    fail(ErrorCode::invalid_model, "the model needs opset {} of domain '{}'; this build knows versions up to {}", version, shown,
         newest);
  }
  if (version < 0 || version > INT32_MAX) {
    fail(ErrorCode::invalid_model, "opset version {} of domain '{}' is not valid", version, shown);
  }
  const auto [it, added] = opsets.emplace(std::move(domain), static_cast<int>(version));
  if (added || it->second == version) return;
  it->second = std::max(it->second, static_cast<int>(version));
  warnings.push_back(fmt::format("domain '{}' is imported twice; version {} is used", shown, it->second));
}

void check_opsets(const std::map<std::string, int>& opsets) {
  for (const auto& [domain, version] : opsets) {
    if (version >= 1) continue;
    fail(ErrorCode::invalid_model, "opset version {} of domain '{}' is not valid", version, domain.empty() ? "ai.onnx" : domain);
  }
}

Model read_model(const std::filesystem::path& path, std::size_t copied, const GivenData* given) {
  try {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path, copied);
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    std::vector<std::filesystem::path> roots{folder};
    if (!error) roots.push_back(real.parent_path());
    ExternalFiles external(std::move(roots), copied, given);
    Model model = read_bytes(file->bytes(), file, &external);
    file->check_unchanged();
    model.path = path.string();
    for (const std::string& w : model.warnings) log::info("{}: {}", model.path, w);
    return model;
  } catch (Error& e) {
    e.add_context(fmt::format("in model '{}'", path.string()));
    throw;
  }
}

Model read_model(std::span<const std::byte> data, std::shared_ptr<const void> owner, const std::filesystem::path& base_dir,
                 std::size_t copied, const GivenData* given) {
  if (owner == nullptr && !data.empty()) {
    auto copy = std::make_shared<std::vector<std::byte>>(data.begin(), data.end());
    data = *copy;
    owner = std::move(copy);
  }
  if (base_dir.empty() && given == nullptr) return read_bytes(data, owner, nullptr);
  ExternalFiles external(base_dir.empty() ? std::vector<std::filesystem::path>() : std::vector{base_dir}, copied, given);
  return read_bytes(data, owner, &external);
}

}  // namespace sdx
