#include <sdx/array.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

struct Handle {
  sdx_array* array = nullptr;
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { sdx_array_free(array); }
  sdx_array** out() { return &array; }
  std::vector<float> values() const {
    const void* data = nullptr;
    EXPECT_EQ(sdx_array_data(array, &data), SDX_OK) << sdx_last_error();
    if (data == nullptr) return {};
    const auto* first = static_cast<const float*>(data);
    return {first, first + sdx_array_count(array)};
  }
};

constexpr sdx_dtype kFloat = 1;

void make(Handle& handle, const std::vector<float>& values, const std::vector<int64_t>& shape) {
  ASSERT_EQ(sdx_array_from_data(kFloat, shape.data(), shape.size(), values.data(), values.size() * 4, handle.out()), SDX_OK);
}

TEST(ArrayC, Computes) {
  Handle a, b, product, rows;
  make(a, {1, 2, 3, 4}, {2, 2});
  const int64_t shape[] = {2, 2};
  ASSERT_EQ(sdx_array_full(kFloat, shape, 2, 2.0, b.out()), SDX_OK);
  ASSERT_EQ(sdx_array_binary("matmul", a.array, b.array, product.out()), SDX_OK);
  EXPECT_EQ(product.values(), (std::vector<float>{6, 6, 14, 14}));
  const int axis = -1;
  ASSERT_EQ(sdx_array_reduce("sum", product.array, &axis, 1, 1, rows.out()), SDX_OK);
  EXPECT_EQ(rows.values(), (std::vector<float>{12, 28}));
  EXPECT_EQ(sdx_array_rank(rows.array), 2U);
  EXPECT_EQ(sdx_array_shape(rows.array)[1], 1);
}

TEST(ArrayC, ReductionsByName) {
  Handle a;
  make(a, {3, 1, 2, 6}, {4});
  const int axis = 0;
  for (const char* name :
       {"all",    "any",    "logsumexp", "max",    "mean",    "median", "min",    "prod",         "std",  "sum",    "var",
        "argmax", "argmin", "softmax",   "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "sort", "argsort"}) {
    Handle out;
    EXPECT_EQ(sdx_array_reduce(name, a.array, &axis, 1, 0, out.out()), SDX_OK) << name << ": " << sdx_last_error();
    const sdx_array* list[] = {out.array};
    EXPECT_EQ(sdx_array_eval(list, 1), SDX_OK) << name;
  }
}

TEST(ArrayC, RandomNumbersFollowTheSeed) {
  const int64_t shape[] = {64};
  std::vector<float> first;
  for (int round = 0; round < 2; ++round) {
    Handle drawn;
    ASSERT_EQ(sdx_array_seed(7), SDX_OK);
    ASSERT_EQ(sdx_array_random("normal", kFloat, shape, 1, 10, 0.5, drawn.out()), SDX_OK) << sdx_last_error();
    const std::vector<float> values = drawn.values();
    for (const float v : values) EXPECT_NEAR(v, 10, 4);
    if (round == 1) {
      EXPECT_EQ(values, first);
    }
    first = values;
  }
}

TEST(ArrayC, SaysWhatIsWrong) {
  Handle a, b, out;
  make(a, {1, 2}, {2});
  make(b, {1, 2, 3}, {3});
  EXPECT_EQ(sdx_array_binary("add", a.array, b.array, out.out()), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(out.array, nullptr);
  EXPECT_NE(std::string(sdx_last_error()).find("[2]"), std::string::npos) << sdx_last_error();
  EXPECT_EQ(sdx_array_unary("negativ", a.array, out.out()), SDX_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sdx_last_error()).find("negative"), std::string::npos) << sdx_last_error();
  EXPECT_EQ(sdx_array_unary("negative", nullptr, out.out()), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(sdx_array_unary(nullptr, a.array, out.out()), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(sdx_array_unary("negative", a.array, nullptr), SDX_INVALID_ARGUMENT);
  const int64_t shape[] = {3};
  const float values[] = {1, 2};
  EXPECT_EQ(sdx_array_from_data(kFloat, shape, 1, values, sizeof values, out.out()), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(sdx_array_from_data(8, shape, 1, values, sizeof values, out.out()), SDX_INVALID_ARGUMENT);  // strings
  EXPECT_EQ(sdx_array_random("gaussian", kFloat, shape, 1, 0, 1, out.out()), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(sdx_array_set_backend("fpga"), SDX_INVALID_ARGUMENT);
  EXPECT_EQ(sdx_array_data(a.array, nullptr), SDX_INVALID_ARGUMENT);
  sdx_array_free(nullptr);
}

TEST(ArrayC, NamesItsBackend) {
  sdx_backend backend{};
  ASSERT_EQ(sdx_array_backend(&backend), SDX_OK);
  EXPECT_STRNE(backend.backend, "");
  EXPECT_STRNE(backend.device, "");
}

}  // namespace
