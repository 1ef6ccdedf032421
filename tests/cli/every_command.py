"""Every subcommand under circumstances that are not its subject: every_command.py SDX

Each row of the table is a subcommand with a command line that works and, where it writes, the option that names the file. A subcommand
that `sdx help` lists and that has no row is a failure. All rows run with a full and with a closed standard output, without HOME, in the
C locale, with --quiet and --verbose, in a terminal of 60 columns, into folders that cannot be written and onto a full disk; and no name
that a model gives may reach the terminal as a control character or as a line of its own.
"""

import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import tiny_models as tiny

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

ESCAPE = "\x1b[2J"
FORGED = "\nerror: forged\u2028\u202e"  # looks like a line of our own, ends lines, turns letters around
# The subcommand, its arguments, and the name behind which it writes: an option, or the last argument ("").
TABLE = [
    ("run", ["hostile.onnx", "--random"], "-o out.json"),
    ("inspect", ["hostile.onnx"], None),
    ("explain", ["hostile.onnx"], None),
    ("verify", ["good.case.json"], None),
    ("providers", [], None),
    ("doctor", [], None),
    ("pull", ["add.onnx", "--to", "pulled"], "--to pulled"),
    ("models ls", ["--registry", "hostile.yaml"], None),
    ("models pull", ["add.onnx", "--to", "pulled"], "--to pulled"),
    ("models ps", None, None),  # asks a server
    ("models show", ["net", "--registry", "hostile.yaml"], None),
    ("models validate", ["--registry", "hostile.yaml"], None),
    ("models add", ["other", "add.onnx", "--registry", "hostile.yaml", "--dry-run"], None),
    ("models rm", ["net", "--registry", "hostile.yaml", "--dry-run"], None),
    ("ls", ["--registry", "hostile.yaml"], None),
    ("show", ["net", "--registry", "hostile.yaml"], None),
    ("ps", None, None),  # asks a server
    ("rm", ["net", "--registry", "hostile.yaml", "--dry-run"], None),
    ("faces detect", ["light.png", "-m", "faces.onnx"], None),
    ("faces crop", ["light.png", "-m", "faces.onnx", "--overwrite", "-o", "crops"], "-o crops"),
    ("faces align", ["light.png", "-m", "faces.onnx", "--overwrite", "-o", "aligned"], "-o aligned"),
    ("faces blur", ["light.png", "-m", "faces.onnx", "--overwrite", "-o", "hidden"], "-o hidden"),
    ("faces bench", ["light.png", "-m", "faces.onnx", "--runs", "1"], None),
    ("faces page", None, None),  # runs until it is ended
    ("bench", ["hostile.onnx", "-n", "1", "-w", "0", "--processes", "1", "-b", "cpu"], "--json out.json"),
    ("sweep", ["scale.onnx", "-B", "1", "-n", "1", "-w", "0", "-b", "cpu"], "--csv out.csv"),
    ("diff", ["fast.json", "fast.json"], "--md out.md"),
    ("report", ["fast.json"], "-o out.html"),
    ("compare-outputs", ["hostile.onnx", "-b", "cpu", "-b", "cpu+no-optimize"], None),
    ("convert", ["hostile.onnx", "-o", "half.onnx"], "-o half.onnx"),
    ("quantize", ["classifier.onnx", "-o", "eight.onnx"], "-o eight.onnx"),
    ("generate", ["talker.gguf", "-p", "ab", "--max-tokens", "2", "--greedy"], None),
    ("chat", ["talker.gguf", "--messages", "question.json", "--greedy", "--max-tokens", "2"], None),
    ("perplexity", ["talker.gguf", "-i", "texts.txt"], None),
    ("tokenize", ["letters/tokenizer.json", "ab a"], None),
    ("embed", ["embedder", "-i", "texts.txt"], "-o out.npy"),
    ("rerank", ["reranker", "-q", "ab", "-i", "texts.txt"], None),
    ("transcribe", ["speech.wav", "-m", "whisper"], "-o subtitles"),
    ("artifacts", ["classifier.onnx", "-o", "made"], "-o made"),
    ("train", ["art", "--data", "points.npz", "--epochs", "1", "--batch", "4", "-t", "1", "-o", "trained"], "-o trained"),
    ("checkpoint show", ["one.ckpt"], None),
    ("checkpoint diff", ["one.ckpt", "one.ckpt"], None),
    ("checkpoint apply", ["one.ckpt", "change.ckpt", "-o", "x.ckpt"], "-o x.ckpt"),
    ("checkpoint average", ["one.ckpt", "two.ckpt", "-o", "x.ckpt"], "-o x.ckpt"),
    ("checkpoint export", ["one.ckpt", "-o", "x.npz"], "-o x.npz"),
    ("serve", None, None),  # runs until it is ended
    ("cache ls", ["--cache-dir", "cache"], None),
    ("cache clear", ["--cache-dir", "cache"], None),
    ("init", ["add.onnx", "--force", "-o", "made.yml"], "-o made.yml"),
    ("build", ["made.yml"], None),
    ("completion", ["bash"], None),
    ("help", ["run"], None),
]
faults = []


def expect(truth, what):
    if not truth:
        faults.append(what)
        print("FAIL", what)


class Sdx:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.environment = {**os.environ, "SDX_HOME": str(folder / "home"), "SDX_CACHE_DIR": str(folder / "cache"), "COLUMNS": "80"}

    def __call__(self, words, **options):
        environment = options.pop("env", self.environment)
        return subprocess.run([*options.pop("before", []), self.program, *words], cwd=self.folder, env=environment, timeout=120,
                              **{"capture_output": True, "stdin": subprocess.DEVNULL, **options})

    def in_terminal(self, words, columns):
        """What it writes to a terminal of so many columns, and its exit code."""
        main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {**self.environment, "TERM": "xterm"}
        with subprocess.Popen([self.program, *words], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=other,
                              stderr=other) as process:
            os.close(other)
            said = b""
            while True:
                try:
                    piece = os.read(main, 65536)
                except OSError:
                    break  # how Linux tells the end
                if not piece:
                    break
                said += piece
            os.close(main)
            return said.decode(errors="replace"), process.wait(120)


def listed(sdx, above=()):
    """The subcommands that have no further ones below them."""
    text = sdx(["help", *above]).stdout.decode()
    head = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
    names = re.findall(r"^  ([a-z][a-z-]*)", head.group(1), re.M) if head else []
    return [leaf for name in names for leaf in listed(sdx, (*above, name))] if names else [" ".join(above)]


def bare(words, target):
    """The words without the option for a file, where there is one."""
    option = target.split()[0]
    at = words.index(option) if option in words else None
    return words if at is None else words[:at] + words[at + 2:]


def escapes(text):
    """Forged lines, and control characters other than those that this program's own colours and progress bars are made of."""
    text = re.sub(r"\x1b\[[0-9]*m|\r\x1b\[K", "", text)
    forged = re.findall(r"^error: forged", text, re.M)
    return forged + [c for c in text if (ord(c) < 32 and c not in "\n\t\r") or 127 <= ord(c) < 160 or c in FORGED[-2:]]


def usual(sdx, name, words):
    command = [*name.split(), *words]
    result = sdx(command)
    said = result.stdout.decode(errors="replace") + result.stderr.decode(errors="replace")
    expect(result.returncode == 0, f"{name}: exit code {result.returncode}: {said[-600:]}")
    expect(not escapes(said), f"{name}: control characters reach the reader: {escapes(said)[:5]}")
    shown, code = sdx.in_terminal(command, 60)
    expect(code == 0 and not escapes(shown), f"{name} in a terminal: exit code {code}, {escapes(shown)[:5]}: {shown[-300:]}")
    for what, change in {"without HOME": {"HOME": None, "SDX_HOME": None}, "in the C locale": {"LANG": "C", "LC_ALL": "C"}}.items():
        environment = {k: v for k, v in {**sdx.environment, **change}.items() if v is not None}
        other = sdx(command, env=environment)
        expect(other.returncode == 0, f"{name} {what}: exit code {other.returncode}: {other.stderr.decode()[-300:]}")
    quiet = sdx([*command, "--quiet"])
    expect(quiet.returncode == 0 and b"note:" not in quiet.stderr, f"{name} --quiet: {quiet.stderr.decode()[-300:]}")
    expect(sdx([*command, "--verbose"]).returncode == 0, f"{name} --verbose")
    return bool(result.stdout)


def without_reader(sdx, name, words, prints):
    for command in [[*name.split(), "--help"]] + ([[*name.split(), *words]] if prints else []):
        with open("/dev/full", "wb") as full:
            result = sdx(command, capture_output=False, stdout=full, stderr=subprocess.PIPE)
        expect(result.returncode == 1 and b"No space left on device" in result.stderr,
               f"{' '.join(command)} into /dev/full: exit code {result.returncode}: {result.stderr.decode()[-300:]}")
        reader, writer = os.pipe()
        os.close(reader)
        result = sdx(command, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        expect(result.returncode == -signal.SIGPIPE and b"error" not in result.stderr,
               f"{' '.join(command)} into a closed pipe: exit code {result.returncode}: {result.stderr.decode()[-300:]}")


def into_nowhere(sdx, name, words, target, full_disk):
    option, file = target.split()
    command = [*name.split(), *bare(words, target), option]
    places = {"add.onnx/x/" + file: [], "/proc/nowhere/" + file: []}
    if full_disk:
        script = 'mount -t tmpfs -o size=4k,nr_inodes=8 none "$0" && head -c 4096 /dev/zero > "$0/filler"; exec "$@"'
        disk = sdx.folder / "disk"
        disk.mkdir(exist_ok=True)
        places[f"disk/{file}"] = ["unshare", "-m", "sh", "-c", script, str(disk)]
    for place, before in places.items():
        result = sdx([*command, place], before=before)
        said = result.stderr.decode(errors="replace")
        expect(result.returncode in (1, 2) and "error: " in said and "exception" not in said,
               f"{' '.join([*command, place])}: exit code {result.returncode}: {said[-300:]}")
        expect(not re.search(r"\.tmp\.", said), f"{' '.join([*command, place])}: speaks of a temporary file: {said[-300:]}")


def help_fits(sdx, name):
    shown, code = sdx.in_terminal([*name.split(), "--help"], 60)
    long = [line for line in re.sub(r"\x1b\[[0-9]*m", "", shown).replace("\r", "").split("\n") if len(line) > 60 and " " in line.strip()]
    long = [line for line in long if not re.match(r"  -\S+", line) and len(line.split()) > 1 and max(map(len, line.split())) < 30]
    expect(code == 0 and not long, f"{name} --help in 60 columns: {long[:2]}")


def main():
    program = str(Path(sys.argv[1]).resolve())
    with scratch() as folder:
        tiny.write_all(folder)
        name, output, symbol = "in" + ESCAPE + FORGED, "out\x9b2J" + FORGED, "n" + ESCAPE + FORGED
        relu = tiny.node("Relu", [name], [output]).replace(tiny.data(3, "Relu_0"), tiny.data(3, "R" + ESCAPE + FORGED))
        (folder / "hostile.onnx").write_bytes(
            tiny.model([relu], [tiny.value_info(name, tiny.FLOAT, [symbol, 2])], [tiny.value_info(output, tiny.FLOAT, [symbol, 2])]) +
            tiny.data(14, tiny.data(1, "key" + ESCAPE + FORGED) + tiny.data(2, ESCAPE + FORGED)))
        (folder / "hostile.yaml").write_text('models:\n  net: {path: add.onnx, description: "a\\e[2Jb"}\n')
        sdx = Sdx(program, folder)
        for command in (["artifacts", "classifier.onnx", "-o", "art"], ["checkpoint", "diff", "one.ckpt", "two.ckpt", "-o", "change.ckpt"]):
            made = sdx(command)
            expect(made.returncode == 0, f"{command}: {made.stderr.decode()}")
        full_disk = os.geteuid() == 0 and shutil.which("unshare") is not None and subprocess.run(
            ["unshare", "-m", "mount", "-t", "tmpfs", "none", folder], capture_output=True, check=False).returncode == 0
        rows = {row[0] for row in TABLE}
        commands = listed(sdx)
        expect(len(commands) > 30 and set(commands) == rows,
               f"without a row: {sorted(set(commands) - rows)}; without a command: {sorted(rows - set(commands))}")
        for name, words, target in TABLE:
            help_fits(sdx, name)
            if words is None:
                without_reader(sdx, name, [], False)
                continue
            prints = usual(sdx, name, words)
            without_reader(sdx, name, words, prints)
            if target:
                into_nowhere(sdx, name, words, target, full_disk)
    print(f"{len(TABLE)} subcommands, {len(faults)} faults{'' if full_disk else '; no full disk: only root can mount one'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
