#include <gtest/gtest.h>

#include "base/suggest.h"
#include "base/text/text_table.h"

namespace sdx {
namespace {

TEST(Suggest, FindsTypingErrors) {
  const std::vector<std::string> names{"cpu", "cuda", "coreml"};
  EXPECT_EQ(closest("cdua", names), "cuda");  // a swap counts once
  EXPECT_EQ(closest("CUDAA", names), "cuda");
  EXPECT_EQ(closest("corelm", names), "coreml");
  EXPECT_EQ(closest("something", names), "");
  EXPECT_EQ(closest("Foo", std::vector<std::string>{"Cos", "Floor"}), "");  // two of three letters are another word
  EXPECT_EQ(closest("rnu", std::vector<std::string>{"run"}), "run");
  EXPECT_EQ(closest("", names), "");
}

const std::vector<std::vector<std::string>> kRows{{"backend", "median ms", "p99", "why"},
                                                  {"cpu", "1.25", "2", "the machine itself was slower meanwhile"},
                                                  {"openvino", "12.5", "–", ""}};

TEST(TextTable, AlignsColumns) {
  EXPECT_EQ(text_table(kRows),
            "backend   median ms  p99  why\n"
            "cpu            1.25    2  the machine itself was slower meanwhile\n"
            "openvino       12.5    –\n");
  EXPECT_EQ(text_table({}), "");
}

TEST(TextTable, WrapsTheLastColumn) {
  EXPECT_EQ(text_table(kRows, TableLayout{"", 52, 1}),
            "backend   median ms  p99  why\n"
            "cpu            1.25    2  the machine itself was\n"
            "                          slower meanwhile\n"
            "openvino       12.5    –\n");
}

TEST(TextTable, ContinuesBelow) {
  EXPECT_EQ(text_table(kRows, TableLayout{"", 40, 1}),
            "backend   median ms  p99\n"
            "cpu            1.25    2\n"
            "openvino       12.5    –\n"
            "\n"
            "backend   why\n"
            "cpu       the machine itself was slower\n"
            "          meanwhile\n"
            "openvino\n");
}

TEST(TextTable, EscapesNewlinesInCells) {
  EXPECT_EQ(text_table({{"a", "b"}, {"x\nerror: y", "z"}}), "a            b\nx\\nerror: y  z\n");
}

TEST(WrappedText, GoesOnBelow) {
  EXPECT_EQ(wrapped_text("format      IR 8, opsets: a 1 b 2\nshort\n", 4, 24), "format      IR 8,\n    opsets: a 1 b 2\nshort\n");
  EXPECT_EQ(wrapped_text("  " + std::string(30, 'y') + " z z\n", 4, 20), "  " + std::string(30, 'y') + "\n    z z\n");
  EXPECT_EQ(wrapped_text("ééé ééé", 2, 7), "ééé ééé");
  EXPECT_EQ(wrapped_text("a b c", 2, 1), "a\n  b\n  c");
  EXPECT_EQ(wrapped_text("ab cd   ", 2, 5), "ab cd   ");
}

TEST(TextTable, KeepsLongWordsWhole) {
  EXPECT_EQ(text_table({{"a", "b"}, {"x", std::string(50, 'y')}}, TableLayout{"", 30, 1}),
            "a  b\nx  " + std::string(50, 'y') + "\n");
}

}  // namespace
}  // namespace sdx
