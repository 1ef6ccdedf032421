// sdx PagedAttention in sessions: caches that runs share, bound in place.

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "support/session.h"
#include "tensor/element.h"

namespace sdx {
namespace {

constexpr std::int64_t kHeads = 4, kKv = 2, kSize = 16, kBlock = 16, kBlocks = 12, kTokens = 40;

std::string model_text(const std::string& type) {
  const std::string cache = type + "[b," + std::to_string(kKv) + "," + std::to_string(kBlock) + "," + std::to_string(kSize) + "]";
  const bool bytes = type == "int8";
  std::string text =
      "opset 21\ninput q: float32[1,t,64]\ninput k: float32[1,t,32]\ninput v: float32[1,t,32]\ninput kc: " + cache +
      "\ninput vc: " + cache + "\n";
  if (bytes) text += "input ks: float32[b,2,16]\ninput vs: float32[b,2,16]\n";
  text +=
      "input starts: int64[s1]\ninput past: int64[s]\ninput table: int32[s,m]\ninput cos: float32[p,4]\ninput sin: "
      "float32[p,4]\n";
  text += std::string("y, kc2, vc2") + (bytes ? ", ks2, vs2" : "") + " = sdx.PagedAttention(q, k, v, kc, vc, " +
          (bytes ? "ks, vs" : "_, _") + ", starts, past, table, cos, sin) {num_heads=4, kv_num_heads=2, do_rotary=1}\n";
  text += "output y\noutput kc2\noutput vc2\n";
  if (bytes) text += "output ks2\noutput vs2\n";
  return text;
}

Tensor random_floats(Shape shape, unsigned seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> dist(-1.5F, 1.5F);
  Tensor t(DataType::float32, std::move(shape));
  for (float& x : t.mutable_values<float>()) x = dist(rng);
  return t;
}

Tensor rows(const Tensor& t, std::int64_t first, std::int64_t count) {
  Tensor out(DataType::float32, {1, count, t.dim(2)});
  std::copy_n(t.values<float>().data() + first * t.dim(2), count * t.dim(2), out.mutable_values<float>().data());
  return out;
}

// Caches of kBlocks blocks, as inputs and as memory that outputs are bound to.
struct Pool {
  explicit Pool(DataType type) {
    for (const char* name : {"kc", "vc"}) add(name, Tensor(type, {kBlocks, kKv, kBlock, kSize}));
    if (type != DataType::int8) return;
    for (const char* name : {"ks", "vs"}) add(name, Tensor(DataType::float32, {kBlocks, kKv, kBlock}));
  }
  void add(const std::string& name, Tensor t) {
    for (std::int64_t i = 0; i < t.size(); ++i) set_element(t, i, 77);
    inputs.add(name, t);
    options.bound.emplace_back(name + "2", t);
  }
  NamedValues inputs;
  RunOptions options;
};

// A text of kTokens tokens.
struct Text {
  explicit Text(unsigned seed)
      : q(random_floats({1, kTokens, kHeads * kSize}, seed)),
        k(random_floats({1, kTokens, kKv * kSize}, seed + 1)),
        v(random_floats({1, kTokens, kKv * kSize}, seed + 2)),
        cos(random_floats({kTokens, 4}, 5)),
        sin(random_floats({kTokens, 4}, 6)) {}

  // The tokens [first, first + count) in one run; returns its output.
  Tensor step(const Session& session, const Pool& pool, std::vector<std::int32_t> blocks, std::int64_t first,
              std::int64_t count) const {
    NamedValues in = pool.inputs;
    in.add("q", rows(q, first, count)), in.add("k", rows(k, first, count)), in.add("v", rows(v, first, count));
    in.add("starts", Tensor::of<std::int64_t>({2}, {0, count})), in.add("past", Tensor::of<std::int64_t>({1}, {first}));
    in.add("table", Tensor::of<std::int32_t>({1, static_cast<std::int64_t>(blocks.size())}, blocks));
    in.add("cos", cos), in.add("sin", sin);
    return session.run(in, pool.options).tensor("y");
  }
  Tensor q, k, v, cos, sin;
};

void expect_near(const Tensor& a, const Tensor& b, std::int64_t at) {
  for (std::int64_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(element_as_double(a, i), element_as_double(b, at * a.size() + i), 2e-5) << "token " << at << ", element " << i;
}

// Two threads add token after token to a text each, in blocks of one pool; what each token gets is what it gets where its text is
// computed at once and alone.
TEST(PagedSession, TwoThreadsShareAPool) {
  const Text texts[2] = {Text(10), Text(20)};
  const std::vector<std::int32_t> blocks[2] = {{7, 2, 9}, {3, 11, 0}};
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16, DataType::int8}) {
    SCOPED_TRACE(name(type));
    const Session session = testing::open(model_text(std::string(name(type))));
    Tensor whole[2];
    for (std::size_t i = 0; i < 2; ++i) whole[i] = texts[i].step(session, Pool(type), {1, 2, 3}, 0, kTokens);
    const Pool pool(type);
    const auto write = [&](std::size_t i) {
      for (std::int64_t at = 0; at < kTokens; ++at) expect_near(texts[i].step(session, pool, blocks[i], at, 1), whole[i], at);
    };
    std::thread other([&] { write(1); });
    write(0);
    other.join();
    // Blocks without an owner are unchanged.
    const Tensor keys = pool.inputs.tensor("kc");
    for (const std::int64_t block : {1, 4, 5, 6, 8, 10}) {
      for (std::int64_t i = 0; i < kKv * kBlock * kSize; ++i)
        ASSERT_EQ(element_as_double(keys, block * kKv * kBlock * kSize + i), 77) << "block " << block;
    }
  }
}

TEST(PagedSession, AnErrorSaysWhichNodeAndWhy) {
  const Session session = testing::open(model_text("float32"));
  testing::expect_parts(testing::error_of(ErrorCode::runtime_failure,
                                          [&] {
                                            Text(1).step(session, Pool(DataType::float32), {1, 12, 3}, 0, kTokens);
                                          }),
                        {"PagedAttention", "block_table gives block 12 to positions 16 to 31 of sequence 0", "12 blocks"});
}

}  // namespace
}  // namespace sdx
