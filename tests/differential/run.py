"""Random differential testing: draws models, runs them on this engine and on ONNX Runtime, and reports what differs.

  run.py --graphs 10000 --seed 1            seeds 1, 1+1, …; each graph has the seed printed with it
  run.py --only Conv,conv_block             these recipes only
  run.py --symbols                          inputs declared with few symbols for many sizes; leading axes of extent 1
  run.py --replay 1234                      one graph again, with what every engine says
  run.py --specials                         with NaN, an infinity or a great number in an input: with and without optimisation, on
                                            this engine alone

A difference is traced to the node that makes it, and saved under --save as NAME.onnx and NAME.npz (the node alone where that shows it).
Exit code 1: differences that known.py does not explain; 77: a package is missing.
"""

import argparse
import collections
import importlib.util
import os
import sys
import time

for package in ("numpy", "onnx", "onnxruntime", "sardonyx"):
    if importlib.util.find_spec(package) is None:
        print(f"skipped: no package {package}")
        sys.exit(77)

import numpy as np  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import Checker  # noqa: E402
from generate import RECIPES, draw_model, recipe_weights  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1, help="of the first graph")
    parser.add_argument("--nodes", type=int, default=7, help="at most so many recipes in a graph")
    parser.add_argument("--symbols", action="store_true", help="declare the inputs of every graph with few symbols for many sizes")
    parser.add_argument("--only", help="recipes, separated by commas")
    parser.add_argument("--replay", type=int, metavar="SEED")
    parser.add_argument("--specials", action="store_true")
    parser.add_argument("--save", default="differences", metavar="FOLDER")
    parser.add_argument("--list", action="store_true", help="print the recipes")
    parser.add_argument("--seconds", type=float, default=0, help="stop after this time")
    return parser.parse_args()


def place_special(feeds, seed):
    """The feeds with one element of one float32 input replaced."""
    rng = np.random.default_rng(seed)
    names = [k for k, v in feeds.items() if isinstance(v, np.ndarray) and v.dtype == np.float32 and v.size > 0]
    if not names:
        return feeds
    name = names[int(rng.integers(len(names)))]
    changed = feeds[name].copy()
    changed.reshape(-1)[int(rng.integers(changed.size))] = rng.choice([np.nan, np.inf, -np.inf, 3.4e38, -9999])
    return {**feeds, name: changed}


def main():
    options = arguments()
    if options.list:
        print("\n".join(sorted(RECIPES)))
        return 0
    names, weights = recipe_weights(options.only)
    first, count = (options.replay, 1) if options.replay is not None else (options.seed, options.graphs)
    checker = Checker(options.save)
    outcomes, operators = collections.Counter(), set()
    unexplained = collections.defaultdict(list)
    explained = collections.Counter()
    started = time.time()
    for seed in range(first, first + count):
        if options.seconds and time.time() - started > options.seconds:
            print(f"stopped after {options.seconds:.0f} s")
            break
        d = draw_model(seed, names, weights, options.nodes, options.symbols)
        if not d.nodes:
            outcomes["nothing drawn"] += 1
            continue
        try:
            model = d.model()
            finding = checker.check_specials(model, place_special(d.feeds, seed), seed) if options.specials else checker.check(model, d.feeds, seed)
        except ValueError as e:
            outcomes["cannot be written"] += 1
            if options.replay is not None:
                raise e
            continue
        outcomes[finding.outcome] += 1
        if finding.outcome != "neither runs it":
            operators |= {n.op_type for n in model.graph.node}
        if finding.reason:
            explained[finding.reason] += 1
        elif finding.text:
            unexplained[finding.key].append(finding)
            print(f"seed {seed}: {finding.text}", flush=True)
        if options.replay is not None:
            print(checker.describe(model, d.feeds))
    checker.stop()
    print()
    for key, findings in sorted(unexplained.items(), key=lambda kv: -len(kv[1])):
        print(f"{len(findings)} × {key}: seeds {', '.join(str(f.seed) for f in findings[:8])}")
    for reason, n in explained.most_common():
        print(f"known, {n} ×: {reason}")
    total = sum(outcomes.values())
    print(f"{total} graphs of {len(operators)} operators in {time.time() - started:.0f} s: "
          + ", ".join(f"{n} {o}" for o, n in outcomes.most_common()) + f"; {sum(len(f) for f in unexplained.values())} unexplained differences")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
