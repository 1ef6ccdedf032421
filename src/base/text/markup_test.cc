#include "base/text/markup.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

TEST(Markup, ShowsTextAsItIs) {
  EXPECT_EQ(markup_text("<b a=\"1\">Jörg & 'Co'</b>"), "&lt;b a=&quot;1&quot;&gt;Jörg &amp; 'Co'&lt;/b&gt;");
  EXPECT_EQ(markup_text(std::string_view("a\r\n\tb\0\x1b", 7)), "a&#13;&#10;\tb  ");
}

}  // namespace
}  // namespace sdx
