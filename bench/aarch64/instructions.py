#!/usr/bin/env python3
"""Counts the instructions of products on 64-bit Arm: `instructions.py BUILD SYSROOT`, as `make bench-aarch64` calls it.

QEMU's user emulation runs BUILD/bin/sdx_bench_products with processors that have NEON alone, its dot products (DotProd), or small matrices too
(I8MM, BF16), and a plugin counts what is executed. A case runs once and three times; half of the difference is one product, without its
preparation. The counts do not depend on the machine. They say how much work an instruction set saves, not how long the work takes.
"""

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULT = HERE.parent / "results" / "aarch64.md"
PROCESSORS = {"NEON": "cortex-a53", "dot products": "neoverse-n1", "matrices": "max,sve=off"}
HEAD = """# Instructions on 64-bit Arm

`make bench-aarch64`, {compiler}, {qemu}. Instructions that one product executes, for 100 multiply-adds, with one thread: with NEON alone
(Cortex-A53), with dot products (DotProd, Neoverse N1) and with small matrices, too (I8MM and BF16; QEMU's `max` without SVE, which nothing uses). A ratio is NEON's
count divided by the other's. Matrices have 512 by 256 weights; convolutions 64 input and output channels, and 14x14 pixels. Products with codes of 4 and 8 bits
and without \"int8 activations\" are as exact as products in float32. bfloat16 without instructions of its own is widened and multiplied as float32. Counts say how much
work is saved, not how long it takes: emulation has no times.

| product | NEON | dot products | ratio | matrices | ratio of matrices |
|---|--:|--:|--:|--:|--:|
"""


def plugin(folder):
    built = folder / "count_instructions.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", built, HERE / "count_instructions.c"], check=True)
    return built


def executed(qemu, counter, folder, program, case, times):
    out = folder / "count"
    subprocess.run([*qemu, "-plugin", f"{counter},out={out}", program, case, str(times)], check=True)
    return int(out.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("sysroot", type=Path)
    args = parser.parse_args()
    program = args.build / "bin" / "sdx_bench_products"
    for name in [name for name in os.environ if name.startswith("SDX_")]:
        del os.environ[name]  # choices of instruction sets
    qemu = ["qemu-aarch64", "-L", str(args.sysroot)]
    listed = subprocess.run([*qemu, program], check=True, capture_output=True, text=True).stdout.splitlines()
    compiler = subprocess.run(["aarch64-linux-gnu-g++", "-dumpfullversion"], check=True, capture_output=True, text=True).stdout.strip()
    version = subprocess.run(["qemu-aarch64", "--version"], check=True, capture_output=True, text=True).stdout.split()[2]
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        counter = plugin(folder)
        for case, products in (line.split("\t") for line in listed):
            counts = {}
            for name, processor in PROCESSORS.items():
                once, thrice = (executed([*qemu, "-cpu", processor], counter, folder, program, case, times) for times in (1, 3))
                counts[name] = (thrice - once) / 2 / float(products) * 100
            plain, dots, matrices = counts.values()
            rows.append(f"| {case} | {plain:.1f} | {dots:.1f} | {plain / dots:.2f} | {matrices:.1f} | {plain / matrices:.2f} |\n")
            print(rows[-1], end="", flush=True)
    RESULT.write_text(HEAD.format(compiler=f"GCC {compiler}", qemu=f"QEMU {version}") + "".join(rows))


if __name__ == "__main__":
    main()
