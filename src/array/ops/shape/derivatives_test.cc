// Shapes, parts and positions: derivatives and batches.

#include "array/ops/checked_test.h"

using namespace sdx::array;
using namespace sdx::array::checked;

TEST(ArrayDerivatives, Shapes) {
  check_all({
      {"reshape",
       {{2, 3}},
       [](const Arrays& a) {
         return reshape(a[0], {3, 2});
       }},
      {"broadcast_to",
       {{3, 1}},
       [](const Arrays& a) {
         return broadcast_to(a[0], {2, 3, 2});
       }},
      {"transpose",
       {{2, 3, 2}},
       [](const Arrays& a) {
         return transpose(a[0], std::vector<int>{2, 0, 1});
       }},
      {"concatenate",
       {{2, 3}, {2, 1}},
       [](const Arrays& a) {
         return concatenate({a[0], a[1]}, 1);
       }},
      {"stack",
       {{2, 3}, {2, 3}},
       [](const Arrays& a) {
         return stack({a[0], a[1]}, 1);
       }},
      {"split",
       {{2, 5}},
       [](const Arrays& a) {
         const auto parts = split(a[0], Shape{1, 3}, 1);
         return multiply(parts[1], slice(parts[2], Shape{0, 0}, Shape{2, 2}));
       }},
      {"pad",
       {{2, 2}, {}},
       [](const Arrays& a) {
         return pad(a[0], {{1, 0}, {0, 2}}, "constant", a[1]);
       }},
      {"pad with edges",
       {{3}},
       [](const Arrays& a) {
         return pad(a[0], {{2, 1}}, "symmetric");
       }},
  });
}

TEST(ArrayDerivatives, Parts) {
  check_all({
      {"slice",
       {{4, 5}},
       [](const Arrays& a) {
         return slice(a[0], Shape{3, 1}, Shape{-5, 5}, Shape{-2, 3});
       }},
      {"slice_update",
       {{3, 4}, {2, 2}},
       [](const Arrays& a) {
         return slice_update(a[0], a[1], Shape{0, 1}, Shape{3, 4}, Shape{2, 2});
       }},
      {"slice_update, adding",
       {{4}, {2}},
       [](const Arrays& a) { return slice_update(a[0], a[1], Shape{1}, Shape{3}, {}, Update::add); }},
      {"slice_update, dividing",
       {{4}, {2}},
       [](const Arrays& a) {
         return slice_update(a[0], add(a[1], array(3.0, Dtype::float64)), Shape{1}, Shape{3}, {}, Update::divide);
       }},
      {"moving slice",
       {{4, 3}},
       [](const Arrays& a) {
         return slice(a[0], positions({1}, {1}), {0}, {2, 3});
       }},
      {"moving update",
       {{4, 3}, {2, 1}},
       [](const Arrays& a) {
         return slice_update(a[0], a[1], positions({2}, {9, 1}), {0, 1});
       }},
      {"as_strided",
       {{6}},
       [](const Arrays& a) {
         return as_strided(a[0], Shape{3, 3}, Shape{1, 1}, 1);
       }},
      {"diagonal", {{3, 4}}, [](const Arrays& a) { return diagonal(a[0], 1); }},
      {"diag", {{3}}, [](const Arrays& a) { return diag(a[0], -2); }},
      {"kron", {{2, 1}, {3}}, [](const Arrays& a) { return kron(a[0], a[1]); }},
      {"roll",
       {{2, 3}},
       [](const Arrays& a) {
         return roll(a[0], Shape{1, 2}, std::vector<int>{0, 1});
       }},
      {"tile",
       {{2}},
       [](const Arrays& a) {
         return tile(a[0], {2, 3});
       }},
  });
}

TEST(ArrayDerivatives, Positions) {
  const array i = positions({2, 2}, {1, 0, 1, -1});
  check_all({
      {"take", {{2, 3, 2}}, [=](const Arrays& a) { return take(a[0], i, 1); }},
      {"take_along_axis", {{3, 2}}, [=](const Arrays& a) { return take_along_axis(a[0], i, 0); }},
      {"put_along_axis",
       {{3, 2}, {1, 2}},
       [=](const Arrays& a) {
         return put_along_axis(a[0], positions({1, 1}, {2}), a[1], 0);
       }},
      {"scatter_add_axis", {{3, 2}, {2, 2}}, [=](const Arrays& a) { return scatter_add_axis(a[0], i, a[1], 0); }},
      {"gather",
       {{3, 4}},
       [=](const Arrays& a) {
         return gather(a[0], {positions({2}, {0, 1}), positions({2}, {2, 1})}, {0, 1}, {2, 2});
       }},
      {"scatter, adding",
       {{3, 4}, {2, 2, 1, 2}},
       [=](const Arrays& a) {
         return scatter(a[0], {abs(i), abs(i)}, a[1], {0, 1}, Update::add);
       }},
      {"scatter, subtracting",
       {{3, 2}, {2, 2, 1, 2}},
       [=](const Arrays& a) { return scatter(a[0], {i}, a[1], {0}, Update::subtract); }},
      {"scatter, multiplying",
       {{3}, {2, 2, 1}},
       [=](const Arrays& a) { return scatter(a[0], {i}, add(a[1], array(3.0, Dtype::float64)), {0}, Update::multiply); }},
      {"scatter, maximum", {{3}, {2, 2, 1}}, [=](const Arrays& a) { return scatter(a[0], {i}, a[1], {0}, Update::maximum); }},
      {"index",
       {{3, 2, 4}},
       [=](const Arrays& a) {
         return index(a[0], {i, Slice{}, positions({1}, {3})});
       }},
      {"index_update",
       {{3, 4}, {2, 2}},
       [=](const Arrays& a) {
         return index_update(a[0], {Slice{1, {}, {}}, positions({2}, {2, 0})}, a[1], Update::set);
       }},
      {"masked update",
       {{2, 2}, {}},
       [=](const Arrays& a) {
         return index_update(a[0], {array({true, false, true, true}, {2, 2})}, a[1], Update::multiply);
       }},
  });
}

// Positions may be batched as well.
TEST(ArrayDerivatives, BatchedPositions) {
  const Arrays args{numbers({3, 3}), positions({2}, {1, -1})};
  check_batches(
      "take", [](const Arrays& a) { return take(a[0], a[1], 1); }, args);
  check_batches(
      "gather",
      [](const Arrays& a) {
        return gather(a[0], {a[1]}, {1}, {2, 1});
      },
      args);
  check_batches(
      "take_along_axis", [](const Arrays& a) { return take_along_axis(a[0], expand_dims(a[1], 0), 1); }, args);
  check_batches(
      "scatter",
      [](const Arrays& a) {
        return scatter(a[0], {a[1]}, numbers({2, 1, 3}), {0}, Update::add);
      },
      args);
}
