// Memory, streams, threads and processes around the evaluation of arrays.

#include <sdx/array.hpp>
#include <sdx/provider.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "array/array_op.h"
#include "array/node.h"
#include "array/trace.h"
#include "support/errors.h"

namespace {

namespace mx = sdx::array;
using mx::detail::Emitter;

constexpr std::int64_t kLarge = 1 << 18;  // elements: 1 MiB of floats

mx::array filled(float value, sdx::Shape shape = {kLarge}) {
  sdx::Tensor t(sdx::DataType::float32, std::move(shape));
  for (float& v : t.mutable_values<float>()) v = value;
  return mx::array(t);
}

// An operation of the test's own: it copies its input, but fails while `broken`.
std::atomic<bool> broken{false};
std::atomic<int> calls{0};

void run_fragile(sdx::ops::OpContext& c) {
  ++calls;
  if (broken) throw sdx::Error(sdx::ErrorCode::runtime_failure, "it is broken");
  c.set_output(0, c.input(0).clone());
}
void emit_fragile(Emitter& e) { e.results<run_fragile>("Fragile", e.inputs()); }
const mx::detail::Kind kFragile{.name = "fragile", .emit = emit_fragile};
mx::array fragile(const mx::array& a, mx::StreamOrDevice s = {}) {
  return mx::detail::make(kFragile, a.dtype(), a.shape(), {a}, {}, s);
}

TEST(ArrayMemory, UpdatesStayWhereTheyAre) {
  if (mx::get_backend() != "cpu") GTEST_SKIP() << "other backends have memory of their own";
  const mx::array step = filled(0.5F);
  mx::array p = mx::add(filled(1), step);
  p.eval();
  const void* place = p.tensor().data();
  for (int i = 0; i < 3; ++i) {
    p = mx::add(p, mx::multiply(step, mx::array(-1.0F)));
    p.eval();
    EXPECT_EQ(p.tensor().data(), place);
  }
  EXPECT_EQ(p.data<float>()[kLarge - 1], 0);
  // Somebody holds it: it stays what it is.
  const mx::array before = p;
  p = mx::add(p, step);
  EXPECT_EQ(p.data<float>()[0], 0.5F);
  EXPECT_EQ(before.data<float>()[0], 0);
  const sdx::Tensor held = p.tensor();
  p = mx::add(p, step);
  EXPECT_EQ(p.data<float>()[7], 1);
  EXPECT_EQ(held.values<float>()[7], 0.5F);
}

TEST(ArrayMemory, OneArgumentBecomesOneResult) {
  mx::array p = mx::add(filled(1), mx::array(0.5F));
  p.eval();
  const mx::array more = mx::add(p, mx::array(1.0F)), twice = mx::multiply(more, mx::array(2.0F));  // one step, two results
  p = mx::array(0.0F);
  mx::eval(std::vector<mx::array>{more, twice});
  EXPECT_NE(more.tensor().data(), twice.tensor().data());
  for (const std::int64_t i : {std::int64_t{0}, kLarge - 1}) {
    EXPECT_EQ(more.data<float>()[static_cast<std::size_t>(i)], 2.5F);
    EXPECT_EQ(twice.data<float>()[static_cast<std::size_t>(i)], 5);
  }
}

TEST(ArrayMemory, TensorsOfCallersAreNeverWrittenTo) {
  std::vector<float> theirs(kLarge, 2);
  mx::array a(sdx::Tensor::view_mutable(theirs.data(), sdx::DataType::float32, {kLarge}, std::make_shared<int>(0)));
  a = mx::reshape(a, {2, -1});
  a.eval();
  a = mx::add(a, a);
  EXPECT_EQ(a.data<float>()[0], 4);
  EXPECT_EQ(theirs[0], 2);
}

TEST(ArrayMemory, ResultsComeFromTheCache) {
  if (mx::get_backend() != "cpu") GTEST_SKIP() << "other backends have memory of their own";
  const mx::array a = filled(1);
  mx::clear_cache();
  EXPECT_EQ(mx::get_cache_memory(), 0U);
  const std::size_t before = mx::get_active_memory();
  const void* place = nullptr;
  {
    const mx::array b = mx::add(a, a);
    place = b.tensor().data();
    EXPECT_EQ(mx::get_active_memory(), before + b.nbytes());
    EXPECT_GE(mx::get_peak_memory(), before + b.nbytes());
  }
  EXPECT_EQ(mx::get_active_memory(), before);
  EXPECT_GE(mx::get_cache_memory(), a.nbytes());
  EXPECT_EQ(mx::multiply(a, a).tensor().data(), place);
  const std::size_t limit = mx::set_cache_limit(0);
  EXPECT_EQ(mx::get_cache_memory(), 0U);
  mx::add(a, a).eval();
  EXPECT_EQ(mx::get_cache_memory(), 0U);
  EXPECT_EQ(mx::set_cache_limit(limit), 0U);
}

TEST(ArrayMemory, LimitsAreErrorsThatLeaveArraysUsable) {
  if (mx::get_backend() != "cpu") GTEST_SKIP() << "other backends have memory of their own";
  const mx::array a = filled(1);
  const mx::array b = mx::add(a, a);
  const std::size_t before = mx::set_memory_limit(mx::get_active_memory() + 1000);
  EXPECT_THROW(b.eval(), sdx::Error);
  EXPECT_FALSE(b.is_evaluated());
  mx::set_memory_limit(before);
  EXPECT_EQ(b.data<float>()[3], 2);
}

TEST(ArrayMemory, ReshapesOfDataShareIt) {
  const mx::array a = filled(3);
  const mx::array b = mx::reshape(mx::reshape(a, {2, -1}), {4, -1});
  EXPECT_EQ(b.tensor().data(), a.tensor().data());
  EXPECT_EQ(b.tensor().shape(), (sdx::Shape{4, kLarge / 4}));
}

TEST(ArrayMemory, ManyOperationsTakeNoMore) {
  mx::array a = mx::add(filled(0, {64}), mx::array(0.0F));
  for (int i = 0; i < 1000; ++i) {
    a = mx::add(a, mx::array(1.0F));
    a.eval();
  }
  const std::size_t before = mx::get_active_memory();
  for (int i = 0; i < 20'000; ++i) {
    a = mx::add(a, mx::array(1.0F));
    a.eval();
  }
  EXPECT_EQ(a.data<float>()[5], 21'000);
  EXPECT_EQ(mx::get_active_memory(), before);
}

TEST(ArrayErrors, FailuresLeaveEverythingUsable) {
  const mx::array a = mx::add(mx::array({1.0F, 2.0F}), mx::array(1.0F));
  const mx::array b = mx::add(fragile(a), a);
  broken = true;
  EXPECT_THROW(b.eval(), sdx::Error);
  EXPECT_THROW(b.eval(), sdx::Error);
  broken = false;
  EXPECT_EQ(b.data<float>()[1], 6);
}

// Where the memory of an argument was written to already, the operations cannot be computed once more.
TEST(ArrayErrors, AfterAnArgumentIsGoneTheErrorStays) {
  mx::array p = mx::add(filled(1), mx::array(1.0F));
  p.eval();
  const mx::array q = mx::add(std::exchange(p, mx::array(0.0F)), mx::array(1.0F));
  const mx::array r = mx::add(q, fragile(q));
  broken = true;
  EXPECT_THROW(r.eval(), sdx::Error);
  broken = false;
  bool same = false;
  try {
    same = r.data<float>()[0] == 6;  // nothing was given up
  } catch (const sdx::Error& e) {
    same = std::string_view(e.what()).find("it is broken") != std::string_view::npos;
  }
  EXPECT_TRUE(same);
}

TEST(ArrayStreams, AsyncErrorsComeWhereNumbersAreRead) {
  const mx::Stream s = mx::new_stream({});
  const mx::array a = fragile(mx::array({1.0F, 2.0F}), s);
  const mx::array b = mx::add(a, a);
  broken = true;
  EXPECT_NO_THROW(mx::async_eval(std::vector<mx::array>{a, b}));
  mx::synchronize(s);
  mx::synchronize();
  EXPECT_THROW(b.data<float>(), sdx::Error);
  EXPECT_THROW(a.data<float>(), sdx::Error);
  broken = false;
  EXPECT_EQ(b.data<float>()[1], 4);
}

TEST(ArrayStreams, WaitForOneAnother) {
  const mx::Stream one = mx::new_stream({}), two = mx::new_stream({});
  EXPECT_FALSE(one == two);
  mx::array a = filled(1, {1000});
  for (int i = 0; i < 100; ++i) {
    a = mx::add(a, mx::array(1.0F), i % 2 == 0 ? one : two);
    if (i % 10 == 0) mx::async_eval(std::vector<mx::array>{a});
  }
  EXPECT_EQ(a.data<float>()[999], 101);
  mx::array b = filled(1, {1000});
  for (int i = 0; i < 100; ++i) b = mx::add(b, a, i % 3 == 0 ? one : two);
  EXPECT_EQ(mx::sum(b).item<float>(), 1000 * (1 + 100 * 101));
  EXPECT_THROW(mx::synchronize(mx::Stream{12345, {}}), sdx::Error);
  const mx::array nowhere = mx::add(mx::add(a, b, one), b, mx::Stream{INT32_MAX, {}});
  EXPECT_THROW(nowhere.eval(), sdx::Error);
  EXPECT_THROW(mx::async_eval(std::vector<mx::array>{nowhere}), sdx::Error);
}

TEST(ArrayStreams, DefaultsBelongToThreads) {
  const mx::Stream s = mx::new_stream({});
  mx::set_default_stream(s);
  EXPECT_EQ(mx::default_stream({}), s);
  std::thread([&] { EXPECT_EQ(mx::default_stream({}).index, 0); }).join();
  EXPECT_EQ(mx::add(mx::array(1), mx::array(2)).item<int>(), 3);
  mx::set_default_stream(mx::Stream{});
}

// Whoever may not have more threads gets an error, and may try again.
TEST(ArrayStreams, NoThreadIsAnError) {
  const mx::Stream s = mx::new_stream({});
  const mx::array a = mx::add(filled(1, {10}), mx::array(1.0F), s);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    rlimit limit{};
    ::getrlimit(RLIMIT_NPROC, &limit);
    const rlim_t before = std::exchange(limit.rlim_cur, 0);
    ::setrlimit(RLIMIT_NPROC, &limit);
    bool refused = false;
    try {
      mx::async_eval(std::vector<mx::array>{a});
    } catch (const sdx::Error&) {
      refused = true;
    }
    limit.rlim_cur = before;
    ::setrlimit(RLIMIT_NPROC, &limit);
    mx::async_eval(std::vector<mx::array>{a});
    ::_exit(refused && a.data<float>()[3] == 2 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ArrayThreads, ShareArrays) {
  const mx::array x = filled(1, {500});
  const mx::array shared = mx::sum(mx::multiply(mx::add(x, x), x));
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const mx::array mine = mx::add(shared, mx::array(static_cast<float>(t * i)));
        if (i % 5 == 0) mx::async_eval(std::vector<mx::array>{mine});
        right += mine.item<float>() == 1000 + static_cast<float>(t * i) ? 1 : 0;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 200);
}

TEST(ArrayProcesses, ChildrenCanCompute) {
  const mx::array x = filled(1);
  const mx::Stream s = mx::new_stream({});
  EXPECT_EQ(mx::sum(mx::add(x, x, s)).item<float>(), 2 * kLarge);
  const mx::array lazy = mx::sum(mx::add(x, x));
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) mx::sum(mx::multiply(x, x)).eval();
  });
  for (int i = 0; i < 5; ++i) {
    mx::async_eval(std::vector<mx::array>{mx::sum(mx::add(x, x, s), {}, false, s)});
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      const bool right = lazy.item<float>() == 2 * kLarge && mx::sum(mx::add(x, x, s), {}, false, s).item<float>() == 2 * kLarge;
      mx::synchronize(s);
      ::_exit(right ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}

std::atomic<bool> slow{false};
void run_slow(sdx::ops::OpContext& c) {
  slow = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  c.set_output(0, c.input(0).clone());
}
void emit_slow(Emitter& e) { e.results<run_slow>("Slow", e.inputs()); }

// A thread that waits for the fork has made operations its own; it is not there in the child.
TEST(ArrayProcesses, ChildrenTakeOverWhatWaits) {
  static const mx::detail::Kind kind{.name = "slow", .emit = emit_slow};
  const mx::array x({1.0F, 2.0F});
  const mx::array first = mx::detail::make(kind, x.dtype(), x.shape(), {x}), second = mx::add(x, x);
  std::thread one([&] { first.eval(); });
  std::thread two([&] {
    while (!slow) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    second.eval();
  });
  while (!slow) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(second.data<float>()[1] == 4 && first.data<float>()[1] == 2 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  one.join();
  two.join();
}

// Numbers of results and of operations do not run into one another.
TEST(ArrayTraces, KeysTellManyResultsApart) {
  const mx::array x = filled(1, {40'000}), y({1.0F});
  const auto key_with = [&](bool far) {
    std::vector<mx::array> parts = mx::split(x, 40'000);
    const mx::array other = mx::exp(y), both = mx::add(parts[0], other);
    const mx::array asked = mx::add(both, far ? parts[32'768] : other);
    parts.clear();
    return mx::detail::trace_of(mx::detail::walk_from({&asked, 1})).key;
  };
  EXPECT_EQ(key_with(true), key_with(true));
  EXPECT_NE(key_with(true), key_with(false));
}

TEST(ArrayShapes, WhatNoMemoryHoldsIsRefused) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  const mx::array one(1.0F);
  const mx::array tall = mx::broadcast_to(one, {kHuge, 1}), wide = mx::broadcast_to(one, {1, kHuge});
  EXPECT_THROW(mx::zeros({kHuge, kHuge}), sdx::Error);
  EXPECT_THROW(mx::add(tall, wide), sdx::Error);
  EXPECT_THROW(mx::matmul(tall, wide), sdx::Error);
  EXPECT_THROW(mx::outer(mx::reshape(tall, {-1}), mx::reshape(wide, {-1})), sdx::Error);
  EXPECT_THROW(mx::broadcast_to(one, {kHuge, kHuge}), sdx::Error);
  EXPECT_THROW(mx::concatenate(std::vector<mx::array>(40, mx::broadcast_to(one, {INT64_MAX / 64})), 0), sdx::Error);
  EXPECT_THROW(mx::random::bits({kHuge, kHuge}), sdx::Error);
  const mx::array huge = mx::add(tall, tall);  // nothing is computed yet
  EXPECT_THROW(huge.eval(), sdx::Error);
}

TEST(ArrayBackend, NamesAreChecked) {
  const std::string before = mx::get_backend();
  sdx::testing::expect_error([&] { mx::set_backend("abacus"); }, {"abacus", "cpu", "cuda", "metal", "webgpu", "onnx", "auto"});
  EXPECT_EQ(mx::get_backend(), before);
  const std::vector<mx::BackendInfo> all = mx::backend_info();
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].name, before);
  for (const mx::BackendInfo& b : all) {
    EXPECT_EQ(b.available || !b.reason.empty(), true) << b.name;
    EXPECT_EQ(b.version == sdx::version(), b.name == "cpu");
    if (b.available) continue;
    EXPECT_THROW(mx::set_backend(b.name), sdx::Error);
  }
}

TEST(ArrayBackend, OnnxRuntimeComputes) {
  try {
    mx::set_backend("ONNX");
  } catch (const sdx::Error& e) {
    GTEST_SKIP() << e.what();
  }
  EXPECT_EQ(mx::get_backend(), "onnx");
  const mx::array a({1.0F, 2.0F, 3.0F});
  EXPECT_EQ(mx::sum(mx::multiply(mx::add(a, a), a)).item<float>(), 28);
  EXPECT_EQ(mx::add(fragile(mx::add(a, a)), a).data<float>()[2], 9);
  mx::set_backend("cpu");
  EXPECT_EQ(mx::sum(mx::multiply(mx::add(a, a), a)).item<float>(), 28);
}

}  // namespace
