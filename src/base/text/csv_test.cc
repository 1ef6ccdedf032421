#include "base/text/csv.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sdx {
namespace {

// "fields|of|a record@line " for each.
std::string parsed(std::string_view text, char separator = ',') {
  std::string out;
  for (const CsvRecord& r : parse_csv(text, separator, "T")) {
    for (const std::string& field : r.fields) out += field + "|";
    out.back() = '@';
    out += std::to_string(r.line) + " ";
  }
  return out;
}

std::string refusal(std::string_view text) {
  try {
    return parsed(text);
  } catch (const Error& e) {
    return e.message();
  }
}

TEST(Csv, ReadsRecords) {
  EXPECT_EQ(parsed("a,b\r\nc,d\r\n"), "a|b@1 c|d@2 ");
  EXPECT_EQ(parsed("a,b\nc,"), "a|b@1 c|@2 ");
  EXPECT_EQ(parsed("\"a,1\",\"say \"\"hi\"\"\",\"two\nlines\"\nx\n"), "a,1|say \"hi\"|two\nlines@1 x@3 ");
  EXPECT_EQ(parsed("\n\na;b\n\n\rc", ';'), "a|b@3 c@5 ");
  EXPECT_EQ(parsed("\"\""), "@1 ");
  EXPECT_EQ(parsed(""), "");
}

TEST(Csv, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refusal("a,b\n1,\"2\n3"), "T, line 2: a quote is opened and not closed");
  EXPECT_EQ(refusal("a,b\n\"x\"y,2\n"), "T, line 2: text after a closing quote");
  EXPECT_EQ(refusal("\"a"), "T, line 1: a quote is opened and not closed");
}

TEST(Csv, FindsTheSeparator) {
  EXPECT_EQ(csv_separator("a;b;c,d\n1,2,3,4,5"), ';');
  EXPECT_EQ(csv_separator("a\tb"), '\t');
  EXPECT_EQ(csv_separator("a"), ',');
}

TEST(Csv, QuotesFields) { EXPECT_EQ(csv_quoted("say \"hi\", x"), "\"say \"\"hi\"\", x\""); }

}  // namespace
}  // namespace sdx
