#include "session/options/option_table.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "base/error.h"
#include "support/session.h"

namespace sdx::session {
namespace {

std::string complaint(std::string_view name, std::string_view text) {
  SessionOptions o;
  try {
    set_from_text(session_option(name), o, text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
    return e.message();
  }
  return "";
}

SessionOptions with(std::string_view name, std::string_view text, SessionOptions o = {}) {
  set_from_text(session_option(name), o, text);
  return o;
}

// The number of an aggregate's members: the most values in braces that it takes.
struct Anything {
  template <class T>
  operator T() const;
};
template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), Anything{})...}; };
}
template <class T, std::size_t N = 64>
constexpr std::size_t member_count() {
  if constexpr (takes<T>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return member_count<T, N - 1>();
  }
}

TEST(OptionTable, HasEveryMember) {
  const SessionOptions o;
  std::set<const void*> members;
  std::set<std::string_view> names;
  for (const SessionOption& option : session_options()) {
    std::visit([&](auto member) { members.insert(&(o.*member)); }, option.member);
    names.insert(option.name);
  }
  EXPECT_EQ(members.size(), member_count<SessionOptions>());
  EXPECT_EQ(names.size(), member_count<SessionOptions>());
}

TEST(OptionTable, SaysWhereAndWhyNot) {
  std::set<std::string_view> flags, keys, attributes;
  for (const SessionOption& o : session_options()) {
    for (const OptionPlace* place : {&o.cli, &o.project, &o.python}) {
      EXPECT_TRUE(place->present() || !place->why.empty()) << o.name;
    }
    EXPECT_FALSE(o.help.empty());
    if (o.cli.present()) {
      EXPECT_TRUE(flags.insert(o.cli.name).second) << o.name;
    }
    if (!o.project.name.empty()) {
      EXPECT_TRUE(keys.insert(o.project.name).second) << o.name;
    }
    if (!o.python.name.empty()) {
      EXPECT_TRUE(attributes.insert(o.python.name).second) << o.name;
    }
    if (o.python.present()) {
      EXPECT_EQ(o.python.name, o.name);
    }
    // The default that is shown is accepted as a value.
    const std::string text = default_text(o);
    if (!text.empty()) {
      EXPECT_EQ(complaint(o.name, text), "") << o.name;
    }
  }
}

TEST(OptionTable, ReadsText) {
  EXPECT_EQ(with("runtime", "ORT").runtime, Runtime::ort);
  EXPECT_TRUE(with("strict", "strict").strict);
  EXPECT_TRUE(with("tune", "yes").tune);
  EXPECT_FALSE(with("cache", "0").cache);
  EXPECT_EQ(with("threads", "16").threads, 16);
  EXPECT_EQ(with("memory_limit", "2KiB").memory_limit, 2048U);
  EXPECT_EQ(with("provider_retry", "1500ms").provider_retry.count(), 1500);
  EXPECT_EQ(with("start_on", "CPUExecutionProvider").start_on, "cpu");
  EXPECT_EQ(with("providers", "cuda,cpu").providers, (std::vector<std::string>{"cuda", "cpu"}));
  EXPECT_EQ(with("dimensions", "n=3", with("dimensions", "m=2")).dimensions, (DimensionValues{{"m", 2}, {"n", 3}}));
  EXPECT_EQ(with("platform_defaults", "linux=cuda").platform_defaults, (TextPairs{{"linux", "cuda"}}));
  EXPECT_EQ(with("provider_options", "ort:cpu.session.a=b=c").provider_options,
            (ProviderOptions{{"ort:cpu", {{"session.a", "b=c"}}}}));
  EXPECT_EQ(with("custom_ops", "a,b.so").custom_ops, std::vector<std::filesystem::path>{"a,b.so"});
}

TEST(OptionTable, RefusesTheSameEverywhere) {
  EXPECT_EQ(complaint("threads", "-1"), "expected an integer from 0 to 4096, found '-1'");
  EXPECT_EQ(complaint("threads", "4097"), "expected an integer from 0 to 4096, found '4097'");
  EXPECT_EQ(complaint("select", "mesured"), "expected one of order, measured, found 'mesured'; did you mean 'measured'?");
  EXPECT_NE(complaint("strict", "strct").find("did you mean 'strict'?"), std::string::npos);
  EXPECT_NE(complaint("provider_timeout", "-2s").find("found '-2s'"), std::string::npos);
  EXPECT_NE(complaint("memory_limit", "12XB").find("units: KB, MB"), std::string::npos);
  EXPECT_NE(complaint("start_on", "cup").find("did you mean 'cpu'?"), std::string::npos);
  EXPECT_NE(complaint("disabled_passes", "fold-constant").find("did you mean 'fold-constants'?"), std::string::npos);
  EXPECT_NE(complaint("dimensions", "n").find("SYMBOL=N"), std::string::npos);
  EXPECT_NE(complaint("provider_options", "cuda=1").find("PROVIDER.KEY=VALUE"), std::string::npos);
  EXPECT_NE(complaint("tune", "maybe").find("true or false"), std::string::npos);
  SessionOptions o;
  EXPECT_THROW(set_from_number(session_option("provider_retry"), o, -1), Error);
  EXPECT_THROW(set_from_number(session_option("telemetry"), o, 1), Error);
  EXPECT_THROW(session_option("treads"), Error);
  EXPECT_THROW(parse_runtime("onnx"), Error);
  EXPECT_THROW(parse_select("fastest"), Error);
}

TEST(OptionTable, SessionsCheckWhatCppSets) {
  const std::string model = "input x: float32[n]\ny = Exp(x)\noutput y\n";
  SessionOptions threads, timeout, passes;
  threads.threads = -1;
  timeout.provider_timeout = std::chrono::milliseconds(-1);
  passes.disabled_passes = {"none-such"};
  for (const SessionOptions& o : {threads, timeout, passes}) EXPECT_THROW(testing::open(model, o), Error);
}

TEST(OptionTable, LaysOneOverTheOther) {
  const SessionOptions typed = with("dimensions", "n=2", with("provider_options", "cuda.a=1", with("threads", "3")));
  SessionOptions o;
  o.dimensions = {{"n", 1}, {"m", 1}};
  o.provider_options = {{"cuda", {{"b", "2"}}}};
  for (const char* name : {"threads", "dimensions", "provider_options"}) overlay(session_option(name), typed, o);
  EXPECT_EQ(o.threads, 3);
  EXPECT_EQ(o.dimensions, (DimensionValues{{"m", 1}, {"n", 2}}));
  EXPECT_EQ(o.provider_options.size(), 2U);
}

}  // namespace
}  // namespace sdx::session
