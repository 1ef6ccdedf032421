#pragma once
// The type of a value in a graph.

#include <memory>
#include <optional>
#include <string>

#include <sdx/dtype.hpp>

#include "graph/dim.h"

namespace sdx {

// Any part may be unknown: kind Kind::unknown, elem undefined, no shape, unknown Dims.
struct Type {
  enum class Kind : std::uint8_t { unknown, tensor, sparse_tensor, sequence, optional, map };

  Kind kind = Kind::unknown;
  DataType elem = DataType::undefined;  // of a tensor; of a map: the keys
  std::optional<SymShape> shape;        // of a tensor; absent: unknown rank
  std::shared_ptr<const Type> inner;    // of a sequence or optional: the element; of a map: the values

  static Type tensor(DataType elem) { return {Kind::tensor, elem, std::nullopt, nullptr}; }
  static Type tensor(DataType elem, SymShape shape) { return {Kind::tensor, elem, std::move(shape), nullptr}; }
  static Type sequence(Type element) {
    return {Kind::sequence, DataType::undefined, std::nullopt, std::make_shared<const Type>(std::move(element))};
  }
  static Type optional(Type element) {
    return {Kind::optional, DataType::undefined, std::nullopt, std::make_shared<const Type>(std::move(element))};
  }
  static Type map(DataType key, Type value) {
    return {Kind::map, key, std::nullopt, std::make_shared<const Type>(std::move(value))};
  }

  bool is_tensor() const noexcept { return kind == Kind::tensor; }
  bool known() const noexcept { return kind != Kind::unknown; }
  bool has_static_shape() const { return kind == Kind::tensor && shape && all_const(*shape); }

  // "float32[1,3,?]", "float32" (unknown rank), "sequence(float32[?])", "map(int64, float32)", "unknown"
  std::string str() const;
};

// Combines two descriptions of one value; if they contradict each other, `a` wins.
Type merge(const Type& a, const Type& b);
// Keeps only facts that are true of both: for the two branches of an If, and for values that change between iterations of a Loop.
Type common(const Type& a, const Type& b);
// False when the two cannot describe the same value (another kind, element type, rank or constant extent).
bool compatible(const Type& a, const Type& b);

}  // namespace sdx
