// CastMap, DictVectorizer: ai.onnx.ml 1. Operators on map(K, V).

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <unordered_map>

#include "base/error.h"
#include "ops/context.h"
#include "ops/ml/ml_inputs.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

struct CastMapAttrs {
  std::string_view cast_to = "TO_FLOAT";
  std::string_view map_form = "DENSE";
  std::int64_t max_map = 1;

  void fields(auto& f) {
    f("cast_to", cast_to);
    f("map_form", map_form);
    f("max_map", max_map);
  }
};

struct DictVectorizerAttrs {
  IntList int64_vocabulary;
  StringList string_vocabulary;

  void fields(auto& f) {
    f("int64_vocabulary", int64_vocabulary);
    f("string_vocabulary", string_vocabulary);
  }
};

const Map& map_input(const OpContext& c) {
  const Value& v = c.input_value(0);
  if (!v.is_map()) c.fail("input 0 must be a map, received {}", v.type_string());
  const Map& m = v.map();
  if (m.keys.size() != m.values.size()) c.fail("the map has {} keys and {} values", m.keys.size(), m.values.size());
  return m;
}

// --- CastMap ---

constexpr std::int64_t kMaxSparse = std::int64_t{1} << 24;

DataType cast_target(const CastMapAttrs& attr) {
  const std::string_view word = attr.cast_to;
  if (word == "TO_FLOAT") return DataType::float32;
  if (word == "TO_INT64") return DataType::int64;
  if (word == "TO_STRING") return DataType::string;
  fail(ErrorCode::invalid_model, "cast_to is '{}'; expected TO_FLOAT, TO_INT64 or TO_STRING", word);
}

bool is_sparse(const CastMapAttrs& attr) {
  const std::string_view word = attr.map_form;
  if (word == "SPARSE") return true;
  if (word == "DENSE") return false;
  fail(ErrorCode::invalid_model, "map_form is '{}'; expected DENSE or SPARSE", word);
}

std::int64_t sparse_width(const CastMapAttrs& attr) {
  const std::int64_t n = attr.max_map;
  if (n < 1 || n > kMaxSparse) fail(ErrorCode::invalid_model, "max_map must be between 1 and {}, received {}", kMaxSparse, n);
  return n;
}

void infer_cast_map(InferContext& c) {
  const auto attr = parse<CastMapAttrs>(c);
  const Dim width = is_sparse(attr) ? Dim(sparse_width(attr)) : Dim::unknown();
  c.output(0, cast_target(attr), SymShape{1, width});
}

float parse_float(const OpContext& c, const std::string& text) {
  char* end = nullptr;
  const float v = std::strtof(text.c_str(), &end);
  if (text.empty() || *end != 0) c.fail("the map's value '{}' is not a number", text);
  return v;
}

std::int64_t parse_int(const OpContext& c, const std::string& text) {
  std::int64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc{} || end != text.data() + text.size()) c.fail("the map's value '{}' is not a 64-bit integer", text);
  return v;
}

template <class From, class To>
To convert(const OpContext& c, const From& v) {
  if constexpr (std::is_same_v<From, To>) {
    return v;
  } else if constexpr (std::is_same_v<From, float>) {
    if constexpr (std::is_same_v<To, std::int64_t>) {
      return saturating_cast<std::int64_t>(static_cast<double>(v));
    } else {
      return std::to_string(v);
    }
  } else if constexpr (std::is_same_v<To, float>) {
    return parse_float(c, v);
  } else {
    return parse_int(c, v);
  }
}

template <class From, class To>
void cast_map(OpContext& c, const Map& m) {
  const auto attr = parse<CastMapAttrs>(c);
  const auto keys = m.keys.values<std::int64_t>();
  const auto values = m.values.values<From>();
  std::vector<std::size_t> order(keys.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  const bool sparse = is_sparse(attr);
  const std::int64_t width = sparse ? sparse_width(attr) : static_cast<std::int64_t>(keys.size());
  Tensor& y = c.output(0, DataTypeOf<To>::value, {1, width});
  const auto out = y.mutable_values<To>();
  if (!sparse) {
    for (std::size_t i = 0; i < order.size(); ++i) out[i] = convert<From, To>(c, values[order[i]]);
    return;
  }
  if constexpr (std::is_same_v<To, std::string>) {
    std::fill(out.begin(), out.end(), std::string());
  } else {
    std::fill(out.begin(), out.end(), To(0));
  }
  for (const std::size_t i : order) {
    if (keys[i] < 0) c.fail("the map has key {}; a sparse form needs keys of at least 0", keys[i]);
    if (keys[i] < width) out[static_cast<std::size_t>(keys[i])] = convert<From, To>(c, values[i]);
  }
}

void run_cast_map(OpContext& c) {
  const Map& m = map_input(c);
  if (m.keys.dtype() != DataType::int64) c.fail("the map's keys must be int64, received {}", m.keys.type_string());
  using Sources = TypeList<float, std::string>;
  using Targets = TypeList<float, std::int64_t, std::string>;
  dispatch(m.values.dtype(), Sources{}, "CastMap", [&](auto from) {
    dispatch(cast_target(parse<CastMapAttrs>(c)), Targets{}, "CastMap",
             [&](auto to) { cast_map<typename decltype(from)::type, typename decltype(to)::type>(c, m); });
  });
}

// --- DictVectorizer ---

void infer_vectorizer(InferContext& c) {
  const auto attr = parse<DictVectorizerAttrs>(c);
  const auto n = static_cast<std::int64_t>(attr.int64_vocabulary.size() + attr.string_vocabulary.size());
  const Type& x = c.type(0);
  const DataType elem = x.kind == Type::Kind::map && x.inner ? x.inner->elem : DataType::undefined;
  c.output(0, elem, SymShape{1, n});
}

template <class K, class V>
void vectorize(OpContext& c, const Map& m, std::span<const K> vocabulary) {
  const auto keys = m.keys.values<K>();
  const auto values = m.values.values<V>();
  std::unordered_map<K, std::size_t> index;
  for (std::size_t i = 0; i < keys.size(); ++i) index.emplace(keys[i], i);
  Tensor& y = c.output(0, DataTypeOf<V>::value, {1, static_cast<std::int64_t>(vocabulary.size())});
  const auto out = y.mutable_values<V>();
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const auto it = index.find(vocabulary[i]);
    out[i] = it != index.end() ? values[it->second] : V();
  }
}

void run_vectorizer(OpContext& c) {
  const auto attr = parse<DictVectorizerAttrs>(c);
  const Map& m = map_input(c);
  const StringList strings = attr.string_vocabulary;
  const IntList ints = attr.int64_vocabulary;
  using Types = TypeList<float, double, std::int64_t, std::string>;
  dispatch(m.values.dtype(), Types{}, "DictVectorizer", [&](auto tag) {
    using V = typename decltype(tag)::type;
    if (m.keys.dtype() == DataType::string) {
      vectorize<std::string, V>(c, m, strings);
    } else {
      vectorize<std::int64_t, V>(c, m, ints);
    }
  });
}

}  // namespace

void register_ml_maps(OpTable& t) {
  t.add(OpDef(kMlDomain, "CastMap", 1)
            .in("X", "", types::map)
            .out("Y", "", types::string | types::int64 | bit(DataType::float32))
            .attrs<CastMapAttrs>()
            .infer_with(infer_cast_map)
            .run_with(run_cast_map));
  t.add(OpDef(kMlDomain, "DictVectorizer", 1)
            .in("X", "", types::map)
            .out("Y", "", types::string | types::int64 | set_of(DataType::float32, DataType::float64))
            .attrs<DictVectorizerAttrs>()
            .infer_with(infer_vectorizer)
            .run_with(run_vectorizer));
}

}  // namespace sdx::ops
