"""The provider `vulkan` on one device: run.py BUILD OUT [--models NAME,...] [--device NAME] [--cpu-device] [--seconds N]

In this order, each part within its share of the time, and each result written at once to OUT/results.json, as what comes later may fail:
device      what `sdx providers` and vulkaninfo say
tests       sdx_vulkan_tests
compare     outputs of each model, beside provider cpu
torch       the rates of copies and products that PyTorch reaches, which are what the device can do
bench       each model on vulkan and, where they are there, webgpu and PyTorch's own networks: first run, median, memory
At the end OUT/results.md has a table. --cpu-device: a driver that computes on the CPU, to rehearse.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODELS = ("resnet50", "mobilenet_v3_large", "yolov8n", "convnext_t", "vit_b16", "swin_t", "detr", "bert_base_128", "whisper_tiny_encoder",
          "conformer", "gpt2_prefill_128")  # fmt: skip
SHARES = {"tests": 0.15, "compare": 0.3, "torch": 0.05, "bench": 0.4}


class Script:
    def __init__(self, given):
        self.given, self.start = given, time.monotonic()
        self.out = Path(given.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.results = {}
        self.options = []
        if given.device:
            self.options.append(f"vulkan.device_id={given.device}")
        if given.cpu_device:
            self.options.append("vulkan.device_type=CPU")
        self.sdx = str(Path(given.build) / "bin" / "sdx")

    def run(self, *words, seconds):
        """(exit code or None for too long, output)"""
        try:
            done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=max(1.0, seconds), env={**os.environ, "SDX_LOG": "error"}, check=False)
        except subprocess.TimeoutExpired as e:
            return None, (e.stdout or b"").decode(errors="replace") if isinstance(e.stdout, bytes) else e.stdout or ""
        return done.returncode, done.stdout

    def keep(self, part, value):
        self.results[part] = value
        (self.out / "results.json").write_text(json.dumps(self.results, indent=1) + "\n")

    def options_of(self):
        return [word for option in self.options for word in ("--provider-option", option)]

    def models(self):
        """Paths by name, of models that could be made."""
        folder = Path(self.given.models_folder or self.out / "models")
        def found(name):
            return next(iter(sorted([*folder.glob(f"{name}.onnx"), *folder.glob(f"{name}.v*.onnx")])), None)

        missing = [name for name in self.given.models if not found(name)]
        if missing:
            code, said = self.run(sys.executable, "-B", HERE.parent / "suite" / "models.py", folder, *missing, seconds=180)
            if code != 0:
                print(said[-2000:], file=sys.stderr)
        return {name: found(name) for name in self.given.models if found(name)}

    def device(self):
        _, listed = self.run(self.sdx, "providers", "--json", seconds=20)
        found = [p for p in json.loads(listed[listed.index("{"):])["providers"] if p["name"] == "vulkan"] if "{" in listed else []
        facts = ""
        if shutil.which("vulkaninfo"):
            _, facts = self.run("vulkaninfo", seconds=20)
            (self.out / "vulkaninfo.txt").write_text(facts)
        self.keep("device", found[0] if found else {"reason": listed[-500:]})

    def tests(self, seconds):
        program = Path(self.given.build) / "bin" / "sdx_vulkan_tests"
        code, said = self.run(program, "--gtest_brief=1", seconds=seconds) if program.is_file() else (None, "not built")
        (self.out / "tests.txt").write_text(said)
        self.keep("tests", {"exit_code": code, "last": said.strip().splitlines()[-1:]})

    def compare(self, models, seconds):
        found = {}
        end = time.monotonic() + seconds
        for name, path in models.items():
            code, said = self.run(self.sdx, "compare-outputs", path, "-b", "vulkan,cpu", "--fallback", "warn", *self.options_of(),
                                  seconds=end - time.monotonic())
            found[name] = {"exit_code": code, "said": said.strip().splitlines()[-6:]}
            self.keep("compare", found)

    def torch(self, seconds):
        code, said = self.run(sys.executable, "-B", HERE / "ceilings.py", seconds=seconds)
        self.keep("torch", json.loads(said.strip().splitlines()[-1]) if code == 0 else {"why": said.strip()[-300:]})

    def bench(self, models, seconds):
        found = {}
        end = time.monotonic() + seconds
        for i, (name, path) in enumerate(models.items()):
            file = self.out / f"bench-{name}.json"
            share = (end - time.monotonic()) / (len(models) - i)
            each = max(1.0, share / 3 / len(self.given.backends))  # the rest is for opening, first runs and warming up
            backends = [word for b in self.given.backends for word in ("-b", b)]
            code, said = self.run(self.sdx, "bench", path, *backends, "--json", file, "--duration", f"{each:.0f}s", "-w", "2", "--rounds", "4",
                                  "--fallback", "warn", *self.options_of(), seconds=end - time.monotonic())
            rows = json.loads(file.read_text())["results"] if code == 0 and file.is_file() else []
            figures = ("provider", "error", "median_ms", "first_run_ms", "init_ms", "peak_rss_mb")
            found[name] = {r["backend"]: {f: r.get(f) for f in figures} for r in rows} or {"why": said.strip()[-300:] if code is not None else "took longer than its share of the time"}
            self.keep("bench", found)

    def table(self):
        backends = self.given.backends
        lines = ["| model | differs from cpu | " + " | ".join(f"{b}, ms" for b in backends) + " |", "|---" * (2 + len(backends)) + "|"]
        for name, by in self.results.get("bench", {}).items():
            said = " ".join(self.results.get("compare", {}).get(name, {}).get("said", []))
            same = "no" if re.search(r"\bsame\b", said) else "see results.json"
            cells = [f"{by[b]['median_ms']:.2f}" if by.get(b, {}).get("median_ms") else "–" for b in backends]
            lines.append(f"| {name} | {same} | " + " | ".join(cells) + " |")
        device = self.results.get("device", {}).get("devices") or ["no device"]
        (self.out / "results.md").write_text(f"# {device[0]}\n\n" + "\n".join(lines) + "\n")

    def whole(self):
        self.device()
        models = self.models()
        left = self.given.seconds - (time.monotonic() - self.start)
        self.tests(left * SHARES["tests"])
        self.compare(models, left * SHARES["compare"])
        self.torch(left * SHARES["torch"])
        self.bench(models, left * SHARES["bench"])
        self.table()
        print((self.out / "results.md").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("out")
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--models-folder")
    parser.add_argument("--backends", type=lambda text: text.split(","), default=["vulkan", "webgpu", "cpu"])
    parser.add_argument("--device", default="")
    parser.add_argument("--cpu-device", action="store_true")
    parser.add_argument("--seconds", type=float, default=450)
    Script(parser.parse_args()).whole()


if __name__ == "__main__":
    main()
