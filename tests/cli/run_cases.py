"""Runs the command-line cases: run_cases.py SDX CASE.txt...

A case file is a list of commands, each followed by what is expected of it:

    $ NAME=VALUE sdx run add.onnx -i A=[1,2] -i B=[3,4]      with variables in the environment
    $ UNREAD sdx providers                                   both outputs are a pipe whose reader has left
    $ FULL sdx providers                                     standard output is /dev/full
    $ LIMIT 10 sdx run …                                     no file may have more than that many KiB: as on a full disk
    $ POSIX sdx …                                            not on Windows; before the words above
    $ HEAD 2 LINE sdx run …                                  standard input is LINE over and over (\\n within it: several); two lines of
                                                             standard output are read
    exit 0                         -13: ended by SIGPIPE; Windows has no signals, and 141 there says the same
    stdout: C: float32[2]          a fragment of standard output
    stdout = {"a":1}               standard output as JSON equals this
    no stdout: warning             a fragment that must not be there
    stderr: hint                   likewise for standard error
    stderr: this || that           either will do: what depends on the machine
    file out.json: "C"             a fragment of a file that the command wrote
    no file out.json               there is no such file or folder

Every file runs in a fresh folder with the models of tiny_models.py. The default is `exit 0`; lines with '#' are comments. An SDX that ends
in .exe runs under Wine; backslashes of its outputs stand for slashes as well.
"""

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import tiny_models

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from emulator import command_of, is_for_windows, with_slashes  # noqa: E402
from scratch import scratch  # noqa: E402


def parse(path):
    steps = []
    for line in path.read_text().splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if text.startswith("$ "):
            steps.append((text[2:], []))
        else:
            steps[-1][1].append(text)
    return steps


def said(fragment, text, windows):
    return fragment in text or (windows and with_slashes(fragment) in with_slashes(text))


def check(expectation, result, folder, windows):
    """An explanation of what is wrong, or None."""
    streams = {"stdout": result.stdout, "stderr": result.stderr}
    kind, _, rest = expectation.partition(" ")
    if kind == "exit":
        right = int(rest) if int(rest) >= 0 or not windows else 128 - int(rest)
        return None if result.returncode == right else f"exit code {result.returncode}"
    if expectation.startswith("stdout = "):
        text = with_slashes(result.stdout) if windows else result.stdout
        return None if json.loads(text) == json.loads(expectation[9:]) else "another JSON"
    if kind == "no" and rest.startswith("file "):
        return "it is there" if (folder / rest[5:]).exists() else None
    if kind == "no":
        stream, _, fragment = rest.partition(": ")
        return f"{stream} has it" if said(fragment, streams[stream], windows) else None
    head, separator, fragment = expectation.partition(": ")
    if not separator:
        return "no such kind of expectation"
    if head in streams:
        return None if any(said(f, streams[head], windows) for f in fragment.split(" || ")) else f"{head} lacks it"
    if head.startswith("file "):
        path = folder / head[5:]
        return None if path.exists() and fragment.encode() in path.read_bytes() else "the file lacks it"
    return "no such kind of expectation"


def run_unread(words, common):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        code = subprocess.run(words, stdout=writer, stderr=writer, **common).returncode
    finally:
        os.close(writer)
    return subprocess.CompletedProcess(words, code, "", "")


def run_full(words, common):
    with open("/dev/full", "wb") as full:
        result = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, errors="replace", **common)
    return subprocess.CompletedProcess(words, result.returncode, "", result.stderr)


def run_limited(words, common):
    kib, words = int(words[0]) * 1024, words[1:]

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
        resource.setrlimit(resource.RLIMIT_FSIZE, (kib, kib))

    return subprocess.run(words, capture_output=True, text=True, errors="replace", preexec_fn=limit, restore_signals=False, **common)


def run_head(words, common):
    lines, line, words = int(words[0]), words[1].replace("\\n", "\n"), words[2:]
    feed = subprocess.Popen(["yes", line], stdout=subprocess.PIPE)
    with subprocess.Popen(words, stdin=feed.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          cwd=common["cwd"], env=common["env"]) as process:
        feed.stdout.close()
        out = "".join(process.stdout.readline() for _ in range(lines))
        process.stdout.close()
        try:
            err = process.stderr.read()
            process.wait(common["timeout"])
        finally:
            process.kill()
            feed.kill()
            feed.wait()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


WAYS = {"UNREAD": run_unread, "FULL": run_full, "LIMIT": run_limited, "HEAD": run_head}


def run(words, folder, environment, sdx):
    way = WAYS.get(words[0])
    words = [part for word in (words[1:] if way else words) for part in (command_of(sdx) if word == "sdx" else [word])]
    common = {"cwd": folder, "timeout": 60, "env": environment}
    if way:
        return way(words, common)
    return subprocess.run(words, capture_output=True, text=True, errors="replace", **common)


def run_case(sdx, path):
    failures = 0
    windows = is_for_windows(sdx)
    with scratch() as folder:
        tiny_models.write_all(folder)
        for command, expectations in parse(path):
            words = shlex.split(command)
            if words[0] == "POSIX":
                if windows:
                    continue
                words = words[1:]
            environment = dict(os.environ)
            while "=" in words[0]:
                variable, _, value = words.pop(0).partition("=")
                environment[variable] = value
            result = run(words, folder, environment, sdx)
            if not any(e.startswith("exit ") for e in expectations):
                expectations = ["exit 0", *expectations]
            wrong = [f"  expected {e}: {why}" for e in expectations if (why := check(e, result, folder, windows))]
            if wrong:
                failures += 1
                print(f"FAIL {path.name}: $ {command}", *wrong, f"  exit code {result.returncode}",
                      f"  stdout: {result.stdout[:2000]}", f"  stderr: {result.stderr[:2000]}", sep="\n")
    return failures


def main():
    sdx = str(Path(sys.argv[1]).resolve())
    failures = sum(run_case(sdx, Path(case)) for case in sys.argv[2:])
    print(f"{len(sys.argv) - 2} case files, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
