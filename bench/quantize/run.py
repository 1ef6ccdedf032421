"""Quantised models beside those of ONNX Runtime's own tool: size, agreement with the float model, and speed in our engine.

    run.py [--models NAMES] [--folder FOLDER] [--count N] [--sets NAMES] [--engines] [--seconds S] [--report FILE.md]

Both tools get the same settings (uint8 activations, int8 weights per channel, QDQ, ranges by extremes, and by entropy; 4-bit weights in
blocks of 32, rounded to nearest, for models with more than four MatMul) and the same calibration data; both
models run in ONNX Runtime on other data, with exact sums. Ours also runs in our engine, and must agree with that. --engines measures
both tools' models in both engines in turns.
"""

import argparse
import importlib
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime as ort
import sardonyx
from onnxruntime import quantization as theirs
from sardonyx import quantization as ours

import data

ort.set_default_logger_severity(4)
logging.disable(logging.WARNING)
warnings.simplefilter("ignore")
SETS = ("scalar", "sse4", "avx2 without VNNI", "avx2", "avx512 without VNNI", "avx512")


class Reader(theirs.CalibrationDataReader):
    def __init__(self, batches):
        self.batches = iter(batches)

    def get_next(self):
        return next(self.batches, None)


def run_all(session, batches):
    return [[v for v in session.run(None, b)] for b in batches]


def in_ort(path, batches):
    # Exact on every machine: without VNNI its products of unsigned and signed bytes saturate in 16 bits otherwise. Some models are
    # refused with that setting.
    options = ort.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception:  # noqa: BLE001, whatever it is, the model may run without
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    return run_all(session, batches)


def agreement(expected, received):
    """(the least cosine of an output over all batches, the share of rows with the same largest score or None)"""
    least, rows, same = 1.0, 0, 0
    for i in range(len(expected[0])):
        if not np.issubdtype(expected[0][i].dtype, np.floating):
            continue
        a, b = (np.concatenate([batch[i].ravel().astype(np.float64) for batch in side]) for side in (expected, received))
        length = np.linalg.norm(a) * np.linalg.norm(b)
        least = min(least, float(a @ b / length) if length else float(np.array_equal(a, b)))
        if expected[0][i].ndim == 2 and expected[0][i].shape[1] >= 3:
            for x, y in zip(expected, received):
                rows += len(x[i])
                same += int(np.sum(np.argmax(x[i], 1) == np.argmax(y[i], 1)))
    return least, same / rows if rows else None


def quantize(q, mode, source, out, calibration, per_channel):
    if mode == "dynamic":
        q.quantize_dynamic(source, out)
        return
    if mode == "weight-only":
        nbits = importlib.import_module(f"{q.__name__}.matmul_nbits_quantizer")
        quantizer = nbits.MatMulNBitsQuantizer(onnx.load(source), block_size=32, op_types_to_quantize=("MatMul",))
        quantizer.process()
        onnx.save(quantizer.model.model, out)
        return
    method = q.CalibrationMethod.Entropy if "entropy" in mode else q.CalibrationMethod.MinMax
    q.quantize_static(
        source, out, Reader(calibration), quant_format=q.QuantFormat.QDQ, per_channel=per_channel, activation_type=q.QuantType.QUInt8,
        weight_type=q.QuantType.QInt8, calibrate_method=method,
    )


def theirs_from(path, folder, mode, out, calibration):
    """Of what a user of their tool would try, the first that works: the model as it is, raised to opset 13 (which scales for each channel
    need), and one scale for all of a tensor."""
    prepared, newer = os.path.join(folder, "prepared.onnx"), os.path.join(folder, "newer.onnx")
    said = None
    for raised, per_channel in ((False, True), (True, True), (False, False)):
        try:
            source = path
            if raised:
                onnx.save(onnx.version_converter.convert_version(onnx.load(path), 13), newer)
                source = newer
            theirs.quant_pre_process(source, prepared, skip_symbolic_shape=True)
            quantize(theirs, mode, prepared, out, calibration, per_channel)
            ort.InferenceSession(out, providers=["CPUExecutionProvider"])
            return Path(out)
        except Exception as e:  # noqa: BLE001, whatever the tool does not manage is part of the result
            said = said or f"{type(e).__name__}: {e}"
    return said


def quantized_by(tool, path, folder, calibration, modes):
    """{mode: file or the error's text}"""
    made = {}
    for mode in modes:
        out = os.path.join(folder, f"{tool}.{mode}.onnx")
        if tool == "sardonyx":
            quantize(ours, mode, path, out, calibration, True)
            made[mode] = Path(out)
        else:
            made[mode] = theirs_from(path, folder, mode, out, calibration)
    return made


def measure_accuracy(name, path, calibration, test, folder, modes):
    rows = []
    expected = in_ort(path, test)
    for tool in ("sardonyx", "onnxruntime"):
        for mode, made in quantized_by(tool, path, folder, calibration, modes).items():
            if not isinstance(made, Path):
                rows.append((name, mode, tool, None, made.splitlines()[0][:60], "", ""))
                continue
            size = made.stat().st_size / 1e6
            try:
                got = in_ort(str(made), test)
            except Exception as e:  # noqa: BLE001
                rows.append((name, mode, tool, size, f"ONNX Runtime: {str(e).splitlines()[0][:60]}", "", ""))
                continue
            cosine, top1 = agreement(expected, got)
            both = ""
            if tool == "sardonyx":
                session = sardonyx.InferenceSession(str(made), providers=["CPUExecutionProvider"])
                both = f"{agreement(got, run_all(session, test))[0]:.5f}"
            rows.append((name, mode, tool, size, f"{cosine:.5f}", "" if top1 is None else f"{100 * top1:.0f} %", both))
        print(*rows[-len(modes):], sep="\n", flush=True)
    return rows


def time_of(model, inputs, which, threads, seconds, engine="sardonyx"):
    environment = {**os.environ, "SDX_CPU_ISA": which.split()[0], **({"SDX_CPU_VNNI": "0"} if "without" in which else {})}
    worker = os.path.join(os.path.dirname(__file__), "worker.py")
    command = [sys.executable, "-B", worker, model, inputs, str(threads), str(seconds), engine]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return float(done.stdout) if done.returncode == 0 else None


def measure_speed(name, path, batch, folder, arguments):
    inputs = os.path.join(folder, "inputs.npz")
    np.savez(inputs, **batch)
    rows = []
    for which in arguments.sets.split(","):
        times = {"float": [], "static": [], "dynamic": []}
        for _ in range(arguments.rounds):
            for kind, seen in times.items():
                file = path if kind == "float" else os.path.join(folder, f"sardonyx.{kind}.onnx")
                t = time_of(file, inputs, which, 1, arguments.seconds) if os.path.exists(file) else None
                if t is not None:
                    seen.append(t)
        if times["float"]:
            rows.append((name, which, *(min(seen) if seen else None for seen in times.values())))
            print(rows[-1], flush=True)
    return rows


def measure_engines(name, path, batch, folder, arguments):
    """[(model, mode, tool, time in our engine, in ONNX Runtime)]: all in turns, the least of the rounds."""
    inputs = os.path.join(folder, "inputs.npz")
    np.savez(inputs, **batch)
    files = {("float", ""): path}
    for mode in ("static", "dynamic"):
        files.update({(mode, tool): os.path.join(folder, f"{tool}.{mode}.onnx") for tool in ("sardonyx", "onnxruntime")})
    times = {(key, engine): [] for key, file in files.items() if os.path.exists(file) for engine in ("sardonyx", "onnxruntime")}
    for _ in range(arguments.rounds):
        for (key, engine), seen in times.items():
            t = time_of(files[key], inputs, "avx512", 1, arguments.seconds, engine)
            if t is not None:
                seen.append(t)
    least = {k: min(seen) if seen else None for k, seen in times.items()}
    rows = [(name, *key, least[key, "sardonyx"], least[key, "onnxruntime"]) for key in files if (key, "sardonyx") in least]
    print(*rows, sep="\n", flush=True)
    return rows


def table(head, align, rows):
    out = ["| " + " | ".join(head) + " |", "|" + "|".join(align) + "|"]
    return out + ["| " + " | ".join("" if v is None else f"{v:.3g}" if isinstance(v, float) else str(v) for v in row) + " |" for row in rows]


def faster(row):
    name, which, plain, static, dynamic = row
    return (name, which, plain, static, plain / static if static else None, dynamic, plain / dynamic if dynamic else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", help="comma-separated; default: all that are there")
    parser.add_argument("--folder", default="build/bench-models", help="where generated models are kept")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each timing")
    parser.add_argument("--rounds", type=int, default=2, help="of timings in turns; the least counts")
    parser.add_argument("--count", type=int, help="of batches; half of those of generated models, and all but 8 of the others, measure accuracy")
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated instruction sets of the speed in our engine")
    parser.add_argument("--engines", action="store_true", help="measure in both engines, on this machine's own instructions alone")
    parser.add_argument("--no-speed", action="store_true")
    parser.add_argument("--report", help="file for the tables (Markdown)")
    arguments = parser.parse_args()
    names = arguments.models.split(",") if arguments.models else [*data.SHAPED, *data.REAL]
    accuracy, speed, engines = [], [], []
    for name in names:
        count = arguments.count or (8 if name in data.SHAPED else 24)
        found = data.shaped(name, arguments.folder, count) if name in data.SHAPED else data.real(name, os.environ.get("SDX_TEST_MODELS", ""), count)
        if found is None:
            print(f"{name}: not there (SDX_TEST_MODELS)", flush=True)
            continue
        path, batches = found
        modes = ["dynamic", "static", "static, entropy"]
        if sum(n.op_type == "MatMul" for n in onnx.load(path, load_external_data=False).graph.node) > 4:
            modes.append("weight-only")
        half = count // 2 if name in data.SHAPED else 8
        with tempfile.TemporaryDirectory() as folder:
            size = os.path.getsize(path) / 1e6
            accuracy.append((name, "float", "", size, "", "", ""))
            accuracy += measure_accuracy(name, path, batches[:half], batches[half:], folder, modes)
            if arguments.engines:
                engines += measure_engines(name, path, batches[-1], folder, arguments)
            elif not arguments.no_speed:
                speed += measure_speed(name, path, batches[-1], folder, arguments)
    lines = table(
        ("model", "mode", "tool", "MB", "cosine to float", "same top class", "ours in both engines, cosine"),
        ("---", "---", "---", "--:", "--:", "--:", "--:"), accuracy,
    )
    lines += ["", *table(
        ("model", "instructions", "float, ms", "static, ms", "faster", "dynamic, ms", "faster"),
        ("---", "---", "--:", "--:", "--:", "--:", "--:"), [faster(r) for r in speed],
    )] if speed else []
    lines += ["", *table(
        ("model", "mode", "tool", "our engine, ms", "ONNX Runtime, ms"), ("---", "---", "---", "--:", "--:"), engines,
    )] if engines else []
    print("\n".join(lines))
    if arguments.report:
        Path(arguments.report).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
