// docs/operators.md from the operator and kernel tables: sdx_operators_doc prints it, sdx_operators_doc --check FILE compares.

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/gradient.h"
#include "ops/op.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/types.h"

namespace {

using sdx::DataType;
using sdx::ops::Formal;
using sdx::ops::OpDef;
using sdx::ops::TypeSet;
namespace types = sdx::ops::types;

constexpr const char* kHead =
    R"(# Operators

`make docs` writes this page from the tables that the engine uses; a test fails if it is out of date. Do not edit it.

| column | contents |
|---|---|
| versions | the first opset version of each definition. One definition may cover several versions of an operator: those that only permit different types, and those whose differences the operator itself handles |
| types | the permitted element types of the newest version, by type variable. Variables that permit any tensor, or only integers for shapes and axes, are omitted |
| kernels | the fast kernels that the `cpu` provider tries, best first. They are compiled for SSE4, AVX2, AVX-512 and NEON, and without vector instructions. `sdx explain` shows which kernel runs a node, and why better ones refused it. `move` and `fill` are the functions of the operators themselves, where these are as fast as memory. All other cases run on the reference kernel, which every operator has |
| gradient | whether Gradient of ai.onnx.preview.training can differentiate through the operator |

| group of types | members |
|---|---|
| floats | float32, float64, float16, bfloat16 |
| numbers | floats, and signed and unsigned integers of 8 to 64 bits |
| float8 | e4m3fn, e4m3fnuz, e5m2, e5m2fnuz, e8m0 |
| packed | int4, uint4, int2, uint2, float4e2m1 |
| tensors | any of these, and bool, string, complex64, complex128 and the 6-bit floats |
)";

std::string domain_title(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

// The largest named group first, then single types.
std::string type_text(TypeSet set) {
  static const std::vector<std::pair<TypeSet, const char*>> groups{
      {types::any_tensor, "tensors"},     {types::numeric, "numbers"}, {types::floats, "floats"},
      {types::float8, "float8"},          {types::packed, "packed"},   {types::signed_ints, "int8–64"},
      {types::unsigned_ints, "uint8–64"}, {types::complex, "complex"}, {types::float6, "6-bit floats"}};
  std::string out;
  const auto add = [&](std::string_view text) { out += (out.empty() ? "" : ", ") + std::string(text); };
  for (const auto& [group, text] : groups) {
    if ((set & group) != group) continue;
    add(text);
    set &= ~group;
  }
  for (int i = 1; i < sdx::kDataTypeCount; ++i) {
    if ((set & sdx::ops::bit(static_cast<DataType>(i))) != 0) add(sdx::name(static_cast<DataType>(i)));
  }
  if ((set & types::sequence) != 0) add("sequences");
  if ((set & types::optional) != 0) add("optionals");
  if ((set & types::map) != 0) add("maps");
  return out;
}

std::string types_of(const OpDef& def) {
  std::string out;
  std::set<std::string> seen;
  const auto add = [&](const Formal& f) {
    const TypeSet set = f.types;
    const std::string variable = f.type_var.empty() ? f.name : f.type_var;
    if (!seen.insert(variable).second) return;
    const bool telling = set != types::any_tensor && set != types::int64 && set != types::indices;
    if (telling) out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", variable, type_text(set));
  };
  for (const Formal& f : def.inputs) add(f);
  for (const Formal& f : def.outputs) add(f);
  return out.empty() ? "any" : out;
}

std::string versions_of(const std::vector<const OpDef*>& defs) {
  std::string out;
  for (const OpDef* d : defs) out += fmt::format("{}{}", out.empty() ? "" : ", ", d->since);
  const int gone = defs.back()->deprecated_at;
  return gone == 0 ? out : out + fmt::format(" (removed in {})", gone);
}

std::string kernels_of(const OpDef& def) {
  std::string out;
  for (const auto* entry : sdx::cpu::kernel_table().find(def.domain, def.name)) {
    if (out.find("`" + entry->name + "`") == std::string::npos)
      out += fmt::format("{}`{}`", out.empty() ? "" : ", ", entry->name);
  }
  return out.empty() ? "–" : out;
}

// No totals: they would make every two additions conflict.
std::string page() {
  std::map<std::string, std::map<std::string, std::vector<const OpDef*>>> domains;
  for (const OpDef& d : sdx::ops::table().all()) domains[d.domain][d.name].push_back(&d);
  std::string out = kHead;
  for (const auto& [domain, operators] : domains) {
    out += fmt::format("\n## {}\n\n| operator | versions | types | kernels | gradient |\n|---|---|---|---|---|\n",
                       domain_title(domain));
    for (const auto& [name, defs] : operators) {
      out += fmt::format("| {} | {} | {} | {} | {} |\n", name, versions_of(defs), types_of(*defs.back()),
                         kernels_of(*defs.back()), sdx::ops::gradients().find(domain, name) != nullptr ? "yes" : "–");
    }
  }
  return out;
}

int check(const char* file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (in && text.str() == page()) return 0;
  fmt::print(stderr, "{} is stale: run `make docs` and commit what it changes\n", file);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--check") return check(argv[2]);
  if (argc != 1) {
    fmt::print(stderr, "usage: sdx_operators_doc [--check FILE]\n");
    return 2;
  }
  fmt::print("{}", page());
  return 0;
}
