#include "serve/models/batcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "serve/models/batch_join.h"
#include "support/session.h"

namespace sdx::serve {
namespace {

using namespace sdx::testing;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr const char* kDouble = R"(
  input x: float32[n,2]
  y = Add(x, x)
  output y: float32[n,2]
)";

std::shared_ptr<const Session> session_of(const std::string& text) { return std::make_shared<const Session>(open(text)); }

NamedValues input(float value, std::int64_t rows = 1) {
  return {{"x", floats({rows, 2}, Floats(static_cast<std::size_t>(rows) * 2, value))}};
}

// Makes as many requests at the same time as there are values; returns the outputs' first elements.
std::vector<float> at_once(Batcher& batcher, int requests) {
  std::vector<float> out(static_cast<std::size_t>(requests), -1);
  std::vector<std::thread> threads;
  for (int i = 0; i < requests; ++i) {
    threads.emplace_back([&, i] {
      const NamedValues got = batcher.run(input(static_cast<float>(i)), {});
      out[static_cast<std::size_t>(i)] = elements(got.tensor("y")).at(0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return out;
}

TEST(Batcher, an_idle_model_runs_at_once_on_the_callers_thread) {
  Batcher batcher(session_of(kDouble), true, {.max_batch_size = 8});
  std::thread::id ran;
  batcher.submit(input(3), {}, {}, [&](const BatchResult& result) {
    ran = std::this_thread::get_id();
    EXPECT_EQ(elements(result.outputs.tensor("y")), (Floats{6, 6}));
  });
  EXPECT_EQ(ran, std::this_thread::get_id());
  EXPECT_EQ(batcher.statistics().executions, 1U);
}

TEST(Batcher, joins_what_comes_within_the_delay) {
  Batcher batcher(session_of(kDouble), true, {.max_batch_size = 4, .max_queue_delay = std::chrono::seconds(60)});
  const std::vector<float> got = at_once(batcher, 8);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], 2.0F * static_cast<float>(i));
  const BatchStatistics statistics = batcher.statistics();
  EXPECT_EQ(statistics.inferences, 8U);
  EXPECT_EQ(statistics.executions, 2U);
  ASSERT_EQ(statistics.sizes.size(), 1U);
  EXPECT_EQ(statistics.sizes[0].size, 4);
  EXPECT_EQ(statistics.success.count, 8U);
}

TEST(Batcher, starts_at_a_preferred_size) {
  Batcher batcher(session_of(kDouble), true,
                  {.max_batch_size = 64, .preferred = {3}, .max_queue_delay = std::chrono::seconds(60)});
  at_once(batcher, 3);
  EXPECT_EQ(batcher.statistics().executions, 1U);
}

TEST(Batcher, an_incomplete_batch_runs_after_the_delay) {
  Batcher batcher(session_of(kDouble), true, {.max_batch_size = 64, .max_queue_delay = milliseconds(5)});
  at_once(batcher, 3);
  EXPECT_EQ(batcher.statistics().inferences, 3U);
}

TEST(Batcher, other_extents_and_types_are_another_batch) {
  Batcher batcher(session_of(R"(
    input x: float32[n,m]
    y = Add(x, x)
    output y: float32[n,m]
  )"),
                  true, {.max_batch_size = 2, .max_queue_delay = std::chrono::seconds(60)});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::int64_t width = i % 2 + 1;
      const NamedValues got = batcher.run({{"x", floats({1, width}, Floats(static_cast<std::size_t>(width), 1.5F))}}, {});
      EXPECT_EQ(got.tensor("y").shape(), (Shape{1, width}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(batcher.statistics().executions, 2U);
}

TEST(Batcher, a_request_fails_for_its_own_faults_only) {
  // Gather's index is out of range for one of the requests: the run of all fails.
  Batcher batcher(session_of(R"(
    constant data: float32[3] 10 20 30
    input i: int64[n]
    y = Gather(data, i)
    output y: float32[n]
  )"),
                  true, {.max_batch_size = 3, .max_queue_delay = std::chrono::seconds(60)});
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (const std::int64_t index : {0, 7, 2}) {
    threads.emplace_back([&, index] {
      try {
        const NamedValues got = batcher.run({{"i", Tensor::of<std::int64_t>({1}, {index})}}, {});
        EXPECT_EQ(elements(got.tensor("y")), Floats{static_cast<float>(10 * (index + 1))});
      } catch (const Error&) {
        EXPECT_EQ(index, 7);
        ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(batcher.statistics().fail.count, 1U);
  EXPECT_EQ(batcher.statistics().success.count, 2U);
}

TEST(Batcher, outputs_that_are_no_batch_end_joining) {
  Batcher batcher(session_of(R"(
    input x: float32[n,2]
    y = ReduceSum(x) {keepdims=0}
    output y: float32
  )"),
                  true, {.max_batch_size = 2, .max_queue_delay = std::chrono::seconds(60)});
  std::vector<std::thread> threads;
  for (int i = 1; i <= 2; ++i) {
    threads.emplace_back([&, i] {
      const NamedValues got = batcher.run(input(static_cast<float>(i)), {});
      EXPECT_EQ(elements(got.tensor("y")), Floats{2.0F * static_cast<float>(i)});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(elements(batcher.run(input(5), {}).tensor("y")), Floats{10});  // does not wait for a second one
}

TEST(Batcher, texts_are_filled_up_where_there_is_a_mask) {
  Batcher batcher(session_of(R"(
    input ids: float32[n,s]
    input mask: float32[n,s]
    twice = Add(ids, ids)
    tokens = Mul(twice, mask)
    constant axis: int64[1] 1
    sum = ReduceSum(tokens, axis) {keepdims=0}
    output tokens: float32[n,s]
    output sum: float32[n]
  )"),
                  true, {.max_batch_size = 3, .max_queue_delay = std::chrono::seconds(60), .mask_input = "mask"});
  std::vector<std::thread> threads;
  for (std::int64_t length = 5; length <= 7; ++length) {
    threads.emplace_back([&, length] {
      const auto count = static_cast<std::size_t>(length);
      const NamedValues got = batcher.run(
          {{"ids", floats({1, length}, Floats(count, 3))}, {"mask", floats({1, length}, Floats(count, 1))}}, {"sum", "tokens"});
      EXPECT_EQ(elements(got.tensor("tokens")), Floats(count, 6));
      EXPECT_EQ(got.tensor("tokens").shape(), (Shape{1, length}));
      EXPECT_EQ(elements(got.tensor("sum")), Floats{6.0F * static_cast<float>(length)});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(batcher.statistics().executions, 1U);
}

ValueSpec open_matrix(const std::string& name, const std::string& length) {
  ValueSpec spec;
  spec.name = name;
  spec.dtype = DataType::float32;
  spec.has_shape = true;
  spec.shape = {-1, -1};
  spec.symbols = {"n", length};
  return spec;
}

Tensor row_of_zeros(std::int64_t length) { return floats({1, length}, Floats(static_cast<std::size_t>(length), 0)); }

TEST(BatchJoin, keys_tell_apart_what_cannot_be_joined) {
  const JoinRules rules{{open_matrix("ids", "s"), open_matrix("mask", "s"), open_matrix("x", "m")}, {}, "mask"};
  const auto key = [&](std::int64_t ids, std::int64_t mask, std::int64_t x) {
    return join_key(rules, {{"ids", row_of_zeros(ids)}, {"mask", row_of_zeros(mask)}, {"x", row_of_zeros(x)}})->text;
  };
  EXPECT_EQ(key(5, 5, 3), key(7, 7, 3));  // both are filled up
  EXPECT_NE(key(8, 8, 3), key(8, 7, 3));  // the second's ids are no text of its mask's length
  EXPECT_NE(key(7, 7, 7), key(6, 6, 6));  // x has another symbol than the mask: its extent is no length of a text
  EXPECT_FALSE(join_key(rules, {{"ids", row_of_zeros(2)}, {std::string("x\0y", 3), row_of_zeros(2)}}));
}

TEST(BatchJoin, names_given_twice_keep_to_their_own_rows) {
  const JoinRules rules{{open_matrix("x", "m")}, {}, ""};
  const NamedValues one{{"x", floats({1, 4}, {1, 2, 3, 4})}, {"x", floats({1, 1}, {5})}};
  const std::vector<JoinPart> parts{{&one, 1, 0}, {&one, 1, 0}};
  const NamedValues both = join(rules, parts);
  EXPECT_EQ(elements(both[1].value.tensor()), (Floats{5, 5}));
}

TEST(BatchJoin, outputs_of_another_symbol_are_not_shortened) {
  const JoinRules rules{{open_matrix("mask", "s")}, {open_matrix("tokens", "s"), open_matrix("classes", "c")}, "mask"};
  const NamedValues first{{"mask", row_of_zeros(3)}}, second{{"mask", row_of_zeros(4)}};
  const std::vector<JoinPart> parts{{&first, 1, 3}, {&second, 1, 4}};
  const NamedValues outputs{{"tokens", floats({2, 4}, Floats(8, 1))}, {"classes", floats({2, 4}, Floats(8, 1))}};
  const std::vector<NamedValues> shares = cut(rules, outputs, parts);
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].tensor("tokens").shape(), (Shape{1, 3}));
  EXPECT_EQ(shares[0].tensor("classes").shape(), (Shape{1, 4}));
}

TEST(Batcher, outputs_that_the_model_lacks_are_refused_at_once) {
  Batcher batcher(session_of(kDouble), true, {.max_batch_size = 2, .max_queue_delay = std::chrono::seconds(60)});
  std::thread other([&] { EXPECT_EQ(elements(batcher.run(input(4), {}).tensor("y")), (Floats{8, 8})); });
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { batcher.run(input(1), {"yy"}); }), {"no output 'yy'", "'y'?"});
  RunOptions options;
  options.outputs = {"z"};
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { batcher.run(input(1), {}, options); }), {"no output 'z'"});
  EXPECT_EQ(elements(batcher.run(input(3), {"y", "y"}).tensor("y")), (Floats{6, 6}));
  other.join();
  EXPECT_EQ(batcher.statistics().executions, 1U);
  EXPECT_EQ(batcher.statistics().fail.count, 2U);
}

TEST(Batcher, an_answer_that_throws_takes_none_from_others) {
  Batcher batcher(session_of(kDouble), true, {.max_batch_size = 2, .max_queue_delay = std::chrono::seconds(60)});
  batcher.submit(input(1), {}, {}, [](const BatchResult&) { throw std::runtime_error("of the one who asks"); });
  EXPECT_EQ(elements(batcher.run(input(3), {}).tensor("y")), (Floats{6, 6}));
}

TEST(Batcher, statistics_keep_so_many_sizes) {
  Batcher batcher(session_of(kDouble), true, {});
  for (std::int64_t rows = 1; rows <= 1100; ++rows) batcher.run(input(1, rows), {});
  EXPECT_EQ(batcher.statistics().sizes.size(), 1024U);
  EXPECT_EQ(batcher.statistics().executions, 1100U);
}

TEST(Batcher, strings_pass_alone) {
  Batcher batcher(session_of(R"(
    input x: string[n]
    y = Identity(x)
    output y: string[n]
  )"),
                  true, {.max_batch_size = 4, .max_queue_delay = std::chrono::seconds(60)});
  const NamedValues got = batcher.run({{"x", Tensor::of<std::string>({2}, {"a", "b"})}}, {});
  EXPECT_EQ(got.tensor("y").values<std::string>()[1], "b");
}

TEST(Batcher, waiting_ends_with_the_deadline_and_with_cancelling) {
  Batcher batcher(session_of(kDouble), true, {.max_batch_size = 4, .max_queue_delay = std::chrono::seconds(60)});
  RunOptions late;
  late.timeout = milliseconds(5);
  error_of(ErrorCode::deadline_exceeded, [&] { batcher.run(input(1), {}, late); });
  RunOptions cancelled;
  cancelled.cancel.emplace();
  std::thread other([&] { cancelled.cancel->cancel(); });
  error_of(ErrorCode::cancelled, [&] { batcher.run(input(1), {}, cancelled); });
  other.join();
}

TEST(Batcher, a_full_queue_refuses) {
  std::atomic<int> answered{0};
  {
    Batcher batcher(session_of(kDouble), true, {.max_batch_size = 8, .max_queue_delay = std::chrono::seconds(60), .queue = 2});
    for (int i = 0; i < 2; ++i) {
      batcher.submit(input(1), {}, {}, [&](const BatchResult& result) { answered += result.error == nullptr ? 1 : 0; });
    }
    expect_parts(error_of(ErrorCode::out_of_memory, [&] { batcher.run(input(1), {}); }), {"2 requests already wait"});
    EXPECT_EQ(batcher.statistics().pending, 2);
  }
  EXPECT_EQ(answered, 2);  // what waits is answered when the model goes
}

TEST(Batcher, wanted_outputs_come_in_their_order) {
  Batcher batcher(session_of(R"(
    input x: float32[n,2]
    y = Add(x, x)
    z = Mul(x, x)
    output y: float32[n,2]
    output z: float32[n,2]
  )"),
                  true, {.max_batch_size = 2, .max_queue_delay = std::chrono::seconds(60)});
  std::thread other([&] { EXPECT_EQ(batcher.run(input(4), {"y"}).size(), 1U); });
  const NamedValues got = batcher.run(input(3), {"z", "y"});
  other.join();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].name, "z");
  EXPECT_EQ(elements(got[0].value.tensor()).at(0), 9);
}

TEST(Batcher, many_threads_and_instances_get_their_own_answers) {
  Batcher batcher(session_of(kDouble), true, {.max_batch_size = 5, .max_queue_delay = microseconds(100), .instances = 3});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 12; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const auto value = static_cast<float>(t * 1000 + i);
        const std::int64_t rows = i % 7 + 1;
        const NamedValues got = batcher.run(input(value, rows), {});
        if (elements(got.tensor("y")) != Floats(static_cast<std::size_t>(rows) * 2, 2 * value)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(batcher.statistics().success.count, 1200U);
}

}  // namespace
}  // namespace sdx::serve
