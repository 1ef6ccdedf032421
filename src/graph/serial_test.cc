#include "graph/serial.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sdx {
namespace {

// Every kind of attribute, type and extent, a subgraph with a capture, a value that is an output twice.
Graph sample() {
  Graph g;
  g.name = "sample";
  const ValueId x = g.add_input("x", Type::tensor(DataType::float32, {Dim::symbol("n"), Dim(3), Dim::unknown()}));
  const ValueId list = g.add_input("list", Type::sequence(Type::optional(Type::tensor(DataType::int64))));
  const ValueId w = g.add_constant("w", Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  const ValueId words = g.add_constant("words", Tensor::of<std::string>({2}, {"a", ""}));
  const ValueId y = g.add_value("y", Type::tensor(DataType::float32, {Dim::symbol("n") * Dim(2) + Dim::symbol("m") - Dim(1)}));
  g.value(y).declared = Type::tensor(DataType::float32);
  Node node;
  node.name = "first";
  node.op_type = "Everything";
  node.domain = "test";
  node.version = 17;
  node.overload = "o";
  node.inputs = {x, kNoValue, w, list, words};
  node.outputs = {y, kNoValue};
  node.attributes.set("i", std::int64_t{-5});
  node.attributes.set("f", 0.25F);
  node.attributes.set("s", std::string("text\0more", 9));
  node.attributes.set("t", Tensor::of<std::int64_t>({1}, {7}));
  node.attributes.set("is", std::vector<std::int64_t>{INT64_MIN, 0, INT64_MAX});
  node.attributes.set("fs", std::vector<float>{1, -1});
  node.attributes.set("ss", std::vector<std::string>{"", "b"});
  node.attributes.set("ts", std::vector<Tensor>{Tensor::of<float>({0}, {})});
  node.attributes.set("type", Type::map(DataType::string, Type::tensor(DataType::float32)));
  node.attributes.set("types", std::vector<Type>{Type{}, Type::tensor(DataType::boolean, SymShape{})});
  Subgraph body;
  body.attribute = "body";
  body.captures = {x};
  body.graph = std::make_unique<Graph>();
  body.graph->name = "inner";
  const ValueId formal = body.graph->add_input("x", g.value(x).type);
  body.graph->add_output(formal, "result");
  node.subgraphs.push_back(std::move(body));
  g.add_node(std::move(node));
  g.add_output(y, "shown");
  g.add_output(y);
  return g;
}

struct Shelf {
  std::vector<Tensor> tensors;
  PutTensor put = [this](const Tensor& t) {
    tensors.push_back(t);
    return tensors.size() - 1;
  };
  GetTensor get = [this](std::uint64_t i) {
    if (i >= tensors.size()) fail(ErrorCode::invalid_model, "no such tensor");
    return tensors[i];
  };
};

TEST(Serial, KeepsEverything) {
  const Graph g = sample();
  Shelf shelf;
  const std::string bytes = encode_graph(g, shelf.put);
  const Graph back = decode_graph(bytes, shelf.get);
  EXPECT_EQ(back.dump(), g.dump());
  EXPECT_EQ(encode_graph(back, Shelf().put), bytes);
  EXPECT_EQ(back.value(4).type.str(), g.value(4).type.str());
  EXPECT_EQ(back.value(4).declared.str(), "float32");
  EXPECT_EQ(back.value(2).constant->data(), g.value(2).constant->data());
  EXPECT_EQ(back.node(0).attributes.get_string("s"), g.node(0).attributes.get_string("s"));
  EXPECT_EQ(back.node(0).overload, "o");
  EXPECT_EQ(back.output_names(), g.output_names());
}

TEST(Serial, RefusesWhatItDidNotWrite) {
  Shelf shelf;
  const std::string bytes = encode_graph(sample(), shelf.put);
  const auto refused = [&](std::string_view damaged) {
    try {
      decode_graph(damaged, shelf.get);
      return false;
    } catch (const Error& e) {
      return e.code() == ErrorCode::invalid_model;
    }
  };
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_TRUE(refused(std::string_view(bytes).substr(0, cut))) << cut;
  EXPECT_TRUE(refused(bytes + '\0'));
  // Any byte may have any value: refused, or a graph that verifies. Names and numbers may differ, nothing more.
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      if (!refused(damaged)) decode_graph(damaged, shelf.get).verify();
    }
  }
}

}  // namespace
}  // namespace sdx
