"""Sources that are compiled together (cmake/unity_groups.py) do what they do alone: unity_test.py COMPILER SOURCE_FOLDER."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPILER, ROOT = sys.argv.pop(1), Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "cmake"))
import unity_groups  # noqa: E402

HEADER = """#pragma once
namespace n {
int first();
int second();
struct Kinds { enum In { kA = 40, kB }; };
inline int declared(double) { return 1000; }
struct Box {
  int at(int i) const { return i; }
};
}  // namespace n
"""
MAIN = '#include "both.h"\nint main() { return n::first() + n::second(); }\n'


def source(name, body, outside=""):
    return f'#include "both.h"\n{outside}\n\nnamespace n {{\nnamespace {{\n{body}\n}}  // namespace\nint {name}() {{ return value(); }}\n}}  // namespace n\n'


class Together(unittest.TestCase):
    def groups(self, first, second):
        """The groups of two sources. All that can be compiled together is also run, and has to give what the sources give alone."""
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            for name, text in (("both.h", HEADER), ("first.cc", first), ("second.cc", second), ("main.cc", MAIN)):
                (folder / name).write_text(text)
            alone = [str(folder / name) for name in ("first.cc", "second.cc")]
            groups = unity_groups.together(alone, unity_groups.Reader([folder]))
            for i, group in enumerate(groups):
                (folder / f"group{i}.cc").write_text(group.text())
            self.assertEqual(self.result(folder, [f"group{i}.cc" for i in range(len(groups))]), self.result(folder, alone))
            return [group.text() for group in groups]

    @staticmethod
    def result(folder, names):
        subprocess.run([COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-I.", "main.cc", *names, "-o", "program"], cwd=folder, check=True)
        return subprocess.run([folder / "program"], check=False).returncode

    def test_equal_names_get_a_suffix(self):
        texts = self.groups(source("first", "constexpr int kX = 3;\nint value() { return kX; }"),
                            source("second", "enum Places { kX = 4, kY };\nint value() { return kX + kY; }"))
        self.assertEqual(len(texts), 1)
        self.assertIn("#define kX kX_of_", texts[0])
        self.assertIn("#undef kX", texts[0])

    def test_several_names_of_one_declaration(self):
        texts = self.groups(source("first", "constexpr int kX = 3, kY = 2 * kX;\nint value() { return kY; }"), source("second", "constexpr int kY = 7;\nint value() { return kY; }"))
        self.assertEqual(len(texts), 1)
        self.assertIn("#define kY kY_of_", texts[0])

    def test_members_of_the_same_name_keep_it(self):
        member = source("first", "int at(int i) { return 7 * i; }\nint value() { return Box().at(2) + at(1); }")
        self.assertEqual(len(self.groups(member, member.replace("first", "second").replace("7", "5"))), 2)

    def test_a_header_s_overload_is_still_called(self):
        overload = source("first", "int declared(const char*) { return 1; }\nint value() { return (n::declared(2.0) + declared(\"\")) % 100; }")
        self.assertEqual(len(self.groups(overload, overload.replace("first", "second"))), 2)

    def test_macros_end_with_their_source(self):
        texts = self.groups(source("first", "int value() { return SIZE; }", "#define SIZE 3"), source("second", "int value() { const int SIZE = 4; return SIZE; }"))
        self.assertEqual(len(texts), 1)

    def test_sources_that_use_other_namespaces_stay_apart(self):
        self.assertEqual(len(self.groups(source("first", "int value() { return 1; }", "using namespace std;\n"), source("second", "int value() { return 2; }"))), 2)

    def test_enumerators_that_an_enum_lends(self):
        lent = source("first", "using enum Kinds::In;\nint value() { return kA; }")
        own = source("second", "constexpr int kA = 2;\nint value() { return kA; }")
        texts = self.groups(lent, own)
        self.assertTrue(len(texts) == 2 or "#define kA kA_of_" in texts[0])
        self.assertEqual(len(self.groups(lent, lent.replace("first", "second").replace("kA;", "kB;"))), 1)

    def test_a_name_that_only_another_source_s_header_has(self):
        bare = "namespace n {\nint first();\nnamespace {\nint declared(int i) { return i; }\n}  // namespace\nint first() { return declared(5); }\n}  // namespace n\n"
        texts = self.groups(bare, source("second", "int value() { return declared(2.0) % 100; }"))
        self.assertTrue(len(texts) == 2 or "#define declared declared_of_" in texts[0])


if __name__ == "__main__":
    unittest.main()
