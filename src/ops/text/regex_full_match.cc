// RegexFullMatch: ai.onnx 20.

#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/text/regex_pattern.h"

namespace sdx::ops {
namespace {

struct RegexFullMatchAttrs {
  std::string_view pattern;

  void fields(auto& f) { f.required("pattern", pattern); }
};

void infer_regex(InferContext& c) {
  if (const SymShape* in = c.shape(0)) return c.output(0, DataType::boolean, *in);
  c.output(0, DataType::boolean);
}

void run_regex(OpContext& c) {
  const Tensor& in = c.input(0);
  RegexPattern pattern(parse<RegexFullMatchAttrs>(c).pattern, true, "pattern");
  Tensor& out = c.output(0, DataType::boolean, in.shape());
  bool* to = static_cast<bool*>(out.mutable_data());
  for (const std::string& text : in.values<std::string>()) {
    c.stop().check();
    *to++ = pattern.find(text, 0).has_value();
  }
}

}  // namespace

void register_regex_full_match(OpTable& t) {
  t.add(OpDef("RegexFullMatch", 20)
            .in("X", "T1", types::string)
            .out("Y", "T2", types::boolean)
            .attrs<RegexFullMatchAttrs>()
            .infer_with(infer_regex)
            .run_with(run_regex));
}

}  // namespace sdx::ops
