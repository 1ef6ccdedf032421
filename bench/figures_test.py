"""Figures of documents: what markers give, and that a wrong one, or a marker that names nothing, is found."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import figures

PROGRAM = Path(__file__).resolve().parent / "figures.py"
RESULTS, DOCUMENT = Path("bench", "results"), Path("docs", "deep.md")
SUITE = """model,threads,sdx ms,peer ms,peer,other
a,1,1.0,2.0,2.0,
b,1,2.0,16.0,8.0,0.5
a,2,1.0,0.5,0.5,
"""
PAGE = """# Small

| who | sdx ms | peer ms | × | peak, MB |
|---|--:|--:|--:|--:|
| **first** | 1.0 | 3.0 | 3.00 | 1,234 |
| `second` | 2.0 | 1.0 | 0.50 | – |
"""


class Figures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in {"README.md": "", DOCUMENT: "", RESULTS / "cpu-zen3-avx2" / "suite.csv": SUITE, RESULTS / "other" / "suite.csv": SUITE,
                           RESULTS / "small.md": PAGE}.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def value(self, query):
        return figures.value(self.root / RESULTS, query)

    def run_on(self, mode, text, page=DOCUMENT):
        (self.root / page).write_text(text)
        done = subprocess.run([sys.executable, "-B", PROGRAM, mode, "--root", self.root], capture_output=True, text=True)
        return done.returncode, done.stdout

    def test_what_markers_give(self):
        for query, expected in {"zen3/suite peer 1": 4, "zen3/suite least peer": 0.5, "zen3/suite most peer": 8, "zen3/suite faster peer": 2, "zen3/suite count other": 1,
                                "zen3/suite least peer+other 1": 0.5, "zen3/suite 'peer ms/sdx ms' 1": 4, "zen3/suite only peer 2 a": 0.5, "small most peer": 3,
                                "small only 'peak, MB' first": 1234, "small only peer '#Small' second": 0.5}.items():
            self.assertAlmostEqual(self.value(query), expected, msg=query)

    def test_markers_that_name_nothing(self):
        for query in ("zen4/suite peer", "suite peer", "/suite peer", "small", "small none", "small peer '#Large'", "zen3/suite peer 3", "zen3/suite only peer", "small 'peer"):
            self.assertRaises(figures.Unknown, self.value, query)

    def test_figures_keep_their_decimals(self):
        text = "1.5<!--=zen3/suite peer 1--> 7<!--=small only 'peak, MB' first-->"
        self.assertEqual(figures.renewed(text, self.root / RESULTS)[0], "4.0<!--=zen3/suite peer 1--> 1,234<!--=small only 'peak, MB' first-->")

    def test_write_and_check(self):
        self.assertEqual(self.run_on("--check", "without figures"), (0, ""))
        wrong = "\n3.90<!--=zen3/suite peer 1-->x"
        code, said = self.run_on("--check", wrong)
        self.assertEqual((code, said.splitlines()[0]), (1, f"{DOCUMENT}:2: 3.90 is 4.00: zen3/suite peer 1"))
        self.assertEqual(self.run_on("--write", wrong)[0], 0)
        self.assertEqual((self.root / DOCUMENT).read_text(), "\n4.00<!--=zen3/suite peer 1-->x")
        self.assertEqual(self.run_on("--check", "4.00<!--=zen3/suite peer 1-->x"), (0, ""))

    def test_a_page_whose_marker_names_nothing(self):
        for text in ("1.0<!--=zen9/suite peer-->", "x<!--=zen3/suite peer 1-->"):
            for mode in ("--check", "--write"):
                code, said = self.run_on(mode, text, "README.md")
                self.assertEqual(code, 1)
                self.assertIn("README.md:1: ", said)
            self.assertEqual((self.root / "README.md").read_text(), text)


if __name__ == "__main__":
    unittest.main()
