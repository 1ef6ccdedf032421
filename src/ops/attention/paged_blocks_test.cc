#include <limits>

#include "support/paged_problem.h"

namespace sdx::ops {
namespace {

using sdx::testing::paged_cases;
using sdx::testing::PagedCase;
using sdx::testing::PagedProblem;
using testing::run_op;
using enum PagedIn::Slot;

std::vector<Value> run(PagedProblem& p) { return run_op(p.node(), {p.inputs().begin(), p.inputs().end()}); }

TEST(PagedAttention, SaysWhatGroupQueryAttentionSays) {
  for (const PagedCase& c : paged_cases()) {
    SCOPED_TRACE(std::string(name(c.cache)) + ", case " + std::to_string(c.seed));
    PagedProblem p(c);
    const std::vector<Tensor> before = p.copies_of_caches();
    const std::vector<Value> out = run(p);
    std::vector<Tensor> after;
    for (std::size_t i = 1; i < out.size(); ++i) after.push_back(out[i].tensor());
    p.check(out[0].tensor(), before, after);
    if (HasFatalFailure()) return;
  }
}

TEST(PagedAttention, WritesBoundCachesInPlace) {
  PagedCase c;
  c.texts = {{10, 3}, {0, 20}}, c.cache = DataType::int8;
  PagedProblem p(c);
  const std::vector<Tensor> before = p.copies_of_caches();
  std::vector<Value> in(p.inputs().begin(), p.inputs().end()), outputs(5);
  std::vector<const Value*> given;
  std::vector<Value*> wanted{&outputs[0]};
  for (const Value& v : in) given.push_back(v.tensor().defined() ? &v : nullptr);
  for (std::size_t i = 1; i < 5; ++i) outputs[i] = p.inputs()[kKeyCache + i - 1], wanted.push_back(&outputs[i]);
  const Node node = p.node();
  testing::FakeServices services;
  OpContext context(node, given, wanted, services);
  testing::definition_of(node).run(context);
  std::vector<Tensor> after;
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(outputs[i].tensor().data(), p.inputs()[kKeyCache + i - 1].data());
    after.push_back(outputs[i].tensor());
  }
  p.check(outputs[0].tensor(), before, after);
}

// A second text may read what the first writes in the same step: a prompt that both begin with.
TEST(PagedAttention, ATextReadsWhatAnotherWritesInTheSameStep) {
  PagedCase together, parted;
  together.texts = {{0, 17}}, parted.texts = {{0, 16}, {16, 1}};
  PagedProblem whole(together), parts(parted);  // of the same tokens
  const auto table = parts.inputs()[kTable].mutable_values<std::int32_t>();
  table[2] = table[0];  // the second text begins with the block that the first one fills
  const std::vector<Value> expected = run(whole), out = run(parts);
  EXPECT_EQ(testing::elements<float>(out[0]), testing::elements<float>(expected[0]));
}

TEST(PagedAttention, InfersShapes) {
  PagedCase c;
  c.texts = {{10, 3}}, c.cache = DataType::int8, c.packed = true;
  PagedProblem p(c);
  SingleOp op("PagedAttention", 1, "sdx");
  op.with("num_heads", c.heads).with("kv_num_heads", c.kv);
  op.checked(p.inputs(), 5);
}

// Runs a changed problem of two texts, 20 + 3 and 5 + 1 tokens.
template <class Change>
std::string refusal(Change change, DataType cache = DataType::float32) {
  PagedCase c;
  c.texts = {{20, 3}, {5, 1}}, c.cache = cache, c.angles = 8;
  PagedProblem p(c);
  const std::vector<Tensor> before = p.copies_of_caches();
  change(p.inputs());
  try {
    run(p);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was refused";
}

void expect(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
}

using Inputs = std::vector<Tensor>;

TEST(PagedAttention, RefusesLengthsThatCannotBe) {
  const auto starts = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    return refusal([=](Inputs& in) {
      const auto to = in[kStarts].mutable_values<std::int64_t>();
      to[0] = a, to[1] = b, to[2] = c;
    });
  };
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  expect(starts(1, 3, 4), "sequence_starts must rise from 0 to the 4 tokens");
  expect(starts(0, 3, 3), "received 0 to 3");
  expect(starts(0, 5, 4), "must rise");
  expect(starts(0, -1, 4), "must rise");
  expect(starts(0, kMost, 4), "must rise");
  const auto past = [](std::int64_t a, std::int64_t b) {
    return refusal(
        [=](Inputs& in) { in[kPast].mutable_values<std::int64_t>()[0] = a, in[kPast].mutable_values<std::int64_t>()[1] = b; });
  };
  expect(past(-1, 5), "past_lengths of sequence 0 is -1");
  expect(past(20, kMost), "block_table has room for 32");
  expect(past(20, kMost - 5), "block_table has room for 32");
  expect(past(30, 5), "sequence 0 has 30 cached and 3 new tokens");
  expect(past(20, 26), "position 26 of sequence 1 is outside cos_cache, which has 23 rows");
}

TEST(PagedAttention, RefusesBlocksThatAreNotThere) {
  const auto entry = [](std::size_t i, std::int32_t block) {
    return refusal([=](Inputs& in) { in[kTable].mutable_values<std::int32_t>()[i] = block; });
  };
  expect(entry(0, -1), "block_table gives block -1 to positions 0 to 15 of sequence 0; the cache has 6 blocks");
  expect(entry(1, 6), "block 6 to positions 16 to 31 of sequence 0");
  expect(entry(2, std::numeric_limits<std::int32_t>::min()), "of sequence 1");
  expect(entry(2, std::numeric_limits<std::int32_t>::max()), "of sequence 1");
  EXPECT_EQ(entry(3, 1000), "nothing was refused");  // behind the second text's end
}

TEST(PagedAttention, RefusesToWriteARowTwice) {
  // Both texts' next rows in one block: rows 4 to 6 and 5.
  expect(refusal([](Inputs& in) {
           const auto table = in[kTable].mutable_values<std::int32_t>();
           table[2] = table[1];
         }),
         "two tokens would be written to row 5 of block");
  // Other rows of a block do not affect the result.
  EXPECT_EQ(refusal([](Inputs& in) {
              const auto table = in[kTable].mutable_values<std::int32_t>();
              table[2] = table[1];
              in[kPast].mutable_values<std::int64_t>()[1] = 7;
            }),
            "nothing was refused");
  // One text that has a block twice.
  PagedCase c;
  c.texts = {{0, 20}};
  PagedProblem p(c);
  const auto table = p.inputs()[kTable].mutable_values<std::int32_t>();
  table[1] = table[0];
  EXPECT_THROW(run(p), Error);
}

TEST(PagedAttention, RefusesShapesThatDoNotFit) {
  const auto with = [](std::size_t i, Tensor t, DataType cache = DataType::float32) {
    return refusal([&](Inputs& in) { in[i] = t; }, cache);
  };
  const DataType f = DataType::float32, i64 = DataType::int64, i32 = DataType::int32;
  expect(with(kQuery, Tensor(f, {1, 4, 65})), "query must be [1,tokens,4 x 16]");
  expect(with(kQuery, Tensor(f, {2, 4, 64})), "query must be");
  expect(with(kQuery, Tensor(f, {1, 5, 64})), "key and value must be [1,5,32]");
  expect(with(kKey, Tensor()), "key and value go together");
  expect(with(kKeyCache, Tensor(f, {6, 3, 16, 16})), "key_cache and value_cache must be [blocks,2,block_size,size]");
  expect(with(kValueCache, Tensor(f, {6, 2, 16, 8})), "received [6,2,16,16] and [6,2,16,8]");
  expect(with(kKeyCache, Tensor(f, {6, 2, 0, 16})), "key_cache and value_cache");
  expect(with(kKeyScales, Tensor(f, {6, 2, 16})), "key_scales and value_scales must be [6,2,16]");
  expect(with(kValueScales, Tensor(f, {6, 2, 8}), DataType::int8), "received [6,2,16] and [6,2,8]");
  expect(with(kStarts, Tensor(i64, {2})), "sequence_starts must be [sequences + 1]");
  expect(with(kPast, Tensor(i64, {1})), "received [3] for 1 sequences");
  expect(with(kTable, Tensor(i32, {3, 2})), "block_table must be [2,blocks]");
  expect(with(kTable, Tensor(i32, {2, 0})), "block_table has room for 0");
  expect(with(kCos, Tensor(f, {23, 9})), "cos_cache and sin_cache must be [positions, up to 8]");
  expect(with(kSin, Tensor()), "received [23,8] and none");
  expect(with(kSink, Tensor(f, {3})), "head_sink must have 4 elements");
  expect(with(kQNorm, Tensor(f, {4})), "q_norm_weight and k_norm_weight must have 16 elements");
  expect(refusal([](Inputs& in) { in[kKeyScales] = in[kValueScales] = Tensor(); }, DataType::int8),
         "scales go with caches of int8");
}

TEST(PagedAttention, BlocksInFrontOfTheWindowMayBeGone) {
  PagedCase c;
  c.texts = {{40, 2}}, c.window = 9;
  PagedProblem p(c);
  const std::vector<Tensor> before = p.copies_of_caches();
  const auto table = p.inputs()[kTable].mutable_values<std::int32_t>();
  const std::int32_t first = table[0];
  table[0] = table[1] = -1;  // position 40 sees 32 to 40
  const std::vector<Value> out = run(p);
  p.check(out[0].tensor(), before, {out[1].tensor(), out[2].tensor()});
  EXPECT_GE(first, 0);
  p.inputs()[kPast].mutable_values<std::int64_t>()[0] = 39;  // sees 31 too
  EXPECT_THROW(run(p), Error);
}

TEST(PagedAttention, RowsOfBytes) {
  std::int8_t q[4];
  const float plain[4] = {1, -2, 0.5F, 0};
  EXPECT_EQ(quantize_row(plain, 4, q), 2.0F / 127.0F);
  EXPECT_EQ(std::vector<std::int8_t>(q, q + 4), (std::vector<std::int8_t>{64, -127, 32, 0}));
  const float zeros[4] = {0, -0.0F, 0, 0};
  EXPECT_EQ(quantize_row(zeros, 4, q), 0.0F);
  const float tiny[4] = {1e-44F, -1e-44F, 0, 3e-45F};
  const float scale = quantize_row(tiny, 4, q);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(static_cast<float>(q[i]) * scale, tiny[i], 1e-43F);
  const float huge[4] = {std::numeric_limits<float>::max(), 1, 0, 0};
  EXPECT_TRUE(std::isfinite(quantize_row(huge, 4, q)));
  EXPECT_EQ(q[0], 127);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const float row[4] = {1, bad, 0, 0};
    EXPECT_TRUE(std::isnan(quantize_row(row, 4, q)));
    EXPECT_EQ(std::vector<std::int8_t>(q, q + 4), (std::vector<std::int8_t>{0, 0, 0, 0}));
  }
}

}  // namespace
}  // namespace sdx::ops
