// LabelEncoder: ai.onnx.ml 1 (classes_strings), 2 (key and value lists), 4 (tensors, more types). CategoryMapper: 1.
// Of keys that are listed twice the first counts; NaN finds NaN.

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <variant>

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

// Where keys are in the list of values. Keys and values are looked up by a function each for every type, not one for every pair
// of types: that would take the compiler ten seconds.
template <class K>
struct Keys {
  std::unordered_map<K, std::uint32_t> places;
  std::optional<std::uint32_t> nan;  // of the key NaN, which equals nothing
  std::uint32_t absent = 0;          // of the value for keys that are in no list: the last

  explicit Keys(const std::vector<K>& keys) : absent(static_cast<std::uint32_t>(keys.size())) {
    for (std::uint32_t i = 0; i < absent; ++i) {
      if (!is_nan(keys[i])) {
        places.emplace(keys[i], i);
      } else if (!nan) {
        nan = i;
      }
    }
  }
  void find(std::span<const K> keys, std::span<std::uint32_t> out) const {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto it = is_nan(keys[i]) ? places.end() : places.find(keys[i]);
      out[i] = it != places.end() ? it->second : is_nan(keys[i]) ? nan.value_or(absent) : absent;
    }
  }

 private:
  static bool is_nan(const K& key) {
    if constexpr (std::is_floating_point_v<K>) return std::isnan(key);
    return false;
  }
};

// Both lists in any types; the value of absent keys is the last.
struct Encoder {
  std::variant<Keys<std::string>, Keys<std::int64_t>, Keys<float>, Keys<std::int32_t>, Keys<std::int16_t>, Keys<double>> keys;
  std::variant<std::vector<std::string>, std::vector<std::int64_t>, std::vector<float>, std::vector<std::int32_t>,
               std::vector<std::int16_t>, std::vector<double>>
      values;
};

constexpr std::int64_t kBlock = 1024;  // elements whose places are on the stack

void encode(const Encoder& encoder, const Tensor& x, Tensor& y) {
  std::array<std::uint32_t, kBlock> places;
  for (std::int64_t at = 0; at < x.size(); at += kBlock) {
    const auto begin = static_cast<std::size_t>(at), count = static_cast<std::size_t>(std::min(kBlock, x.size() - at));
    const std::span<std::uint32_t> found(places.data(), count);
    std::visit([&]<class K>(const Keys<K>& keys) { keys.find(x.values<K>().subspan(begin, count), found); }, encoder.keys);
    std::visit(
        [&]<class V>(const std::vector<V>& values) {
          const std::span<V> out = y.mutable_values<V>().subspan(begin, count);
          for (std::size_t i = 0; i < count; ++i) out[i] = values[found[i]];
        },
        encoder.values);
  }
}

Encoder encoder_of(const OpContext& c, DataType from, DataType to) {
  const auto attr = parse<EncoderAttrs>(c);
  Encoder out{Keys<std::int64_t>({}), {}};
  std::size_t keys = 0, values = 0;
  dispatch(from, LabelTypes{}, "LabelEncoder", [&](auto type) {
    using K = typename decltype(type)::type;
    const std::vector<K> list = list_of<K>(attr.keys, "keys_tensor");
    keys = list.size();
    out.keys = Keys<K>(list);
  });
  dispatch(to, LabelTypes{}, "LabelEncoder", [&](auto type) {
    using V = typename decltype(type)::type;
    std::vector<V> list = list_of<V>(attr.values, "values_tensor");
    values = list.size();
    list.push_back(default_of<V>(parse<DefaultAttrs>(c)));
    out.values = std::move(list);
  });
  if (keys != values) c.fail("{} keys of type {} meet {} values; the counts must be equal", keys, name(from), values);
  return out;
}

void run_encoder(OpContext& c) {
  const Tensor& x = c.input(0);
  const DataType to = value_type(parse<EncoderAttrs>(c));
  Tensor& y = c.output(0, to, x.shape());
  encode(*c.once<Encoder>([&] { return encoder_of(c, x.dtype(), to); }), x, y);
}

// --- version 1, and CategoryMapper: strings to numbers or back ---

void infer_swap(InferContext& c) {
  set_output_type(c, c.dtype(0) == DataType::string  ? DataType::int64
                     : c.dtype(0) == DataType::int64 ? DataType::string
                                                     : DataType::undefined);
}

struct Swap {
  Encoder to_int, to_string;
};

Swap swap_of(const OpContext& c, StringList strings, IntList ints) {
  if (strings.size() != ints.size()) c.fail("{} strings meet {} integers; the counts must be equal", strings.size(), ints.size());
  const auto attr = parse<DefaultAttrs>(c);
  std::vector<std::string> words = to_vector(strings);
  std::vector<std::int64_t> numbers = to_vector(ints);
  const Keys<std::string> word_keys(words);
  const Keys<std::int64_t> number_keys(numbers);
  words.emplace_back(attr.word);
  numbers.push_back(attr.number);
  return {{word_keys, std::move(numbers)}, {number_keys, std::move(words)}};
}

void swap_labels(OpContext& c, const Swap& swap) {
  const Tensor& x = c.input(0);
  const bool words = x.dtype() == DataType::string;
  encode(words ? swap.to_int : swap.to_string, x, c.output(0, words ? DataType::int64 : DataType::string, x.shape()));
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
