#pragma once
// The attributes of a family of operators, said once: names, kinds, defaults, which are required. An operator's definition
// declares them (OpDef::attrs) and whoever reads a node parses them (parse), both from the same lines:
//
//   struct LrnAttrs {
//     std::int64_t size = 0;
//     float alpha = 1e-4F;  // the default
//     void fields(auto& f) {
//       f.required("size", size);
//       f("alpha", alpha);
//     }
//   };
//
//   OpDef("LRN", 1).attrs<LrnAttrs>()
//   const auto a = parse<LrnAttrs>(node);
//
// fields() takes a second argument, `const OpId& op`, where something depends on the operator or its version: an attribute that a
// version lacks is neither declared nor read. The struct lies with the file of its operator, or, where several files or layers
// read it, in `signatures.h` of the area. Parsing takes no memory: strings and lists are views into the node, which end with it
// or with a change of its attributes.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "graph/graph.h"
#include "ops/op.h"

namespace sdx::ops {

using IntList = std::span<const std::int64_t>;
using FloatList = std::span<const float>;
using StringList = std::span<const std::string>;

template <class T>
std::vector<T> to_vector(std::span<const T> list) {
  return {list.begin(), list.end()};
}

// An operator in a certain version.
struct OpId {
  std::string_view domain, name;
  int version;

  bool microsoft() const { return domain == "com.microsoft"; }
};

// Passed to fields(): fills in what a node has and leaves the rest as it is. Throws Error(invalid_model) for an attribute of
// another kind, and where a required one is missing.
class AttrReader {
 public:
  explicit AttrReader(const Attributes& attributes) : attributes_(attributes) {}

  void operator()(std::string_view name, std::int64_t& field) const;
  void operator()(std::string_view name, bool& field) const;  // an int that is not 0
  void operator()(std::string_view name, float& field) const;
  void operator()(std::string_view name, std::string_view& field) const;
  void operator()(std::string_view name, IntList& field) const;
  void operator()(std::string_view name, FloatList& field) const;
  void operator()(std::string_view name, StringList& field) const;
  void operator()(std::string_view name, const Tensor*& field) const;
  template <class Field>
  void operator()(std::string_view name, std::optional<Field>& field) const {
    if (attributes_.has(name)) (*this)(name, field.emplace());
  }

  template <class Field>
  void required(std::string_view name, Field& field) const {
    require(name);
    (*this)(name, field);
  }
  // A list that a definition requires may be missing in a node that inference alone has seen: it reads as empty.
  void required(std::string_view name, IntList& field) const { (*this)(name, field); }
  void required(std::string_view name, FloatList& field) const { (*this)(name, field); }
  void required(std::string_view name, StringList& field) const { (*this)(name, field); }

  // An attribute that the version lacks and files have all the same.
  template <class Field>
  void undeclared(std::string_view name, Field& field) const {
    (*this)(name, field);
  }
  // An attribute of one kind or the other; required, and not declared.
  void either(std::string_view name, std::int64_t& number, std::string_view& word) const;
  void unread(std::string_view, AttrKind) const {}

 private:
  void require(std::string_view name) const;

  const Attributes& attributes_;
};

// Passed to fields(): lists them.
class AttrDeclarer {
 public:
  explicit AttrDeclarer(std::vector<AttrDef>& out) : out_(out) {}

  template <class Field>
  void operator()(std::string_view name, const Field&) const {
    add(name, kind_of<Field>(), false);
  }
  template <class Field>
  void required(std::string_view name, const Field&) const {
    add(name, kind_of<Field>(), true);
  }
  template <class Field>
  void undeclared(std::string_view, const Field&) const {}
  void either(std::string_view, std::int64_t&, std::string_view&) const {}
  // An attribute that the operator has and no field holds: its value makes no difference, or it is read elsewhere.
  void unread(std::string_view name, AttrKind kind) const { add(name, kind, false); }

 private:
  template <class Field, class... Types>
  static constexpr bool any_of = (std::is_same_v<Field, Types> || ...) || (std::is_same_v<Field, std::optional<Types>> || ...);

  template <class Field>
  static constexpr AttrKind kind_of() {
    if constexpr (any_of<Field, std::int64_t, bool>) return AttrKind::i;
    if constexpr (any_of<Field, float>) return AttrKind::f;
    if constexpr (any_of<Field, std::string_view>) return AttrKind::s;
    if constexpr (any_of<Field, IntList>) return AttrKind::ints;
    if constexpr (any_of<Field, FloatList>) return AttrKind::floats;
    if constexpr (any_of<Field, StringList>) return AttrKind::strings;
    if constexpr (any_of<Field, const Tensor*>) return AttrKind::t;
  }

  void add(std::string_view name, AttrKind kind, bool required) const;

  std::vector<AttrDef>& out_;
};

template <class Attrs, class Visitor>
void visit_fields(Attrs& attrs, Visitor& visitor, const OpId& op) {
  if constexpr (requires { attrs.fields(visitor, op); }) {
    attrs.fields(visitor, op);
  } else {
    attrs.fields(visitor);
  }
}

template <class Attrs>
Attrs parse(const Node& node) {
  Attrs attrs;
  AttrReader reader(node.attributes);
  visit_fields(attrs, reader, OpId{node.domain, node.op_type, node.version});
  return attrs;
}

// Parses attributes, for structs that do not depend on the operator.
template <class Attrs>
Attrs parse(const Attributes& attributes) {
  Attrs attrs;
  AttrReader reader(attributes);
  attrs.fields(reader);
  return attrs;
}

// Parses the node of inference, a reference kernel, kernel choice or a gradient.
template <class Attrs, class Context>
  requires requires(const Context& c) { c.node().attributes; }
Attrs parse(const Context& context) {
  return parse<Attrs>(context.node());
}

template <class Attrs>
void declare(OpDef& def) {
  Attrs attrs;
  AttrDeclarer declarer(def.attributes);
  visit_fields(attrs, declarer, OpId{def.domain, def.name, def.since});
}

}  // namespace sdx::ops
