// The fast kernels of attention against the operators' references.

#include <gtest/gtest.h>

#include "support/compare_kernels.h"

namespace sdx::cpu {
namespace {

using test::compare;

TEST(AttentionKernels, Attention) {
  const std::string flat = "input q: float32[2,5,24]\ninput k: float32[2,7,12]\ninput v: float32[2,7,10]\n";
  const std::string heads = "{q_num_heads=4, kv_num_heads=2";
  const std::string stacked = "input q: float32[1,2,21,8]\ninput k: float32[1,2,30,8]\ninput v: float32[1,2,30,5]\n";
  const std::string past = "input pk: float32[2,2,3,6]\ninput pv: float32[2,2,3,5]\n";
  const std::string texts = "input q: float32[2,75,32]\nconstant n: int64[2] 75 41\n",
                    four = "{q_num_heads=4, kv_num_heads=4, pads_behind=1";
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
      ("input q: float32[1,21,16]\ninput k: float32[1,2,30,8]\ninput v: float32[1,30,6]\ninput m: float32[1,2,1,30]\n"
       "y = sdx.Attention(q, k, v, m) {q_num_heads=2, kv_num_heads=2}\noutput y\n"),
      flat + "y = Attention(q, k, v) " + heads + ", left_window_size=2, right_window_size=1}\noutput y\n",
      flat + "constant n: int64[2] 7 3\ny = Attention(q, k, v, _, _, _, n) " + heads + "}\noutput y\n",
      texts + "y = sdx.Attention(q, q, q, _, _, _, n) " + four + "}\noutput y\n",
      texts + "y = sdx.Attention(q, q, q, _, _, _, n) " + four + ", left_window_size=4, right_window_size=2}\noutput y\n",
      texts + "y = sdx.Attention(q, q, q, _, _, _, n) " + four + ", is_causal=1, left_window_size=5, softcap=2.0}\noutput y\n",
      texts + "y = sdx.Attention(q, q, q, _, _, _, n) " + four + ", slopes=[0.5, 0.25, 0.125, 0.0625]}\noutput y\n",
      texts + "y = sdx.Attention(q, q, q) " + four + ", slopes=[0.5, 0.25, 0.125, 0.0], right_window_size=40}\noutput y\n",
      flat + past + "y = sdx.Attention(q, k, v, _, pk, pv) " + heads + ", slopes=[0.5, 0.25, 0.125, 0.0]}\noutput y\n",
      "input q: float32[1,2,3,4]\ninput k: float32[1,2,0,4]\ninput v: float32[1,2,0,4]\ny = Attention(q, k, v)\noutput y\n",
  };
  for (const std::string& c : cases) compare({"attention-f32", ("opset 25\n" + c).c_str()});
}

TEST(AttentionKernels, MultiHeadAttention) {
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

TEST(AttentionKernels, ProjectedAttention) {
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

TEST(AttentionKernels, GroupQueryAttention) {
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
TEST(AttentionKernels, CachesInPlace) {
  const std::string head = "opset 21\nopset com.microsoft 1\n", out = "output y\noutput pk\noutput pv\n";
  const std::string angles = "input c: float32[20,4]\ninput d: float32[20,4]\n";
  for (const int length : {1, 3, 12}) {
    const std::string rows = "[2," + std::to_string(length) + ",", total = std::to_string(length + 5);
    const std::string grouped = "input q: float32" + rows + "32]\ninput k: float32" + rows + "16]\ninput v: float32" + rows +
                                "16]\ninput a: float32[2,2,19,8]\ninput b: float32[2,2,19,8]\nconstant s: int32[2] " +
                                std::to_string(length + 4) + " " + std::to_string(length + 1) + "\nconstant t: int32[1] " +
                                total + "\n" + angles +
                                "input h: float32[4]\n"
                                "y, pk, pv = com.microsoft.GroupQueryAttention(q, k, v, a, b, s, t, c, d";
    for (const char* rest : {") {do_rotary=1", ") {local_window_size=3, softcap=2.0", ", _, _, h) {scale=0.4"}) {
      compare({"group-query-attention-f32", (head + grouped + rest + ", num_heads=4, kv_num_heads=2}\n" + out).c_str(), 3});
    }
    const std::string multi = "input q: float32" + rows + "24]\ninput k: float32" + rows + "24]\ninput v: float32" + rows +
                              "24]\ninput b: float32[72]\ninput a: float32[2,3,19,8]\ninput d: float32[2,3,19,8]\n"
                              "constant n: int32[1] 5\ny, pk, pv = com.microsoft.MultiHeadAttention(q, k, v, b, _, _, a, d, n) "
                              "{num_heads=3, unidirectional=1}\n";
    compare({"multi-head-attention-f32", (head + multi + out).c_str(), 6});
  }
}

TEST(AttentionKernels, RotaryEmbedding) {
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

}  // namespace
}  // namespace sdx::cpu
