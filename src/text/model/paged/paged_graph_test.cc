#include "text/model/paged/paged_graph.h"

#include <gtest/gtest.h>

#include "support/graph_text.h"
#include "text/model/open.h"

namespace sdx::text {
namespace {

// One layer; EXTRA stands in front of the logits' product, and MORE among the attention's inputs.
constexpr const char* kNetwork = R"(
  opset 21
  opset com.microsoft 1
  input input_ids: int64[b,s]
  input attention_mask: int64[b,t]
  input position_ids: int64[b,s]
  input past_key_values.0.key: float32[b,1,p,8]
  input past_key_values.0.value: float32[b,1,p,8]
  constant embedding: float32[16,8] 1
  constant packed: float32[8,24] 1
  constant head: float32[8,16] 1
  constant one: int64[1] 1
  constant index: int64[] 1
  constant angles: float32[64,4] 1
  constant cap: float32[] 30
  constant column: float32[8] 2
  constant rows: float32[3,8] 2
  x = Gather(embedding, input_ids)
  qkv = MatMul(x, packed)
  sum = ReduceSum(attention_mask, one) {keepdims=0}
  less = Sub(sum, one)
  lengths = Cast(less) {to=6}
  shape = Shape(attention_mask)
  extent = Gather(shape, index)
  total = Cast(extent) {to=6}
  a, present.0.key, present.0.value = com.microsoft.GroupQueryAttention(qkv, _, _, past_key_values.0.key, past_key_values.0.value, lengths, total, angles, anglesMORE) {num_heads=1, kv_num_heads=1, do_rotary=1}
  y = Mul(a, column)
EXTRA
  scores = MatMul(y, head)
  logits = Mul(scores, cap)
  output logits: float32[b,s,16]
  output present.0.key: float32[b,1,q,8]
  output present.0.value: float32[b,1,q,8]
)";

Model network(const std::string& extra = "", const std::string& more = "") {
  std::string text = kNetwork;
  text.replace(text.find("EXTRA"), 5, extra);
  text.replace(text.find("MORE"), 4, more);
  if (!extra.empty()) text.replace(text.find("MatMul(y"), 8, "MatMul(z");
  return testing::parse_model(text);
}

TEST(PagedGraphs, AttentionReadsBlocks) {
  Model model = network();
  EXPECT_EQ(page_attention(model, {}, {DataType::int8, false}), "");
  model.graph.verify();
  const std::string dump = model.graph.dump();
  EXPECT_NE(dump.find("PagedAttention"), std::string::npos) << dump;
  for (const char* gone : {"attention_mask", "GroupQueryAttention", "ReduceSum", "Shape"}) {
    EXPECT_EQ(dump.find(gone), std::string::npos) << gone << dump;
  }
  const auto type_of = [&](const char* name) { return model.graph.value(*model.graph.find(name)).type.str(); };
  EXPECT_EQ(type_of("past_key_values.0.key"), "int8[blocks,1,block_tokens,8]");
  EXPECT_EQ(type_of("past_key_values.0.value.scales"), "float32[blocks,1,block_tokens]");
  EXPECT_EQ(type_of("block_table"), "int32[sequences,most_blocks]");
  // Rows are picked in front of the product with the vocabulary.
  EXPECT_EQ(type_of("logits"), "float32[b,wanted,16]");
  const Node& head = model.graph.node(model.graph.value(*model.graph.find("scores")).producer);
  EXPECT_EQ(model.graph.node(model.graph.value(head.inputs[0]).producer).op_type, "Gather");
}

TEST(PagedGraphs, WhatMixesTokensStaysAsItIs) {
  for (const char* extra : {
           "  constant axis: int64[] 1\n  z = CumSum(y, axis)",
           "  constant back: int64[2] -1 8\n  z = Reshape(y, back)",
           "  z = Transpose(y) {perm=[1,0,2]}",
           "  z = Add(y, rows)",
           "  z = Softmax(y) {axis=1}",
           "  m = ReduceMean(y) {keepdims=1}\n  z = Sub(y, m)",
           "  q, s, zero = DynamicQuantizeLinear(y)\n  z = DequantizeLinear(q, s, zero)",
           "  ids = Cast(input_ids) {to=1}\n  z = MatMul(ids, y)",
       }) {
    Model model = network(extra);
    const std::string before = model.graph.dump();
    EXPECT_NE(page_attention(model, {}, {}), "") << extra;
    EXPECT_EQ(model.graph.dump(), before);
  }
  for (const char* extra : {
           "  constant heads: int64[4] 0 0 2 4\n  constant back: int64[3] 0 0 8\n  h = Reshape(y, heads)\n  z = Reshape(h, back)",
           "  z = Softmax(y) {axis=-1}",
           "  s = Sigmoid(y)\n  z = Mul(s, y)",
       }) {
    Model model = network(extra);
    EXPECT_EQ(page_attention(model, {}, {}), "") << extra;
  }
}

TEST(PagedGraphs, AttentionOfOtherKindsStaysAsItIs) {
  Model positions = network("", ", position_ids");
  EXPECT_NE(page_attention(positions, {}, {}).find("position_ids"), std::string::npos);
  Model read_twice = network("  k = ReduceMax(past_key_values.0.key) {keepdims=0}\n  z = Mul(y, k)");
  EXPECT_NE(page_attention(read_twice, {}, {}).find("caches"), std::string::npos);
}

// Nobody has checked what a file holds when its attention is rewritten.
TEST(PagedGraphs, WhatIsNotAsItMustBeStaysAsItIs) {
  const auto attention = [](Model& m) -> Node& {
    for (NodeId id = 0;; ++id) {
      if (m.graph.node(id).op_type == "GroupQueryAttention") return m.graph.node(id);
    }
  };
  const auto refused = [](Model m) {
    EXPECT_FALSE(works_in_place(m.graph, {}) && page_attention(m, {}, {}).empty());
    EXPECT_NE(page_attention(m, {}, {}), "");
  };
  for (const std::optional<SymShape>& shape : {std::optional<SymShape>(), {SymShape{Dim(1), Dim(8)}}}) {
    Model m = network();
    m.graph.value(*m.graph.find("past_key_values.0.value")).type.shape = shape;
    refused(std::move(m));
  }
  for (const std::size_t count : {0, 2, 4, 6}) {
    Model m = network();
    attention(m).inputs.resize(count);
    refused(std::move(m));
  }
  for (const std::size_t input : {0, 3, 4, 5}) {
    Model m = network();
    attention(m).inputs[input] = kNoValue;
    refused(std::move(m));
  }
  Model m = network();
  attention(m).outputs.resize(1);
  refused(std::move(m));
  // A second one without a known cache.
  refused(
      network("  z, k, v = com.microsoft.GroupQueryAttention(qkv, _, _, x, x, lengths, total) {num_heads=1, kv_num_heads=1}"));
  refused(network("  z = com.microsoft.GroupQueryAttention(qkv) {num_heads=1, kv_num_heads=1}"));
  refused(network("  z = sdx.PagedAttention(y)"));
  refused(network("  z = sdx.PagedAttention()"));
  refused(network("  z = Concat(y, _) {axis=-1}"));
  refused(network("  z = some.where.Gather(y) {axis=-1}"));
}

TEST(PagedGraphs, CachesStayInPlaceWhereTheMaskGivesLengthsAlone) {
  EXPECT_TRUE(works_in_place(network().graph, {}));
  DecoderNames single;
  single.past_key = "past_key_values.0.key", single.past_value = "past_key_values.0.value";
  single.present_key = "present.0.key", single.present_value = "present.0.value";
  EXPECT_TRUE(works_in_place(network().graph, single));
  EXPECT_FALSE(works_in_place(network("  m = Cast(attention_mask) {to=1}\n  z = Mul(y, m)").graph, {}));
  EXPECT_FALSE(works_in_place(network("  e = other.Cast(extent) {to=1}\n  z = Mul(y, column)").graph, {}));
  // Each value is looked at once: here more than 2^40 paths lead to the last one, and a mask has 100,000 Casts behind one
  // another.
  std::string paths = "  d0 = Gather(shape, index)\n", casts = "  c0 = Cast(attention_mask) {to=6}\n";
  for (int i = 1; i <= 60; ++i) {
    const auto d = [&](int back) { return "d" + std::to_string(std::max(0, i - back)); };
    paths += "  " + d(0) + " = Slice(" + d(1) + ", " + d(2) + ", " + d(1) + ")\n";
  }
  EXPECT_TRUE(works_in_place(network(paths + "  z = Mul(y, column)").graph, {}));
  for (int i = 1; i <= 100000; ++i) casts += "  c" + std::to_string(i) + " = Cast(c" + std::to_string(i - 1) + ") {to=6}\n";
  EXPECT_TRUE(works_in_place(network(casts + "  z = Mul(y, column)").graph, {}));
}

}  // namespace
}  // namespace sdx::text
