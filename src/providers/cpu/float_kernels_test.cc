// The fast kernels against the operators' references, one node at a time.

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/gemm/gemm_bf16.h"
#include "ops/infer.h"
#include "providers/cpu/kernel_table.h"
#include "support/graph_text.h"
#include "support/run_op.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

// Deterministic values between -2 and 2, or -2 and 4 in sixteenths, no two neighbours alike.
Tensor values_for(const Type& type, int seed, bool sixteenths) {
  Tensor t(type.elem, to_shape(*type.shape));
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const auto raw = static_cast<double>((i * 37 + seed * 101 + i * i % 11) % 97);
    set_element(t, i, is_floating(type.elem) ? raw / (sixteenths ? 16.0 : 24.0) - 2.0 : std::floor(raw));
  }
  return t;
}

struct Case {
  const char* kernel;        // that must take the node
  const char* graph;         // one node
  std::size_t cache_at = 0;  // > 0: outputs 1 and 2 lie in the memory of this input and the next
  bool sixteenths = false;   // inputs that bfloat16 holds exactly
};

// Runs the graph's only node through the best kernel and through the reference.
void compare(const Case& test) {
  SCOPED_TRACE(test.graph);
  Graph graph = sdx::testing::parse_model(test.graph).graph;
  ops::infer_in_place(graph);
  ASSERT_EQ(graph.nodes().size(), 1U);
  const Node& node = graph.node(0);
  std::unique_ptr<Kernel> kernel;
  std::string reasons;
  for (const KernelEntry* entry : kernel_table().find(node.domain, node.op_type)) {
    LowerContext context(graph, 0);
    if (!kernel) kernel = entry->make(context);
    reasons += entry->name + ": " + context.reason() + "; ";
  }
  ASSERT_TRUE(kernel) << reasons;
  EXPECT_EQ(kernel->name(), test.kernel);

  std::vector<Value> inputs(node.inputs.size()), fast(node.outputs.size()), slow(node.outputs.size());
  std::vector<const Value*> in(node.inputs.size());
  std::vector<Value*> fast_out(node.outputs.size()), slow_out(node.outputs.size());
  std::vector<const Type*> in_types(node.inputs.size()), out_types(node.outputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const ValueInfo& v = graph.value(node.inputs[i]);
    inputs[i] = v.constant ? *v.constant : values_for(v.type, static_cast<int>(i), test.sixteenths);
    in[i] = &inputs[i];
    in_types[i] = &v.type;
  }
  for (std::size_t i = 0; i < fast.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    const Type& type = graph.value(node.outputs[i]).type;
    ASSERT_TRUE(type.has_static_shape());
    fast[i] = test.cache_at > 0 && i > 0 ? inputs[test.cache_at + i - 1].tensor() : Tensor(type.elem, to_shape(*type.shape));
    fast_out[i] = &fast[i];
    slow_out[i] = &slow[i];
    out_types[i] = &type;
  }
  ops::testing::FakeServices services;
  KernelContext context;
  context.inputs = in;
  context.outputs = slow_out;
  context.services = &services;
  make_reference(node)->run(context);
  context.outputs = fast_out;
  ResolveContext resolve;
  resolve.inputs = in_types;
  resolve.outputs = out_types;
  std::unique_ptr<KernelState> state;
  if (!kernel->allocates_outputs()) state = kernel->resolve(resolve);
  std::vector<std::byte> workspace(resolve.workspace_bytes + 64);
  context.state = state.get();
  context.workspace = workspace.data();
  kernel->run(context);

  for (std::size_t i = 0; i < fast.size(); ++i) {
    if (fast_out[i] == nullptr) continue;
    const Tensor &a = fast[i].tensor(), &b = slow[i].tensor();
    ASSERT_EQ(a.shape(), b.shape());
    for (std::int64_t k = 0; k < a.size(); ++k) {
      const double expected = element_as_double(b, k);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(element_as_double(a, k))) << "output " << i << ", element " << k;
        continue;
      }
      ASSERT_NEAR(element_as_double(a, k), expected, 1e-5 * (1 + std::fabs(expected))) << "output " << i << ", element " << k;
    }
  }
}

TEST(FloatKernels, Einsum) {
  // equation, a, b
  const char* products[][3] = {
      {"bhid,bhjd->bhij", "2,3,5,7", "2,3,9,7"},
      {"bhij,bhjd->bhid", "2,3,5,7", "2,3,7,9"},
      {"bthd,bshd->bhts", "2,5,3,7", "2,9,3,7"},
      {"bhts,bshd->bthd", "2,3,5,9", "2,9,3,7"},
      {"btc,chd->bthd", "2,5,6", "6,3,7"},
      {"bij,bjk->bik", "2,3,5", "2,5,9"},
      {"bij,bjk->bki", "2,3,5", "2,5,9"},
      {"bji,bkj->bik", "2,5,3", "2,9,5"},
      {"ij,jk", "17,33", "33,19"},
      {"ij,kj->ik", "17,33", "19,33"},
      {"ji,jk->ik", "33,17", "33,19"},
      {"nc,nd->ncd", "5,3", "5,4"},
      {"i,j->ij", "5", "4"},
      {"bi,bi->b", "4,9", "4,9"},
      {"bi,bi->bi", "4,9", "4,9"},
      {"i,i->", "19", "19"},
      {"bi,i->b", "4,19", "19"},
      {"bij,bj->bi", "3,4,19", "3,19"},
      {"bij,bi->bj", "3,4,19", "3,4"},
      {"ncw,nvw->ncvw", "2,3,5", "2,4,5"},
      {"ncvw,vu->ncuw", "2,3,4,5", "4,6"},
      {"bhwc,hkc->bhwk", "2,3,4,5", "3,6,5"},
      {"nkctv,kvw->nctw", "2,3,4,5,6", "3,6,7"},
      {"...ij,...jk->...ik", "2,1,3,4", "5,4,6"},
      {"b...d,d...->b...", "2,3,4,5", "5,3,4"},
      {"bij,bjk->bik", "1,3,5", "2,5,9"},
      {"ij,jk->ik", "3,1", "1,4"},
      {"abc,cad->bd", "2,3,4", "4,2,5"},
      {"ibnd,jbnd->bnij", "5,2,3,4", "6,2,3,4"},
      {"ijbn,jbnd->ibnd", "5,6,2,3", "6,2,3,4"},
      {"bqhc,hcd->bqd", "2,5,3,4", "3,4,6"},
      {"bhqk,bhkc->bqhc", "2,3,1,6", "2,3,6,4"},
      {"ij,jk->ik", "3,0", "0,4"},
      {"bij,bjk->bik", "2,3,4", "2,4,0"},
      {"wab,xbay->wxy", "2,3,4", "5,4,3,6"},
      {"abcd,badc->cbd", "2,3,4,5", "3,2,5,4"},
      {",ij->ij", "", "2,3"},
      {"ij,ik->kj", "7,5", "7,6"},
  };
  for (const auto& [equation, a, b] : products) {
    const std::string line = "y = Einsum(a, b) {equation=\"" + std::string(equation) + "\"}\noutput y\n";
    compare({"einsum-f32", ("input a: float32[" + std::string(a) + "]\ninput b: float32[" + b + "]\n" + line).c_str()});
  }
  for (const char* equation :
       {"ijk->kij", "ijk->ik", "ijk->ki", "ijk->", "ijk->k", "...k->k...", "...ij->...ji", "i...->...", "ijk"}) {
    for (const char* x : {"3,4,5", "3,1,5", "1,1,1", "3,0,5"}) {
      compare({"einsum-f32",
               ("input x: float32[" + std::string(x) + "]\ny = Einsum(x) {equation=\"" + equation + "\"}\noutput y\n").c_str()});
    }
  }
  // Weights: packed, as rows or as columns; with an order that cannot be packed, used where they lie.
  const char* packed[][4] = {
      {"einsum-packed-f32", "bc,cd->bd", "3,2", "2,3"},
      {"einsum-packed-f32", "bc,dc->bd", "3,2", "3,2"},
      {"einsum-packed-f32", "tbc,chd->tbhd", "3,2,2", "2,1,3"},
      {"einsum-packed-f32", "bhc,hcd->bd", "3,2,1", "2,1,3"},
      {"einsum-packed-f32", "bch,hcd->bd", "3,1,2", "2,1,3"},
      {"einsum-packed-f32", "cb,cd->bd", "2,3", "2,3"},
      {"einsum-f32", "bc,cd->db", "3,2", "2,3"},
      {"einsum-f32", "bc,bcd->bd", "2,1", "2,1,3"},
  };
  for (const auto& [kernel, equation, a, b] : packed) {
    compare({kernel, ("input a: float32[" + std::string(a) + "]\nconstant b: float32[" + b + "] 1 -2 3 4 0.5 -6\n" +
                      "y = Einsum(a, b) {equation=\"" + equation + "\"}\noutput y\n")
                         .c_str()});
  }
}

TEST(FloatKernels, Reductions) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL1", "ReduceL2",
                         "ReduceProd", "ReduceLogSumExp"}) {
    for (const char* axes : {"[1] 0", "[1] 1", "[1] -1", "[2] 2 1", "[2] 0 1", "[3] 0 1 2"}) {
      compare({"reduce-f32", ("input x: float32[3,4,35]\nconstant a: int64" + std::string(axes) + "\ny = " + op +
                              "(x, a) {keepdims=" + (axes[1] == '1' ? "0" : "1") + "}\noutput y\n")
                                 .c_str()});
    }
  }
  compare({"reduce-f32", "input z: float32[3,4,35]\nconstant a: int64[1] 1\ny = ReduceLogSum(z, a)\noutput y\n"});
  for (const char* type : {"int32", "int64"}) {
    for (const char* op : {"ReduceSum", "ReduceMax", "ReduceMin"}) {
      for (const char* axes : {"0", "1", "-1"}) {
        compare({"reduce-int", ("input x: " + std::string(type) + "[3,4,35]\nconstant a: int64[1] " + axes + "\ny = " + op +
                                "(x, a)\noutput y\n")
                                   .c_str()});
      }
    }
  }
}

TEST(FloatKernels, PositionsAndOrder) {
  for (const char* attrs :
       {"{axis=-1}", "{axis=0, keepdims=0}", "{axis=1, select_last_index=1}", "{axis=2, select_last_index=1, keepdims=0}"}) {
    for (const char* op : {"ArgMax", "ArgMin"}) {
      compare(
          {"arg-extreme-f32", ("input x: float32[3,4,200]\ny = " + std::string(op) + "(x) " + attrs + "\noutput y\n").c_str()});
    }
  }
  for (const char* k : {"0", "1", "5", "40", "200"}) {
    for (const char* attrs : {"", " {largest=0}", " {sorted=0, axis=1}"}) {
      compare({"top-k-f32", ("input x: float32[3,200]\nconstant k: int64[1] " + std::string(k) + "\ny, at = TopK(x, k)" + attrs +
                             "\noutput y\noutput at\n")
                                .c_str()});
    }
  }
}

TEST(FloatKernels, LpAndMeanVarianceNorm) {
  for (const char* attrs : {"{axis=-1}", "{axis=0}", "{axis=1, p=1}", "{axis=2, p=1}"}) {
    compare({"lp-norm-f32", ("input x: float32[3,4,70]\ny = LpNormalization(x) " + std::string(attrs) + "\noutput y\n").c_str()});
  }
  // The last three are the reference's: groups between others, and short rows far apart.
  for (const char* line :
       {"[1,5,6,7]\ny = MeanVarianceNormalization(x)", "[3,5,6,7]\ny = MeanVarianceNormalization(x)",
        "[3,5,6,7]\ny = MeanVarianceNormalization(x) {axes=[1,2,3]}",
        "[3,5,6,7]\ny = MeanVarianceNormalization(x) {axes=[0,1,2,3]}", "[3,5,6,7]\ny = MeanVarianceNormalization(x) {axes=[-1]}",
        "[3,5,6,7]\ny = MeanVarianceNormalization(x) {axes=[1]}", "[3,5,6,7]\ny = MeanVarianceNormalization(x) {axes=[0,2]}",
        "[3,5,2,2]\ny = MeanVarianceNormalization(x)"}) {
    compare({"mean-variance-norm-f32", ("input x: float32" + std::string(line) + "\noutput y\n").c_str()});
  }
}

TEST(FloatKernels, Pooling) {
  const Case cases[] = {
      {"max-pool-f32",
       "input x: float32[2,3,7,9]\ny = MaxPool(x) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}\noutput y\n"},
      {"max-pool-f32", "input x: float32[1,2,9]\ny = MaxPool(x) {kernel_shape=[2], dilations=[3], ceil_mode=1}\noutput y\n"},
      {"average-pool-f32", "input x: float32[1,2,6,6]\ny = AveragePool(x) {kernel_shape=[3,3], pads=[1,1,1,1]}\noutput y\n"},
      {"average-pool-f32",
       "input x: float32[1,2,7,6]\ny = AveragePool(x) {kernel_shape=[3,2], strides=[2,3], pads=[1,0,1,1], "
       "ceil_mode=1, count_include_pad=1}\noutput y\n"},
      {"max-pool-f32", "input x: float32[1,2,2,5]\ny = MaxPool(x) {kernel_shape=[3,3], strides=[2,2], ceil_mode=1}\noutput y\n"},
      {"max-pool-f32",
       "input x: float32[1,2,2,5]\ny = MaxPool(x) {kernel_shape=[2,9], strides=[3,5], dilations=[3,1], ceil_mode=1}\noutput y\n"},
      {"average-pool-f32",
       "input x: float32[1,2,2,5]\ny = AveragePool(x) {kernel_shape=[3,7], strides=[2,3], ceil_mode=1}\noutput y\n"},
      {"average-pool-f32",
       "input x: float32[1,2,2,1,5]\ny = AveragePool(x) {kernel_shape=[5,3,8], strides=[2,2,2], pads=[1,1,0,1,0,2], ceil_mode=1, "
       "count_include_pad=1}\noutput y\n"},
      {"global-pool-f32", "input x: float32[2,3,5,4]\ny = GlobalAveragePool(x)\noutput y\n"},
      {"global-pool-f32", "input x: float32[2,3,5]\ny = GlobalMaxPool(x)\noutput y\n"},
  };
  for (const Case& c : cases) compare(c);
}

// The engine's own operators, in this machine's blocks of channels, of which the last is not full.
TEST(FloatKernels, BlockedChannels) {
  const std::string block = std::to_string(channel_block()), most = std::to_string(3 * channel_block() - 3);
  const std::string all = std::to_string(3 * channel_block());
  const std::string x = "opset sdx 1\nopset com.microsoft 1\ninput x: float32[2,3,7,9," + block + "]\n";
  const std::string weights = "constant w: float32[9," + most + ",3,3] 0.01\nconstant b: float32[9] 1 2 3 4 5 6 7 8 9\n";
  const std::string attributes = "block=" + block + ", pads=[1,1,1,1], activation=\"Relu\"}\noutput y\n";
  std::string joined;  // two groups with zeros between them
  for (std::int64_t row = 0; row < channel_block(); ++row) {
    for (std::int64_t i = 0; i < channel_block() * 9; ++i) {
      const bool own = row / (channel_block() / 2) == i / 9 / (channel_block() / 2);
      joined += own ? " " + std::to_string(static_cast<double>(row + i % 7) / 16) : " 0";
    }
  }
  const std::string cases[][2] = {
      {"conv-blocked-f32", x + weights + "y = sdx.BlockedConv(x, w, b) {strides=[2,1], " + attributes},
      {"conv-blocked-f32", "opset sdx 1\ninput x: float32[2,1,7,9," + block + "]\nconstant w: float32[" + block + "," + block +
                               ",3,3]" + joined + "\ny = sdx.BlockedConv(x, w) {joined=2, " + attributes},
      {"conv-plain-to-blocked-f32",
       "opset sdx 1\ninput x: float32[2," + most + ",7,9]\n" + weights + "y = sdx.BlockedConv(x, w, b) {" + attributes},
      {"conv-blocked-depthwise-f32",
       x + "constant w: float32[" + most + ",1,3,3] 0.1\ny = sdx.BlockedConv(x, w) {group=" + most + ", " + attributes},
      {"max-pool-blocked-f32", x + "y = sdx.BlockedMaxPool(x) {kernel_shape=[3,3], strides=[2,2], ceil_mode=1}\noutput y\n"},
      {"average-pool-blocked-f32", x + "y = sdx.BlockedAveragePool(x) {kernel_shape=[3,2], pads=[1,0,1,1]}\noutput y\n"},
      {"max-pool-blocked-f32", x + "y = sdx.BlockedMaxPool(x) {kernel_shape=[8,13], strides=[2,5], ceil_mode=1}\noutput y\n"},
      {"average-pool-blocked-f32",
       x + "y = sdx.BlockedAveragePool(x) {kernel_shape=[9,11], strides=[2,4], pads=[1,0,0,1], ceil_mode=1, "
           "count_include_pad=1}\noutput y\n"},
      {"global-pool-blocked-f32", x + "y = sdx.BlockedGlobalAveragePool(x)\noutput y\n"},
      {"lrn-blocked-f32", x + "y = sdx.BlockedLRN(x) {size=4, alpha=0.1, channels=" + all + "}\noutput y\n"},
      {"unblock-channels-f32", x + "y = sdx.UnblockChannels(x) {channels=" + most + "}\noutput y\n"},
      {"block-channels-f32",
       "opset sdx 1\ninput x: float32[2," + most + ",3,5]\ny = sdx.BlockChannels(x) {block=" + block + "}\noutput y\n"},
  };
  for (const auto& c : cases) compare({c[0].c_str(), c[1].c_str()});
}

TEST(FloatKernels, Movement) {
  const Case cases[] = {
      {"transpose", "input x: float32[2,3,4,5]\ny = Transpose(x) {perm=[0,2,3,1]}\noutput y\n"},
      {"transpose", "input x: uint8[3,7]\ny = Transpose(x)\noutput y\n"},
      {"transpose", "input x: int64[2,1,3]\ny = Transpose(x) {perm=[1,0,2]}\noutput y\n"},
      {"concat", "input x: float32[2,3,4]\ninput z: float32[2,1,4]\ny = Concat(x, z, x) {axis=1}\noutput y\n"},
      {"gather", "input x: float32[4,3,5]\nconstant i: int64[2,2] 0 -1 2 1\ny = Gather(x, i) {axis=1}\noutput y\n"},
      {"gather", "input x: uint8[4,3]\nconstant i: int32[] 3\ny = Gather(x, i)\noutput y\n"},
      {"gather", "input x: int64[4,0]\nconstant i: int64[3] 3 0 -4\ny = Gather(x, i)\noutput y\n"},
      {"concat", "input x: int64[3,0]\ninput z: int64[3,2]\ny = Concat(x, z) {axis=-1}\noutput y\n"},
  };
  for (const Case& c : cases) compare(c);
}

TEST(FloatKernels, ProductsWithWeights) {
  const Case cases[] = {
      {"gemm-packed-f32", "input x: float32[2,3,5]\nconstant w: float32[5,7] 0.5\ny = sdx.Linear(x, w)\noutput y\n"},
      {"gemm-packed-f32",
       "input x: float32[9,5]\nconstant w: float32[17,5] 0.25\ninput b: float32[17]\ninput z: float32[9,17]\n"
       "y = sdx.Linear(x, w, b, z) {transB=1}\noutput y\n"},
      {"gemm-packed-f32",
       "input x: float32[1,2]\nconstant w: float32[2,3] 1 -2 3 4 -5 6\ninput z: float32[1,3]\n"
       "y = sdx.Linear(x, w, _, z) {activation=\"Relu\"}\noutput y\n"},
      {"gemm-packed-f32",
       "input x: float32[3]\nconstant w: float32[3,2] 1 -2 3 4 -5 6\ny = sdx.Linear(x, w) {activation=\"FastGelu\"}\noutput y\n"},
      {"gemm-packed-f32",
       "input x: float32[0,3]\nconstant w: float32[3,2] 1 -2 3 4 -5 6\ny = sdx.Linear(x, w) {activation=\"Gelu\"}\noutput y\n"},
      {"unary-f32", "input x: float32[9]\ny = com.microsoft.FastGelu(x)\noutput y\n"},
  };
  for (const Case& c : cases) compare(c);
}

TEST(FloatKernels, ProductsWithWeightsOf16Bits) {
  const std::string product =
      "input x: float32[9,5]\nconstant w: bfloat16[17,5] 0.25\ninput b: float32[17]\ninput z: float32[9,17]\n"
      "y = sdx.Linear(x, w, b, z) {transB=1, activation=\"Relu\"";
  const std::string as_bfloat = product + ", bfloat16=1}\noutput y\n", as_float = product + "}\noutput y\n";
  compare({has_bf16_dots() ? "gemm-bf16-dots" : "gemm-bf16-weights", as_bfloat.c_str(), 0, true});
  compare({"gemm-bf16-weights", as_float.c_str()});
  if (has_bf16_dots()) {
    compare(
        {"gemm-bf16-dots",
         "input x: float32[2,3,5]\ninput w: float32[5,33]\ny = sdx.Linear(x, w) {bfloat16=1, activation=\"Relu\"}\noutput y\n", 0,
         true});
  }
  compare(
      {"gemm-f16-weights", "input x: float32[1,2,3]\nconstant w: float16[3,2] 1 -2 3 4 -5 6\ny = sdx.Linear(x, w)\noutput y\n"});
}

TEST(FloatKernels, Attention) {
  const std::string flat = "input q: float32[2,5,24]\ninput k: float32[2,7,12]\ninput v: float32[2,7,10]\n";
  const std::string heads = "{q_num_heads=4, kv_num_heads=2";
  const std::string stacked = "input q: float32[1,2,21,8]\ninput k: float32[1,2,30,8]\ninput v: float32[1,2,30,5]\n";
  const std::string past = "input pk: float32[2,2,3,6]\ninput pv: float32[2,2,3,5]\n";
  const std::string cases[] = {
      flat + "y = Attention(q, k, v) " + heads + "}\noutput y\n",
      flat + "y = Attention(q, k, v) " + heads + ", is_causal=1, scale=0.25, softcap=3.0}\noutput y\n",
      flat + "input m: bool[2,4,5,7]\ny = Attention(q, k, v, m) " + heads + "}\noutput y\n",
      flat + "input m: float32[5,6]\ny = Attention(q, k, v, m) " + heads + "}\noutput y\n",
      flat + "y = Attention(q, k, v) " + heads + ", left_window_size=2}\noutput y\n",
      flat + past + "y, a, b = sdx.Attention(q, k, v, _, pk, pv) " + heads + ", is_causal=1}\noutput y\noutput a\noutput b\n",
      flat + past + "input m: float32[1,1,1,10]\ny = Attention(q, k, v, m, pk, pv) " + heads + "}\noutput y\n",
      flat + "y, a, b = Attention(q, k, v) " + heads + "}\noutput y\noutput a\noutput b\n",
      stacked + "y = Attention(q, k, v) {is_causal=1}\noutput y\n",
      stacked + "input m: float32[21,30]\ny, _, b = Attention(q, k, v, m)\noutput y\noutput b\n",
      "input q: float32[1,21,16]\ninput k: float32[1,2,30,8]\ninput v: float32[1,30,6]\ninput m: float32[1,2,1,30]\n"
      "y = sdx.Attention(q, k, v, m) {q_num_heads=2, kv_num_heads=2}\noutput y\n",
      "input q: float32[1,2,3,4]\ninput k: float32[1,2,0,4]\ninput v: float32[1,2,0,4]\ny = Attention(q, k, v)\noutput y\n",
  };
  for (const std::string& c : cases) compare({"attention-f32", ("opset 25\n" + c).c_str()});
}

TEST(FloatKernels, MultiHeadAttention) {
  const std::string head = "opset 21\nopset com.microsoft 1\n", out = "output y\n", all = "output y\noutput pk\noutput pv\n";
  const std::string call = "y = com.microsoft.MultiHeadAttention(", counts = " {num_heads=3";
  const std::string cached = "y, pk, pv = com.microsoft.MultiHeadAttention(";
  const std::string split = "input q: float32[2,5,24]\ninput k: float32[2,7,24]\ninput v: float32[2,7,15]\n";
  const std::string self = "input q: float32[2,5,24]\ninput k: float32[2,5,24]\ninput v: float32[2,5,24]\n";
  const std::string long_self = "input q: float32[1,21,24]\ninput k: float32[1,21,24]\ninput v: float32[1,21,24]\n";
  const std::string bias = "input b: float32[63]\n", wide_bias = "input b: float32[72]\n";
  const std::string past = "input a: float32[2,3,4,8]\ninput d: float32[2,3,4,8]\n";
  const std::string cases[] = {
      split + call + "q, k, v)" + counts + "}\n" + out,
      split + bias + call + "q, k, v, b)" + counts + ", scale=0.3, unidirectional=1}\n" + out,
      split + bias + "input m: int32[2,7]\n" + call + "q, k, v, b, m)" + counts + "}\n" + out,
      split + "constant m: int32[2] 7 3\n" + call + "q, k, v, _, m)" + counts + "}\n" + out,
      split + "constant m: int32[4] 7 5 2 0\n" + call + "q, k, v, _, m)" + counts + ", mask_filter_value=-3.0}\n" + out,
      split + "constant m: int32[8] 7 0 1 2 3 4 5 6\n" + call + "q, k, v, _, m)" + counts + "}\n" + out,
      split + "input m: int32[2,5,7]\n" + call + "q, k, v, _, m)" + counts + "}\n" + out,
      split + "input m: int32[2,1,9,9]\n" + call + "q, k, v, _, m)" + counts + "}\n" + out,
      split + "input m: int32[2,1]\n" + call + "q, k, v, _, m)" + counts + "}\n" + out,
      split + "input m: int32[2,7]\ninput e: float32[1,3,5,9]\n" + call + "q, k, v, _, m, e)" + counts + "}\n" + out,
      split + "input e: float32[2,1,5,7]\n" + call + "q, k, v, _, _, e)" + counts + "}\n" + out,
      split + bias + cached + "q, k, v, b)" + counts + "}\n" + all,
      self + past + cached + "q, k, v, _, _, _, a, d)" + counts + ", unidirectional=1}\n" + all,
      self + past + wide_bias + "input m: int32[2,9]\ninput e: float32[2,3,5,9]\n" + cached + "q, k, v, b, m, e, a, d)" + counts +
          "}\n" + all,
      self + past + call + "q, k, v, _, _, _, a, d)" + counts + "}\n" + out,
      self + "input a: float32[2,3,11,8]\ninput d: float32[2,3,11,8]\nconstant n: int32[1] 4\n" + wide_bias + cached +
          "q, k, v, b, _, _, a, d, n)" + counts + ", unidirectional=1}\n" + all,
      "input q: float32[2,5,72]\n" + wide_bias + call + "q, _, _, b)" + counts + ", unidirectional=1}\n" + out,
      "input q: float32[2,5,3,3,8]\n" + wide_bias + call + "q, _, _, b)" + counts + "}\n" + out,
      "input q: float32[1,21,3,3,8]\n" + call + "q)" + counts + ", unidirectional=1}\n" + out,
      "input q: float32[2,5,24]\ninput k: float32[2,7,3,2,8]\n" + call + "q, k)" + counts + "}\n" + out,
      "input q: float32[2,5,24]\ninput k: float32[2,3,7,8]\ninput v: float32[2,3,7,5]\n" + bias + call + "q, k, v, b)" + counts +
          "}\n" + out,
      "input q: float32[2,1,24]\ninput k: float32[2,3,7,8]\ninput v: float32[2,3,7,5]\n" + cached + "q, k, v)" + counts + "}\n" +
          all,
      long_self + wide_bias + call + "q, k, v, b)" + counts + ", unidirectional=1}\n" + out,
      long_self + "input m: int32[1,21]\n" + call + "q, k, v, _, m)" + counts + "}\n" + out,
      long_self + "input e: float32[1,3,21,21]\n" + call + "q, k, v, _, _, e)" + counts + "}\n" + out,
      "input q: float32[0,5,24]\ninput k: float32[0,7,24]\ninput v: float32[0,7,15]\n" + call + "q, k, v)" + counts + "}\n" + out,
      "input q: float32[1,2,24]\ninput k: float32[1,0,24]\ninput v: float32[1,0,24]\n" + call + "q, k, v)" + counts + "}\n" + out,
  };
  for (const std::string& c : cases) compare({"multi-head-attention-f32", (head + c).c_str()});
  const std::string one = "input q: float32[2,1,24]\ninput k: float32[2,1,24]\ninput v: float32[2,1,24]\n";
  const std::string cache =
      "input a: float32[2,3,9,8]\ninput d: float32[2,3,9,8]\nconstant n: int32[1] 6\ninput b: float32[72]\n";
  const std::string decoder =
      "y, pk, pv = com.microsoft.DecoderMaskedMultiHeadAttention(q, k, v, m, _, a, d, n, _, _, b) {num_heads=3}\n";
  compare({"multi-head-attention-f32", (head + one + cache + "input m: int32[2,7]\n" + decoder + all).c_str()});
}

TEST(FloatKernels, ProjectedAttention) {
  const std::string head = "opset 21\nopset com.microsoft 1\n", out = "output y\n", both = "output y\noutput p\n";
  const std::string call = "y = com.microsoft.Attention(", cached = "y, p = com.microsoft.Attention(", counts = " {num_heads=2";
  std::string w = "constant w: float32[6,36]", u = "constant w: float32[6,28]";
  for (int i = 0; i < 216; ++i) w += " " + std::to_string((i * 37 % 41 - 20) * 0.0625);
  for (int i = 0; i < 168; ++i) u += " " + std::to_string((i * 29 % 43 - 21) * 0.0625);
  const std::string x = w + "\ninput x: float32[2,5,6]\n", b = "input b: float32[36]\n";
  const std::string past = "input a: float32[2,2,2,3,6]\n", wide = "input a: float32[2,2,2,12,6]\nconstant n: int32[1] 4\n";
  const std::string cases[] = {
      x + call + "x, w)" + counts + "}\n" + out,
      x + b + call + "x, w, b)" + counts + ", unidirectional=1, scale=0.4}\n" + out,
      x + b + "constant m: int32[2] 5 3\n" + call + "x, w, b, m)" + counts + "}\n" + out,
      x + b + "input m: int32[2,5]\ninput e: float32[1,2,5,5]\n" + call + "x, w, b, m, _, e)" + counts + "}\n" + out,
      x + b + cached + "x, w, b)" + counts + "}\n" + both,
      x + b + past + cached + "x, w, b, _, a)" + counts + ", unidirectional=1}\n" + both,
      x + b + past + "input m: int32[2,8]\n" + call + "x, w, b, m, a)" + counts + "}\n" + out,
      x + b + wide + cached + "x, w, b, _, a, _, n)" + counts + ", past_present_share_buffer=1, unidirectional=1}\n" + both,
      u + "\ninput x: float32[1,19,6]\ninput b: float32[28]\n" + call + "x, w, b)" + counts + ", qkv_hidden_sizes=[10,10,8]}\n" +
          out,
      x + wide + "input m: int32[2,9]\n" +
          "y, p = com.microsoft.DecoderMaskedSelfAttention(x, w, _, m, a, _, n) {num_heads=2, past_present_share_buffer=1}\n" +
          both,
  };
  for (const std::string& c : cases) compare({"projected-attention-f32", (head + c).c_str()});
}

TEST(FloatKernels, GroupQueryAttention) {
  const std::string head = "opset 21\nopset com.microsoft 1\n", out = "output y\noutput pk\noutput pv\n";
  const std::string split = "input q: float32[2,3,32]\ninput k: float32[2,3,16]\ninput v: float32[2,3,16]\n";
  const std::string prompt = "constant s: int32[2] 2 1\nconstant t: int32[1] 3\n";
  const std::string past =
      "input a: float32[2,2,6,8]\ninput b: float32[2,2,6,8]\nconstant s: int32[2] 6 4\nconstant t: int32[1] 7\n";
  const std::string angles = "input c: float32[20,3]\ninput d: float32[20,3]\n";
  const std::string call = "y, pk, pv = com.microsoft.GroupQueryAttention(", counts = " {num_heads=4, kv_num_heads=2";
  const std::string one =
      "input q: float32[1,1,64]\ninput a: float32[1,2,9,8]\ninput b: float32[1,2,9,8]\nconstant s: int32[1] 7\n"
      "constant t: int32[1] 8\n";
  const std::string many = "input q: float32[1,20,64]\nconstant s: int32[1] 19\nconstant t: int32[1] 20\n";
  const std::string cases[] = {
      split + prompt + call + "q, k, v, _, _, s, t)" + counts + "}\n",
      split + past + call + "q, k, v, a, b, s, t)" + counts + ", scale=0.3}\n",
      split + past + angles + call + "q, k, v, a, b, s, t, c, d)" + counts + ", do_rotary=1, local_window_size=3}\n",
      split + past + angles + "input h: float32[4]\n" + call + "q, k, v, a, b, s, t, c, d, _, _, h)" + counts +
          ", do_rotary=1, rotary_interleaved=1, softcap=2.0}\n",
      split + past + "input m: float32[1,4,3,9]\n" + call + "q, k, v, a, b, s, t, _, _, _, m)" + counts + ", smooth_softmax=1}\n",
      split + past + "input n: float32[8]\n" + call + "q, k, v, a, b, s, t, _, _, _, _, _, _, _, n, n)" + counts + "}\n",
      one + call + "q, _, _, a, b, s, t)" + counts + "}\n",
      one + angles + "input h: float32[4]\n" + call + "q, _, _, a, b, s, t, c, d, _, _, h)" + counts +
          ", do_rotary=1, local_window_size=4}\n",
      one + "input m: float32[1,4,1,8]\n" + call + "q, _, _, a, b, s, t, _, _, _, m)" + counts + ", causal=0}\n",
      many + angles + call + "q, _, _, _, _, s, t, c, d)" + counts + ", do_rotary=1, smooth_softmax=1}\n",
  };
  for (const std::string& c : cases) compare({"group-query-attention-f32", (head + c + out).c_str()});
}

// A cache with room for more tokens that goes in and comes out in the same memory.
TEST(FloatKernels, CachesInPlace) {
  const std::string head = "opset 21\nopset com.microsoft 1\n", out = "output y\noutput pk\noutput pv\n";
  const std::string angles = "input c: float32[20,4]\ninput d: float32[20,4]\n";
  for (const int length : {1, 3, 12}) {
    const std::string rows = "[2," + std::to_string(length) + ",", total = std::to_string(length + 5);
    const std::string grouped = "input q: float32" + rows + "32]\ninput k: float32" + rows + "16]\ninput v: float32" + rows +
                                "16]\ninput a: float32[2,2,19,8]\ninput b: float32[2,2,19,8]\nconstant s: int32[2] " +
                                std::to_string(length + 4) + " " + std::to_string(length + 1) + "\nconstant t: int32[1] " +
                                total + "\n" + angles +
                                "y, pk, pv = com.microsoft.GroupQueryAttention(q, k, v, a, b, s, t, c, d) {num_heads=4, "
                                "kv_num_heads=2, do_rotary=1}\n";
    compare({"group-query-attention-f32", (head + grouped + out).c_str(), 3});
    const std::string multi = "input q: float32" + rows + "24]\ninput k: float32" + rows + "24]\ninput v: float32" + rows +
                              "24]\ninput b: float32[72]\ninput a: float32[2,3,19,8]\ninput d: float32[2,3,19,8]\n"
                              "constant n: int32[1] 5\ny, pk, pv = com.microsoft.MultiHeadAttention(q, k, v, b, _, _, a, d, n) "
                              "{num_heads=3, unidirectional=1}\n";
    compare({"multi-head-attention-f32", (head + multi + out).c_str(), 6});
  }
}

TEST(FloatKernels, RotaryEmbedding) {
  const std::string flat = "input x: float32[2,3,48]\n", stacked = "input x: float32[2,4,3,40]\n", out = "output y\n";
  const std::string caches = "input c: float32[9,8]\ninput s: float32[9,8]\n",
                    wide = "input c: float32[9,20]\ninput s: float32[9,20]\n";
  const std::string ids = "constant p: int64[2,3] 0 4 8 1 2 3\n", call = "y = com.microsoft.RotaryEmbedding(x, p, c, s)";
  const std::string cases[] = {
      flat + ids + caches + call + "\n",
      flat + "constant p: int64[1] 5\n" + caches + call + " {interleaved=1}\n",
      flat + ids + caches + call + " {num_heads=2, rotary_embedding_dim=16}\n",
      stacked + ids + wide + call + "\n",
      stacked + ids + wide + "y = RotaryEmbedding(x, c, s, p)\n",
      stacked + "constant p: int64[2,3] 0 -1 8 1 2 -9\n" + caches + "y = RotaryEmbedding(x, c, s, p) {rotary_embedding_dim=16}\n",
      flat + "input c: float32[2,3,8]\ninput s: float32[2,3,8]\ny = RotaryEmbedding(x, c, s) {num_heads=3, interleaved=1}\n",
  };
  for (const std::string& c : cases) compare({"rotary-f32", ("opset 23\nopset com.microsoft 1\n" + c + out).c_str()});
}

TEST(FloatKernels, SoftmaxAndReductions) {
  const Case cases[] = {
      {"softmax-f32", "input x: float32[2,3,7]\ny = Softmax(x)\noutput y\n"},
      {"softmax-f32", "input x: float32[2,3,7]\ny = Softmax(x) {axis=1}\noutput y\n"},
      {"log-softmax-f32", "input x: float32[2,3,7]\ny = LogSoftmax(x) {axis=0}\noutput y\n"},
      {"reduce-f32", "opset 17\ninput x: float32[2,3,4,5]\ny = ReduceMax(x) {axes=[2,3]}\noutput y\n"},
      {"reduce-f32", "opset 17\ninput x: float32[2,3,4,5]\ny = ReduceMin(x) {axes=[0,1], keepdims=0}\noutput y\n"},
      {"reduce-f32", "opset 17\ninput x: float32[2,3,4]\ny = ReduceMean(x)\noutput y\n"},
      {"reduce-f32", "input x: float32[2,3,4]\nconstant a: int64[1] -2\ny = ReduceSum(x, a)\noutput y\n"},
  };
  for (const Case& c : cases) compare(c);
}

// Extents that are kept need not be known; those to reduce must be, since what a sum over nothing gives is left to the reference.
TEST(FloatKernels, ReductionsOfUnknownExtents) {
  const auto lower = [](const char* text) {
    Graph graph = sdx::testing::parse_model(text).graph;
    ops::infer_in_place(graph);
    LowerContext context(graph, 0);
    return kernel_table().find("", "ReduceSum").front()->make(context);
  };
  EXPECT_EQ(lower("input x: float32[n,3]\nconstant a: int64[1] 0\ny = ReduceSum(x, a)\noutput y\n"), nullptr);
  const std::unique_ptr<Kernel> kernel =
      lower("input x: float32[n,3]\nconstant a: int64[1] 1\ny = ReduceSum(x, a) {keepdims=0}\noutput y\n");
  ASSERT_TRUE(kernel);
  for (const std::int64_t n : {0, 1, 5}) {
    Value x(Tensor(DataType::float32, {n, 3})), y(Tensor(DataType::float32, {n}));
    for (std::int64_t i = 0; i < 3 * n; ++i) static_cast<float*>(x.tensor().mutable_data())[i] = static_cast<float>(i * i);
    const Value* in[] = {&x, nullptr};
    Value* out[] = {&y};
    KernelContext context;
    context.inputs = in;
    context.outputs = out;
    kernel->run(context);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t k = 3 * i;
      EXPECT_EQ(element_as_double(y.tensor(), i), static_cast<double>(k * k + (k + 1) * (k + 1) + (k + 2) * (k + 2)));
    }
  }
}

TEST(FloatKernels, Normalisations) {
  const std::string vectors = "input s: float32[4]\ninput b: float32[4]\n";
  const std::string layer = "input x: float32[3,5,4]\n" + vectors + "y = LayerNormalization(x, s, b)\noutput y\n";
  const std::string instance = "input x: float32[2,4,9]\n" + vectors + "y = InstanceNormalization(x, s, b)\noutput y\n";
  const std::string batch =
      "input x: float32[2,2,3,3]\nconstant s: float32[2] 2 3\nconstant b: float32[2] 1 -1\nconstant m: float32[2] 0.5 1\n"
      "constant v: float32[2] 1 4\ny = BatchNormalization(x, s, b, m, v)\noutput y\n";
  compare({"layer-norm-f32", layer.c_str()});
  compare({"instance-norm-f32", instance.c_str()});
  compare({"batch-norm-f32", batch.c_str()});
  compare({"lrn-f32", "input x: float32[2,5,3]\ny = LRN(x) {size=4, alpha=0.1}\noutput y\n"});
}

TEST(FloatKernels, Resize) {
  const std::string head = "input x: float32[1,2,5,7]\nconstant e: float32[0]\nconstant s: float32[4] 1 1 2 1.5\n";
  for (const char* mode : {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
    const std::string attrs = " {mode=\"MODE\", coordinate_transformation_mode=\"" + std::string(mode) + "\"}\noutput y\n";
    for (const std::string kind : {"nearest", "linear"}) {
      std::string text = head + "y = Resize(x, e, s)" + attrs;
      text.replace(text.find("MODE"), 4, kind);
      const std::string kernel = "resize-" + kind + "-f32";
      compare({kernel.c_str(), text.c_str()});
    }
  }
}

TEST(TypedKernels, ComparisonsLogicAndIntegers) {
  const std::string pair[] = {"float32[2,3,17]\ninput b: float32[3,1]", "int64[17]\ninput b: int64[2,3,17]",
                              "int32[4,1,5]\ninput b: int32[]", "int64[0,3]\ninput b: int64[3]"};
  for (const std::string& types : pair) {
    for (const char* op : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Add", "Sub", "Mul", "Min", "Max"}) {
      const bool arithmetic = op[0] == 'A' || op[0] == 'S' || op[0] == 'M';
      const char* kernel = arithmetic && types[0] == 'f' ? "binary-f32" : "pair-typed";
      compare({kernel, ("input a: " + types + "\ny = " + op + "(a, b)\noutput y\n").c_str()});
    }
  }
  for (const char* op : {"And", "Or", "Xor", "Equal"}) {
    const std::string text = "input a: bool[5,1,7]\ninput b: bool[6,7]\ny = " + std::string(op) + "(a, b)\noutput y\n";
    compare({"pair-typed", text.c_str()});
  }
  const Case cases[] = {
      {"map-typed", "input a: bool[33]\ny = Not(a)\noutput y\n"},
      {"map-typed", "input a: int64[33]\ny = Neg(a)\noutput y\n"},
      {"map-typed", "input a: int32[33]\ny = Abs(a)\noutput y\n"},
      {"map-typed", "input a: float32[33]\ny = IsNaN(a)\noutput y\n"},
      {"map-typed", "input a: float32[33]\ny = IsInf(a) {detect_negative=0}\noutput y\n"},
      {"where", "input c: bool[4,1,9]\ninput a: float32[4,3,9]\ninput b: float32[]\ny = Where(c, a, b)\noutput y\n"},
      {"where", "input c: bool[9]\ninput a: int64[1]\ninput b: int64[4,3,9]\ny = Where(c, a, b)\noutput y\n"},
      {"where", "input c: bool[4,1]\ninput a: bool[9]\ninput b: bool[2,1,9]\ny = Where(c, a, b)\noutput y\n"},
      {"where", "input c: bool[2,0]\ninput a: float32[1]\ninput b: float32[2,1]\ny = Where(c, a, b)\noutput y\n"},
  };
  for (const Case& c : cases) compare(c);
}

TEST(FloatKernels, TrigonometryAndRemainders) {
  for (const char* op : {"Sin", "Cos", "Atan"}) {
    compare({"math-f32", ("input x: float32[3,1,35]\ny = " + std::string(op) + "(x)\noutput y\n").c_str()});
  }
  for (const char* op : {"Asin", "Acos"}) {
    const std::string text = "constant x: float32[3] 0.25 -0.75 1\ny = " + std::string(op) + "(x)\noutput y\n";
    compare({"math-f32", text.c_str()});
  }
  for (const char* attribute : {"fmod=0", "fmod=1"}) {
    const std::string operands = "input a: float32[2,3,17]\nconstant b: float32[3,1] 0.3 -0.7 5\n";
    compare({"mod-f32", (operands + "y = Mod(a, b) {" + attribute + "}\noutput y\n").c_str()});
  }
}

TEST(TypedKernels, Casts) {
  const char* types[] = {"float32", "float64", "float16", "int32", "int64", "int8", "uint8", "bool"};
  const int numbers[] = {1, 11, 10, 6, 7, 3, 2, 9};
  for (std::size_t from = 0; from < std::size(types); ++from) {
    for (std::size_t to = 0; to < std::size(types); ++to) {
      const bool halves = (from == 0 && to == 2) || (from == 2 && to == 0);
      if (from == to || halves || (from == 1 && to == 2)) continue;
      const std::string text =
          "input x: " + std::string(types[from]) + "[5,67]\ny = Cast(x) {to=" + std::to_string(numbers[to]) + "}\noutput y\n";
      compare({"cast-numbers", text.c_str()});
    }
  }
}

}  // namespace
}  // namespace sdx::cpu
