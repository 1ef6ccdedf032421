// LabelEncoder: ai.onnx.ml 1 (classes_strings), 2 (key and value lists), 4 (tensors, more types). CategoryMapper: 1.
// Of keys that are listed twice the first counts; NaN finds NaN.

#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "ops/context.h"
#include "ops/ml/ml_inputs.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kLabels =
    set_of(DataType::string, DataType::int64, DataType::float32, DataType::int32, DataType::int16, DataType::float64);
using LabelTypes = TypeList<std::string, std::int64_t, float, std::int32_t, std::int16_t, double>;

template <class T>
std::vector<T> elements(const Tensor& t, std::string_view attribute) {
  if (t.dtype() != DataTypeOf<T>::value) {
    fail(ErrorCode::invalid_model, "attribute '{}' is {}; expected {}", attribute, t.type_string(), name(DataTypeOf<T>::value));
  }
  const Tensor aligned = t.aligned();
  const auto v = aligned.values<T>();
  return {v.begin(), v.end()};
}

// The result for an element that is in no list, for each type that it may have.
struct DefaultAttrs {
  std::string_view word = "_Unused";
  std::int64_t number = -1;
  float real = -0.0F;
  const Tensor* tensor = nullptr;

  void fields(auto& f, const OpId& op) {
    f("default_int64", number);
    f("default_string", word);
    if (op.name != "LabelEncoder" || op.version < 2) return;
    f("default_float", real);
    f("default_tensor", tensor);
  }
};

// `keys` or `values` of LabelEncoder since version 2: one of these.
struct LabelLists {
  std::optional<StringList> strings;
  std::optional<IntList> ints;
  std::optional<FloatList> floats;
  const Tensor* tensor = nullptr;
};
struct EncoderAttrs {
  LabelLists keys, values;

  void fields(auto& f) {
    f("keys_strings", keys.strings);
    f("keys_int64s", keys.ints);
    f("keys_floats", keys.floats);
    f("keys_tensor", keys.tensor);
    f("values_strings", values.strings);
    f("values_int64s", values.ints);
    f("values_floats", values.floats);
    f("values_tensor", values.tensor);
  }
};

struct ClassesAttrs {  // LabelEncoder 1
  StringList classes;

  void fields(auto& f) { f("classes_strings", classes); }
};

struct CategoriesAttrs {  // CategoryMapper
  StringList strings;
  IntList ints;

  void fields(auto& f) {
    f("cats_strings", strings);
    f("cats_int64s", ints);
  }
};

// The list of type T, or the tensor; empty when there is none of that type.
template <class T>
std::vector<T> list_of(const LabelLists& lists, const char* tensor_name) {
  if (lists.tensor != nullptr) return elements<T>(*lists.tensor, tensor_name);
  if constexpr (std::is_same_v<T, std::string>) return to_vector(lists.strings.value_or(StringList()));
  if constexpr (std::is_same_v<T, std::int64_t>) return to_vector(lists.ints.value_or(IntList()));
  if constexpr (std::is_same_v<T, float>) return to_vector(lists.floats.value_or(FloatList()));
  return {};
}

template <class T>
T default_of(const DefaultAttrs& attr) {
  if (attr.tensor != nullptr) {
    const std::vector<T> v = elements<T>(*attr.tensor, "default_tensor");
    if (v.size() != 1) fail(ErrorCode::invalid_model, "default_tensor must have one element, received {}", v.size());
    return v[0];
  }
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(attr.word);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return attr.number;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(attr.real);
  } else {
    return T(-1);
  }
}

// The type of the values, from whichever attribute lists them.
DataType value_type(const EncoderAttrs& attr) {
  if (attr.values.tensor != nullptr) return attr.values.tensor->dtype();
  if (attr.values.strings) return DataType::string;
  if (attr.values.ints) return DataType::int64;
  if (attr.values.floats) return DataType::float32;
  fail(ErrorCode::invalid_model, "no values: expected values_tensor, values_strings, values_int64s or values_floats");
}

void set_output_type(InferContext& c, DataType type) {
  if (const SymShape* x = c.shape(0)) return c.output(0, type, *x);
  c.output(0, type);
}

// --- versions 2 and 4 ---

void infer_encoder(InferContext& c) { set_output_type(c, value_type(parse<EncoderAttrs>(c))); }

template <class K, class V>
struct Table {
  std::unordered_map<K, V> values;
  std::optional<V> nan;  // of the key NaN, which equals nothing
  V otherwise;

  const V& find(const K& key) const {
    if constexpr (std::is_floating_point_v<K>) {
      if (std::isnan(key)) return nan ? *nan : otherwise;
    }
    const auto it = values.find(key);
    return it != values.end() ? it->second : otherwise;
  }
};

template <class K, class V>
Table<K, V> table_of(const OpContext& c) {
  const auto attr = parse<EncoderAttrs>(c);
  const std::vector<K> keys = list_of<K>(attr.keys, "keys_tensor");
  const std::vector<V> values = list_of<V>(attr.values, "values_tensor");
  if (keys.size() != values.size()) {
    c.fail("{} keys of type {} meet {} values; the counts must be equal", keys.size(), name(DataTypeOf<K>::value), values.size());
  }
  Table<K, V> table{{}, {}, default_of<V>(parse<DefaultAttrs>(c))};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if constexpr (std::is_floating_point_v<K>) {
      if (std::isnan(keys[i])) {
        if (!table.nan) table.nan = values[i];
        continue;
      }
    }
    table.values.emplace(keys[i], values[i]);
  }
  return table;
}

template <class K, class V>
void find_all(const Table<K, V>& table, const Tensor& x, Tensor& y) {
  const auto in = x.values<K>();
  const auto out = y.mutable_values<V>();
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = table.find(in[i]);
}

void run_encoder(OpContext& c) {
  const Tensor& x = c.input(0);
  const DataType to = value_type(parse<EncoderAttrs>(c));
  Tensor& y = c.output(0, to, x.shape());
  dispatch(x.dtype(), LabelTypes{}, "LabelEncoder", [&](auto key) {
    using K = typename decltype(key)::type;
    dispatch(to, LabelTypes{}, "LabelEncoder", [&](auto value) {
      using V = typename decltype(value)::type;
      find_all(*c.once<Table<K, V>>([&] { return table_of<K, V>(c); }), x, y);
    });
  });
}

// --- version 1, and CategoryMapper: strings to numbers or back ---

void infer_swap(InferContext& c) {
  set_output_type(c, c.dtype(0) == DataType::string  ? DataType::int64
                     : c.dtype(0) == DataType::int64 ? DataType::string
                                                     : DataType::undefined);
}

struct Swap {
  Table<std::string, std::int64_t> to_int;
  Table<std::int64_t, std::string> to_string;
};

Swap swap_of(const OpContext& c, StringList strings, IntList ints) {
  if (strings.size() != ints.size()) c.fail("{} strings meet {} integers; the counts must be equal", strings.size(), ints.size());
  const auto attr = parse<DefaultAttrs>(c);
  Swap swap{{{}, {}, attr.number}, {{}, {}, std::string(attr.word)}};
  for (std::size_t i = 0; i < strings.size(); ++i) {
    swap.to_int.values.emplace(strings[i], ints[i]);
    swap.to_string.values.emplace(ints[i], strings[i]);
  }
  return swap;
}

void swap_labels(OpContext& c, const Swap& swap) {
  const Tensor& x = c.input(0);
  if (x.dtype() == DataType::string) {
    return find_all(swap.to_int, x, c.output(0, DataType::int64, x.shape()));
  }
  find_all(swap.to_string, x, c.output(0, DataType::string, x.shape()));
}

void run_encoder1(OpContext& c) {
  swap_labels(c, *c.once<Swap>([&] {
    const StringList classes = parse<ClassesAttrs>(c).classes;
    std::vector<std::int64_t> numbers(classes.size());
    std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
    return swap_of(c, classes, numbers);
  }));
}

void run_mapper(OpContext& c) {
  swap_labels(c, *c.once<Swap>([&] {
    const auto attr = parse<CategoriesAttrs>(c);
    return swap_of(c, attr.strings, attr.ints);
  }));
}

}  // namespace

void register_label_encoder(OpTable& t) {
  constexpr TypeSet kTwo = types::string | types::int64;
  t.add(OpDef(kMlDomain, "LabelEncoder", 1)
            .in("X", "", kTwo)
            .out("Y", "", kTwo)
            .attrs<ClassesAttrs>()
            .attrs<DefaultAttrs>()
            .infer_with(infer_swap)
            .run_with(run_encoder1));
  t.add(OpDef(kMlDomain, "LabelEncoder", 2)
            .in("X", "", kLabels)
            .out("Y", "", kLabels)
            .attrs<EncoderAttrs>()
            .attrs<DefaultAttrs>()
            .infer_with(infer_encoder)
            .run_with(run_encoder));
  t.add(OpDef(kMlDomain, "CategoryMapper", 1)
            .in("X", "", kTwo)
            .out("Y", "", kTwo)
            .attrs<CategoriesAttrs>()
            .attrs<DefaultAttrs>()
            .infer_with(infer_swap)
            .run_with(run_mapper));
}

}  // namespace sdx::ops
