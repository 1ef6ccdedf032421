#pragma once
// Serialised ONNX messages for tests, built field by field, so that tests can also build wrong ones.

#include <cstdint>
#include <memory>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <vector>

#include "onnx/reader.h"

namespace sdx::testing {

using Strings = std::vector<std::string>;
using Dims = std::vector<std::int64_t>;

template <class F>
std::string message(F&& fill) {
  std::string out;
  protozero::pbf_writer w(out);
  fill(w);
  return out;
}

inline std::string floats(std::size_t n, float value = 1) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out.append(reinterpret_cast<const char*>(&value), sizeof value);
  return out;
}

inline std::string tensor(const std::string& name, const Dims& dims, int dtype, const std::string& raw) {
  return message([&](auto& w) {
    w.add_packed_int64(1, dims.begin(), dims.end());
    w.add_int32(2, dtype);
    w.add_string(8, name);
    w.add_bytes(9, raw);
  });
}

// An extent below zero is written as it is; kAny leaves the extent out.
inline constexpr std::int64_t kAny = INT64_MIN;

inline std::string value(const std::string& name, int elem, const Dims& dims) {
  std::string shape;
  protozero::pbf_writer s(shape);
  for (const std::int64_t d : dims) {
    s.add_message(1, message([&](auto& w) {
                    if (d != kAny) w.add_int64(1, d);
                  }));
  }
  const std::string type = message([&](auto& w) {
    w.add_int32(1, elem);
    w.add_message(2, shape);
  });
  return message([&](auto& w) {
    w.add_string(1, name);
    w.add_message(2, message([&](auto& t) { t.add_message(1, type); }));
  });
}

inline std::string int_attribute(const std::string& name, std::int64_t i) {
  return message([&](auto& w) {
    w.add_string(1, name);
    w.add_int64(3, i);
    w.add_enum(20, 2);
  });
}

inline std::string graph_attribute(const std::string& name, const std::string& graph) {
  return message([&](auto& w) {
    w.add_string(1, name);
    w.add_message(6, graph);
    w.add_enum(20, 5);
  });
}

inline std::string reference(const std::string& name, const std::string& to, int type) {
  return message([&](auto& w) {
    w.add_string(1, name);
    w.add_string(21, to);
    w.add_enum(20, type);
  });
}

inline std::string node(const std::string& op, const Strings& in, const Strings& out, const Strings& attributes = {},
                        const std::string& domain = "") {
  return message([&](auto& w) {
    for (const auto& i : in) w.add_string(1, i);
    for (const auto& o : out) w.add_string(2, o);
    w.add_string(4, op);
    for (const auto& a : attributes) w.add_message(5, a);
    if (!domain.empty()) w.add_string(7, domain);
  });
}

struct GraphParts {
  Strings nodes, inputs, outputs, initializers, infos, sparse;
};

inline std::string graph(const GraphParts& p) {
  return message([&](auto& w) {
    for (const auto& n : p.nodes) w.add_message(1, n);
    w.add_string(2, "g");
    for (const auto& t : p.initializers) w.add_message(5, t);
    for (const auto& v : p.inputs) w.add_message(11, v);
    for (const auto& v : p.outputs) w.add_message(12, v);
    for (const auto& v : p.infos) w.add_message(13, v);
    for (const auto& t : p.sparse) w.add_message(15, t);
  });
}

inline std::string opset(const std::string& domain, std::int64_t version) {
  return message([&](auto& w) {
    w.add_string(1, domain);
    w.add_int64(2, version);
  });
}

struct ModelParts {
  std::int64_t ir = 8;
  Strings opsets{opset("", 17)};
  Strings functions;
};

inline std::string model(const std::string& graph, const ModelParts& p = {}) {
  return message([&](auto& w) {
    w.add_int64(1, p.ir);
    for (const auto& o : p.opsets) w.add_message(8, o);
    w.add_message(7, graph);
    for (const auto& f : p.functions) w.add_message(25, f);
  });
}

struct FunctionParts {
  std::string domain, name;
  Strings inputs, outputs, attributes, defaults, nodes;
  Strings opsets{opset("", 17), opset("my", 1)};
};

inline std::string function(const FunctionParts& p) {
  return message([&](auto& w) {
    w.add_string(1, p.name);
    for (const auto& v : p.inputs) w.add_string(4, v);
    for (const auto& v : p.outputs) w.add_string(5, v);
    for (const auto& v : p.attributes) w.add_string(6, v);
    for (const auto& n : p.nodes) w.add_message(7, n);
    for (const auto& o : p.opsets) w.add_message(9, o);
    w.add_string(10, p.domain);
    for (const auto& a : p.defaults) w.add_message(11, a);
  });
}

inline Model read(const std::string& bytes, const std::filesystem::path& folder = {}) {
  return read_model(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())), nullptr, folder);
}

// y = Relu(x), float32[2,3]
inline GraphParts relu_parts() {
  return {{node("Relu", {"x"}, {"y"})}, {value("x", 1, {2, 3})}, {value("y", 1, {2, 3})}, {}, {}, {}};
}

}  // namespace sdx::testing
