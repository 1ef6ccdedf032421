#include "vision/batch/input/table.h"
#include "support/errors.h"

#include <gtest/gtest.h>

#include <fstream>

#include <sdx/error.hpp>

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;

fs::path written(const char* name, const std::string& content) {
  fs::path file = fs::path(::testing::TempDir()) / name;
  std::ofstream(file, std::ios::binary) << content;
  return file;
}

std::string text(const std::vector<TableRow>& rows) {
  std::string out;
  for (const TableRow& row : rows) out += row.source + "=" + row.output + "@" + std::to_string(row.line) + " ";
  return out;
}

TEST(Table, ReadsCsv) {
  const fs::path file = written("map.csv", "\xEF\xBB\xBFname,photo,number\nAnna,\"a, b.jpg\",7\nBert,c.jpg,8\n");
  EXPECT_EQ(text(read_table(file, {.source_column = "photo", .output_column = "number"})), "a, b.jpg=7@2 c.jpg=8@3 ");
  EXPECT_EQ(text(read_table(file, {.source_column = "2", .output_column = "1"})), "a, b.jpg=Anna@2 c.jpg=Bert@3 ");
  EXPECT_EQ(text(read_table(file, {})), "Anna=@2 Bert=@3 ");
  EXPECT_THROW(read_table(file, {.source_column = "foto"}), Error);
  EXPECT_THROW(read_table(file, {.output_column = "4"}), Error);
}

std::string utf16(const std::string& ascii, bool big) {
  std::string out = big ? "\xFE\xFF" : "\xFF\xFE";
  for (const char c : ascii) out += big ? std::string{'\0', c} : std::string{c, '\0'};
  return out;
}

TEST(Table, ReadsWhatSpreadsheetsSave) {
  const TableOptions options{.source_column = "photo", .output_column = "number"};
  const std::string plain = "photo;number\r\na.jpg;7\r\n";
  for (const bool big : {false, true}) {
    EXPECT_EQ(text(read_table(written("wide.csv", utf16(plain, big)), options)), "a.jpg=7@2 ");
    EXPECT_EQ(text(read_table(written("wide.txt", utf16("photo\tnumber\na.jpg\t7\n", big)), options)), "a.jpg=7@2 ");
    EXPECT_EQ(text(read_table(written("wide.jsonl", utf16("{\"photo\": \"a.jpg\", \"number\": 7}", big)), options)),
              "a.jpg=7@1 ");
  }
  EXPECT_EQ(text(read_table(written("mark.jsonl", "\xEF\xBB\xBF{\"photo\": \"a.jpg\", \"number\": 7}"), options)), "a.jpg=7@1 ");
  EXPECT_EQ(text(read_table(written("sep.csv", "sep=;\r\n" + plain), options)), "a.jpg=7@3 ");
  EXPECT_EQ(text(read_table(written("sep.csv", "\xEF\xBB\xBF\"sep=|\"\nphoto|number\na;b.jpg|7\n"), options)), "a;b.jpg=7@3 ");
  EXPECT_EQ(text(read_table(written("spaces.csv", " photo , number \na.jpg,7\n"), options)), "a.jpg=7@2 ");
  EXPECT_EQ(text(read_table(written("spaces.csv", "photo, number\na.jpg, 7\n"), options)), "a.jpg=7@2 ") << "everywhere";
  EXPECT_EQ(text(read_table(written("spaces.csv", "photo,number\n a.jpg,7 \n"), options)), " a.jpg=7 @2 ") << "RFC 4180";
  EXPECT_THROW(read_table(written("odd.csv", utf16(plain, false) + "x"), options), Error);
}

TEST(Table, FindsTheDelimiter) {
  EXPECT_EQ(text(read_table(written("map.tsv", "file\tid\na.jpg\tx\n"), {.output_column = "id"})), "a.jpg=x@2 ");
  EXPECT_EQ(text(read_table(written("semi.csv", "a.jpg;x\nb.jpg;y\n"), {.output_column = "2", .header = false})),
            "a.jpg=x@1 b.jpg=y@2 ");
  EXPECT_EQ(text(read_table(written("odd.csv", "file_id\na_1\n"), {.output_column = "id", .delimiter = "_"})), "a=1@2 ");
  EXPECT_THROW(read_table(written("odd.csv", "a\n"), {.delimiter = "ab"}), Error);
}

TEST(Table, SaysWhichLineIsWrong) {
  testing::expect_error([&] { read_table(written("short.csv", "file,id\na.jpg,1\nb.jpg\n"), {.output_column = "id"}); },
                        {"line 3"});
  testing::expect_error(
      [&] { read_table(written("short.jsonl", "{\"file\": \"a\", \"id\": 1}\n{\"file\": \"b\"}\n"), {.output_column = "id"}); },
      {"short.jsonl', line 2 has no such column"});
  EXPECT_THROW(read_table(written("empty.csv", ""), {}), Error);
  EXPECT_THROW(read_table(written("hole.csv", "file\n\"\"\n"), {}), Error);
}

TEST(Table, ReadsJsonLines) {
  const fs::path file = written("map.jsonl", "{\"id\": 7, \"file\": \"a.jpg\"}\n\n{\"file\": \"b.jpg\", \"id\": null}\n");
  EXPECT_EQ(text(read_table(file, {.output_column = "id"})), "a.jpg=7@1 b.jpg=@3 ");
  EXPECT_THROW(read_table(written("bad.jsonl", "[1]\n"), {}), Error);
  EXPECT_THROW(read_table(written("bad.jsonl", "{\"file\": \n"), {}), Error);
  EXPECT_THROW(read_table(written("bad.jsonl", "{}\n"), {}), Error);
}

TEST(Table, RefusesWhatIsNoDatabase) {
  EXPECT_THROW(read_table(written("bad.sqlite", "SQLite format 3, or not"), {}), Error);
  EXPECT_THROW(read_table(fs::path(::testing::TempDir()) / "none.sqlite", {}), Error);
}

}  // namespace
}  // namespace sdx::vision::batch
