"""The compiled-model cache under kills, damage, staleness and races: compiled_test.py SDX [KILLS]

Whatever lies in the cache, a run succeeds and its results are, bit by bit, those of a run without.
"""

import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / part) for part in ("cli", "support")]
from scratch import scratch  # noqa: E402
import tiny_models as tiny  # noqa: E402

RANDOM = random.Random(20)


class Fault(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Fault(what)


def weights(name, *shape, seed):
    draw = random.Random(seed)
    count = 1
    for extent in shape:
        count *= extent
    return tiny.tensor(name, tiny.FLOAT, shape, struct.pack(f"<{count}f", *(draw.uniform(-0.2, 0.2) for _ in range(count))))


def network(seed):
    """Weights that are packed (convolutions, products), read as they are (Add, Gather), folded (BatchNormalization)."""
    nodes = [
        tiny.node("Conv", ["X", "w1"], ["a"]),
        tiny.node("BatchNormalization", ["a", "scale", "shift", "mean", "spread"], ["b"]),
        tiny.node("Relu", ["b"], ["c"]),
        tiny.node("Conv", ["c", "w2"], ["d"]),
        tiny.node("GlobalAveragePool", ["d"], ["e"]),
        tiny.node("Flatten", ["e"], ["f"]),
        tiny.node("MatMul", ["f", "w3"], ["g"]),
        tiny.node("Add", ["g", "w4"], ["h"]),
        tiny.node("Gather", ["table", "I"], ["i"]),
        tiny.node("Mul", ["h", "i"], ["Y"]),
    ]
    constants = [weights("w1", 32, 3, 3, 3, seed=seed), weights("scale", 32, seed=2), weights("shift", 32, seed=3),
                 weights("mean", 32, seed=4), tiny.tensor("spread", tiny.FLOAT, [32], tiny.floats(*[1.5] * 32)),
                 weights("w2", 64, 32, 3, 3, seed=5), weights("w3", 64, 1024, seed=6), weights("w4", 1, 1024, seed=7),
                 weights("table", 8, 1024, seed=8)]
    return tiny.model(nodes, [tiny.value_info("X", tiny.FLOAT, [1, 3, 20, 20]), tiny.value_info("I", tiny.INT64, [1])],
                      [tiny.value_info("Y", tiny.FLOAT, [1, 1024])], constants)


class Place:
    """A folder with a model and a cache."""

    def __init__(self, program, folder, seed=1):
        self.program, self.folder = program, folder
        self.model = folder / "net.onnx"
        self.cache = folder / "cache"
        self.model.write_bytes(network(seed))
        draw = random.Random(9)
        image = struct.pack("<1200f", *(draw.uniform(-1, 1) for _ in range(1200)))
        (folder / "x.npy").write_bytes(tiny.npy("<f4", (1, 3, 20, 20), image))

    def words(self, *extra, cache=None, threads=1):
        return [self.program, "run", str(self.model), "-p", "cpu", "-i", "X=x.npy", "-i", "I=[3]", "-t", str(threads), "--json", "--cache-dir",
                str(cache or self.cache), *extra]

    def run(self, *extra, env=None, cache=None, prepare=None, threads=1):
        done = subprocess.run(self.words(*extra, cache=cache, threads=threads), cwd=self.folder, capture_output=True, text=True, timeout=120,
                              env={**os.environ, **(env or {})}, preexec_fn=prepare)
        expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr}")
        said = json.loads(done.stdout)
        return said["outputs"], said["report"].get("compiled", "")

    def plain(self, **named):
        outputs, compiled = self.run("--no-cache", **named)
        expect(compiled == "", "--no-cache used the cache")
        return outputs

    def file(self):
        found = list(self.cache.glob("cpu/*/compiled.sdx"))
        expect(len(found) == 1, f"compiled models: {found}")
        return found[0]

    def keep(self):
        """Writes the cache and returns its file."""
        self.run("--keep-compiled")
        return self.file()


def same_results(place, kills):
    wanted = place.plain()
    expect(place.run() == (wanted, ""), "nothing was to be kept, but something was")
    first, compiled = place.run("--keep-compiled")
    expect(first == wanted and compiled == "", "the writing run differs")
    file = str(place.file())
    expect(place.run() == (wanted, file), "a start from the cache differs")
    expect(place.run("--keep-compiled") == (wanted, file), "a second --keep-compiled compiled again")
    expect(place.run(threads=2)[1] == file, "another number of threads is no reason to compile again")
    # Other inputs than declared, and another graph: compiled from the model.
    (place.folder / "big.npy").write_bytes(tiny.npy("<f4", (1, 3, 24, 24), struct.pack("<1728f", *([0.25] * 1728))))
    bigger = ["-i", "X=big.npy"]
    words = [w if w != "X=x.npy" else bigger[1] for w in place.words()]
    done = subprocess.run(words, cwd=place.folder, capture_output=True, text=True, timeout=120)
    without = subprocess.run([*words, "--no-cache"], cwd=place.folder, capture_output=True, text=True, timeout=120)
    expect(done.returncode == 0, done.stderr)
    expect(json.loads(done.stdout)["outputs"] == json.loads(without.stdout)["outputs"], "other extents differ")
    expect(place.run("--no-optimize")[1] == "", "another graph was answered from the cache")
    return "same results"


def killed_writers(place, kills):
    wanted = place.plain()
    start = time.monotonic()
    place.keep()
    longest = (time.monotonic() - start) * 1.1
    killed = 0
    for i in range(kills):
        if i % 3 != 2:
            shutil.rmtree(place.cache, ignore_errors=True)
        process = subprocess.Popen(place.words("--keep-compiled"), cwd=place.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(RANDOM.uniform(0, longest))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        if i % 5 == 0:
            expect(place.run()[0] == wanted, "wrong results after a kill")
    time.sleep(0.05)  # a file that was changed just now is verified, but not yet remembered as verified
    place.keep()
    left = sorted(p.name for p in place.file().parent.iterdir())
    expect(left == [".lock", ".sealed", "compiled.sdx"], f"left behind: {left}")
    expect(place.run() == (wanted, str(place.file())), "not usable after kills")
    return f"{killed} of {kills} writers killed"


def flipped_bytes(place, kills):
    wanted = place.plain()
    file = place.keep()
    good, sealed = file.read_bytes(), (file.parent / ".sealed").read_bytes()
    used = 0

    def check(what):
        nonlocal used
        outputs, compiled = place.run()
        expect(outputs == wanted, f"wrong results after {what}")
        used += compiled != ""
        expect(place.run() == (wanted, str(file)), f"not mended after {what}")

    positions = [*range(0, 64, 7), *(RANDOM.randrange(64, 4096) for _ in range(10)),
                 *(RANDOM.randrange(len(good)) for _ in range(max(10, kills // 2)))]
    for at in positions:
        damaged = bytearray(good)
        damaged[at] ^= 1 << RANDOM.randrange(8)
        stamp = file.stat()
        with open(file, "r+b") as f:  # in place, and with the old time
            f.write(damaged)
        os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        check(f"a flipped bit at {at} of {len(good)}")
        if place.file().read_bytes() != good:
            good = file.read_bytes()
    for cut in (0, 1, 63, 64, 4096, len(good) // 2, len(good) - 1):
        os.truncate(file, cut)
        check(f"truncation to {cut}")
    for content in (b"", b"\0" * len(sealed), sealed[: len(sealed) // 2], os.urandom(200)):
        (file.parent / ".sealed").write_bytes(content)
        check("damage to .sealed")
    return f"{len(positions)} flipped bits; {used} runs could still use the file (padding)"


def stale_models(place, kills):
    place.keep()
    before = place.plain()
    stamp = place.model.stat()
    changed = network(seed=77)
    expect(len(changed) == stamp.st_size, "the other model has another size")
    with open(place.model, "r+b") as f:
        f.write(changed)
    os.utime(place.model, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    wanted = place.plain()
    expect(wanted != before, "the other model gives the same results")
    expect(place.run() == (wanted, ""), "a changed model of the same size and time was answered from the cache")
    expect(place.run() == (wanted, str(place.file())), "a stale file was not replaced")
    # The same bytes with other times and another inode: still good, and quick again afterwards.
    shutil.copy(place.model, place.folder / "copy")
    os.replace(place.folder / "copy", place.model)
    time.sleep(0.05)
    expect(place.run() == (wanted, str(place.file())), "a copied model was compiled again")
    expect(f" {place.model.stat().st_ino} " in (place.file().parent / ".sealed").read_text(), "the copy was not remembered")
    return "stale models found"


def other_machines(place, kills):
    file = place.keep()
    for isa in ("scalar", "sse4", "avx2", "avx512"):
        env = {"SDX_CPU_ISA": isa}
        tried = subprocess.run([place.program, "providers"], capture_output=True, env={**os.environ, **env})
        probe = subprocess.run(place.words("--no-cache"), cwd=place.folder, capture_output=True, env={**os.environ, **env})
        if tried.returncode != 0 or probe.returncode != 0:
            continue  # this machine lacks it
        wanted = place.plain(env=env)
        outputs, compiled = place.run(env=env)
        expect(outputs == wanted, f"{isa}: other results than without the cache")
        expect(compiled in ("", str(file)), f"{isa}: {compiled}")
        place.run("--keep-compiled", env=env)
        outputs, compiled = place.run(env=env)
        expect(outputs == wanted and compiled != "", f"{isa}: not kept")
    expect(len(list(place.cache.glob("cpu/*/compiled.sdx"))) >= 2, "all instruction sets share a file")
    reference = {"SDX_CPU_KERNEL": "reference"}
    expect(place.run(env=reference)[1] == "", "SDX_CPU_KERNEL was ignored")
    return "instruction sets kept apart"


def races(place, kills):
    wanted = place.plain()
    for _ in range(max(3, kills // 10)):
        shutil.rmtree(place.cache, ignore_errors=True)
        together = [subprocess.Popen(place.words("--keep-compiled"), cwd=place.folder, stdout=subprocess.PIPE, text=True)
                    for _ in range(4)]
        for process in together:
            said = json.loads(process.communicate(timeout=120)[0])
            expect(process.returncode == 0 and said["outputs"] == wanted, "wrong results in a race")
        expect(place.run() == (wanted, str(place.file())), "not usable after a race")
    return "races"


def unwritable(place, kills):
    wanted = place.plain()
    blocked = place.folder / "blocked"
    blocked.write_text("a file")
    expect(place.run("--keep-compiled", cache=blocked) == (wanted, ""), "a file in place of the cache folder")
    if os.path.isdir("/proc/self"):
        expect(place.run("--keep-compiled", cache="/proc/self/nothing") == (wanted, ""), "a folder that cannot be made")

    def small_files():  # as on a full disk: writing stops in the middle
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    expect(place.run("--keep-compiled", prepare=small_files) == (wanted, ""), "a full disk")
    expect(not list(place.cache.glob("cpu/*/compiled.sdx*")), "half a file was left")
    # A cache that can be read but not written serves all the same.
    file = place.keep()
    for name in (".sealed", ".lock"):
        (file.parent / name).unlink()
    file.parent.chmod(0o555)
    expect(place.run() == (wanted, str(file)), "a read-only cache is of no use")
    file.parent.chmod(0o755)
    return "folders that cannot be written"


def housekeeping(place, kills):
    file = place.keep()
    common = ["--cache-dir", str(place.cache)]
    listed = subprocess.run([place.program, "cache", "ls", *common], capture_output=True, text=True)
    expect("net.onnx" in listed.stdout and "cpu" in listed.stdout, f"not listed: {listed.stdout} {listed.stderr}")
    cleared = subprocess.run([place.program, "cache", "clear", "cpu", *common], capture_output=True, text=True)
    expect(cleared.returncode == 0 and not file.exists(), f"not cleared: {cleared.stdout} {cleared.stderr}")
    expect(place.run()[1] == "", "used although it was cleared")
    return "sdx cache"


def projects(place, kills):
    def sdx(*words):
        done = subprocess.run([place.program, *words], cwd=place.folder, capture_output=True, text=True, timeout=120)
        expect(done.returncode == 0, f"{words}: {done.stderr}")
        return done.stdout

    (place.folder / "sdx.yml").write_text("name: net\nmodel: net.onnx\nruntime: {providers: [cpu], threads: 1}\n")
    sdx("build")
    run = ["run", "net", "-i", "X=x.npy", "-i", "I=[3]", "--json"]
    said = json.loads(sdx(*run))
    expect("/.sdx/cache/cpu/" in "/" + said["report"].get("compiled", ""), f"the build is not mapped: {said['report']}")
    expect(said["outputs"] == json.loads(sdx(*run, "--no-cache"))["outputs"], "a built project gives other results")
    place.model.write_bytes(network(seed=78))
    sdx("build")
    files = list((place.folder / ".sdx" / "cache" / "cpu").glob("*/compiled.sdx"))
    expect(len(files) == 1, f"an old compiled model stays: {files}")
    expect(json.loads(sdx(*run))["report"].get("compiled"), "the second build is not mapped")
    return "projects"


def main():
    program = str(Path(sys.argv[1]).resolve())
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    only = sys.argv[3:]
    failed = False
    for test in (same_results, killed_writers, flipped_bytes, stale_models, other_machines, races, unwritable, housekeeping, projects):
        if only and test.__name__ not in only:
            continue
        with scratch() as folder:
            try:
                print(f"{test.__name__}: {test(Place(program, folder), kills)}", flush=True)
            except Fault as fault:
                failed = True
                print(f"FAIL {test.__name__}: {fault}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
