#pragma once
// The definition of an operator: versions, signature, type and shape inference, reference kernel. See docs/add-an-op.md.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::ops {

class InferContext;
class OpContext;

// Sets of permitted types: one bit per DataType, and bits for the kinds that are not tensors.
using TypeSet = std::uint64_t;
constexpr TypeSet bit(DataType t) { return TypeSet{1} << static_cast<unsigned>(t); }
template <class... D>
constexpr TypeSet set_of(D... d) {
  return (bit(d) | ...);
}

namespace types {
inline constexpr TypeSet floats = set_of(DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16);
inline constexpr TypeSet signed_ints = set_of(DataType::int8, DataType::int16, DataType::int32, DataType::int64);
inline constexpr TypeSet unsigned_ints = set_of(DataType::uint8, DataType::uint16, DataType::uint32, DataType::uint64);
inline constexpr TypeSet ints = signed_ints | unsigned_ints;
inline constexpr TypeSet numeric = floats | ints;
inline constexpr TypeSet boolean = bit(DataType::boolean);
inline constexpr TypeSet string = bit(DataType::string);
inline constexpr TypeSet int64 = bit(DataType::int64);
inline constexpr TypeSet indices = set_of(DataType::int32, DataType::int64);
inline constexpr TypeSet complex = set_of(DataType::complex64, DataType::complex128);
inline constexpr TypeSet float8 = set_of(DataType::float8e4m3fn, DataType::float8e4m3fnuz, DataType::float8e5m2,
                                         DataType::float8e5m2fnuz, DataType::float8e8m0);
inline constexpr TypeSet packed = set_of(DataType::int4, DataType::uint4, DataType::int2, DataType::uint2, DataType::float4e2m1);
inline constexpr TypeSet float6 = set_of(DataType::float6e2m3, DataType::float6e3m2);
inline constexpr TypeSet any_tensor = numeric | boolean | string | complex | float8 | packed | float6;
inline constexpr TypeSet sequence = TypeSet{1} << 60;
inline constexpr TypeSet optional = TypeSet{1} << 61;
inline constexpr TypeSet map = TypeSet{1} << 62;
inline constexpr TypeSet anything = any_tensor | sequence | optional | map;
}  // namespace types

enum class Arity : std::uint8_t { required, optional, variadic };  // variadic: the last formal, any number (at least one)

// A formal input or output. All actual arguments whose formals share a non-empty type variable have one element type.
struct Formal {
  std::string name;
  std::string type_var;
  TypeSet types = types::any_tensor;
  Arity arity = Arity::required;
};

enum class AttrKind : std::uint8_t { i, f, s, t, g, ints, floats, strings, tensors, graphs, type };

struct AttrDef {
  std::string name;
  AttrKind kind;
  bool required = false;
};

struct OpDef;
// Adds a family's attributes: ops/signature.h.
template <class Attrs>
void declare(OpDef& def);

using InferFn = void (*)(InferContext&);
using RunFn = void (*)(OpContext&);

// One version of one operator. Built once, then immutable.
struct SDX_TOOLS_API OpDef {
  std::string domain;  // "" is ai.onnx
  std::string name;
  int since = 1;  // first opset version with this behaviour
  std::vector<Formal> inputs, outputs;
  std::vector<AttrDef> attributes;
  InferFn infer = nullptr;    // never null in the table
  RunFn run = nullptr;        // reference kernel; never null in the table
  bool deterministic = true;  // same inputs, same outputs: may be folded and shared. False for random operators
  int deprecated_at = 0;      // 0: not; otherwise the opset version from which models may not use it

  // `formal` may be several names with a space between. All out of line: inlined, 400 definitions are 0.8 MB that runs once.
  OpDef(std::string_view op, int since_version);
  OpDef(std::string_view op_domain, std::string_view op, int since_version);
  OpDef(const OpDef&);
  OpDef(OpDef&&) noexcept;
  OpDef& operator=(const OpDef&);
  OpDef& operator=(OpDef&&) noexcept;
  ~OpDef();

  OpDef& in(std::string_view formal, std::string_view type_var, TypeSet t, Arity a = Arity::required) &;
  OpDef&& in(std::string_view formal, std::string_view type_var, TypeSet t, Arity a = Arity::required) &&;
  OpDef& out(std::string_view formal, std::string_view type_var, TypeSet t, Arity a = Arity::required) &;
  OpDef&& out(std::string_view formal, std::string_view type_var, TypeSet t, Arity a = Arity::required) &&;
  OpDef& attr(std::string_view attribute, AttrKind kind, bool required = false) &;
  OpDef&& attr(std::string_view attribute, AttrKind kind, bool required = false) &&;
  // All attributes of a family in this version.
  template <class Attrs>
  OpDef& attrs() & {
    declare<Attrs>(*this);
    return *this;
  }
  template <class Attrs>
  OpDef&& attrs() && {
    declare<Attrs>(*this);
    return std::move(*this);
  }
  OpDef&& infer_with(InferFn fn) &&;
  OpDef&& run_with(RunFn fn) &&;
  OpDef&& random() &&;
};

// All operators of the build. Every file src/ops/<area>/<name>.cc defines `void register_<name>(OpTable&)`; the list of calls
// is generated at configure time from the file names.
class OpTable {
 public:
  void add(OpDef def);
  // The newest definition with since <= version; null when the operator is unknown or newer than `version`.
  // `domain` "ai.onnx" means "".
  const OpDef* find(std::string_view domain, std::string_view name, int version) const;
  const std::vector<OpDef>& all() const { return defs_; }  // sorted by domain, name, since
  void finish();

 private:
  std::vector<OpDef> defs_;
};

// Built at first use; immutable afterwards, so thread-safe.
const OpTable& table();
const OpDef* find(const Node& node);

// The newest opset version of each domain that this build knows: 28 for "", 5 for ai.onnx.ml, 1 for com.microsoft, …;
// 0 for unknown domains.
int newest_version(std::string_view domain);

// Checks the node against its definition: number of arguments, required attributes and their types, and, as far as the
// graph's types are known, element types. Throws Error(invalid_model); the caller adds which node.
void check_node(const Graph& graph, const Node& node, const OpDef& def);

}  // namespace sdx::ops
