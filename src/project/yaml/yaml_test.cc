#include "project/yaml/yaml.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "support/errors.h"

namespace sdx {
namespace {

YamlDocument yaml(std::string_view text) { return YamlDocument::parse(text, "f.yml"); }

// The error of reading `text` with `use`, or "".
template <class F>
std::string complaint(std::string_view text, F&& use) {
  return testing::error_text([&] {
    const YamlDocument d = yaml(text);
    use(d.root());
  });
}
std::string complaint(std::string_view text) {
  return complaint(text, [](const YamlValue&) {});
}

TEST(Yaml, ReadsScalarsListsAndMaps) {
  const YamlDocument d = yaml("name: a b\nn: 0x10\nbig: 1_000\nx: -2.5e1\non: Yes\nempty:\nlist: [1, 2]\nwords:\n  - u\n  - v\n");
  const YamlValue r = d.root();
  EXPECT_EQ(r.get("name").string(), "a b");
  EXPECT_EQ(r.get("n").integer(0, 100), 16);
  EXPECT_EQ(r.get("big").integer(0, 1000), 1000);
  EXPECT_EQ(r.get("x").number(-100, 100), -25.0);
  EXPECT_TRUE(r.get("on").boolean());
  EXPECT_TRUE(r.get("empty").is_null());
  EXPECT_FALSE(r.get("other").present());
  EXPECT_FALSE(r.get("other").get("deeper").present());
  EXPECT_EQ(r.get("list").integers(0, 9), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(r.get("words").strings(), (std::vector<std::string>{"u", "v"}));
  EXPECT_EQ(r.get("name").strings(), (std::vector<std::string>{"a b"}));
  EXPECT_EQ(r.get("words").list()[1].line(), 10);
  EXPECT_EQ(r.get("words").list()[1].column(), 5);
  EXPECT_EQ(r.entries().size(), 8u);
}

TEST(Yaml, SaysWhereAndWhat) {
  EXPECT_EQ(complaint("a:\n  b: many\n", [](const YamlValue& r) { (void)r.get("a").get("b").integer(0, 9); }),
            "f.yml:2:6: a.b: expected an integer from 0 to 9, found 'many'");
  EXPECT_EQ(complaint("a: [1, x]", [](const YamlValue& r) { (void)r.get("a").integers(0, 9); }),
            "f.yml:1:8: a[1]: expected an integer from 0 to 9, found 'x'");
  EXPECT_EQ(complaint("a: .nan", [](const YamlValue& r) { (void)r.get("a").number(0, 1); }),
            "f.yml:1:4: a: expected a finite number from 0 to 1, found '.nan'");
  EXPECT_EQ(complaint("a: nan", [](const YamlValue& r) { (void)r.get("a").number(0, 1); }),
            "f.yml:1:4: a: expected a finite number from 0 to 1, found 'nan'");
  EXPECT_EQ(complaint("a: '1'", [](const YamlValue& r) { (void)r.get("a").integer(0, 1); }),
            "f.yml:1:4: a: expected an integer from 0 to 1, found '1' in quotes");
  EXPECT_EQ(complaint("a: fats",
                      [](const YamlValue& r) {
                        (void)r.get("a").one_of({"fast", "slow"});
                      }),
            "f.yml:1:4: a: expected one of fast, slow, found 'fats'; did you mean 'fast'?");
  EXPECT_EQ(complaint("a: 1\nprovders: 2",
                      [](const YamlValue& r) {
                        r.only_keys({"a", "providers"});
                      }),
            "f.yml:2:1: unknown key 'provders', did you mean 'providers'?; known: a, providers");
  EXPECT_EQ(complaint("a: 1", [](const YamlValue& r) { (void)r.require("name"); }), "f.yml:1:1: the key 'name' is missing");
  EXPECT_EQ(complaint("a: {b: }", [](const YamlValue& r) { (void)r.get("a").require("b"); }),
            "f.yml:1:8: a.b: a value is missing");
  EXPECT_EQ(complaint("a: [1]", [](const YamlValue& r) { (void)r.get("a").string(); }),
            "f.yml:1:4: a: expected a word, found a list");
}

TEST(Yaml, RefusesWhatIsAmbiguous) {
  EXPECT_EQ(complaint("a: 1\nb: 2\na: 3\n"), "f.yml:3:1: the key 'a' occurs twice; first in line 1");
  EXPECT_EQ(complaint("a: {x: 1, x: 2}"), "f.yml:1:11: the key 'x' occurs twice; first in line 1");
  EXPECT_EQ(complaint("a: 1\n---\nb: 2\n"), "f.yml:2:1: the file holds more than one document");
  EXPECT_NE(complaint("a: !python/object 1").find("has no meaning here"), std::string::npos);
  EXPECT_NE(complaint("[a, b]: 1").find("a key must be a word"), std::string::npos);
  EXPECT_NE(complaint("a: [1, 2").find("not valid YAML"), std::string::npos);
  EXPECT_NE(complaint("a: \"\x04\"").find("control character 4"), std::string::npos);
  EXPECT_NE(complaint("a: \xC3(").find("not UTF-8"), std::string::npos);
  EXPECT_EQ(complaint("\ta: 1"), "f.yml:1:1: indented with a tab; use spaces");
  EXPECT_EQ(complaint("a:\n\tb: 1\n"), "f.yml:2:1: indented with a tab; use spaces");
}

TEST(Yaml, AliasesAndMerges) {
  const YamlDocument d = yaml("base: &b {x: 1, y: 2}\nc:\n  <<: *b\n  y: 3\nl: [*b, *b]\n");
  EXPECT_EQ(d.root().get("c").get("x").integer(0, 9), 1);
  EXPECT_EQ(d.root().get("c").get("y").integer(0, 9), 3);
  EXPECT_EQ(d.root().get("c").entries().size(), 2u);
  EXPECT_EQ(d.root().get("l").list()[1].get("y").integer(0, 9), 2);
  EXPECT_NE(complaint("a: &a [*a]").find("f.yml:1:"), std::string::npos);
  EXPECT_NE(complaint("a: *b").find("f.yml:1:"), std::string::npos);
  EXPECT_NE(complaint("a: {<<: 3}").find("'<<' takes a map"), std::string::npos);
}

TEST(Yaml, LimitsHold) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) laughs += (k != 0 ? ", *a" : "*a") + std::to_string(i - 1);
    laughs += "]\n";
  }
  EXPECT_NE(complaint(laughs).find("more than 200000 values"), std::string::npos);
  EXPECT_NE(complaint(std::string(100'000, '[')).find("levels deep"), std::string::npos);
  std::string nested;
  for (int i = 0; i < 60; ++i) nested += "&n" + std::to_string(i) + " [";
  for (int i = 0; i < 20'000; ++i) nested += "1,";
  nested += std::string(60, ']');
  EXPECT_NE(complaint(nested).find("more than 200000 values"), std::string::npos);
  EXPECT_NE(complaint("a: " + std::string(5 << 20, 'x')).find("at most"), std::string::npos);
  std::string many;
  for (int i = 0; i < 50'000; ++i) many += "k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(complaint(many), "");
}

// Random damage: always a document or an Error, never anything else.
TEST(Yaml, DamagedTextIsAnErrorOrADocument) {
  const std::string seed =
      "name: a\nmodel: {source: ./m.onnx, version: 1.0}\ninputs:\n  - &i {name: x, shape: [1, 3]}\n  - *i\n"
      "text: |\n  block\n  lines\nfolded: >-\n  a\n  b\nq: \"\\u00e9\\n\"\ns: 'it''s'\n? k\n: v\n# end\n";
  std::mt19937 random(7);
  const std::string pieces = "[]{}:,&*!|>'\"%@`#?- \n\t\\<0a~";
  int valid = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = seed;
    for (int k = static_cast<int>(random() % 6); k >= 0; --k) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = pieces[random() % pieces.size()]; break;
        case 1: text.insert(at, 1, pieces[random() % pieces.size()]); break;
        case 2: text.erase(at, random() % 5); break;
        default: text[at] = static_cast<char>(random()); break;
      }
      if (text.empty()) text = "a";
    }
    try {
      const YamlDocument d = yaml(text);
      if (d.root().is_map()) (void)d.root().entries();
      ++valid;
    } catch (const Error& e) {
      EXPECT_TRUE(std::string(e.what()).starts_with("f.yml:")) << e.what();
    }
  }
  EXPECT_GT(valid, 100);
}

TEST(Yaml, WrittenScalarsReadBack) {
  for (const std::string text :
       {"plain",   "two words", "1.0", "true", "",         "a: b",  "- x",   "~",     "null", "#no",        "tab\there",
        "quote\"", "0x1F",      "ü",   "nan",  "./m.onnx", "C:\\x", " pad ", "12:30", "a #b", "line\nbreak"}) {
    const YamlDocument d = yaml("k: " + yaml_scalar(text) + "\n");
    EXPECT_EQ(d.root().get("k").text(), text) << yaml_scalar(text);
    EXPECT_TRUE(d.root().get("k").quoted() || text.find_first_not_of("0123456789.") != std::string::npos) << text;
  }
}

}  // namespace
}  // namespace sdx
