"""run.py PROJECT BUILD WHICH [WHEELS]: installs the wheel that `make wheel` packs in a bare Debian 12 (tools/bare_root.sh) and runs a model
there, with Debian's own Python (WHICH: debian) or another version's (3.9, …), which is mounted there; or in another Debian (bullseye,
trixie) with its own Python. The model decodes pictures and matches text, so that every library that is linked in has something to do.
`pack` packs the wheel. WHEELS: the wheel's folder, instead of build/wheel. Exit code 77: skipped, with the reason."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

SKIPPED = 77
SUITES = {"debian": "", "bullseye": "3.9", "trixie": ""}  # and the Python for which NumPy is taken from elsewhere, where the system's is too old
ABSENT = ["png16", "jpeg", "openjp2", "webp", "utf8proc", "yaml-cpp", "fmt"]  # the bare system would not be bare


def skip(why):
    print(why)
    sys.exit(SKIPPED)


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def make_model(path):
    """A convolution, a product, texts, and a picture in each format."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    inits = [helper.make_tensor("w", TensorProto.FLOAT, w.shape, w.ravel())]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
        helper.make_node("RegexFullMatch", ["texts"], ["matches"], pattern="[a-z]+\\d*"),
        helper.make_node("StringNormalizer", ["texts"], ["upper"], case_change_action="UPPER"),
    ]
    outputs = [value("y", TensorProto.FLOAT, None), value("matches", TensorProto.BOOL, None), value("upper", TensorProto.STRING, None)]
    names = ["png", "jpeg", "jpeg2000", "webp"]
    for name in names:
        nodes.append(helper.make_node("ImageDecoder", [name], [name + "_pixels"], pixel_format="RGB"))
        outputs.append(value(name + "_pixels", TensorProto.UINT8, None))
    inputs = [value("x", TensorProto.FLOAT, [1, 3, 5, 5]), value("texts", TensorProto.STRING, [3])]
    inputs += [value(name, TensorProto.UINT8, [None]) for name in names]
    graph = helper.make_graph(nodes, "bare", inputs, outputs, inits)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    path.write_bytes(model.SerializeToString())


def make_feed(project):
    # One picture of 16 times 16, red downwards and green to the right.
    pictures = json.loads((project / "tests" / "wheel" / "pictures.json").read_text())
    feed = {
        "x": {"dtype": "float32", "data": np.linspace(-1, 1, 75).reshape(1, 3, 5, 5).tolist()},
        "texts": {"dtype": "object", "data": ["abc12", "No 7", "stra\u00dfe"]},
    }
    for name, coded in pictures.items():
        feed[name] = {"dtype": "uint8", "data": list(base64.b64decode(coded))}
    return feed


def expected_outputs(model, feed):
    import sardonyx

    session = sardonyx.InferenceSession(str(model), providers=["cpu"])
    return [o.tolist() for o in session.run(None, {k: np.array(v["data"], dtype=v["dtype"]) for k, v in feed.items()})]


# Everything is laid over the bare root in a namespace of its own, which ends with this command.
INSIDE = """set -e
mount --make-rprivate /
mount -t tmpfs none "$ROOT/mnt"
mkdir "$ROOT/mnt/site"
cp "$WORK"/* "$ROOT/mnt/"
if [ -n "$HOME_OF_PYTHON" ]; then
  mount -t tmpfs none "$ROOT/$(echo "$HOME_OF_PYTHON" | cut -d/ -f2)"
  mkdir -p "$ROOT/$HOME_OF_PYTHON"
  mount --bind "$HOME_OF_PYTHON" "$ROOT/$HOME_OF_PYTHON"
fi
if [ -n "$NUMPY" ]; then
  mkdir "$ROOT/mnt/numpy"
  mount --bind "$NUMPY" "$ROOT/mnt/numpy"
fi
mount -t proc none "$ROOT/proc"
exec chroot "$ROOT" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/mnt LC_ALL=C.UTF-8 /bin/sh -c "
  set -e
  cd /mnt
  $PYTHON -m pip install --quiet --disable-pip-version-check --no-index --no-deps --target /mnt/site /mnt/*.whl
  PYTHONPATH=/mnt/site:/mnt/numpy $PYTHON -B probe.py model.onnx feed.json"
"""


def main():
    project, build, which = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    wheels = Path(sys.argv[4]) if len(sys.argv) > 4 else project / "build" / "wheel"
    if which == "pack":
        sys.exit(subprocess.run([project / "tools" / "wheel.sh", build, wheels]).returncode)
    suite = which if which in SUITES else "debian"
    root = project / "build" / f"bare-{suite}"
    if not (root / "made-of.txt").exists():
        skip(f"build/bare-{suite} is missing: tools/bare_root.sh makes it")
    packed = list(wheels.glob("*.whl"))
    if not packed:
        skip("no wheel is packed: tools/wheel.sh makes one")
    home, numpy, python = "", "", "/usr/bin/python3"
    if which in SUITES:
        if SUITES[which]:
            numpy = project / "build" / "bare-numpy" / SUITES[which]
            if not numpy.exists():
                skip(f"the NumPy of {which} is too old, and there is no other for its Python {SUITES[which]}")
    else:
        found = subprocess.run([project / "tests" / "wheel" / "find_python.sh", which], capture_output=True, text=True)
        numpy = project / "build" / "bare-numpy" / which
        if found.returncode != 0 or not numpy.exists():
            skip(f"there is no Python {which} with NumPy on this machine")
        python = found.stdout.strip()  # at the same place inside: its library is looked for there
        home = Path(python).parent.parent
    for name in ABSENT:
        if list(root.glob(f"usr/lib/*/lib{name}.so*")):
            sys.exit(f"{root} is not bare: it has lib{name}")
    with scratch(build) as work:
        make_model(work / "model.onnx")
        feed = make_feed(project)
        (work / "feed.json").write_text(json.dumps(feed))
        for file in (packed[0], project / "tests" / "wheel" / "probe.py"):
            (work / file.name).write_bytes(file.read_bytes())
        env = {**os.environ, "ROOT": str(root), "WORK": str(work), "HOME_OF_PYTHON": str(home), "NUMPY": str(numpy), "PYTHON": python}
        own_names = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        if subprocess.run(["unshare", *own_names, "--mount", "true"], capture_output=True).returncode != 0:
            skip("this machine allows no mount namespaces")
        done = subprocess.run(["unshare", *own_names, "--mount", "sh", "-c", INSIDE], env=env, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"failed ({done.returncode})\n{done.stdout}\n{done.stderr}")
        found = json.loads(done.stdout.splitlines()[-1])
        wanted = expected_outputs(work / "model.onnx", feed)
    print({k: v for k, v in found.items() if k != "outputs"})
    if found["foreign"]:
        sys.exit("libraries are loaded that should be linked in")
    if found["outputs"] != wanted:
        sys.exit(f"the answers are others than outside:\n{found['outputs']}\n{wanted}")


if __name__ == "__main__":
    main()
