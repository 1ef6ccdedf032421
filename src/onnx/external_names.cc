#include "onnx/external_names.h"

#include <algorithm>
#include <protozero/pbf_reader.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/safe_name.h"
#include "onnx/external_data.h"

namespace sdx {
namespace {

using protozero::pbf_reader;

// protozero checks bounds, but takes the caller's word for the kind of a field.
pbf_reader message(pbf_reader& r) {
  if (r.wire_type() != protozero::pbf_wire_type::length_delimited) throw protozero::unknown_pbf_wire_type_exception{};
  return r.get_message();
}

std::string text(pbf_reader& r) {
  if (r.wire_type() != protozero::pbf_wire_type::length_delimited) throw protozero::unknown_pbf_wire_type_exception{};
  return r.get_string();
}

constexpr int kDeepest = 64;  // as the reader of models: If and Loop nest no deeper in any model that runs

// Field numbers of onnx.proto, ONNX 1.23.
class Scan {
 public:
  std::set<std::string> locations;  // as the model writes them
  bool has_graph = false;

  void function(pbf_reader f) {
    while (f.next()) {
      switch (f.tag()) {
        case 7: node(message(f), 0); break;
        case 11: attribute(message(f), 0); break;
        default: f.skip();
      }
    }
  }

  void model(pbf_reader m) {
    while (m.next()) {
      if (m.tag() == 7) {
        graph(message(m), 0);
        has_graph = true;
      } else if (m.tag() == 25) {
        function(message(m));
      } else {
        m.skip();
      }
    }
  }

 private:
  void graph(pbf_reader g, int depth) {
    if (depth > kDeepest) fail(ErrorCode::invalid_model, "its graphs nest more than {} deep", kDeepest);
    while (g.next()) {
      switch (g.tag()) {
        case 1: node(message(g), depth); break;
        case 5: tensor(message(g)); break;
        case 15: sparse(message(g)); break;
        default: g.skip();
      }
    }
  }

  void node(pbf_reader n, int depth) {
    while (n.next()) n.tag() == 5 ? attribute(message(n), depth) : n.skip();
  }

  void attribute(pbf_reader a, int depth) {
    while (a.next()) {
      switch (a.tag()) {
        case 5:
        case 10: tensor(message(a)); break;
        case 6:
        case 11: graph(message(a), depth + 1); break;
        case 22:
        case 23: sparse(message(a)); break;
        default: a.skip();
      }
    }
  }

  void sparse(pbf_reader s) {
    while (s.next()) s.tag() == 1 || s.tag() == 2 ? tensor(message(s)) : s.skip();
  }

  void tensor(pbf_reader t) {
    while (t.next()) t.tag() == 13 ? entry(message(t)) : t.skip();
  }

  void entry(pbf_reader e) {
    std::string key, value;
    while (e.next()) {
      switch (e.tag()) {
        case 1: key = text(e); break;
        case 2: value = text(e); break;
        default: e.skip();
      }
    }
    if (key != "location") return;
    locations.insert(value);
    if (locations.size() > 10000) fail(ErrorCode::invalid_model, "it names more than 10000 files of external data");
  }
};

// The location as a name in the model's folder. The model's reader resolves it in the same way.
std::string safe_location(const std::string& location) {
  std::string name = plain_location(location).generic_string();
  if (const std::string why = unsafe_name(name); !why.empty()) {
    fail(ErrorCode::invalid_model, "it names '{}' as external data, which is refused: {}", location, why);
  }
  return name;
}

}  // namespace

bool names_external_data(std::string_view function) {
  Scan scan;
  scan.function(pbf_reader(function.data(), function.size()));
  return !scan.locations.empty();
}

std::set<std::string> external_names(const std::filesystem::path& model) {
  const auto file = MappedFile::open(model);
  Scan scan;
  std::set<std::string> names;
  try {
    scan.model(pbf_reader(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()));
    for (const std::string& location : scan.locations) names.insert(safe_location(location));
  } catch (const protozero::exception&) {
    scan.has_graph = false;
  } catch (Error& e) {
    throw e.add_context("in model '" + model.filename().string() + "'");
  }
  if (!scan.has_graph) {
    const auto head =
        std::string(reinterpret_cast<const char*>(file->bytes().data()), std::min<std::size_t>(file->bytes().size(), 64));
    const bool pointer = head.starts_with("version https://git-lfs");
    const bool page = head.find("<!DOCTYPE") != std::string::npos || head.find("<html") != std::string::npos;
    fail(ErrorCode::invalid_model, "'{}' is not an ONNX model{}", model.filename().string(),
         pointer ? ": it is a Git LFS pointer, so the address must be that of the file behind it"
         : page  ? ": it is a web page"
                 : "");
  }
  return names;
}

std::uint64_t model_file_bytes(const std::filesystem::path& model) {
  const auto size = [](const std::filesystem::path& file) -> std::uint64_t {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(file, error);
    return error ? 0 : bytes;
  };
  std::uint64_t bytes = size(model);
  for (const std::string& name : external_names(model)) bytes += size(model.parent_path() / path_of(name));
  return bytes;
}

}  // namespace sdx
