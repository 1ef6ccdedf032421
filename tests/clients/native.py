"""native.py LIBRARY SDX [--go CHECKOUT] [--rounds N] [--by wall|cpu] [--markdown FILE] [CLIENT...]: runs published programs that open ONNX
Runtime's C library unchanged, in turns on that library and on LIBRARY, compares what they find, and prints CPU time and memory of each.
SDX: our program, which writes a model. --go: a checkout of yalue/onnxruntime_go, whose tests must pass on LIBRARY where they pass on ONNX
Runtime. Runs in an environment with native.txt installed. With SDX_TEST_MODELS also on the language models there. Exit code 1 where results
differ, 77 without those packages."""

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np

import run
import turns
from sounds import speech

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

HERE = Path(__file__).resolve().parent


def package(name):
    return Path(importlib.util.find_spec(name).submodule_search_locations[0])


# The system takes for a program's peak what its parent had when it started it: this one is small.
LAUNCHER = """
import json, os, sys
to = os.open(sys.argv[1], os.O_WRONLY)
actions = [(os.POSIX_SPAWN_DUP2, to, 1), (os.POSIX_SPAWN_DUP2, to, 2)]
_, status, used = os.wait4(os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, file_actions=actions), 0)
print(json.dumps([os.waitstatus_to_exitcode(status), 1000 * (used.ru_utime + used.ru_stime), used.ru_maxrss / 1024]))
"""


class Programs:
    def __init__(self, library, sdx, scratch, by):
        self.ours, self.sdx, self.scratch, self.by = library.resolve(), sdx.resolve(), scratch, by
        (self.real,) = (package("onnxruntime") / "capi").glob("libonnxruntime.so.*")

    def environment(self, ours, **more):
        # Where our library is found by a link that lies elsewhere, the engine still has to be found.
        places = os.pathsep.join(str(p) for p in (self.ours.parent, self.ours.parent.parent))
        return turns.environment(**({"LD_LIBRARY_PATH": places} if ours else {}), **more)

    def used(self, ours, command, cwd=None, **more):
        """What a program prints, and CPU time and memory of it and its children; or what went wrong."""
        command = [str(c) for c in command]
        with tempfile.NamedTemporaryFile() as out:
            launched = [sys.executable, "-S", "-E", "-c", LAUNCHER, out.name, *command]
            said, problem = turns.output_of(launched, self.environment(ours, **more), self.by, cwd)
            if problem:
                return None, None, problem
            code, cpu, peak = json.loads(said)
            text = Path(out.name).read_text(errors="replace")
        figures = {"work_ms": cpu, "start_ms": 0, "peak_mb": peak, "ours": ours}
        return text, figures, f"{' '.join(command)} gives {code}\n{text[-3000:]}" if code else None

    def program(self, ours, *arguments, **more):
        """A turn of native_programs.py."""
        said, figures, problem = self.used(ours, [sys.executable, "-B", HERE / "native_programs.py", *arguments], **more)
        return problem or {**figures, **json.loads(said.splitlines()[-1])}

    def sherpa(self, ours):
        """Voice activity detection; what it takes beyond a moment of silence is the work."""
        # Its run path begins with the program's own folder's neighbours and ends with that folder.
        folder = self.scratch / ("sherpa_ours" if ours else "sherpa_real")
        if not folder.exists():
            folder.mkdir()
            shutil.copy(Path(sys.executable).parent / "sherpa-onnx-vad", folder)
            (folder / "libonnxruntime.so").symlink_to(self.ours if ours else package("sherpa_onnx") / "lib" / "libonnxruntime.so")
        model = package("silero_vad") / "data" / "silero_vad.onnx"
        found = {}
        for name, pcm in (("silence", np.zeros(1600)), ("speech", speech(60))):
            written(self.scratch / "in.wav", pcm)
            # What is no voice, only like one, is found by a low threshold.
            command = [folder / "sherpa-onnx-vad", f"--silero-vad-model={model}", "--silero-vad-threshold=0.05", self.scratch / "in.wav", "out.wav"]
            said, figures, problem = self.used(ours, command, cwd=self.scratch)
            if problem:
                return problem
            found[name] = figures
        segments = [line for line in said.splitlines() if " -- " in line]
        kept = hashlib.sha256((self.scratch / "out.wav").read_bytes()).hexdigest()
        start, both = found["silence"], found["speech"]
        return {**both, "start_ms": start["work_ms"], "work_ms": both["work_ms"] - start["work_ms"], "found": {"texts": segments, "sound": kept}}

    def genai(self, folder):
        """It looks for a package onnxruntime, and opens the library in there."""
        place = self.scratch / "package"
        if not place.exists():
            (place / "onnxruntime" / "capi").mkdir(parents=True)
            (place / "onnxruntime" / "__init__.py").touch()
            (place / "onnxruntime" / "capi" / self.ours.name).symlink_to(self.ours)
        return lambda ours: self.program(ours, "genai", str(folder), **({"PYTHONPATH": str(place)} if ours else {}))

    def converted(self):
        """A small language model with random weights, as `sdx convert` writes it."""
        sys.path.insert(0, str(HERE.parent / "text"))
        from architectures import Model

        file, folder = self.scratch / "model.gguf", self.scratch / "model"
        Model("llama", ("f32",)).file.write(file)
        subprocess.run([self.sdx, "convert", file, "-o", folder], check=True, capture_output=True)
        return folder

    def go(self, checkout):
        """The tests of a Go package: those that pass on the real library."""
        expected = []
        tests = self.scratch / "tests"
        if not tests.exists():
            subprocess.run(["go", "test", "-c", "-o", tests], cwd=checkout, check=True)

        def turn(ours):
            library = self.ours if ours else self.real
            said, figures, problem = self.used(ours, [tests, "-test.v"], cwd=checkout, ONNXRUNTIME_SHARED_LIBRARY_PATH=str(library))
            if said is None:
                return problem
            passed = [line.split()[2] for line in said.splitlines() if line.startswith("--- PASS")]
            if not ours:
                expected[:] = passed
            return {**figures, "found": {"texts": [t for t in expected if t in passed]}}

        return turn


def written(path, pcm):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes((32767 * pcm).astype("<i2").tobytes())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=Path)
    parser.add_argument("sdx", type=Path)
    parser.add_argument("clients", nargs="*")
    parser.add_argument("--go", type=Path)
    turns.arguments(parser)
    args = parser.parse_intermixed_args()
    if not all(importlib.util.find_spec(p) for p in ("sherpa_onnx", "onnxruntime_genai", "onnxruntime_extensions", "silero_vad", "onnx")):
        print("the packages of native.txt are missing: `make dropin-clients` installs them")
        return run.SKIPPED
    with scratch() as folder:
        programs = Programs(args.library, args.sdx, folder, args.by)
        clients = [
            ("sherpa", "sherpa-onnx 2.0.1: voice activity", programs.sherpa),
            ("extensions", "onnxruntime-extensions 0.15.2, by the C library",
             lambda ours: programs.program(ours, "extensions", str(programs.ours if ours else programs.real))),
            ("genai", "onnxruntime-genai 0.18.0: a model of `sdx convert`", programs.genai(programs.converted())),
        ]  # fmt: skip
        models = Path(os.environ.get("SDX_TEST_MODELS", "none")) / "llm_stories260k"
        for kind in ("fp32", "int4"):
            if (models / f"genai_{kind}").exists():
                clients.append((f"genai_{kind}", f"onnxruntime-genai 0.18.0: stories, {kind}", programs.genai(models / f"genai_{kind}")))
        if args.go:
            clients.append(("go", "onnxruntime_go: its own tests", programs.go(args.go)))
        return turns.report([c for c in clients if not args.clients or c[0] in args.clients], args.rounds, args.markdown)


if __name__ == "__main__":
    sys.exit(main())
