"""Real tasks: learn_test.py SDX [pictures|shapes|transfer|digits]...

Small networks learn drawn shapes, as a folder of pictures and as arrays, all of their layers or the last one alone, and scikit-learn's
digits. Where PyTorch is there, it trains the same network from the same weights with the same batches, and neither may be more than
half a per cent behind the other, or two samples. Exit code 77: what was asked for needs a package that is not there.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import training_files as files

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

CHILD = "LEARN_TEST_TORCH"


class Fault(Exception):
    pass


def sdx(program, folder, *words):
    result = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=300)
    if result.returncode != 0:
        raise Fault(f"{words}: exit code {result.returncode}: {result.stderr[-2000:]}")
    return result.stdout


def accuracy(program, folder, *words):
    start = time.monotonic()
    lines = [json.loads(line) for line in sdx(program, folder, "train", *words, "--json").splitlines()]
    last = [line for line in lines if line["event"] == "epoch"][-1]
    return last["validation_accuracy"], last["loss"], time.monotonic() - start


# The last layer alone: AdamW on features; else on everything.
def torch_accuracy(task):
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = getattr(files, task["net"])(*task["arguments"])
    weights = {n: torch.tensor(v).reshape(s) for n, (s, v) in net.weights.items()}
    trained = [n for n in weights if not task["head"] or n.startswith("classifier")]
    for name in trained:
        weights[name].requires_grad_(True)
    data = {k: (torch.tensor(v) if k[-1] == "y" else torch.tensor(v).reshape(len(v), *task["shape"])) for k, v in task["data"].items()}
    optimizer = torch.optim.AdamW([weights[n] for n in trained], lr=task["lr"], betas=(0.9, 0.999), eps=1e-6, weight_decay=0)
    first = len(net.steps) - 1 if task["head"] else 0
    if task["head"]:  # the frozen layers, once
        with torch.no_grad():
            data = {k: v if k[-1] == "y" else net.torch_forward(torch, weights, v, 0, first) for k, v in data.items()}
    loss_value = 0
    for _ in range(task["epochs"]):
        loss_value = 0
        for at in range(0, len(data["x"]), task["batch"]):
            x, y = data["x"][at:at + task["batch"]], data["y"][at:at + task["batch"]]
            loss = torch.nn.functional.cross_entropy(net.torch_forward(torch, weights, x, first), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_value += loss.item() * len(x)
    with torch.no_grad():
        right = net.torch_forward(torch, weights, data["eval_x"], first).argmax(1) == data["eval_y"]
    return right.float().mean().item(), loss_value / len(data["x"])


def in_torch(task):
    """(accuracy, loss of the last epoch) of PyTorch, by an interpreter that has it; None: there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        if not Path(python).exists() or subprocess.run([python, "-c", "import torch"], capture_output=True).returncode != 0:
            continue
        start = time.monotonic()
        result = subprocess.run([python, "-B", __file__], input=json.dumps(task), capture_output=True, text=True, timeout=600,
                                env={**os.environ, CHILD: "1"})
        if result.returncode != 0:
            raise Fault(f"PyTorch: {result.stderr[-1500:]}")
        return (*json.loads(result.stdout.splitlines()[-1]), time.monotonic() - start)
    return None


def compare(program, folder, name, task, least, more=(), artifacts=()):
    net = getattr(files, task["net"])(*task["arguments"])
    (folder / "net.onnx").write_bytes(net.onnx(10))
    data = task["data"]
    x, y = files.labelled(data["x"], data["y"], task["shape"])
    ex, ey = files.labelled(data["eval_x"], data["eval_y"], task["shape"])
    files.npz(folder / "data.npz", x=x, y=y, eval_x=ex, eval_y=ey)
    sdx(program, folder, "artifacts", "net.onnx", "-o", "art", "--loss", "cross-entropy", "--optimizer", "adamw", *artifacts)
    ours, loss, seconds = accuracy(program, folder, "art", "--data", "data.npz", "--epochs", str(task["epochs"]), "--batch",
                                   str(task["batch"]), "--lr", str(task["lr"]), "--no-shuffle", "--export", "trained.onnx", *more)
    said = f"{name}: {100 * ours:.2f} % of {len(data['eval_x'])} right, loss {loss:.4f}, {seconds:.1f} s"
    torch = in_torch(task)
    if torch:
        said += f"; PyTorch {100 * torch[0]:.2f} %, loss {torch[1]:.4f}, {torch[2]:.1f} s"
    print(said, flush=True)
    if ours < least:
        raise Fault(f"{name}: {100 * ours:.2f} % are right, expected {100 * least:.0f} %")
    if torch and abs(ours - torch[0]) > max(0.005, 2.01 / len(data["eval_x"])):
        raise Fault(f"{name}: {100 * ours:.2f} % are right, and {100 * torch[0]:.2f} % with PyTorch")


def shape_data(train, test):
    pictures, labels = files.shapes(train + test)
    return {"x": pictures[:train], "y": labels[:train], "eval_x": pictures[train:], "eval_y": labels[train:]}


def shapes(program, folder):
    task = {"net": "small_cnn", "arguments": [16, 10], "shape": [1, 16, 16], "head": False, "epochs": 12, "batch": 20, "lr": 0.003,
            "data": shape_data(1000, 400)}
    compare(program, folder, "shapes, a small CNN", task, 0.9)


def transfer(program, folder):
    task = {"net": "small_mobilenet", "arguments": [16, 10], "shape": [1, 16, 16], "head": True, "epochs": 60, "batch": 20, "lr": 0.01,
            "data": shape_data(1000, 400)}
    # Without what is cached, three epochs say enough: the losses are the same.
    frozen = ("--requires-grad", "classifier.*", "--fixed-statistics")
    compare(program, folder, "shapes, the last layer of inverted residuals", task, 0.7, ("--cache-features",), frozen)
    words = ["art", "--data", "data.npz", "--epochs", "3", "--batch", "20", "--no-shuffle", "-o"]
    cached = accuracy(program, folder, *words, "a", "--cache-features")
    plain = accuracy(program, folder, *words, "b")
    print(f"transfer, three epochs: {plain[2]:.2f} s, {cached[2]:.2f} s with --cache-features", flush=True)
    if abs(cached[1] - plain[1]) > 1e-4 * plain[1]:
        raise Fault(f"transfer: the loss is {plain[1]}, and {cached[1]} with --cache-features")


def digits(program, folder):
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        print("digits: scikit-learn is not there")
        return False
    loaded = load_digits()
    order = list(range(len(loaded.target)))
    files.random.Random(5).shuffle(order)
    x = [[float(v) / 16 for v in loaded.data[i]] for i in order]
    y = [int(loaded.target[i]) for i in order]
    data = {"x": x[:1400], "y": y[:1400], "eval_x": x[1400:], "eval_y": y[1400:]}
    whole = {"net": "small_cnn", "arguments": [8, 10], "shape": [1, 8, 8], "head": False, "epochs": 25, "batch": 20, "lr": 0.002, "data": data}
    compare(program, folder, "digits, a small CNN", whole, 0.97)
    last = {**whole, "net": "small_mobilenet", "head": True, "epochs": 60, "lr": 0.01}
    compare(program, folder, "digits, the last layer of inverted residuals", last, 0.9, ("--cache-features",),
            ("--requires-grad", "classifier.*", "--fixed-statistics"))
    return True


def pictures(program, folder):
    """A folder of pictures, changed at random in each epoch, to an exported model that tells them apart."""
    drawn, labels = files.shapes(800)
    files.write_pictures(folder / "pictures", drawn[:600], labels[:600], 16)
    files.write_pictures(folder / "others", drawn[600:], labels[600:], 16)
    (folder / "net.onnx").write_bytes(files.small_cnn(16, 10).onnx(10))
    sdx(program, folder, "artifacts", "net.onnx", "-o", "art", "--loss", "cross-entropy", "--optimizer", "adamw")
    right, loss, seconds = accuracy(program, folder, "art", "--data", "pictures", "--eval", "others", "--epochs", "15", "--lr", "0.003",
                                    "--augment", "flip,colour", "--export", "trained.onnx", "--labels", "labels.txt", "--report",
                                    "report.html")
    print(f"a folder of pictures: {100 * right:.2f} % of 200 right, loss {loss:.4f}, {seconds:.1f} s", flush=True)
    if right < 0.85:
        raise Fault(f"pictures: {100 * right:.2f} % are right")
    if (folder / "labels.txt").read_text().split() != sorted(files.SHAPES):
        raise Fault("pictures: other labels than the folders' names")
    example = next((folder / "others" / "plus").iterdir())
    said = sdx(program, folder, "run", "trained.onnx", "-i", f"x={example}", "--labels", "labels.txt", "--softmax", "--json")
    if "plus" not in said:
        raise Fault(f"pictures: the exported model says {said[:500]}")


TASKS = {"pictures": pictures, "shapes": shapes, "transfer": transfer, "digits": digits}


def main():
    if os.environ.get(CHILD):
        print(json.dumps(torch_accuracy(json.load(sys.stdin))))
        return 0
    program = str(Path(sys.argv[1]).resolve())
    skipped = failed = 0
    wanted = sys.argv[2:] or list(TASKS)
    for name in wanted:
        with scratch() as folder:
            try:
                skipped += TASKS[name](program, folder) is False
            except Fault as fault:
                failed += 1
                print(f"FAIL {fault}")
    return 1 if failed else 77 if skipped == len(wanted) else 0


if __name__ == "__main__":
    sys.exit(main())
