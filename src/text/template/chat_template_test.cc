#include <gtest/gtest.h>

#include <sdx/chat_template.hpp>
#include <sdx/error.hpp>
#include <string>

#include "support/temporary_folder.h"

namespace sdx {
namespace {

std::string render(const std::string& source, const std::string& variables = "{}", const ChatLimits& limits = {}) {
  return ChatTemplate(source).render({.now = "2026-01-02T03:04:05", .variables = variables}, limits);
}

Error failure(const std::string& source, const std::string& variables = "{}", const ChatLimits& limits = {}) {
  try {
    const std::string text = render(source, variables, limits);
    ADD_FAILURE() << source << " gave " << text;
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::ok, "");
}

TEST(ChatTemplate, WritesAConversation) {
  const ChatTemplate chat(
      "{%- for message in messages %}\n"
      "{{ '<|' + message['role'] + '|>' }}{{ message.content | trim }}</s>\n"
      "{% endfor %}\n"
      "{% if add_generation_prompt %}<|assistant|>{% endif %}");
  const std::string messages = R"([{"role": "user", "content": " Hi "}, {"role": "assistant", "content": "Yes?"}])";
  EXPECT_EQ(chat.render({.messages = messages}), "<|user|>Hi</s>\n<|assistant|>Yes?</s>\n");
  EXPECT_EQ(chat.render({.messages = "[]", .add_generation_prompt = true}), "<|assistant|>");
}

TEST(ChatTemplate, GivesToolsAndDocumentsAsNullWhereThereAreNone) {
  EXPECT_EQ(render("{{ tools }} {{ documents is none }}"), "None True");
  EXPECT_EQ(ChatTemplate("{{ tools[0].name }}").render({.tools = R"([{"name": "add"}])"}), "add");
}

TEST(ChatTemplate, HasPythonsNumbersAndTexts) {
  EXPECT_EQ(render("{{ 7 // -2 }} {{ -7 % 3 }} {{ 2 ** 100 }} {{ 4 / 2 }} {{ 1e16 }} {{ 0.1 + 0.2 }} {{ 1e-5 }}"),
            "-4 2 1267650600228229401496703205376 2.0 1e+16 0.30000000000000004 1e-05");
  EXPECT_EQ(render("{{ x }}", R"({"x": [1.0, null, true, "it's", {"a": "b\n"}]})"), R"([1.0, None, True, "it's", {'a': 'b\n'}])");
  EXPECT_EQ(render("{{ x|tojson }}", R"({"x": {"b": [1.0, "żółć\u0007"], "a": null}})"),
            R"({"b": [1.0, "żółć\u0007"], "a": null})");
  EXPECT_EQ(render("{{ 'straße ΣΑΣ'|upper }} {{ 'ΣΑΣ'.lower() }} {{ 'żółć'[::-1] }}"), "STRASSE ΣΑΣ σας ćłóż");
}

TEST(ChatTemplate, StripsTagsAsMarkupSafeDoes) {
  EXPECT_EQ(render("{{ '<b>a</b> <!-- > -->  c &lt;d&gt;'|striptags }}"), "a c <d>");
  EXPECT_EQ(render("{{ '<!-->a<!--->b<!-- c --->d'|striptags }}"), "abd");
  EXPECT_EQ(render("{{ '<!<!-- -->-- x -->y <<!-- -->b>z'|striptags }}"), "y z");
  EXPECT_EQ(render("{{ 'a <!-- b > c < d'|striptags }}"), "a c < d");
  // An opening mark without an end is searched for once: otherwise this takes minutes.
  EXPECT_EQ(render("{{ ('<' * 4000000)|striptags|length }}"), "4000000");
  EXPECT_EQ(render("{{ ('<!--' * 1000000)|striptags|length }}"), "4000000");
}

TEST(ChatTemplate, IsAsOddAsPythonAndJinja) {
  EXPECT_EQ(render("{% for i in [1] %}{% break %}{% else %}none{% endfor %}"),
            "none");  // jinja2 takes a cut short round for none
  EXPECT_EQ(render("{{ '{:>3}|{:_}|{}{0[0]}'.format(true, 12345, 'x') if false else '{:>3}|{:_}'.format(true, 12345) }}"),
            "  1|12_345");
  EXPECT_EQ(render("{{ '%.3s' % x.y }}|{{ x.y is sequence }}", R"({"x": {}})"), "|True");
  EXPECT_EQ(render("{{ ('<a>'|e)|list }}{{ ('<'|e) + '<' }}"), "['&', 'l', 't', ';', 'a', '&', 'g', 't', ';']&lt;&lt;");
  EXPECT_EQ(render("{{ x }} {{ x + 1 }}", R"({"x": 123456789012345678901234567890})"),
            "123456789012345678901234567890 123456789012345678901234567891");
  EXPECT_EQ(render("{{ 123456789012345678900 / 10 }} {{ 1 / 3 }} {{ -7 / 2 }} {{ 10 ** 30 / 10 ** 29 }}"),
            "1.2345678901234567e+19 0.3333333333333333 -3.5 10.0");
  EXPECT_EQ(render("{{ nothing|reverse|sum }}{{ nothing|last }}"), "0");
  EXPECT_EQ(render("{% for i in [1, 2] %}{{ loop.changed(loop) }}{% endfor %}"), "TrueFalse");
  EXPECT_EQ(render("{{ 'aXbX'.rsplit('X', 1) }} {{ ' a  b '.rsplit(none, 1) }} {{ ' a  b c'.split(none, 1) }}"),
            "['aXb', ''] [' a', 'b'] ['a', 'b c']");
}

TEST(ChatTemplate, SearchesInTimeThatGrowsWithTheText) {
  EXPECT_EQ(render("{{ (('a' * 1000000) ~ 'b') in ('a' * 10000000) }}"), "False");
  EXPECT_EQ(failure("{{ ('a' * 10000000).rfind('b' ~ ('a' * 1000000)) }}").code(), ErrorCode::out_of_memory);
}

TEST(ChatTemplate, ScopesAreJinjas) {
  EXPECT_EQ(render("{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}"), "221");
  EXPECT_EQ(render("{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}"), "2");
  EXPECT_EQ(
      render("{% set ns = namespace(n=0) %}{% for i in range(4) if i is odd %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}"),
      "4");
  EXPECT_EQ(render("{% macro f(a, b=a ~ '!') %}{{ a }}{{ b }}{{ caller() if caller }}{% endmacro %}{{ f(1) }}{% call f(2, b=3) "
                   "%}x{% endcall %}"),
            "11!23x");
}

TEST(ChatTemplate, LoopsKnowWhereTheyAre) {
  EXPECT_EQ(render("{% for i in 'abc' %}{{ loop.index }}{{ loop.revindex0 }}{{ loop.cycle('x', 'y') }}{{ ',' if not loop.last "
                   "}}{% endfor %}"),
            "12x,21y,30x");
  EXPECT_EQ(render("{% for n in t recursive %}{{ n.v }}({{ loop(n.c) if n.c }}){{ loop.depth }}{% endfor %}",
                   R"({"t": [{"v": 1, "c": [{"v": 2, "c": []}]}]})"),
            "1(2()2)1");
}

TEST(ChatTemplate, TellsTheTimeThatItIsGiven) {
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y %H:%M, %A, %j, %-d') }}"), "02 Jan 2026 03:04, Friday, 002, 2");
  EXPECT_THROW(ChatTemplate("x").render({.now = "tomorrow"}), Error);
  EXPECT_THROW(ChatTemplate("x").render({.now = "2026-02-30"}), Error);
}

// Python's own answers, on Linux: each code, and flags.
TEST(ChatTemplate, WritesTimesAsPythonDoes) {
  const ChatTemplate chat(
      "{{ strftime_now('%a %A %b %B %C %d %e %F %g %G %H %I %j %k %l %m %M %p %P %R %S %T %u %U %V %w %W %y %Y %f|%c|%D|%r|%x %X|"
      "%-d %_d %0e %^a %#B %#p %^F %-H %Q %-Q %% %-') }}");
  const std::pair<const char*, const char*> cases[] = {
      {"2026-01-02T03:04:05",
       "Fri Friday Jan January 20 02  2 2026-01-02 26 2026 03 03 002  3  3 01 04 AM am 03:04 05 03:04:05 5 00 01 5 00 26 2026 "
       "000000|Fri Jan  2 03:04:05 2026|01/02/26|03:04:05 AM|01/02/26 03:04:05|2  2 02 FRI JANUARY am 2026-01-02 3 %Q %-Q % %-"},
      {"2024-12-31T13:00:00",
       "Tue Tuesday Dec December 20 31 31 2024-12-31 25 2025 13 01 366 13  1 12 00 PM pm 13:00 00 13:00:00 2 52 01 2 53 24 2024 "
       "000000|Tue Dec 31 13:00:00 2024|12/31/24|01:00:00 PM|12/31/24 13:00:00|31 31 31 TUE DECEMBER pm 2024-12-31 13 %Q %-Q % "
       "%-"},
      {"2021-01-03T00:59:59",
       "Sun Sunday Jan January 20 03  3 2021-01-03 20 2020 00 12 003  0 12 01 59 AM am 00:59 59 00:59:59 7 01 53 0 00 21 2021 "
       "000000|Sun Jan  3 00:59:59 2021|01/03/21|12:59:59 AM|01/03/21 00:59:59|3  3 03 SUN JANUARY am 2021-01-03 0 %Q %-Q % %-"},
      {"2000-02-29T12:30:00",
       "Tue Tuesday Feb February 20 29 29 2000-02-29 00 2000 12 12 060 12 12 02 30 PM pm 12:30 00 12:30:00 2 09 09 2 09 00 2000 "
       "000000|Tue Feb 29 12:30:00 2000|02/29/00|12:30:00 PM|02/29/00 12:30:00|29 29 29 TUE FEBRUARY pm 2000-02-29 12 %Q %-Q % "
       "%-"},
      {"2027-01-01T23:05:09",
       "Fri Friday Jan January 20 01  1 2027-01-01 26 2026 23 11 001 23 11 01 05 PM pm 23:05 09 23:05:09 5 00 53 5 00 27 2027 "
       "000000|Fri Jan  1 23:05:09 2027|01/01/27|11:05:09 PM|01/01/27 23:05:09|1  1 01 FRI JANUARY pm 2027-01-01 23 %Q %-Q % "
       "%-"}};
  for (const auto& [now, expected] : cases) EXPECT_EQ(chat.render({.now = now}), expected);
}

TEST(ChatTemplate, SaysWhatFailedAndWhere) {
  const Error raised = failure("a\n{{ raise_exception('Roles must alternate') }}");
  EXPECT_EQ(raised.code(), ErrorCode::invalid_argument);
  EXPECT_EQ(raised.message(), "Roles must alternate");
  ASSERT_EQ(raised.context().size(), 2U);
  EXPECT_EQ(raised.context()[0], "in line 2: {{ raise_exception('Roles must alternate') }}");
  const Error undefined = failure("{% if true %}\n{{ x.y }}\n{% endif %}");
  EXPECT_EQ(undefined.code(), ErrorCode::runtime_failure);
  EXPECT_EQ(undefined.message(), "'x' is undefined");
  EXPECT_EQ(failure("{{ [].append(1) }}").code(), ErrorCode::runtime_failure);
  for (const char* source : {"{{ 'a' }", "{% for %}", "{% if x %}", "{{ x|nosuch }}", "{% include 'x' %}", "{{ (1 }}",
                             "{{ '\\ud800' }}", "{% break %}"}) {
    try {
      const ChatTemplate chat(source);
      ADD_FAILURE() << source;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_model) << source;
      EXPECT_NE(error.message().find("line 1"), std::string::npos) << error.message();
    }
  }
}

TEST(ChatTemplate, StopsWhatDoesNotEnd) {
  const ChatLimits few{.steps = 100'000, .output = 100'000, .memory = 1'000'000};
  for (const char* source : {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
                             "{% for i in range(99999) %}0123456789{% endfor %}", "{{ 'x' * 999999999999 }}",
                             "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
                             "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}",
                             "{% set ns = namespace() %}{% set ns.ns = ns %}{{ ns }}",
                             "{% set ns = namespace(x='x') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
                             "{{ '%999999999d' % 1 }}", "{{ '{:>999999999}'.format(1) }}", "{{ [1]|batch(99999999, 0)|list }}",
                             "{{ []|slice(99999999)|list }}", "{% for i in x recursive %}{{ loop([1]) }}{% endfor %}"}) {
    EXPECT_EQ(failure(source, R"({"x": [1]})", few).code(), ErrorCode::out_of_memory) << source;
  }
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  EXPECT_EQ(failure("{{ x }}", R"({"x": )" + deep + "}").code(), ErrorCode::out_of_memory);
  EXPECT_THROW(ChatTemplate("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"), Error);
  EXPECT_THROW(ChatTemplate("{{ 1" + std::string(5000, '+') + "1 }}"), Error);
}

TEST(ChatTemplate, ComesFromAModelsFolder) {
  const testing::TemporaryFolder temporary;
  const auto& folder = temporary.path();
  const auto write = [&](const char* name, const std::string& text) { temporary.write(name, text); };
  EXPECT_FALSE(ChatTemplate::has(folder));
  EXPECT_THROW(ChatTemplate::load(folder), Error);
  write(
      "tokenizer_config.json",
      R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": [{"name": "default", "template": "{{ bos_token }}plain"},
    {"name": "tool_use", "template": "tools{{ eos_token }}"}]})");
  EXPECT_TRUE(ChatTemplate::has(folder));
  const ChatTemplate listed = ChatTemplate::load(folder);
  EXPECT_EQ(listed.render({}), "<s>plain");
  EXPECT_EQ(listed.render({.tools = "[{}]"}), "tools</s>");
  write("chat_template.jinja", "{{ bos_token }}file{{ pad_token }}");
  write("special_tokens_map.json", R"({"pad_token": "<pad>", "bos_token": "other"})");
  EXPECT_EQ(ChatTemplate::load(folder).render({}), "<s>file<pad>");
  EXPECT_EQ(ChatTemplate::load(folder).render({.variables = R"({"bos_token": "!"})"}), "!file<pad>");
  write("tokenizer_config.json", "{");
  EXPECT_THROW(ChatTemplate::load(folder), Error);
}

TEST(ChatTemplate, TakesItsInputApart) {
  EXPECT_THROW(ChatTemplate("x").render({.messages = "["}), Error);
  EXPECT_THROW(ChatTemplate("x").render({.variables = "[]"}), Error);
  EXPECT_THROW(ChatTemplate("\xff"), Error);
  ChatTemplate chat("{{ bos_token }}{% generation %}x{% endgeneration %}");
  chat.set_special_tokens(R"({"bos_token": "<s>"})");
  EXPECT_EQ(chat.render({}), "<s>x");
}

}  // namespace
}  // namespace sdx
