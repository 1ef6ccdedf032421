// If, Loop, Scan and sequences, whose graphs are short chains of elementwise operators.

#include <algorithm>

#include "gradients/generator.h"

namespace sdx::gradient_tests {
namespace {

// A body being written: lines, and what it reads from outside.
class Chain {
 public:
  Chain(Generator& g, int depth) : g_(g), indent_(static_cast<std::size_t>(2 * depth + 2), ' ') {}

  void line(const std::string& text) { lines_ += indent_ + text + "\n"; }
  std::string fresh() { return fmt::format("b{}", next_++); }
  std::string capture(const std::string& v) {
    if (std::find(captures_.begin(), captures_.end(), v) == captures_.end()) captures_.push_back(v);
    return v;
  }

  // A few operators on `v`, of this shape, and on what is at hand of such a shape. All stay within -1 to 1.
  std::string grow(std::string v, const Shape& shape, std::vector<std::string> at_hand, int depth) {
    for (std::int64_t left = 1 + g_.below(3); left > 0; --left) {
      at_hand.push_back(v);
      const std::string out = fresh();
      const std::string& other = at_hand[static_cast<std::size_t>(g_.below(static_cast<std::int64_t>(at_hand.size())))];
      switch (g_.below(depth < 2 ? 6 : 5)) {
        case 0: line(fmt::format("{} = Sin({})", out, v)); break;
        case 1: line(fmt::format("{} = Mul({}, {})", out, v, other)); break;
        case 2: line(fmt::format("{} = Sub({}, {})", out, v, other)); break;
        case 3: line(fmt::format("{} = Add({}, {})", out, other, v)); break;
        case 4: line(fmt::format("{} = Tanh({})", out, v)); break;
        default: branch(out, v, other); break;
      }
      v = out;
    }
    (void)shape;
    std::string bounded = fresh();
    line(fmt::format("{} = Tanh({})", bounded, v));
    return bounded;
  }

  std::string scan_output(const std::string& v) {
    std::string out = fresh();
    line(fmt::format("{} = Neg({})", out, v));
    return out;
  }

  const std::string& lines() const { return lines_; }
  const std::vector<std::string>& captures() const { return captures_; }

 private:
  // Which branch is taken depends on the values.
  void branch(const std::string& out, const std::string& v, const std::string& other) {
    const std::string total = fresh(), half = fresh(), condition = fresh(), a = fresh(), b = fresh();
    line(fmt::format("{} = ReduceSum({}) {{keepdims=0}}", total, v));
    line(fmt::format("{} = Constant() {{value=float64[](0.1)}}", half));
    line(fmt::format("{} = Less({}, {})", condition, total, half));
    line(fmt::format("{} = If({})", out, condition));
    line("  then_branch {");
    line(fmt::format("    {} = Mul({}, {})", a, v, other));
    line(fmt::format("    output {}", a));
    line("  }");
    line("  else_branch {");
    line(fmt::format("    {} = Sin({})", b, other));
    line(fmt::format("    output {}", b));
    line("  }");
  }

  Generator& g_;
  std::string indent_, lines_;
  std::vector<std::string> captures_;
  int next_ = 0;
};

// Other values of that shape, to capture; new ones where there are none.
std::vector<std::string> companions(Generator& g, Chain& chain, const Shape& shape) {
  std::vector<std::string> out;
  for (int attempt = 0; attempt < 6 && out.size() < 2; ++attempt) {
    const std::string v = g.pick();
    if (g.shape(v) == shape) out.push_back(v);
  }
  if (out.empty()) out.push_back(g.fresh(shape));
  for (const std::string& v : out) chain.capture(v);
  return out;
}

void add_if(Generator& g) {
  const std::string x = g.pick();
  const Shape shape = g.shape(x);
  const std::string condition =
      g.chance(0.5) ? g.ints({}, {g.below(2)}, "bool") : g.add("Less", {g.add("ReduceMax", {x}, "keepdims=0"), g.number(0.5)});
  Chain chain(g, 1);
  chain.capture(x);
  std::string body;
  const std::vector<std::string> others = companions(g, chain, shape);
  for (const char* name : {"then_branch", "else_branch"}) {
    Chain one(g, 1);
    const std::string out = one.grow(g.chance(0.5) ? x : others[0], shape, others, 1);
    body += fmt::format("  {} {{\n{}    output {}\n  }}\n", name, one.lines(), out);
  }
  g.add_many("If", {condition}, 1, "", body, chain.captures());
}

std::string type_of(const Shape& shape) { return "float64" + to_string(shape); }

void add_loop(Generator& g) {
  const std::string x = g.pick();
  const Shape shape = g.shape(x);
  const bool two = g.chance(0.4), scans = g.chance(0.5), until = g.chance(0.3), counts = g.chance(0.3);
  std::vector<std::string> inputs{g.ints({}, {g.below(5)}), "_", x};
  Chain chain(g, 1);
  std::vector<std::string> at_hand = companions(g, chain, shape);
  std::string body = "  body {\n    input i: int64[]\n    input go: bool[]\n    input s: " + type_of(shape) + "\n";
  if (two) {
    body += "    input t: " + type_of(shape) + "\n";
    inputs.push_back(at_hand[0]);
    at_hand.push_back("t");
  }
  if (counts) {
    chain.line("f = Cast(i) {to=11}");
    chain.line("e = Mul(f, s)");
    at_hand.push_back("e");
  }
  const std::string s = chain.grow("s", shape, at_hand, 1);
  const std::string t = two ? chain.grow("t", shape, {"s"}, 1) : "";
  const std::string p = scans ? chain.scan_output(s) : "";
  std::string go = "go";
  if (until) {
    chain.line("most = Constant() {value=int64[](1)}");
    chain.line("less = Less(i, most)");
    go = "less";
  }
  body += chain.lines() + "    output " + go + "\n    output " + s + "\n";
  if (two) body += "    output " + t + "\n";
  if (scans) body += "    output " + p + "\n";
  g.add_many("Loop", inputs, 1U + (two ? 1U : 0U) + (scans ? 1U : 0U), "", body + "  }\n", chain.captures());
}

void add_scan(Generator& g) {
  const std::string x = g.pick(2 + g.below(2));
  if (x.empty()) return;
  const std::int64_t axis = g.below(g.rank(x));
  Shape slice = g.shape(x);
  slice.erase(slice.begin() + axis);
  Chain chain(g, 1);
  const std::vector<std::string> others = companions(g, chain, slice);
  const std::int64_t back = g.below(2);
  std::string body = "  body {\n    input s: " + type_of(slice) + "\n    input e: " + type_of(slice) + "\n";
  std::vector<std::string> at_hand = others;
  at_hand.push_back("e");
  const std::string s = chain.grow("s", slice, at_hand, 1);
  const std::string p = chain.scan_output(g.chance(0.5) ? s : "e");
  body += chain.lines() + "    output " + s + "\n    output " + p + "\n  }\n";
  g.add_many("Scan", {g.fresh(slice), x}, 2,
             fmt::format("num_scan_inputs=1, scan_input_axes=[{}], scan_input_directions=[{}], scan_output_axes=[{}], "
                         "scan_output_directions=[{}]",
                         axis, back, g.below(static_cast<std::int64_t>(slice.size()) + 1), g.below(2)),
             body, chain.captures());
}

// Slices are worked on one by one, kept in a sequence and joined.
void add_accumulation(Generator& g) {
  const std::string x = g.pick(2);
  if (x.empty()) return;
  const std::int64_t rows = g.shape(x)[0], columns = g.shape(x)[1];
  const std::string w = g.fresh({columns});
  const std::string n = g.ints({}, {rows});
  const std::string body = fmt::format(
      "  body {{\n    input i: int64[]\n    input go: bool[]\n    input q: sequence(float64)\n    r = Gather({0}, i)\n"
      "    m = Mul(r, {1})\n    t = Tanh(m)\n    u = SequenceInsert(q, t)\n    output go\n    output u\n  }}\n",
      x, w);
  const std::string out_body = fmt::format(
      "  then_branch {{\n    e = SequenceEmpty() {{dtype=11}}\n    l = Loop({0}, _, e)\n{1}"
      "    y = ConcatFromSequence(l) {{axis=0, new_axis={2}}}\n    output y\n  }}\n"
      "  else_branch {{\n    z = Neg({3})\n    output z\n  }}\n",
      n,
      [&] {
        std::string deeper;
        for (std::size_t at = 0; at < body.size();) {
          const std::size_t end = body.find('\n', at);
          deeper += "    " + body.substr(at, end - at + 1);
          at = end + 1;
        }
        return deeper;
      }(),
      g.below(2), x);
  const std::vector<std::string> joined = g.add_many("If", {g.ints({}, {1}, "bool")}, 1, "", out_body, {x, w, n});
  if (joined.empty()) return;
  g.forget(joined[0]);
  g.add("Reshape", {joined[0], g.ints({2}, {columns, rows})});  // nothing is known of what a sequence holds
}

}  // namespace

void add_control_flow(Generator& g) {
  switch (g.below(8)) {
    case 0:
    case 1: return add_if(g);
    case 2:
    case 3:
    case 4: return add_loop(g);
    case 5: return add_accumulation(g);
    default: return add_scan(g);
  }
}

}  // namespace sdx::gradient_tests
