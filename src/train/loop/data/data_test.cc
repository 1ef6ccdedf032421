#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>
#include <sdx/image.hpp>
#include <set>

#include "base/error.h"
#include "support/errors.h"
#include "support/graph_text.h"
#include "support/temporary_folder.h"
#include "tensor/npz.h"
#include "train/loop/data/arrays.h"
#include "train/loop/data/csv.h"
#include "train/loop/data/open.h"
#include "train/loop/data/subset.h"

namespace sdx::train::loop {
namespace {

namespace fs = std::filesystem;

class DataTest : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const { return temporary_.write(name, text); }

  const testing::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
};

ValueSpec spec(std::string name, DataType dtype, Shape shape) {
  ValueSpec s;
  s.name = std::move(name);
  s.type = std::string(sdx::name(dtype)) + sdx::to_string(shape);
  s.dtype = dtype;
  s.has_shape = true;
  s.shape = std::move(shape);
  return s;
}

Task classes(std::int64_t features, std::int64_t count) {
  Task task;
  task.inputs = {spec("x", DataType::float32, {-1, features}), spec("labels", DataType::int64, {-1})};
  task.label = 1;
  task.classification = true;
  task.classes = count;
  return task;
}

std::vector<float> floats(const Tensor& t) {
  const auto v = t.values<float>();
  return {v.begin(), v.end()};
}
std::vector<std::int64_t> ints(const Tensor& t) {
  const auto v = t.values<std::int64_t>();
  return {v.begin(), v.end()};
}

Tensor counted(Shape shape) {
  Tensor t(DataType::float32, std::move(shape));
  std::iota(t.mutable_values<float>().begin(), t.mutable_values<float>().end(), 0.0F);
  return t;
}

OpenedData open(const Task& task, const fs::path& path, const std::function<void(DataSettings&)>& change = {}) {
  DataSettings s;
  s.data = path;
  if (change) change(s);
  return open_data(task, s);
}

TEST_F(DataTest, ArraysByOrderWithLabelsByName) {
  write_npz(folder_ / "d.npz", {{"y", Tensor::of<std::int64_t>({3}, {2, 0, 1})}, {"pictures", counted({3, 2})}});
  OpenedData d = open(classes(2, 3), folder_ / "d.npz");
  const std::vector<std::int64_t> which{2, 0};
  const std::vector<Tensor> b = d.train->batch(which, 0);
  EXPECT_EQ(floats(b[0]), (std::vector<float>{4, 5, 0, 1}));
  EXPECT_EQ(ints(b[1]), (std::vector<std::int64_t>{1, 2}));
}

TEST_F(DataTest, ArraysOfWholeBatchesAndOfEvaluation) {
  Tensor labels = Tensor(DataType::int64, {4, 3});
  std::fill_n(labels.mutable_values<std::int64_t>().begin(), 12, 1);
  write_npz(folder_ / "d.npz", {{"x", counted({4, 3, 2})},
                                {"y", labels},
                                {"eval_x", counted({5, 2})},
                                {"eval_y", Tensor::of<std::int64_t>({5}, {0, 1, 0, 1, 1})}});
  OpenedData d = open(classes(2, 2), folder_ / "d.npz");
  EXPECT_EQ(d.batch, 3);
  EXPECT_EQ(d.train->size(), 12);
  ASSERT_TRUE(d.validation);
  EXPECT_EQ(d.validation->size(), 5);
  const std::vector<std::int64_t> last{11};
  EXPECT_EQ(floats(d.train->batch(last, 0)[0]), (std::vector<float>{22, 23}));
}

TEST_F(DataTest, ArraysAreConvertedWhereNothingIsLost) {
  write_npz(folder_ / "d.npz", {{"x", Tensor::of<double>({2, 2}, {1, 2, 3, 4})}, {"labels", Tensor::of<double>({2, 1}, {1, 0})}});
  OpenedData d = open(classes(2, 2), folder_ / "d.npz");
  const std::vector<std::int64_t> which{0, 1};
  const std::vector<Tensor> b = d.train->batch(which, 0);
  EXPECT_EQ(floats(b[0]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(ints(b[1]), (std::vector<std::int64_t>{1, 0}));
  write_npz(folder_ / "half.npz", {{"x", counted({2, 2})}, {"labels", Tensor::of<double>({2}, {0, 0.5})}});
  OpenedData half = open(classes(2, 2), folder_ / "half.npz");
  testing::expect_error([&] { half.train->batch(which, 0); }, {"half.npz", "sample 1", "0.5", "int64"});
  for (const double bad : {static_cast<double>(NAN), 1e300, -1e300}) {
    Task values = classes(2, 0);
    values.classification = false;
    write_npz(folder_ / "bad.npz", {{"x", counted({2, 2})}, {"labels", Tensor::of<double>({2}, {0, bad})}});
    OpenedData d2 = open(values, folder_ / "bad.npz");
    testing::expect_error([&] { d2.train->batch(which, 0); }, {"bad.npz", "sample 1", "int64"});
  }
}

TEST_F(DataTest, WhatArraysMustBe) {
  write_npz(folder_ / "wide.npz", {{"x", counted({2, 3})}, {"labels", Tensor::of<std::int64_t>({2}, {0, 1})}});
  testing::expect_error([&] { open(classes(2, 2), folder_ / "wide.npz"); }, {"array 'x'", "float32[2,3]", "float32[-1,2]"});
  write_npz(folder_ / "many.npz", {{"x", counted({2, 2})}, {"labels", Tensor::of<std::int64_t>({2}, {0, 7})}});
  testing::expect_error([&] { open(classes(2, 2), folder_ / "many.npz"); }, {"many.npz", "sample 1", "label is 7", "2 classes"});
  write_npz(folder_ / "none.npz", {{"x", counted({2, 2})}});
  testing::expect_error([&] { open(classes(2, 2), folder_ / "none.npz"); },
                        {"expected arrays for the inputs", "labels", "found x"});
  write_npz(folder_ / "short.npz", {{"x", counted({2, 2})}, {"labels", Tensor::of<std::int64_t>({3}, {0, 1, 1})}});
  testing::expect_error([&] { open(classes(2, 2), folder_ / "short.npz"); }, {"2 and 3 samples"});
  write_npz(folder_ / "nan.npz",
            {{"x", Tensor::of<float>({2, 2}, {1, 2, NAN, 4})}, {"labels", Tensor::of<std::int64_t>({2}, {0, 1})}});
  OpenedData nan = open(classes(2, 2), folder_ / "nan.npz");
  const std::vector<std::int64_t> second{1};
  testing::expect_error([&] { nan.train->batch(second, 0); }, {"sample 1 of array 1 contains nan"});
  testing::expect_error([&] { open(classes(2, 2), folder_ / "absent.npz"); }, {"do not exist"});
}

TEST_F(DataTest, LabelsOfWords) {
  Tensor words(DataType::string, {3});
  words.mutable_values<std::string>()[0] = "dog";
  words.mutable_values<std::string>()[1] = "cat";
  words.mutable_values<std::string>()[2] = "dog";
  write_npz(folder_ / "d.npz", {{"x", counted({3, 2})}, {"y", words}});
  OpenedData d = open(classes(2, 2), folder_ / "d.npz");
  EXPECT_EQ(d.classes, (std::vector<std::string>{"cat", "dog"}));
  const std::vector<std::int64_t> all{0, 1, 2};
  EXPECT_EQ(ints(d.train->batch(all, 0)[1]), (std::vector<std::int64_t>{1, 0, 1}));
  testing::expect_error([&] { open(classes(2, 1), folder_ / "d.npz"); }, {"2 classes (cat, dog)", "the model has 1"});
}

TEST_F(DataTest, Csv) {
  const fs::path file = write("d.csv", "a,b,label\n1,2,yes\n3.5,-4,no\n\"5\",6,yes\n");
  OpenedData d = open(classes(2, 2), file);
  EXPECT_EQ(d.classes, (std::vector<std::string>{"no", "yes"}));
  const std::vector<std::int64_t> all{0, 1, 2};
  const std::vector<Tensor> b = d.train->batch(all, 0);
  EXPECT_EQ(floats(b[0]), (std::vector<float>{1, 2, 3.5, -4, 5, 6}));
  EXPECT_EQ(ints(b[1]), (std::vector<std::int64_t>{1, 0, 1}));
}

TEST_F(DataTest, CsvWithCategoriesAndAnotherLabel) {
  const fs::path file = write("d.csv", "colour;size;kind\nred;1;0\nblue;2;1\nred;3;1\n");
  OpenedData d = open(classes(3, 2), file, [](DataSettings& s) { s.label = "kind"; });
  const std::vector<std::int64_t> all{0, 1};
  EXPECT_EQ(floats(d.train->batch(all, 0)[0]), (std::vector<float>{0, 1, 1, 1, 0, 2}));
  EXPECT_TRUE(d.classes.empty());  // numbers are the classes' numbers
  testing::expect_error([&] { open(classes(3, 2), file, [](DataSettings& s) { s.label = "knd"; }); },
                        {"did you mean 'kind'", "colour"});
}

TEST_F(DataTest, CsvWithGaps) {
  const fs::path file = write("d.csv", "a,b,label\n1,2,0\n,4,1\n5,6,1\n");
  testing::expect_error([&] { open(classes(2, 2), file); }, {"line 3", "column 'a'", "nothing", "--on-bad skip"});
  OpenedData d = open(classes(2, 2), file, [](DataSettings& s) { s.skip_bad = true; });
  EXPECT_EQ(d.train->size(), 2);
  ASSERT_EQ(d.notes.size(), 1U);
  EXPECT_NE(d.notes[0].find("1 rows"), std::string::npos);
}

TEST_F(DataTest, BrokenCsv) {
  testing::expect_error([&] { parse_csv("a,b\n1,\"2\n3", "T"); }, {"T, line 2", "not closed"});
  testing::expect_error([&] { parse_csv("a,b\n1,2,3\n", "T"); }, {"T, line 2: 3 values"});
  testing::expect_error([&] { parse_csv("a,a\n1,2\n", "T"); }, {"two columns are called 'a'"});
  testing::expect_error([&] { parse_csv("a,b\n", "T"); }, {"no rows"});
  testing::expect_error([&] { parse_csv("", "T"); }, {"T is empty"});
  testing::expect_error([&] { parse_csv("a,b\n\"x\"y,2\n", "T"); }, {"text after a closing quote"});
  const CsvTable t = parse_csv(
      "\xEF\xBB\xBF"
      "a\tb\r\n\"x\"\"y\nz\"\t\r\n\r\n1\t2",
      "T");
  ASSERT_EQ(t.rows.size(), 2U);
  EXPECT_EQ(t.rows[0], (std::vector<std::string>{"x\"y\nz", ""}));
  EXPECT_EQ(t.lines, (std::vector<std::size_t>{2, 5}));
}

TEST_F(DataTest, JsonLinesWithNumbers) {
  const fs::path file = write("d.jsonl", "{\"x\": [1, 2], \"label\": \"b\"}\n\n{\"x\": [3, 4], \"label\": \"a\"}\n");
  OpenedData d = open(classes(2, 2), file);
  EXPECT_EQ(d.classes, (std::vector<std::string>{"a", "b"}));
  const std::vector<std::int64_t> all{0, 1};
  EXPECT_EQ(floats(d.train->batch(all, 0)[0]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(ints(d.train->batch(all, 0)[1]), (std::vector<std::int64_t>{1, 0}));
  const fs::path ragged = write("r.jsonl", "{\"x\": [1, 2], \"label\": 0}\n{\"x\": [3], \"label\": 1}\n");
  testing::expect_error([&] { open(classes(2, 2), ragged); }, {"r.jsonl', line 2", "unlike the first"});
  const fs::path broken = write("b.jsonl", "{\"x\": [1, 2], \"label\": 0}\n{\"x\": \n");
  testing::expect_error([&] { open(classes(2, 2), broken); }, {"b.jsonl', line 2"});
}

TEST_F(DataTest, JsonLinesWithTexts) {
  const fs::path vocabulary = write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\nvery\n");
  const fs::path file =
      write("d.jsonl", "{\"text\": \"very good\", \"label\": \"pos\"}\n{\"text\": \"bad\", \"label\": \"neg\"}\n");
  Task task;
  task.inputs = {spec("input_ids", DataType::int64, {-1, -1}), spec("attention_mask", DataType::int64, {-1, -1}),
                 spec("labels", DataType::int64, {-1})};
  task.label = 2;
  task.classification = true;
  task.classes = 2;
  OpenedData d = open(task, file, [&](DataSettings& s) { s.tokenizer = vocabulary; });
  const std::vector<std::int64_t> all{0, 1};
  const std::vector<Tensor> b = d.train->batch(all, 0);
  EXPECT_EQ(b[0].shape(), (Shape{2, 16}));
  const auto ids = ints(b[0]), mask = ints(b[1]);
  EXPECT_EQ(std::vector<std::int64_t>(ids.begin(), ids.begin() + 5), (std::vector<std::int64_t>{2, 7, 5, 3, 0}));
  EXPECT_EQ(std::vector<std::int64_t>(ids.begin() + 16, ids.begin() + 20), (std::vector<std::int64_t>{2, 6, 3, 0}));
  EXPECT_EQ(std::accumulate(mask.begin(), mask.end(), 0), 7);
  EXPECT_EQ(ints(b[2]), (std::vector<std::int64_t>{1, 0}));
  testing::expect_error([&] { open(task, file); }, {"--tokenizer"});
  // No batch is longer than texts may be.
  OpenedData cut = open(task, file, [&](DataSettings& s) {
    s.tokenizer = vocabulary;
    s.max_length = 3;
  });
  EXPECT_EQ(cut.train->batch(all, 0)[0].shape(), (Shape{2, 3}));
}

TEST_F(DataTest, TablesOfSmallValuesCountAsWhatTheyTake) {
  std::string csv = "a,b,label\n", lines;
  for (int i = 0; i < 1000; ++i) {
    csv += "1,2,0\n";
    lines += "{\"x\": [1,2], \"labels\": 0}\n";
  }
  for (const fs::path& file : {write("d.csv", csv), write("d.jsonl", lines)}) {
    testing::expect_error([&] { open(classes(2, 2), file, [&](DataSettings& s) { s.memory = 2 * fs::file_size(file); }); },
                          {"--memory"});
    EXPECT_EQ(open(classes(2, 2), file).train->size(), 1000);
  }
}

TEST(Tasks, LossesWithoutInputs) {
  for (const char* loss : {"loss = SoftmaxCrossEntropyLoss(_, labels)", "loss = SoftmaxCrossEntropyLoss(x, _)",
                           "c = Cast(_) {to=7}\nloss = SoftmaxCrossEntropyLoss(x, c)"}) {
    const Model model = testing::parse_model("input x: float32[n,2]\ninput labels: int64[n]\n" + std::string(loss) +
                                             "\noutput loss: float32[]\n");
    EXPECT_FALSE(read_task(model, CheckpointState()).classification) << loss;
  }
}

void write_picture(const fs::path& file, std::uint8_t left, std::uint8_t right) {
  media::Image image = media::Image::blank(16, 8);
  for (int y = 0; y < 8; ++y) {
    for (int i = 0; i < 48; ++i) image.row(y)[i] = i < 24 ? left : right;
  }
  fs::create_directories(file.parent_path());
  media::write_image(file, image);
}

Task pictures() {
  Task task = classes(1, 2);
  task.inputs[0] = spec("x", DataType::float32, {-1, 3, 8, 16});
  return task;
}

TEST_F(DataTest, Pictures) {
  write_picture(folder_ / "b" / "1.png", 0, 255);
  write_picture(folder_ / "a" / "2.png", 255, 0);
  write_picture(folder_ / "a" / "deep" / "3.png", 51, 51);
  OpenedData d = open(pictures(), folder_);
  EXPECT_EQ(d.classes, (std::vector<std::string>{"a", "b"}));
  const std::vector<std::int64_t> all{0, 1, 2};
  for (int again = 0; again < 2; ++again) {  // decoded, and kept
    const std::vector<Tensor> b = d.train->batch(all, 0);
    EXPECT_EQ(b[0].shape(), (Shape{3, 3, 8, 16}));
    const auto v = floats(b[0]);
    EXPECT_EQ(v[0], 1.0F);
    EXPECT_EQ(v[15], 0.0F);
    EXPECT_FLOAT_EQ(v[3 * 8 * 16], 0.2F);
    EXPECT_EQ(v[2 * 3 * 8 * 16], 0.0F);
    EXPECT_EQ(ints(b[1]), (std::vector<std::int64_t>{0, 0, 1}));
  }
}

TEST_F(DataTest, PicturesAreChangedByEpochAndSampleAlone) {
  for (int i = 0; i < 8; ++i) write_picture(folder_ / "a" / (std::to_string(i) + ".png"), 0, 200);
  Task task = pictures();
  const auto first = [&](int workers, std::vector<std::int64_t> which, std::int64_t epoch) {
    OpenedData d = open(task, folder_, [&](DataSettings& s) {
      s.augmentation = {true, true, true};
      s.workers = workers;
    });
    return floats(d.train->batch(which, epoch)[0]);
  };
  const auto one = first(1, {3, 4, 5}, 1), two = first(2, {4, 3, 5}, 1), other = first(1, {3, 4, 5}, 2);
  const std::size_t row = one.size() / 3;
  EXPECT_TRUE(
      std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(row), two.begin() + static_cast<std::ptrdiff_t>(row)));
  EXPECT_NE(one, other);
}

TEST_F(DataTest, PicturesThatCannotBeRead) {
  write_picture(folder_ / "a" / "1.png", 0, 255);
  write_picture(folder_ / "b" / "2.png", 255, 255);
  write("a/0.png", "no picture");
  const std::vector<std::int64_t> all{0, 1, 2};
  OpenedData d = open(pictures(), folder_);
  testing::expect_error([&] { d.train->batch(all, 0); }, {"0.png", "--on-bad skip"});
  OpenedData skipping = open(pictures(), folder_, [](DataSettings& s) { s.skip_bad = true; });
  const std::vector<Tensor> b = skipping.train->batch(all, 0);
  EXPECT_EQ(b[0].dim(0), 3);  // another takes its place
  EXPECT_EQ(ints(b[1]), (std::vector<std::int64_t>{0, 0, 1}));
}

TEST_F(DataTest, PicturesNeedASize) {
  write_picture(folder_ / "a" / "1.png", 0, 255);
  Task task = pictures();
  task.inputs[0] = spec("x", DataType::float32, {-1, 3, -1, -1});
  testing::expect_error([&] { open(task, folder_); }, {"--resize"});
  OpenedData d = open(task, folder_, [](DataSettings& s) { s.preprocessing.width = 4, s.preprocessing.height = 2; });
  const std::vector<std::int64_t> first{0};
  EXPECT_EQ(d.train->batch(first, 0)[0].shape(), (Shape{1, 3, 2, 4}));
  testing::expect_error([&] { open(classes(2, 2), folder_); }, {"no pictures, which are"});
}

TEST_F(DataTest, ValidationIsKeptApart) {
  write_npz(folder_ / "d.npz", {{"x", counted({10, 2})}, {"y", Tensor::of<std::int64_t>({10}, {0, 0, 0, 0, 0, 1, 1, 1, 1, 1})}});
  OpenedData d = open(classes(2, 2), folder_ / "d.npz", [](DataSettings& s) { s.validation_split = 0.3; });
  EXPECT_EQ(d.train->size(), 7);
  ASSERT_EQ(d.validation->size(), 3);
  std::set<float> seen;
  for (Dataset* part : {d.train.get(), d.validation.get()}) {
    for (std::int64_t i = 0; i < part->size(); ++i) seen.insert(floats(part->batch(std::span(&i, 1), 0)[0])[0]);
  }
  EXPECT_EQ(seen.size(), 10U);
}

TEST(Order, IsTheSameOnEveryMachine) {
  EXPECT_EQ(shuffled(8, 1, 0), shuffled(8, 1, 0));
  EXPECT_NE(shuffled(100, 1, 0), shuffled(100, 1, 1));
  EXPECT_NE(shuffled(100, 1, 0), shuffled(100, 2, 0));
  std::vector<std::int64_t> sorted = shuffled(100, 5, 3);
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(sorted[i], static_cast<std::int64_t>(i));
}

TEST(Datasets, OfArrays) {
  const auto d = dataset_of({counted({3, 2}), Tensor::of<std::int64_t>({3}, {5, 6, 7})});
  const std::vector<std::int64_t> which{2};
  EXPECT_EQ(ints(d->batch(which, 0)[1]), (std::vector<std::int64_t>{7}));
  EXPECT_THROW(dataset_of({}), Error);
  EXPECT_THROW(dataset_of({counted({3, 2}), counted({2, 2})}), Error);
}

}  // namespace
}  // namespace sdx::train::loop
