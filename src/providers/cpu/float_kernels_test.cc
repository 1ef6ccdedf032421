// The fast kernels of floats against the operators' references.

#include <gtest/gtest.h>

#include "base/system/cpu_features.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/gemm/gemm_bf16.h"
#include "support/compare_kernels.h"

namespace sdx::cpu {
namespace {

using test::compare;
using test::KernelCase;

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
  // Axes that are not neighbours, which ones may separate.
  for (const char* op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSumExp"}) {
    for (const char* axes : {"[2] 0 2", "[3] 0 2 4", "[3] 0 3 4", "[2] 1 4", "[3] 1 3 5"}) {
      compare({"reduce-f32", ("input x: float32[3,4,5,1,6,7]\nconstant a: int64" + std::string(axes) + "\ny = " + op +
                              "(x, a) {keepdims=0}\noutput y\n")
                                 .c_str()});
    }
  }
  compare({"reduce-f32", "input z: float32[3,4,35]\nconstant a: int64[2] 0 2\ny = ReduceLogSum(z, a)\noutput y\n"});
  compare({"reduce-typed", "input x: int64[3,4,35]\nconstant a: int64[2] 0 2\ny = ReduceSum(x, a)\noutput y\n"});
  for (const char* type : {"int32", "int64", "uint32", "uint64", "uint8", "int8", "float64"}) {
    for (const char* op : {"ReduceSum", "ReduceMax", "ReduceMin"}) {
      if (std::string_view(type).ends_with("int8") && op == std::string_view("ReduceSum")) continue;  // not one of its types
      for (const char* axes : {"0", "1", "-1"}) {
        compare({"reduce-typed", ("input x: " + std::string(type) + "[3,4,35]\nconstant a: int64[1] " + axes + "\ny = " + op +
                                  "(x, a)\noutput y\n")
                                     .c_str()});
      }
    }
  }
}

TEST(FloatKernels, ReductionsOfExtentsThatAreNotKnown) {
  for (const char* type : {"float32", "float64", "uint32"}) {
    for (const char* op : {"ReduceSum", "ReduceMax"}) {
      Graph graph = sdx::testing::parse_model("input x: " + std::string(type) + "[n,m]\nconstant a: int64[1] 1\ny = " + op +
                                              "(x, a)\noutput y\n")
                        .graph;
      ops::infer_in_place(graph);
      LowerContext context(graph, 0);
      const auto entries = kernel_table().find("", op);
      EXPECT_TRUE(std::any_of(entries.begin(), entries.end(), [&](const KernelEntry* e) { return e->make(context) != nullptr; }))
          << type << ' ' << op << ": " << context.reason();
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
    compare({"top-k-f32", ("input x: float32[2,200,3]\nconstant k: int64[1] " + std::string(k) +
                           "\ny, at = TopK(x, k) {axis=1}\noutput y\noutput at\n")
                              .c_str()});
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
  const KernelCase cases[] = {
      {"max-pool-f32",
       "input x: float32[2,3,7,9]\ny = MaxPool(x) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}\noutput y\n"},
      {"max-pool-f32",
       "input x: float32[2,3,7,9]\ny, at = MaxPool(x) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}\noutput y\noutput "
       "at\n"},
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
  for (const KernelCase& c : cases) compare(c);
}

// The engine's own operators, in this machine's blocks of channels, the last of which is not full.
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
      {"conv-channels-last-depthwise-f32",
       "opset sdx 1\ninput x: float32[2,7,9,5]\ninput z: float32[2,4,9,5]\nconstant w: float32[5,1,3,3] 0.1\n"
       "constant b: float32[5] 1 2 3 4 5\ny = sdx.ChannelsLastConv(x, w, b, z) {group=5, strides=[2,1], pads=[1,1,1,1], "
       "activation=\"Gelu\"}\noutput y\n"},
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
  const KernelCase cases[] = {
      {"transpose", "input x: float32[2,3,4,5]\ny = Transpose(x) {perm=[0,2,3,1]}\noutput y\n"},
      {"transpose", "input x: uint8[3,7]\ny = Transpose(x)\noutput y\n"},
      {"transpose", "input x: int64[2,1,3]\ny = Transpose(x) {perm=[1,0,2]}\noutput y\n"},
      {"concat", "input x: float32[2,3,4]\ninput z: float32[2,1,4]\ny = Concat(x, z, x) {axis=1}\noutput y\n"},
      {"gather", "input x: float32[4,3,5]\nconstant i: int64[2,2] 0 -1 2 1\ny = Gather(x, i) {axis=1}\noutput y\n"},
      {"gather", "input x: uint8[4,3]\nconstant i: int32[] 3\ny = Gather(x, i)\noutput y\n"},
      {"gather", "input x: int64[4,0]\nconstant i: int64[3] 3 0 -4\ny = Gather(x, i)\noutput y\n"},
      {"scatter-stretches",
       "input x: float32[4,3]\ninput u: float32[2,2]\nconstant i: int64[2,2,2] 1 1 1 2 -2 1 -2 2\n"
       "y = ScatterND(x, i, u)\noutput y\n"},
      {"scatter-stretches",
       "input x: uint8[4,3]\ninput u: uint8[4,3]\nconstant i: int64[4,1] 2 0 0 -1\n"
       "y = ScatterND(x, i, u)\noutput y\n"},
      {"scatter-stretches",
       "input x: int64[40,900]\ninput u: int64[30,900]\nconstant i: int64[30,1] 0 1 2 3 4 5 6 7 8 9 11 12 13 "
       "14 15 16 17 18 19 20 21 23 24 25 27 28 30 31 32 39\ny = ScatterND(x, i, u)\noutput y\n"},
      {"scatter-stretches",
       "input x: float32[4]\ninput u: float32[0]\nconstant i: int64[0,1]\ny = ScatterND(x, i, u)\noutput y\n"},
      {"concat", "input x: int64[3,0]\ninput z: int64[3,2]\ny = Concat(x, z) {axis=-1}\noutput y\n"},
  };
  for (const KernelCase& c : cases) compare(c);
}

TEST(FloatKernels, ProductsWithWeights) {
  const KernelCase cases[] = {
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
      // One row less than Strassen's scheme takes.
      {"gemm-packed-f32", "input x: float32[95,768]\nconstant w: float32[768,768] 0.01\ny = sdx.Linear(x, w)\noutput y\n"},
  };
  for (const KernelCase& c : cases) compare(c);
  if (cpu_isa() != Isa::avx2) return;
  compare({"gemm-strassen-f32",
           "input x: float32[2,48,768]\nconstant w: float32[784,768] 0.01\ninput b: float32[784]\ninput z: float32[2,48,784]\n"
           "y = sdx.Linear(x, w, b, z) {transB=1, activation=\"Gelu\"}\noutput y\n"});
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

TEST(FloatKernels, SoftmaxAndReductions) {
  const KernelCase cases[] = {
      {"softmax-f32", "input x: float32[2,3,7]\ny = Softmax(x)\noutput y\n"},
      {"softmax-f32", "input x: float32[2,3,7]\ny = Softmax(x) {axis=1}\noutput y\n"},
      {"log-softmax-f32", "input x: float32[2,3,7]\ny = LogSoftmax(x) {axis=0}\noutput y\n"},
      {"reduce-f32", "opset 17\ninput x: float32[2,3,4,5]\ny = ReduceMax(x) {axes=[2,3]}\noutput y\n"},
      {"reduce-f32", "opset 17\ninput x: float32[2,3,4,5]\ny = ReduceMin(x) {axes=[0,1], keepdims=0}\noutput y\n"},
      {"reduce-f32", "opset 17\ninput x: float32[2,3,4]\ny = ReduceMean(x)\noutput y\n"},
      {"reduce-f32", "input x: float32[2,3,4]\nconstant a: int64[1] -2\ny = ReduceSum(x, a)\noutput y\n"},
  };
  for (const KernelCase& c : cases) compare(c);
}

// Extents that are kept need not be known; those to reduce must be, since what a sum over nothing gives is left to the reference.
TEST(FloatKernels, ReductionsOfUnknownExtents) {
  const auto lower = [](const char* text) {
    Graph graph = sdx::testing::parse_model(text).graph;
    ops::infer_in_place(graph);
    LowerContext context(graph, 0);
    return kernel_table().find("", "ReduceSum").front()->make(context);
  };
  EXPECT_NE(lower("input x: float32[n,3]\nconstant a: int64[1] 0\ny = ReduceSum(x, a)\noutput y\n"), nullptr);
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
  const std::string rows = "input x: float32[5,2]" + batch.substr(batch.find('\n'));
  compare({"batch-norm-f32", rows.c_str()});
  compare({"lrn-f32", "input x: float32[2,5,3]\ny = LRN(x) {size=4, alpha=0.1}\noutput y\n"});
}

TEST(FloatKernels, TransposedConvolutionsByTiles) {
  std::string weights = "constant w: float32[32,16,4,4]";
  for (int i = 0; i < 32 * 16 * 16; ++i) weights += " " + std::to_string((i * 37 % 19 - 9) / 64.0);
  weights += "\ninput b: float32[16]\ny = ConvTranspose(x, w, b) {strides=[2,2], pads=[1,1,1,1]}\noutput y\n";
  // With fewer pixels or channels, copies would take longer than the products saved.
  for (const auto& [kernel, x] : {std::pair("conv-transpose-winograd-f32", "input x: float32[2,32,15,14]\n"),
                                  std::pair("conv-transpose-phases-f32", "input x: float32[2,32,13,14]\n")}) {
    compare({kernel, (x + weights).c_str()});
  }
}

TEST(FloatKernels, TransposedConvolutionsByPhases) {
  std::string weights = "constant w: float32[2,16,4,4]";
  for (int i = 0; i < 2 * 16 * 16; ++i) weights += " " + std::to_string(i * 37 % 19 - 9);
  weights += "\ny = ConvTranspose(x, w) {strides=[2,2], pads=[1,1,1,1]}\noutput y\n";
  // With few pixels, phases would read many more.
  for (const auto& [kernel, x] : {std::pair("conv-transpose-phases-f32", "input x: float32[2,2,20,12]\n"),
                                  std::pair("conv-transpose-f32", "input x: float32[2,2,3,4]\n")}) {
    compare({kernel, (x + weights).c_str()});
  }
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

TEST(FloatKernels, Resample) {
  // The kernel, the elements, and attributes beside the coordinates.
  const char* cases[][3] = {{"resample-f32", "float32", "mode=\"cubic\""},
                            {"resample-f32", "float32", "mode=\"cubic\", exclude_outside=1, cubic_coeff_a=-0.5"},
                            {"resample-f32", "float32", "mode=\"cubic\", antialias=1"},
                            {"resample-f32", "float32", "mode=\"linear\", antialias=1"},
                            {"resample-u8", "uint8", "mode=\"linear\""},
                            {"resample-u8", "uint8", "mode=\"linear\", antialias=1"},
                            {"resample-u8", "uint8", "mode=\"cubic\""}};
  for (const auto& [kernel, type, attributes] : cases) {
    const std::string head = "input x: " + std::string(type) + "[2,3,9,14]\nconstant e: float32[0]\n";
    for (const std::string mode : {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
      for (const std::string sizes : {"4 2 3 4 6", "4 2 3 20 33", "4 2 3 9 5", "4 2 3 5 14"}) {
        const std::string line = "y = Resize(x, e, e, z) {" + std::string(attributes) + ", coordinate_transformation_mode=\"" +
                                 mode + "\"}\noutput y\n";
        std::string constant = "constant z: int64[4]" + sizes.substr(1) + "\n";
        const std::string text = head + constant + line;
        compare({kernel, text.c_str()});
      }
    }
    const std::string axes =
        "constant s: float32[2] 0.5 1.5\ny = Resize(x, e, s) {axes=[2,3], " + std::string(attributes) + "}\n";
    const std::string text = head + axes + "output y\n";
    compare({kernel, text.c_str()});
  }
}

TEST(FloatKernels, GridSample) {
  for (const char* attributes :
       {"", " {padding_mode=\"border\"}", " {align_corners=1}", " {padding_mode=\"border\", align_corners=1}"}) {
    const std::string line = std::string("y = GridSample(x, g)") + attributes + "\noutput y\n";
    for (const char* shapes :
         {"input x: float32[2,3,5,7]\ninput g: float32[2,9,11,2]\n", "input x: float32[1,2,2,2]\ninput g: float32[1,1,1,2]\n",
          "input x: float32[1,2,1,4]\ninput g: float32[1,5,5,2]\n"}) {
      const std::string text = shapes + line;
      compare({"grid-sample-f32", text.c_str()});
    }
  }
}

TEST(FloatKernels, CumSum) {
  for (const char* attributes : {"", " {exclusive=1}", " {reverse=1}", " {exclusive=1, reverse=1}"}) {
    for (const char* axis : {"0", "1", "2", "-1"}) {
      const std::string text = std::string("input x: float32[3,5,19]\nconstant a: int64[] ") + axis + "\ny = CumSum(x, a)" +
                               attributes + "\noutput y\n";
      compare({"running-sum-f32", text.c_str()});
    }
  }
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

}  // namespace
}  // namespace sdx::cpu
