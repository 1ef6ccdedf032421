"""What `sdx` does in a terminal, and when Ctrl-C ends it: in_terminal.py SDX"""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import tiny_models as tiny

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

SAMPLES = 300
faults = []


def expect(truth, what):
    if not truth:
        faults.append(what)
        print("FAIL", what)


class Terminal:
    """A command whose standard error, and its output where that is asked for, is a terminal of so many columns."""

    def __init__(self, words, folder, columns, output=False, **environment):
        self.main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(words, cwd=folder, env={**os.environ, "TERM": "xterm", **environment}, stdin=subprocess.DEVNULL,
                                        stdout=other if output else subprocess.DEVNULL, stderr=other)
        os.close(other)
        self.said = ""

    def read(self, until=None):
        """Reads until the text comes, or to the end."""
        while until is None or until not in self.said:
            try:
                piece = os.read(self.main, 65536)
            except OSError:
                break
            if not piece:
                break
            self.said += piece.decode(errors="replace")
        return self.said

    def end(self):
        self.read()
        os.close(self.main)
        return self.process.wait(60)


def bars(said):
    return [re.sub(r"\x1b\[[0-9;]*[mK]", "", line) for line in re.split(r"[\r\n]", said) if "%" in line]


def progress(sdx, folder):
    for columns in (20, 40, 100):
        terminal = Terminal([sdx, "run", "scale.onnx", "-i", "many", "-o", f"out{columns}"], folder, columns)
        code = terminal.end()
        drawn = bars(terminal.said)
        expect(code == 0 and drawn, f"{columns} columns: exit code {code}, {terminal.said[-300:]!r}")
        expect(all(len(line) < columns for line in drawn), f"{columns} columns: {max(drawn, key=len)!r}")
        expect(f"{SAMPLES} files in " in terminal.said and f"-> out{columns}/" in terminal.said, f"the last line: {terminal.said[-200:]!r}")
        if columns == 100:
            expect(any(f"of {SAMPLES} files" in line for line in drawn), f"no count: {drawn[-1]!r}")
    # What is said meanwhile has lines of its own.
    terminal = Terminal([sdx, "run", "scale.onnx", "-i", "broken", "-o", "none"], folder, 80)
    expect(terminal.end() == 1, "unreadable samples")
    for line in re.split(r"\r?\n", terminal.said):
        shown = re.split(r"\r\x1b\[K", line)[-1]
        expect("error:" not in shown or "%" not in shown, f"printed into the bar: {line!r}")


def interruption(sdx, folder):
    stopped, ended = (lambda: list((folder / "stopped").glob("*.json"))), (lambda: list((folder / "ended").glob("*.json")))
    for target, parts, number in (("stopped", stopped, signal.SIGINT), ("stopped.jsonl", lambda: [], signal.SIGINT), ("ended", ended, signal.SIGTERM)):
        words = [sdx, "run", "scale.onnx", "-i", "many", "-o", target]
        terminal = Terminal(words, folder, 100)
        terminal.read("%")
        terminal.process.send_signal(number)
        code = terminal.end()
        if code == 0:  # done before the signal came
            continue
        expect(code == 128 + number, f"{target}: exit code {code}")
        expect(re.search(rf"interrupted, \d+ of {SAMPLES} files done; the same command continues from there", terminal.said),
               f"{target}: {terminal.said[-300:]!r}")
        rest = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        expect(rest.returncode == 0 and ("already exist" in rest.stderr or "earlier run" in rest.stderr or not parts()),
               f"{target}: {rest.stderr[-300:]}")


def colours(sdx, folder):
    command = [sdx, "verify", "bad.case.json"]
    coloured = Terminal(command, folder, 80, output=True)
    coloured.end()
    expect("\x1b[31mFAIL\x1b[0m" in coloured.said, f"no red: {coloured.said!r}")
    for words in (["run", "scale.onnx", "-i", "many", "-o", "plain"], ["faces", "detect", "light.png", "-m", "faces.onnx"]):
        dumb = Terminal([sdx, *words], folder, 80, TERM="dumb")
        expect(dumb.end() == 0 and "\x1b" not in dumb.said, f"{words[0]} steers a terminal that cannot be: {dumb.said[-300:]!r}")
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = Terminal(command, folder, 80, output=True, **environment)
        plain.end()
        expect("\x1b" not in plain.said and "FAIL" in plain.said, f"{environment}: {plain.said!r}")
    piped = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    expect("\x1b" not in piped.stdout, "colours in a pipe")


def tables(sdx, folder):
    for command in (["providers"], ["explain", "chain.onnx"], ["explain", "classifier.onnx"], ["inspect", "classifier.onnx"],
                    ["compare-outputs", "classifier.onnx", "-b", "cpu", "-b", "cpu+no-optimize"]):
        for columns in (40, 60, 80, 140):
            terminal = Terminal([sdx, *command], folder, columns, output=True, NO_COLOR="1")
            terminal.end()
            text = terminal.said.split("\r\x1b[K")[-1]
            # A word that is longer than its column stays whole; a line of notes wraps by itself.
            long = [line for line in text.replace("\r", "").split("\n") if len(line) > columns and re.search(r"\S  +\S", line)]
            expect(not long, f"{command[0]} in {columns} columns: {long[:1]}")


def main():
    sdx = str(Path(sys.argv[1]).resolve())
    with scratch() as folder:
        tiny.write_all(folder)
        for where, text in (("many", "[1, 2]"), ("broken", "[1, ")):
            (folder / where).mkdir()
            for i in range(SAMPLES if where == "many" else 20):
                (folder / where / f"{i:05}.json").write_text(text)
        for test in (progress, interruption, colours, tables):
            test(sdx, folder)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
