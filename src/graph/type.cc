#include "graph/type.h"

namespace sdx {

std::string Type::str() const {
  switch (kind) {
    case Kind::unknown: return "unknown";
    case Kind::tensor: return std::string(name(elem)) + (shape ? to_string(*shape) : "");
    case Kind::sparse_tensor: return "sparse_tensor(" + std::string(name(elem)) + (shape ? to_string(*shape) : "") + ")";
    case Kind::sequence: return "sequence(" + (inner ? inner->str() : "unknown") + ")";
    case Kind::optional: return "optional(" + (inner ? inner->str() : "unknown") + ")";
    case Kind::map: return "map(" + std::string(name(elem)) + ", " + (inner ? inner->str() : "unknown") + ")";
  }
  return "unknown";
}

Type merge(const Type& a, const Type& b) {
  if (!a.known()) return b;
  if (!b.known() || a.kind != b.kind) return a;
  Type out = a;
  if (out.elem == DataType::undefined) out.elem = b.elem;
  if (a.inner && b.inner) {
    out.inner = std::make_shared<const Type>(merge(*a.inner, *b.inner));
  } else if (!a.inner) {
    out.inner = b.inner;
  }
  if (!a.shape) {
    out.shape = b.shape;
  } else if (b.shape && a.shape->size() == b.shape->size()) {
    for (std::size_t i = 0; i < a.shape->size(); ++i) {
      Dim& d = (*out.shape)[i];
      const Dim& e = (*b.shape)[i];
      if (d.is_unknown() || (d.is_symbolic() && e.is_const())) d = e;
    }
  }
  return out;
}

Type common(const Type& a, const Type& b) {
  if (!a.known() || !b.known() || a.kind != b.kind) return {};
  Type out = a;
  if (a.elem != b.elem) out.elem = DataType::undefined;
  if (a.inner && b.inner) {
    out.inner = std::make_shared<const Type>(common(*a.inner, *b.inner));
  } else {
    out.inner = nullptr;
  }
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) {
    out.shape.reset();
  } else {
    for (std::size_t i = 0; i < a.shape->size(); ++i) {
      if (!((*a.shape)[i] == (*b.shape)[i])) (*out.shape)[i] = Dim::unknown();
    }
  }
  return out;
}

bool compatible(const Type& a, const Type& b) {
  if (!a.known() || !b.known()) return true;
  if (a.kind != b.kind) return false;
  if (a.elem != b.elem && a.elem != DataType::undefined && b.elem != DataType::undefined) return false;
  if (a.inner && b.inner && !compatible(*a.inner, *b.inner)) return false;
  if (a.shape && b.shape) {
    if (a.shape->size() != b.shape->size()) return false;
    for (std::size_t i = 0; i < a.shape->size(); ++i) {
      const Dim& d = (*a.shape)[i];
      const Dim& e = (*b.shape)[i];
      if (d.is_const() && e.is_const() && d.value() != e.value()) return false;
    }
  }
  return true;
}

}  // namespace sdx
