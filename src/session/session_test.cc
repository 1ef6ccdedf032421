#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sdx/sdx.hpp>
#include <thread>

#include "support/graph_text.h"
#include "support/session.h"
#include "tensor/element.h"

namespace sdx::session {
namespace {

using testing::elements;
using testing::error_of;
using testing::expect_parts;
using testing::floats;
using testing::Floats;
using testing::open;

const char* const kScale = R"(
  input image: float32[n,2]
  input factor: float32[2] = 10 100
  y = Mul(image, factor)
  output y
)";

const char* const kEndless = R"(
  input x: float32[1]
  constant most: int64[] 9223372036854775807
  constant yes: bool[] true
  y = Loop(most, yes, x)
    body {
      input i: int64[]
      input go: bool[]
      input v: float32[1]
      w = Add(v, v)
      g = Identity(go)
      output g
      output w
    }
  output y
)";

// Errors that types alone cannot show before the run: Equal would read 64 numbers of 8 bytes from 64 of 4.
TEST(Session, WhatReadsEitherOfTwoTypesChecksWhatComes) {
  const std::string text =
      "input c: bool[]\n"
      "input i: int64[64]\n"
      "input f: float32[64]\n"
      "z = If(c)\n"
      "  then_branch {\n    t = Identity(f)\n    output t\n  }\n"
      "  else_branch {\n    e = Identity(i)\n    output e\n  }\n"
      "y = Equal(i, z)\n"
      "output y\n";
  const Session session = open(text);
  const Tensor i(from_ints(std::vector<std::int64_t>(64, 1)));
  const auto run = [&](bool c) {
    return session.run({{"c", Tensor::scalar<bool>(c)}, {"i", i}, {"f", floats({64}, Floats(64, 1.0F))}});
  };
  EXPECT_TRUE(run(false).tensor("y").values<bool>()[63]);
  expect_parts(error_of(ErrorCode::runtime_failure, [&] { run(true); }), {"same element type", "Equal"});
}

// Inference computes with constants before it is known that their types go together; an address sanitizer sees it when it should
// not.
TEST(Session, ConstantsOfTypesThatDoNotGoTogetherAreNotComputedWith) {
  const std::string text =
      "input x: int64[64]\n"
      "constant a: int64[64] 1\n"
      "constant b: bool[64] true\n"
      "t = Identity(b)\n"
      "y = Less(a, t)\n"
      "z = Neg(x)\n"
      "output y\noutput z\n";
  expect_parts(error_of(ErrorCode::invalid_model, [&] { open(text); }), {"Less"});
}

// Operators whose first result, or only one, the file leaves out: kernels must not write to missing outputs.
TEST(Session, ResultsThatAreLeftOutAreComputedForNobody) {
  const std::string text =
      "input x: float32[1,2,4,4]\n"
      "constant w: float32[2,2,1,1] 1\n"
      "constant s: float32[2] 1\n"
      "constant r: float32[4] 1\n"
      "_ = Sum(x, x, x)\n"
      "_ = Conv(x, w)\n"
      "_ = Relu(x)\n"
      "_ = BatchNormalization(x, s, s, s, s)\n"
      "_ = MatMul(x, x)\n"
      "_ = com.microsoft.Gelu(x)\n"
      "_, mean = LayerNormalization(x, r)\n"
      "_, indices = MaxPool(x) {kernel_shape=[4, 4]}\n"
      "y = Neg(x)\n"
      "output y\noutput mean\noutput indices\n";
  for (const bool optimize : {true, false}) {
    SessionOptions options;
    options.optimize = optimize;
    Tensor x(DataType::float32, {1, 2, 4, 4});
    std::fill(x.mutable_values<float>().begin(), x.mutable_values<float>().end(), 3.0F);
    const NamedValues out = open(text, options).run({{"x", x}});
    EXPECT_EQ(out.tensor("y").values<float>()[31], -3.0F);
    EXPECT_EQ(out.tensor("mean").values<float>()[7], 3.0F);
    EXPECT_EQ(out.tensor("indices").values<std::int64_t>()[1], 16);
  }
}

TEST(Session, InputsAndOutputs) {
  const Session s = open(kScale);
  ASSERT_EQ(s.inputs().size(), 2U);
  EXPECT_EQ(s.inputs()[0].name, "image");
  EXPECT_EQ(s.inputs()[0].type, "float32[n,2]");
  EXPECT_EQ(s.inputs()[0].shape, (std::vector<std::int64_t>{-1, 2}));
  EXPECT_EQ(s.inputs()[0].symbols, (std::vector<std::string>{"n", ""}));
  EXPECT_FALSE(s.inputs()[0].has_default);
  EXPECT_TRUE(s.inputs()[1].has_default);
  ASSERT_EQ(s.outputs().size(), 1U);
  EXPECT_EQ(s.outputs()[0].type, "float32[n,2]");
}

TEST(Session, OutputsWithoutAnInferredRankAreAsTheFileDeclaresThem) {
  const Session session = open("input x: float32[n,2]\ninput s: int64[?]\ny = Reshape(x, s)\noutput y: float32[?,1]\n");
  EXPECT_EQ(session.outputs()[0].type, "float32[?,1]");
  EXPECT_EQ(session.outputs()[0].shape, (std::vector<std::int64_t>{-1, 1}));
}

TEST(Session, NoBytesAreNoModel) {
  expect_parts(error_of(ErrorCode::invalid_argument, [] { Session::from_bytes({}); }), {"no bytes"});
}

TEST(Session, DefaultsMayBeOverridden) {
  const Session s = open(kScale);
  const Tensor x = floats({1, 2}, {1, 2});
  EXPECT_EQ(elements(s.run({{"image", x}}).tensor("y")), (Floats{10, 200}));
  EXPECT_EQ(elements(s.run({{"image", x}, {"factor", floats({2}, {3, 4})}}).tensor("y")), (Floats{3, 8}));
  EXPECT_EQ(elements(s.run({{"image", x}}).tensor("y")), (Floats{10, 200}));
}

TEST(Session, MissingInputListsNamesAndTypes) {
  const Session s = open(kScale);
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { s.run({}); }),
               {"'image'", "image: float32[n,2]", "factor: float32[2]"});
}

TEST(Session, UnknownInputSuggests) {
  const Session s = open(kScale);
  const Tensor x = floats({1, 2}, {1, 2});
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { s.run({{"imgae", x}}); }), {"'imgae'", "did you mean 'image'"});
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { s.run({{"image", x}, {"image", x}}); }), {"'image'", "twice"});
}

TEST(Session, WrongTypeAndRank) {
  const Session s = open(kScale);
  expect_parts(error_of(ErrorCode::invalid_argument,
                        [&] {
                          s.run({{"image", Tensor(DataType::float64, {1, 2})}});
                        }),
               {"'image'", "float32[n,2]", "float64[1,2]"});
  expect_parts(error_of(ErrorCode::invalid_argument,
                        [&] {
                          s.run({{"image", floats({2}, {1, 2})}});
                        }),
               {"float32[n,2]", "float32[2]", "rank"});
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { s.run({{"image", Value()}}); }), {"'image'"});
  expect_parts(error_of(ErrorCode::invalid_argument,
                        [&] {
                          s.run({{"image", Value(Sequence{DataType::float32, {}})}});
                        }),
               {"float32[n,2]", "sequence"});
  EXPECT_EQ(elements(s.run({{"image", floats({1, 2}, {1, 1})}}).tensor("y")), (Floats{10, 100}));
}

TEST(Session, OtherExtentsThanDeclaredRunWithAWarning) {
  const Session s = open("input x: float32[2]\n y = Neg(x)\n output y: float32[2]\n");
  EXPECT_TRUE(s.report().warnings.empty());
  EXPECT_EQ(elements(s.run({{"x", floats({3}, {1, 2, 3})}}).tensor("y")), (Floats{-1, -2, -3}));
  ASSERT_FALSE(s.report().warnings.empty());
  expect_parts(s.report().warnings.back(), {"'x'", "float32[2]", "float32[3]"});
  EXPECT_EQ(elements(s.run({{"x", floats({2}, {1, 2})}}).tensor("y")), (Floats{-1, -2}));
}

TEST(Session, ExtentsThatCannotWorkShowBothShapes) {
  const Session s = open("input x: float32[1,2]\n constant w: float32[2,2] 1 2 3 4\n y = MatMul(x, w)\n output y\n");
  testing::expect_error([&] { s.run({{"x", floats({1, 3}, {1, 2, 3})}}); }, {"'x'", "float32[1,2]", "float32[1,3]"});
  EXPECT_EQ(elements(s.run({{"x", floats({1, 2}, {1, 1})}}).tensor("y")), (Floats{4, 6}));
}

TEST(Session, OutputsMayBeASubsetInAnyOrder) {
  const Session s = open("input x: float32[2]\n a = Neg(x)\n b = Exp(x)\n c = Abs(a)\n output a\n output b\n output c as last\n");
  RunOptions options;
  options.outputs = {"last", "a"};
  const NamedValues out = s.run({{"x", floats({2}, {1, -2})}}, options);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].name, "last");
  EXPECT_EQ(elements(out[0].value.tensor()), (Floats{1, 2}));
  EXPECT_EQ(elements(out[1].value.tensor()), (Floats{-1, 2}));
  options.outputs = {"lst"};
  expect_parts(error_of(ErrorCode::invalid_argument,
                        [&] {
                          s.run({{"x", floats({2}, {1, -2})}}, options);
                        }),
               {"'lst'", "'last'"});
}

TEST(Session, EightThreadsAtOnce) {
  SessionOptions options;
  options.threads = 2;
  const Session s = open(R"(
    input x: float32[n,64]
    constant w: float32[64,64] 0.25
    a = MatMul(x, w)
    b = Relu(a)
    c = Add(a, b)
    d = ReduceSum(c)
    output d
  )",
                         options);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        const std::int64_t rows = 1 + (t + i) % 5;
        const float value = static_cast<float>(1 + (t * 7 + i) % 9);
        const Tensor x = floats({rows, 64}, Floats(static_cast<std::size_t>(rows) * 64, value));
        const Tensor y = s.run({{"x", x}}).tensor("d");
        // Each of rows * 64 elements is 64 * value / 4, then doubled.
        if (y.values<float>()[0] != static_cast<float>(rows * 64 * 32) * value) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, MoreShapesThanPlansAreKept) {
  SessionOptions options;
  options.plan_cache_size = 2;
  const Session s = open("input x: float32[n]\n a = Exp(x)\n b = Neg(a)\n y = Concat(a, b, x) {axis=0}\n output y\n", options);
  for (const std::int64_t n : {1, 5, 2, 1, 0, 7, 5, 1, 2}) {
    const Floats y = elements(s.run({{"x", floats({n}, Floats(static_cast<std::size_t>(n), 0.0F))}}).tensor("y"));
    Floats expected(static_cast<std::size_t>(n), 1.0F);
    expected.insert(expected.end(), static_cast<std::size_t>(n), -1.0F);
    expected.insert(expected.end(), static_cast<std::size_t>(n), 0.0F);
    EXPECT_EQ(y, expected) << n;
  }
}

// Inputs of a Concat may be parts of its result: of one within another, an input that comes twice, one that is needed later, and
// results that overwrite what they read.
TEST(Session, JoinedInputsLieInTheResult) {
  std::vector<float> values(16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 7.0F;
  const Tensor x = Tensor::of<float>({1, 16}, std::span<const float>(values));
  for (const char* text : {
           "a = Neg(x)\nb = Exp(x)\nc = Concat(a, b) {axis=1}\nd = Abs(x)\ne = Concat(c, d) {axis=1}\ny = Tanh(e)\n",
           "a = Neg(x)\nb = Concat(a, a, x) {axis=1}\ny = Abs(b)\n",
           "a = Neg(x)\nb = Exp(x)\nc = Concat(a, b) {axis=1}\nd = Abs(c)\ne = Concat(d, a) {axis=1}\ny = Neg(e)\n",
           "a = Neg(x)\nb = Abs(x)\nc = Concat(b, a) {axis=1}\nd = Exp(b)\ne = Concat(c, d, b) {axis=1}\ny = Neg(e)\n",
           "a = Neg(x)\nb = Exp(x)\nc = Concat(a, b) {axis=0}\nd = Concat(c, c) {axis=1}\ny = Abs(d)\n",
           "a = Neg(x)\nb = Tanh(a)\nc = Exp(x)\nd = Concat(c, b) {axis=-1}\ne = Abs(d)\nf = Concat(e, d) {axis=1}\ny = Neg(f)\n",
       }) {
    SCOPED_TRACE(text);
    const std::string model = "input x: float32[n,16]\n" + std::string(text) + "output y\n";
    std::string apart = model;  // what leaves with the caller has memory of its own
    for (const char name : std::string("abcdef")) {
      if (model.find(std::string(1, name) + " = ") != std::string::npos) apart += "output " + std::string(1, name) + "\n";
    }
    const Session fast = open(model), reference = open(apart);
    for (int run = 0; run < 2; ++run) {
      const NamedValues got = fast.run({{"x", x}}), want = reference.run({{"x", x}});
      const auto g = got.tensor("y").values<float>(), w = want.tensor("y").values<float>();
      ASSERT_EQ(g.size(), w.size());
      for (std::size_t i = 0; i < g.size(); ++i) ASSERT_NEAR(g[i], w[i], 1e-6F * std::fabs(w[i])) << i;
    }
  }
}

// Plans of many shapes share what the largest one needs.
TEST(Session, MoreShapesTakeNoMoreMemory) {
  SessionOptions options;
  options.threads = 1;
  const Session s =
      open("input x: float32[n, 64]\n a = Exp(x)\n b = Transpose(a)\n c = MatMul(x, b)\n y = ReduceSum(c)\n output y\n", options);
  const auto run = [&](std::int64_t n) { s.run({{"x", floats({n, 64}, Floats(static_cast<std::size_t>(n * 64), 0.5F))}}); };
  run(300);
  const std::uint64_t largest = s.report().peak_bytes;
  EXPECT_GT(largest, 300U * 300U * sizeof(float));
  for (std::int64_t n = 100; n <= 300; n += 5) run(n);
  EXPECT_LE(s.report().peak_bytes, largest);
}

TEST(Session, CancelFromAnotherThread) {
  const Session s = open(kEndless);
  RunOptions options;
  options.cancel.emplace();
  std::thread canceller([token = *options.cancel]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    token.cancel();
  });
  const std::string text = error_of(ErrorCode::cancelled, [&] { s.run({{"x", floats({1}, {1})}}, options); });
  canceller.join();
  expect_parts(text, {"cancelled"});
}

TEST(Session, DeadlineOfAnEndlessLoop) {
  const Session s = open(kEndless);
  RunOptions options;
  options.timeout = std::chrono::milliseconds(20);
  for (int i = 0; i < 2; ++i) {
    expect_parts(error_of(ErrorCode::deadline_exceeded, [&] { s.run({{"x", floats({1}, {1})}}, options); }), {"deadline"});
  }
}

TEST(Session, UsableAfterADeadline) {
  const Session s = open(R"(
    input count: int64[]
    input x: float32[1]
    y = Loop(count, _, x)
      body {
        input i: int64[]
        input go: bool[]
        input v: float32[1]
        w = Add(v, x)
        g = Identity(go)
        output g
        output w
      }
    output y
  )");
  const Tensor x = floats({1}, {2});
  RunOptions options;
  options.timeout = std::chrono::milliseconds(20);
  error_of(ErrorCode::deadline_exceeded, [&] { s.run({{"count", Tensor::scalar<std::int64_t>(INT64_MAX)}, {"x", x}}, options); });
  EXPECT_EQ(elements(s.run({{"count", Tensor::scalar<std::int64_t>(3)}, {"x", x}}).tensor("y")), (Floats{8}));
  EXPECT_EQ(elements(s.run({{"count", Tensor::scalar<std::int64_t>(0)}, {"x", x}}).tensor("y")), (Floats{2}));
}

TEST(Session, MemoryLimit) {
  SessionOptions options;
  options.memory_limit = 1 << 20;
  const Session s = open(R"(
    input shape: int64[1]
    constant one: float32[1] 1
    a = Expand(one, shape)
    b = Exp(a)
    y = ReduceMax(b) {keepdims=0}
    output y
  )",
                         options);
  const auto run = [&](std::int64_t n) {
    return s.run({{"shape", Tensor::of<std::int64_t>({1}, {n})}}).tensor("y").values<float>()[0];
  };
  for (int i = 0; i < 3; ++i) {
    expect_parts(error_of(ErrorCode::out_of_memory, [&] { run(1'000'000); }), {"1048576"});
    EXPECT_NEAR(run(1000), 2.7182817F, 1e-6F);
  }
  EXPECT_LE(s.report().peak_bytes, options.memory_limit);
  error_of(ErrorCode::out_of_memory, [&] { run(std::int64_t{1} << 40); });
}

TEST(Session, OptimisingChangesNothingButSpeed) {
  const char* const text = R"(
    input x: float32[1,2,5,5]
    constant w: float32[3,2,3,3] 0.125
    constant s: float32[3] 1 2 3
    constant b: float32[3] 0.5 -0.5 0
    constant m: float32[3] 0 1 2
    constant v: float32[3] 1 1 4
    constant one: float32[] 1
    c = Conv(x, w) {pads=[1,1,1,1]}
    n = BatchNormalization(c, s, b, m, v)
    r = Relu(n)
    i = Mul(r, one)
    p = GlobalAveragePool(i)
    f = Flatten(p)
    y = Softmax(f)
    output y
    output i
  )";
  SessionOptions plain;
  plain.optimize = false;
  Floats values;
  for (int i = 0; i < 50; ++i) values.push_back(std::sin(static_cast<float>(i)));
  const Tensor x = floats({1, 2, 5, 5}, values);
  const NamedValues expected = open(text, plain).run({{"x", x}});
  const Session optimised = open(text);
  EXPECT_EQ(optimised.dump("simplified").find("BatchNormalization"), std::string::npos);
  const NamedValues received = optimised.run({{"x", x}});
  for (const char* const output : {"y", "i"}) {
    const Floats a = elements(expected.tensor(output));
    const Floats b = elements(received.tensor(output));
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5F) << output << i;
  }
}

// Inference knows the values of small integer tensors in 64 bits.
TEST(Session, ValuesThatInferenceKnowsWrapAsTheirType) {
  SessionOptions plain;
  plain.optimize = false;
  const Session s = open("constant x: int16[3] 5 -32768 32767\n y = Neg(x)\n output y\n", plain);
  const Tensor y = s.run({}).tensor("y");
  for (const auto& [i, expected] : {std::pair{0, -5}, std::pair{1, -32768}, std::pair{2, -32767}}) {
    EXPECT_EQ(element_as_int(y, i), expected);
  }
}

TEST(Session, ProfileAndTrace) {
  SessionOptions options;
  options.profile = true;
  const Session s = open("input x: float32[2]\n a = Exp(x)\n y = Erf(a)\n output y\n", options);
  s.run({{"x", floats({2}, {1, 2})}});
  s.run({{"x", floats({2}, {1, 2})}});
  const std::vector<ProfileEvent> events = s.profile();
  ASSERT_EQ(events.size(), 4U);
  for (const ProfileEvent& e : events) {
    EXPECT_TRUE(e.op == "Exp" || e.op == "Erf") << e.op;
    EXPECT_EQ(e.provider, "cpu");
    EXPECT_GE(e.duration_ns, 0);
  }
  EXPECT_NE(events.front().run, events.back().run);
  for (const auto* values : {&events.front().inputs, &events.front().outputs}) {
    ASSERT_EQ(values->size(), 1U);
    EXPECT_EQ(values->front().dtype, DataType::float32);
    EXPECT_EQ(values->front().shape, (std::vector<std::int64_t>{2}));
    EXPECT_EQ(values->front().bytes, 8U);
    EXPECT_FALSE(values->front().is_constant);
  }
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("sdx_trace_" + std::to_string(std::hash<std::thread::id>()(std::this_thread::get_id())) + ".json");
  s.write_trace(path);
  std::ifstream in(path);
  const nlohmann::json trace = nlohmann::json::parse(in);
  std::filesystem::remove(path);
  ASSERT_EQ(trace.at("traceEvents").size(), 4U);
  EXPECT_EQ(trace.at("traceEvents")[0].at("ph"), "X");
  error_of(ErrorCode::io, [&] { s.write_trace("/nonexistent/folder/trace.json"); });
  EXPECT_TRUE(open(kScale).profile().empty());
}

TEST(Session, Providers) {
  SessionOptions options;
  options.providers = {"coreml", "cpu"};
  const Session s = open(kScale, options);
  const Report report = s.report();
  ASSERT_EQ(report.fallbacks.size(), 1U);
  expect_parts(report.fallbacks[0], {"coreml", "cpu"});
  EXPECT_EQ(report.providers, (std::vector<std::string>{"cpu"}));
  expect_parts(report.text(), {"fallback: ", "coreml"});
  options.strict = true;
  expect_parts(error_of(ErrorCode::provider_unavailable, [&] { open(kScale, options); }), {"coreml"});
  options.providers = {"cpuu"};
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { open(kScale, options); }), {"'cpuu'", "did you mean 'cpu'"});
}

TEST(Session, DimensionsByName) {
  SessionOptions options;
  options.dimensions = {{"n", 3}};
  EXPECT_EQ(open(kScale, options).inputs()[0].shape, (std::vector<std::int64_t>{3, 2}));
  options.dimensions = {{"batch", 3}};
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { open(kScale, options); }), {"'batch'", "n"});
}

TEST(Session, StagesAsText) {
  const Session s = open(kScale);
  for (const char* const stage : {"loaded", "simplified", "claimed", "planned"}) {
    EXPECT_NE(s.dump(stage).find("Mul"), std::string::npos) << stage;
  }
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { (void)s.dump("baked"); }), {"'baked'", "planned"});
}

TEST(Session, BytesThatAreNoModel) {
  error_of(ErrorCode::invalid_model, [] { Session::from_bytes(std::as_bytes(std::span<const char>("\xFF\xFF\xFF\xFF", 4))); });
  EXPECT_THROW(Session::from_bytes({}), Error);
  expect_parts(error_of(ErrorCode::io, [] { Session::open("/nonexistent/model.onnx"); }), {"/nonexistent/model.onnx"});
}

// Weights that are packed for one node and read by another: in our memory, or the caller's, they cannot be fetched from a file
// again.
TEST(Session, WeightsOfAModelInMemoryStay) {
  const Session s = open(
      "input x: float32[1,64]\n input i: int64[2]\n constant w: float32[64,64] 0.5\n constant r: float32[2,192,64] 0.01\n"
      "constant u: float32[2,192,64] 0.02\n constant a: int64[1] 0\n"
      "y = MatMul(x, w)\n z = Gather(w, i)\n t = Unsqueeze(x, a)\n"
      "h = GRU(t, r, u) {hidden_size=64, direction=\"bidirectional\"}\n output y\n output z\n output h\n");
  const NamedValues out = s.run({{"x", floats({1, 64}, Floats(64, 1.0F))}, {"i", Tensor::of<std::int64_t>({2}, {3, 60})}});
  EXPECT_EQ(elements(out.tensor("y")), Floats(64, 32.0F));
  EXPECT_EQ(elements(out.tensor("z")), Floats(128, 0.5F));
  // All gates' sums are 0.64 and h was 0: (1 - sigmoid(0.64)) tanh(0.64), in both directions.
  for (const float v : elements(out.tensor("h"))) EXPECT_NEAR(v, 0.1950296F, 1e-5F);
}

// Data that a node derives from its attributes in the first run serve the next.
TEST(Session, TablesOfANodeServeEveryRun) {
  const Session s = open(
      "opset ai.onnx.ml 2\n input x: int64[n]\n"
      "y = ai.onnx.ml.LabelEncoder(x) {keys_int64s=[1, 2], values_floats=[0.5, 1.5], default_float=9.0}\n output y\n");
  const auto run = [&](std::vector<std::int64_t> x) {
    return elements(s.run({{"x", Tensor::of<std::int64_t>({static_cast<std::int64_t>(x.size())}, x)}}).tensor("y"));
  };
  EXPECT_EQ(run({1, 2, 3}), (Floats{0.5F, 1.5F, 9}));
  EXPECT_EQ(run({2, 0}), (Floats{1.5F, 9}));
}

TEST(Session, Movable) {
  Session a = open(kScale);
  Session b = std::move(a);
  a = open("input x: float32[1]\n y = Neg(x)\n output y\n");
  EXPECT_EQ(b.inputs().size(), 2U);
  EXPECT_EQ(elements(a.run({{"x", floats({1}, {2})}}).tensor("y")), (Floats{-2}));
}

TEST(Session, CustomMetadataAreApartFromTheModelsFields) {
  Model model = testing::parse_model("input x: float32[1]\n y = Neg(x)\n output y\n");
  model.producer_name = "tests";
  model.metadata = {{"producer_name", "somebody"}, {"description", "another"}, {"author", "me"}};
  const Session s = testing::open(model);
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(s.metadata(), (Pairs{{"producer_name", "tests"}}));
  EXPECT_EQ(s.custom_metadata(), model.metadata);
}

}  // namespace
}  // namespace sdx::session
