#include "cache/pack_store.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sdx::cache {
namespace {

class PackStoreTest : public ::testing::Test {
 protected:
  std::shared_ptr<const void> pack(PackStore& store, const PackKey& key, const Tensor& from, float factor) {
    const Tensor* source = &from;
    return store.get(key, PackSources(&source, 1), from.bytes(), [&](float* to) {
      ++fills;
      std::transform(from.values<float>().begin(), from.values<float>().end(), to, [&](float v) { return v * factor; });
    });
  }
  int fills = 0;
};

TEST_F(PackStoreTest, PacksATensorOnceForEachKey) {
  const Tensor a = Tensor::of<float>({2}, {1, 2}), b = Tensor::of<float>({2}, {1, 2});
  PackStore store;
  const auto once = pack(store, PackKey("times", 2.0F), a, 2);
  EXPECT_EQ(static_cast<const float*>(once.get())[1], 4);
  EXPECT_EQ(pack(store, PackKey("times", 2.0F), a, 2), once);
  EXPECT_EQ(fills, 1);
  EXPECT_EQ(static_cast<const float*>(pack(store, PackKey("times", 3.0F), a, 3).get())[1], 6);
  EXPECT_NE(pack(store, PackKey("times", 2.0F), b, 2), once);  // equal values elsewhere
  EXPECT_EQ(fills, 3);
  EXPECT_TRUE(store.made().empty());
}

TEST_F(PackStoreTest, TakesWhatTheShelfHas) {
  struct Shelf : PackShelf {
    std::shared_ptr<const void> find(const PackKey& key, PackSources sources, std::size_t bytes) const override {
      const bool mine = key.text() == PackKey("shelved", 1).text() && sources.size() == 1 && bytes == 8;
      return mine ? kept : nullptr;
    }
    std::shared_ptr<const void> kept = std::make_shared<double>(0);
  };
  const Shelf shelf;
  const Tensor a = Tensor::of<float>({2}, {1, 2});
  PackStore store(&shelf, true);
  EXPECT_EQ(pack(store, PackKey("shelved", 1), a, 1), shelf.kept);
  EXPECT_EQ(store.misses(), 0U);
  const auto other = pack(store, PackKey("shelved", 2), a, 1);
  EXPECT_NE(other, shelf.kept);
  EXPECT_EQ(store.misses(), 1U);
  EXPECT_NE(pack(store, PackKey("shelved", 3), a, 1), nullptr);  // measured and not chosen: nobody holds it
  ASSERT_EQ(store.made().size(), 2U);
  EXPECT_EQ(store.made()[1].key, PackKey("shelved", 2).text());
  EXPECT_EQ(store.made()[1].sources.at(0).data(), a.data());
}

}  // namespace
}  // namespace sdx::cache
