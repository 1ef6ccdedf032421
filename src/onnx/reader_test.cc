#include "onnx/reader.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "onnx/functions.h"
#include "ops/op.h"
#include "support/errors.h"
#include "support/proto.h"

namespace sdx {
namespace {

using namespace testing;

// The error's text, or "" when reading succeeds.
std::string error_of(const std::string& bytes) {
  return testing::error_text([&] { read(bytes); });
}

#define EXPECT_REFUSED(bytes, part)                                           \
  do {                                                                        \
    const std::string text = error_of(bytes);                                 \
    EXPECT_NE(text.find(part), std::string::npos) << "got: '" << text << "'"; \
  } while (false)

std::string with_constant(const std::string& initializer) {
  GraphParts p = relu_parts();
  p.nodes = {node("Add", {"x", "w"}, {"y"})};
  p.initializers = {initializer};
  return model(graph(p));
}

TEST(Reader, ReadsASmallModel) {
  const Model m = read(model(graph(relu_parts())));
  m.graph.verify();
  EXPECT_EQ(m.ir_version, 8);
  EXPECT_EQ(m.opsets.at(""), 17);
  EXPECT_EQ(m.graph.dump(),
            "graph g\n"
            "  input %x: float32[2,3]\n"
            "  [%y: float32[2,3]] = Relu[%x]\n"
            "  output %y: float32[2,3]\n");
}

TEST(Reader, OutputsThatAnOperatorAlwaysMakesAreNeverLeftOut) {
  GraphParts p = relu_parts();
  p.nodes = {node("Relu", {"x"}, {""}), node("Dropout", {"x"}, {"", "m"}), node("Dropout", {"x"}, {"y", ""})};
  EXPECT_EQ(read(model(graph(p))).graph.dump(),
            "graph g\n"
            "  input %x: float32[2,3]\n"
            "  [%Relu_unread: unknown] = Relu[%x]\n"
            "  [%Dropout_unread: unknown, %m: unknown] = Dropout[%x]\n"
            "  [%y: float32[2,3], _] = Dropout[%x]\n"
            "  output %y: float32[2,3]\n");
}

TEST(Reader, LargeConstantsAreViewsOfTheFileEvenIfUnaligned) {
  for (const std::string& pad : {std::string(), std::string("a"), std::string("ab"), std::string("abc")}) {
    GraphParts p = relu_parts();
    p.nodes = {node("Add", {"x", pad + "w"}, {"y"})};
    p.initializers = {tensor(pad + "w", {128, 128}, 1, floats(128 * 128))};
    auto bytes = std::make_shared<std::string>(model(graph(p)));
    const Model m = read_model(std::as_bytes(std::span<const char>(*bytes)), bytes, {});
    const Tensor& t = *m.graph.value(*m.graph.find(pad + "w")).constant;
    EXPECT_GE(t.data(), bytes->data());
    EXPECT_LT(t.data(), bytes->data() + bytes->size());
    EXPECT_EQ(t.owner(), bytes);
  }
}

TEST(Reader, SmallConstantsAreAligned) {
  for (int pad = 0; pad < 8; ++pad) {
    GraphParts p = relu_parts();
    const std::string name(static_cast<std::size_t>(pad) + 1, 'w');
    p.nodes = {node("Add", {"x", name}, {"y"})};
    p.initializers = {tensor(name, {3}, 11, std::string(24, '\x01'))};
    EXPECT_TRUE(read(model(graph(p))).graph.value(1).constant->is_aligned());
  }
}

TEST(Reader, SaysWhatAFileLooksLike) {
  EXPECT_REFUSED("", "empty");
  EXPECT_REFUSED(std::string("PK\x03\x04 and more", 14), "zip");
  EXPECT_REFUSED("<!DOCTYPE html><html><body>Not Found</body></html>", "text");
  EXPECT_REFUSED("version https://git-lfs.github.com/spec/v1\noid sha256:1", "LFS");
  EXPECT_REFUSED(message([](auto& w) { w.add_int64(1, 8); }), "contains no graph");
}

TEST(Reader, ChecksVersions) {
  EXPECT_REFUSED(model(graph(relu_parts()), {15, {opset("", 17)}, {}}), "IR version 15");
  EXPECT_REFUSED(model(graph(relu_parts()), {-1, {opset("", 17)}, {}}), "IR version -1");
  EXPECT_REFUSED(model(graph(relu_parts()), {8, {opset("", 9999)}, {}}), "opset 9999");
  EXPECT_REFUSED(model(graph(relu_parts()), {8, {opset("", 0)}, {}}), "opset version 0");
  const Model twice = read(model(graph(relu_parts()), {8, {opset("", 17), opset("ai.onnx", 18), opset("", 0)}, {}}));
  EXPECT_EQ(twice.opsets.at(""), 18);
  EXPECT_EQ(twice.warnings.size(), 2U);
  const Model newest = read(model(graph(relu_parts()), {8, {}, {}}));
  EXPECT_EQ(newest.opsets.at(""), ops::newest_version(""));
  EXPECT_EQ(newest.warnings.size(), 1U);
  EXPECT_EQ(read(model(graph(relu_parts()), {2, {}, {}})).opsets.at(""), 1);
  EXPECT_EQ(read(model(graph(relu_parts()), {0, {opset("", 7)}, {}})).warnings.size(), 1U);
}

TEST(Reader, DomainsMayLackAnImport) {
  GraphParts p = relu_parts();
  p.nodes = {node("Gelu", {"x"}, {"y"}, {}, "com.microsoft")};
  const Model m = read(model(graph(p)));
  EXPECT_EQ(m.opsets.at("com.microsoft"), 1);
  EXPECT_EQ(m.warnings.size(), 1U);
  p.nodes = {node("Gelu", {"x"}, {"y"}, {}, "org.unheard")};
  EXPECT_EQ(read(model(graph(p))).opsets.at("org.unheard"), 1);
}

TEST(Reader, AValueMayBeSeveralOutputs) {
  GraphParts p = relu_parts();
  p.outputs.push_back(p.outputs[0]);
  const Graph g = read(model(graph(p))).graph;
  EXPECT_EQ(g.output_names(), (std::vector<std::string>{"y", "y"}));
  EXPECT_EQ(g.outputs()[0], g.outputs()[1]);
}

TEST(Reader, OfInitializersWithOneNameTheLastCounts) {
  GraphParts p = relu_parts();
  p.nodes = {node("Add", {"x", "w"}, {"a"}), node("Add", {"a", "v"}, {"y"})};
  p.initializers = {tensor("w", {1}, 1, floats(1, 2)), tensor("v", {1}, 1, floats(1, 3)), tensor("w", {1}, 1, floats(1, 4)),
                    tensor("w", {1}, 1, floats(1, 5))};
  const Model m = read(model(graph(p)));
  EXPECT_EQ(m.graph.value(*m.graph.find("w")).constant->values<float>()[0], 5);
  EXPECT_EQ(m.graph.value(*m.graph.find("v")).constant->values<float>()[0], 3);
  ASSERT_EQ(m.warnings.size(), 2U);
  EXPECT_NE(m.warnings[0].find("initializer 'w' is given twice"), std::string::npos);
}

TEST(Reader, RefusesBrokenGraphs) {
  const auto broken = [](auto&& change) {
    GraphParts p = relu_parts();
    change(p);
    return model(graph(p));
  };
  EXPECT_REFUSED(broken([](auto& p) { p.nodes[0] = node("Relu", {"z"}, {"y"}); }), "reads 'z'");
  EXPECT_REFUSED(broken([](auto& p) { p.nodes[0] = node("Add", {"x", "y"}, {"y"}); }), "cycle");
  EXPECT_REFUSED(broken([](auto& p) { p.nodes.push_back(p.nodes[0]); }), "defined twice");
  EXPECT_REFUSED(broken([](auto& p) { p.nodes[0] = node("Relu", {"x"}, {"x"}); }), "defined twice");
  EXPECT_REFUSED(broken([](auto& p) { p.nodes[0] = node("", {"x"}, {"y"}); }), "op_type");
  EXPECT_REFUSED(broken([](auto& p) { p.nodes.clear(); }), "returns 'y'");
  EXPECT_REFUSED(broken([](auto& p) { p.inputs.push_back(p.inputs[0]); }), "'x' is given twice");
  EXPECT_REFUSED(broken([](auto& p) { p.inputs[0] = value("", 1, {2}); }), "no name");
  EXPECT_REFUSED(broken([](auto& p) { p.outputs[0] = value("", 1, {2}); }), "no name");
  EXPECT_REFUSED(broken([](auto& p) { p.inputs[0] = value("x", 0, {2}); }), "element type");
  EXPECT_REFUSED(broken([](auto& p) { p.inputs[0] = value("x", 99, {2}); }), "unknown element type 99");
  EXPECT_REFUSED(broken([](auto& p) {
                   p.initializers = {tensor("w", {1}, 1, floats(1)), tensor("w", {2}, 1, floats(2))};
                 }),
                 "initializer 'w' is given twice, as float32[1] and as float32[2]");
  EXPECT_REFUSED(broken([](auto& p) {
                   p.nodes[0] = node("Relu", {"x"}, {"y"}, {int_attribute("a", 1), int_attribute("a", 2)});
                 }),
                 "attribute 'a' is given twice");
  EXPECT_REFUSED(broken([](auto& p) { p.nodes[0] = node("Relu", {"x"}, {"y"}, {int_attribute("", 1)}); }),
                 "attribute has no name");
  EXPECT_REFUSED(broken([](auto& p) { p.nodes[0] = node("Relu", {"x"}, {"y"}, {reference("a", "b", 2)}); }), "refers to 'b'");
}

TEST(Reader, NegativeDeclaredExtentsAreUnknown) {
  GraphParts p = relu_parts();
  p.inputs[0] = value("x", 1, {-1, kAny, 3});
  EXPECT_EQ(read(model(graph(p))).graph.value(0).type.str(), "float32[?,?,3]");
}

TEST(Reader, ChecksAttributeTypes) {
  const auto with = [](const std::string& attribute) {
    GraphParts p = relu_parts();
    p.nodes[0] = node("Relu", {"x"}, {"y"}, {attribute});
    return model(graph(p));
  };
  EXPECT_REFUSED(with(message([](auto& w) {
                   w.add_string(1, "a");
                   w.add_float(2, 1);
                   w.add_enum(20, 2);
                 })),
                 "is declared as INT but contains FLOAT");
  EXPECT_REFUSED(with(message([](auto& w) { w.add_string(1, "a"); })), "no type");
  EXPECT_REFUSED(with(message([](auto& w) {
                   w.add_string(1, "a");
                   w.add_enum(20, 4);
                 })),
                 "must hold one value");
  EXPECT_REFUSED(with(message([](auto& w) {
                   w.add_string(1, "a");
                   w.add_enum(20, 77);
                 })),
                 "unknown attribute type 77");
  // files older than IR version 2 have no type; writers of the proto3 flavour leave out zeros
  const Model untyped = read(with(message([](auto& w) {
    w.add_string(1, "a");
    w.add_int64(3, 5);
  })));
  EXPECT_EQ(untyped.graph.node(0).attributes.get_int("a"), 5);
  const Model zero = read(with(message([](auto& w) {
    w.add_string(1, "a");
    w.add_enum(20, 2);
  })));
  EXPECT_EQ(zero.graph.node(0).attributes.get_int("a"), 0);
}

TEST(Reader, ChecksConstants) {
  EXPECT_REFUSED(with_constant(tensor("w", {2, 3}, 1, floats(5))), "raw_data has 20 bytes");
  EXPECT_REFUSED(with_constant(tensor("w", {2, -3}, 1, floats(6))), "negative extent");
  EXPECT_REFUSED(with_constant(tensor("w", {INT64_MAX, INT64_MAX}, 1, floats(6))), "more elements than");
  EXPECT_REFUSED(with_constant(tensor("w", {std::int64_t{1} << 61}, 12, "")), "more elements than");
  EXPECT_REFUSED(with_constant(tensor("w", {6}, 0, floats(6))), "UNDEFINED");
  EXPECT_REFUSED(with_constant(tensor("w", {6}, 29, floats(6))), "unknown element type 29");
  EXPECT_REFUSED(with_constant(tensor("w", Dims(65, 1), 1, floats(1))), "rank");
  EXPECT_REFUSED(with_constant(tensor("w", {2}, 8, "ab")), "string_data");
  EXPECT_REFUSED(with_constant(tensor("", {1}, 1, floats(1))), "no name");
  EXPECT_REFUSED(with_constant(message([](auto& w) {
                   w.add_string(8, "w");
                   w.add_int32(2, 1);
                   w.add_int64(1, 1 << 30);
                 })),
                 "needs 1073741824 entries");
}

// While a hundred bytes claim a terabyte, nothing may be allocated: this would take minutes or fail with out_of_memory.
TEST(Reader, ClaimsOfSizeAreCheckedBeforeAllocation) {
  for (const int dtype : {1, 6, 7, 8, 11, 13, 14, 22, 27}) {
    const std::string claim = message([&](auto& w) {
      w.add_string(8, "w");
      w.add_int32(2, dtype);
      w.add_int64(1, std::int64_t{1} << 40);
    });
    EXPECT_REFUSED(with_constant(claim), "entries in");
  }
  const std::string sparse = message([](auto& w) {
    w.add_message(1, tensor("w", {1}, 1, floats(1)));
    w.add_message(2, tensor("", {1}, 7, std::string(8, '\0')));
    w.add_int64(3, std::int64_t{1} << 40);
  });
  GraphParts p = relu_parts();
  p.sparse = {sparse};
  EXPECT_REFUSED(model(graph(p)), "once dense");
}

TEST(Reader, SparseConstantsBecomeDense) {
  const auto sparse = [](const std::vector<std::int64_t>& at, const Dims& at_shape, const Dims& dims) {
    const std::string raw(reinterpret_cast<const char*>(at.data()), at.size() * 8);
    return message([&](auto& w) {
      w.add_message(1, tensor("w", {2}, 1, floats(2, 5)));
      w.add_message(2, tensor("", at_shape, 7, raw));
      for (const std::int64_t d : dims) w.add_int64(3, d);
    });
  };
  const auto with = [](const std::string& s) {
    GraphParts p = relu_parts();
    p.nodes = {node("Add", {"x", "w"}, {"y"})};
    p.sparse = {s};
    return model(graph(p));
  };
  const std::vector<float> expected{0, 5, 0, 0, 0, 5};
  for (const std::string& s : {sparse({1, 5}, {2}, {2, 3}), sparse({0, 1, 1, 2}, {2, 2}, {2, 3})}) {
    const Model m = read(with(s));
    const auto got = m.graph.value(*m.graph.find("w")).constant->values<float>();
    EXPECT_EQ(std::vector<float>(got.begin(), got.end()), expected);
  }
  EXPECT_REFUSED(with(sparse({1, 6}, {2}, {2, 3})), "out of range");
  EXPECT_REFUSED(with(sparse({0, 1, 2, 0}, {2, 2}, {2, 3})), "out of range");
  EXPECT_REFUSED(with(sparse({-1, 2}, {2}, {2, 3})), "out of range");
  EXPECT_REFUSED(with(sparse({5, 1}, {2}, {2, 3})), "ascend");
  EXPECT_REFUSED(with(sparse({1, 1}, {2}, {2, 3})), "ascend");
  EXPECT_REFUSED(with(sparse({1, 2, 3}, {3}, {2, 3})), "sparse indices must be");
}

TEST(Reader, InitializersAmongTheInputs) {
  GraphParts p = relu_parts();
  p.nodes = {node("Add", {"x", "w"}, {"y"})};
  p.inputs.push_back(value("w", 1, {2, 3}));
  p.initializers = {tensor("w", {2, 3}, 1, floats(6))};
  const Model old = read(model(graph(p), {3, {opset("", 7)}, {}}));
  EXPECT_EQ(old.graph.inputs().size(), 1U);
  const Model modern = read(model(graph(p)));
  ASSERT_EQ(modern.graph.inputs().size(), 2U);
  const ValueInfo& w = modern.graph.value(modern.graph.inputs()[1]);
  EXPECT_TRUE(w.is_input && w.constant.has_value());
}

TEST(Reader, CapturesPassThroughEveryLevel) {
  // z and w live in the main graph, and are used two levels down; w is produced after the If in the file's order.
  const std::string inner = graph({{node("Add", {"z", "w"}, {"i"})}, {}, {value("i", 1, {2, 3})}, {}, {}, {}});
  const std::string branch = [&](const std::string& g) {
    return graph({{node("If", {"c"}, {"b"}, {graph_attribute("then_branch", g), graph_attribute("else_branch", g)})},
                  {},
                  {value("b", 1, {2, 3})},
                  {},
                  {},
                  {}});
  }(inner);
  GraphParts p = relu_parts();
  p.inputs.push_back(value("c", 9, {}));
  p.nodes = {node("Neg", {"x"}, {"z"}),
             node("If", {"c"}, {"y"}, {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}),
             node("Abs", {"x"}, {"w"})};
  const Model m = read(model(graph(p)));
  m.graph.verify();
  const Node& outer = m.graph.node(2);
  ASSERT_EQ(outer.op_type, "If");  // sorted behind what it captures
  ASSERT_EQ(outer.subgraphs.size(), 2U);
  const Subgraph& then = outer.subgraphs[0];
  EXPECT_EQ(then.captures.size(), 3U);  // c, z, w
  EXPECT_EQ(then.graph->inputs().size(), 3U);
  EXPECT_EQ(then.graph->node(0).subgraphs[0].captures.size(), 2U);
}

TEST(Reader, NestingIsLimited) {
  std::string g = graph({{node("Neg", {"x"}, {"y"})}, {}, {value("y", 1, {2, 3})}, {}, {}, {}});
  for (int depth = 1; depth <= 80; ++depth) {
    g = graph({{node("If", {"c"}, {"y"}, {graph_attribute("then_branch", g)})},
               depth == 60 || depth == 80 ? Strings{value("x", 1, {2, 3}), value("c", 9, {})} : Strings{},
               {value("y", 1, {2, 3})},
               {},
               {},
               {}});
    if (depth == 60) {
      EXPECT_NO_THROW(read(model(g)));
    }
    if (depth == 80) {
      EXPECT_REFUSED(model(g), "nested more than 64");
    }
  }
  std::string type = message([](auto& w) { w.add_message(1, message([](auto& t) { t.add_int32(1, 1); })); });
  for (int i = 0; i < 40; ++i) {
    type = message([&](auto& w) { w.add_message(4, message([&](auto& s) { s.add_message(1, type); })); });
  }
  GraphParts p = relu_parts();
  p.inputs[0] = message([&](auto& w) {
    w.add_string(1, "x");
    w.add_message(2, type);
  });
  EXPECT_REFUSED(model(graph(p)), "a type is nested");
}

// 63 levels, each of which passes 50 000 values on: a gigabyte from less than a megabyte.
TEST(Reader, CapturesAreCounted) {
  GraphParts parts{{}, {}, {value("y", 1, {2, 3})}, {}, {}, {}};
  GraphParts main = relu_parts();
  main.inputs.push_back(value("c", 9, {}));
  for (int i = 0; i < 50'000; ++i) {
    main.nodes.push_back(node("Neg", {"x"}, {"v" + std::to_string(i)}));
    parts.nodes.push_back(node("Neg", {"v" + std::to_string(i)}, {i == 0 ? "y" : ""}));
  }
  std::string g = graph(parts);
  for (int depth = 0; depth < 62; ++depth) {
    g = graph({{node("If", {"c"}, {"y"}, {graph_attribute("then_branch", g)})}, {}, {value("y", 1, {2, 3})}, {}, {}, {}});
  }
  main.nodes[0] = node("If", {"c"}, {"y"}, {graph_attribute("then_branch", g)});
  EXPECT_REFUSED(model(graph(main)), "too much memory");
}

std::string rich_model() {
  const std::string branch = graph({{node("Add", {"x", "w"}, {"i"})}, {}, {value("i", 1, {2, 3})}, {}, {}, {}});
  GraphParts p = relu_parts();
  p.inputs.push_back(value("c", 9, {}));
  p.initializers = {tensor("w", {2, 3}, 1, floats(6)), tensor("v", {3}, 22, "ab")};
  p.nodes = {node("F", {"x"}, {"z"}, {int_attribute("k", 3)}, "my"),
             node("If", {"c"}, {"q"}, {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}),
             node("Add", {"z", "q"}, {"y"})};
  const FunctionParts f{"my", "F", {"a"}, {"b"}, {"k"}, {}, {node("Softmax", {"a"}, {"b"}, {reference("axis", "k", 2)})}};
  return model(graph(p), {8, {opset("", 17), opset("my", 1)}, {function(f)}});
}

// Whatever happens to the bytes, the answer is a model or an Error.
TEST(Reader, TruncatedAndDamagedFilesGiveErrors) {
  const std::string good = rich_model();
  int refused = 0;
  const auto attempt = [&](const std::string& bytes) {
    try {
      Model m = read(bytes);
      inline_functions(m);
      m.graph.verify();
    } catch (const Error& e) {
      ASSERT_NE(e.code(), ErrorCode::internal) << e.what();
      ++refused;
    }
  };
  for (std::size_t n = 0; n < good.size(); ++n) attempt(good.substr(0, n));
  EXPECT_GT(refused, 100);
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (int k = 0; k <= i % 4; ++k) bad[random() % bad.size()] = static_cast<char>(random());
    attempt(bad);
  }
}

}  // namespace
}  // namespace sdx
