"""Kills `sdx train` at random moments: kill_test.py SDX [KILLS]

Whenever it is killed, the last checkpoint opens, and `--resume` goes on with the losses that a training without a stop has. So does a
training that Ctrl-C, a full disk or a loss that is not finite ended.
"""

import json
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import training_files as files

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

EPOCHS, SAMPLES, BATCH = 40, 200, 10


class Fault(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Fault(what)


def sdx(program, folder, *words, code=0, **more):
    result = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=300, **more)
    expect(result.returncode == code, f"{words}: exit code {result.returncode}: {result.stderr[-2000:]}")
    return result


def write_task(program, folder):
    rng = random.Random(11)
    x = [rng.gauss(0, 1) for _ in range(SAMPLES * 8)]
    y = [0 if x[8 * i] > 0.3 else 1 if x[8 * i + 1] > 0 else 2 for i in range(SAMPLES)]
    for value in (3, 70):
        y[value] = (y[value] + 1) % 3
    files.npz(folder / "data.npz", x=("<f4", [SAMPLES, 8], files.floats(x)), y=("<i8", [SAMPLES], files.ints(y)))
    (folder / "net.onnx").write_bytes(files.mlp(8, 256, 3).onnx(3))
    sdx(program, folder, "artifacts", "net.onnx", "-o", "art", "--loss", "cross-entropy", "--optimizer", "adamw")


def words(checkpoint, *more):
    return ["train", "art", "--data", "data.npz", "--epochs", str(EPOCHS), "--batch", str(BATCH), "--lr", "0.003", "--schedule", "cosine",
            "--warmup", "20", "--validation-split", "0.2", "--save-every", "5", "--seed", "3", "--json", "-t", "1", "-o", checkpoint, *more]


def steps(text):
    """{batches done: loss} of whole lines."""
    out, epochs = {}, {}
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # cut off by the kill
        if event["event"] == "step":
            out[event["batches_done"]] = event["loss"]
        elif event["event"] == "epoch":
            epochs[event["epoch"]] = (event["loss"], event["validation_loss"])
    return out, epochs


def check_like(reference, text, what):
    got, epochs = steps(text)
    for at, loss in got.items():
        expect(loss == reference[0][at], f"{what}: the loss of batch {at} is {loss}, and {reference[0][at]} without a stop")
    for at, losses in epochs.items():
        expect(losses == reference[1][at], f"{what}: the losses of epoch {at} are {losses}, and {reference[1][at]} without a stop")
    return got


def kill_one(program, folder, longest, reference, sign):
    """Runs and kills once; what was printed agrees with the reference."""
    with open(folder / "out.jsonl", "w+") as out:
        process = subprocess.Popen([program, *words("killed", "--resume")], cwd=folder, stdout=out, stderr=subprocess.PIPE, text=True)
        time.sleep(random.uniform(0, longest))
        process.send_signal(sign)
        error = process.communicate(timeout=120)[1]
        out.seek(0)
        check_like(reference, out.read(), "killed")
    if (folder / "killed").exists():
        sdx(program, folder, "checkpoint", "show", "killed")
    if (folder / "killed.best").exists():
        sdx(program, folder, "checkpoint", "show", "killed.best")
    return process.returncode, error


def kills(program, folder, count, reference, whole_model):
    start = time.monotonic()
    sdx(program, folder, *words("timed"))
    longest = time.monotonic() - start
    killed = interrupted = 0
    for i in range(count):
        sign = signal.SIGINT if i % 5 == 4 else signal.SIGKILL
        # Short ones, so that one training is killed several times.
        code, error = kill_one(program, folder, longest * random.choice((0.3, 0.6, 1.1)), reference, sign)
        killed += code == -signal.SIGKILL
        if code == 130:
            interrupted += 1
            expect("--resume continues" in error, f"no word of how to go on: {error}")
        if code == 0 or i == count - 1 or i % 6 == 5:  # complete it, and begin another
            done = sdx(program, folder, *words("killed", "--resume", "--export", "killed.onnx"))
            check_like(reference, done.stdout, "resumed")
            expect((folder / "killed.onnx").read_bytes() == whole_model, "the trained model is another one than without kills")
            for name in ("killed", "killed.best"):
                (folder / name).unlink(missing_ok=True)
    left = [p.name for p in folder.iterdir() if p.name.startswith("killed") and p.name not in ("killed.onnx", "killed", "killed.best")]
    expect(all("tmp" in name or name.startswith("killed.") for name in left), f"files left: {left}")
    return killed, interrupted


def full_disk(program, folder, reference):
    """The disk is full when a later checkpoint is written: an error, and the earlier one is whole."""
    stop = folder / "full"
    sdx(program, folder, *words("full"))
    before = stop.read_bytes()

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then writing fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))

    more = words("full", "--resume")
    more[more.index("--epochs") + 1] = str(EPOCHS + 5)
    result = sdx(program, folder, *more, code=1, preexec_fn=limit, restore_signals=False)
    expect("full" in result.stderr and "the last complete checkpoint is" in result.stderr, f"another message: {result.stderr}")
    expect(stop.read_bytes() == before, "the checkpoint from before has changed")
    expect([p.name for p in folder.iterdir() if p.name.startswith("full")] in (["full", "full.best"], ["full.best", "full"]),
           "files are left")


def not_finite(program, folder):
    """A loss that is not finite ends the training; what was saved before stays."""
    bad = words("wild", "--optimizer", "sgd")
    bad[bad.index("--save-every") + 1] = "1"
    bad[bad.index("--lr") + 1] = "1e30"
    bad[bad.index("--schedule") + 1] = "constant"
    result = sdx(program, folder, *bad, code=1)
    expect("the loss of step" in result.stderr and "in epoch 1, batch" in result.stderr, f"another message: {result.stderr}")
    sdx(program, folder, "checkpoint", "show", "wild")


def main():
    program = str(Path(sys.argv[1]).resolve())
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    with scratch() as folder:
        try:
            write_task(program, folder)
            whole = sdx(program, folder, *words("whole", "--export", "whole.onnx"))
            reference = steps(whole.stdout)
            expect(len(reference[0]) == EPOCHS * (SAMPLES * 8 // 10 // BATCH), f"{len(reference[0])} steps")
            again = sdx(program, folder, *words("again"))
            check_like(reference, again.stdout, "the same again")
            killed, interrupted = kills(program, folder, count, reference, (folder / "whole.onnx").read_bytes())
            full_disk(program, folder, reference)
            not_finite(program, folder)
        except Fault as fault:
            print(f"FAIL: {fault}")
            return 1
    print(f"{killed} of {count} killed, {interrupted} interrupted: every checkpoint opened, and training went on with the same losses")
    return 0


if __name__ == "__main__":
    sys.exit(main())
