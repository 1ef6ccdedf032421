"""Sardonyx beside its peers: `run.py [--models A,B] [--engines A,B] [--threads 1,2]`; one table, as Markdown and as CSV, in --out."""

import argparse
import compileall
import csv
import datetime
import importlib.util
import io
import math
import os
import re
import sys

import models
import processor
from measure import STARTS, measure, ratio


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None


def number(value, digits=2):
    return "–" if value is None else f"{value:.{digits}f}"


def summary(rows, peer, threads, key):
    """(geometric mean of speed ratios, slowest ratio and its model, how many)"""
    found = [(ratio(r["results"], "sdx", peer, key), r["model"]) for r in rows if r["threads"] == threads]
    found = [(v, name) for v, name in found if v is not None]
    if not found:
        return None
    return geometric_mean([v for v, _ in found]), min(found), len(found)


def key_of(report):
    return "cpus_ms" if report["by"] == "cpu" else "medians_ms"


def load_of(report):
    """Programs that wanted to run while a model was measured: the engine under measurement is one of them, or as many as it has threads."""
    loads = [row["load"] for row in report["rows"] if "load" in row]
    return f" Load averages of one minute at the ends of the measurements: {min(loads):.1f} to {max(loads):.1f}." if loads else ""


def starts_of(report):
    starts = report.get("starts", STARTS)
    return f", median of {starts} processes" if starts > 1 else ", of one process"


def without_places(error):
    """An error without the places in the engine's own source that it names."""
    return re.sub(r"(Exception from|Check '[^']*' failed at) \S+:\d+: ?", "", error)


def begin(results, engine, how=""):
    """Load and first run."""
    result = results.get(engine, {})
    return None if result.get(how + "load_ms") is None else result[how + "load_ms"] + result[how + "first_ms"]


def markdown(report):
    key, shown = key_of(report), "cpu_ms" if report["by"] == "cpu" else "p50_ms"
    peers = [e for e in report["engines"] if e != "sdx"]
    versions = ", ".join(f"{e} {v}" for e, v in report["versions"].items())
    runs = f"{report['rounds']} rounds of {report['seconds']} s in which the engines take turns." if report["rounds"] else "Only starts and memory."
    ms = "CPU time of a run, all threads together (the machine was busy)" if report["by"] == "cpu" else "median time of a run"
    lines = [f"# {report['created'][:10]}", "", f"{processor.described(report['machine'])}; {versions}. {runs}{load_of(report)}", "",
             (f"ms: {ms}. ×: how many times faster sdx is (median over rounds). " if report["rounds"] else "private: MB that processes with the same model do not share. ")
             + f"start: load + first run in ms{starts_of(report)}; cached: the same with a stored compiled model. MB: growth of the process's peak memory "
             "caused by the engine. diff: largest difference from ONNX Runtime's results, divided by their largest magnitude.", ""]
    timed = report["rounds"] > 0
    head = ["model", "T"] + (["sdx ms"] + [c for p in peers for c in (f"{p} ms", "×")] if timed else [])
    head += ["sdx start", "cached"] + [f"{p} start" for p in peers[:2]] + ["sdx MB"] + ([] if timed else ["private"]) + [f"{p} MB" for p in peers[:2]] + ["diff"]
    lines += ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for row in report["rows"]:
        results = row["results"]
        get = lambda engine, key: results.get(engine, {}).get(key)
        cells = [row["model"], str(row["threads"])]
        if timed:
            cells += [number(get("sdx", shown))] + [c for p in peers for c in (number(get(p, shown)), number(ratio(results, "sdx", p, key)))]
        cells += [number(begin(results, "sdx"), 0), number(begin(results, "sdx", "cached_"), 0)] + [number(begin(results, p), 0) for p in peers[:2]]
        cells += [number(get("sdx", "memory_mb"), 0)] + ([] if timed else [number(get("sdx", "cached_private_mb"), 0)])
        cells += [number(get(p, "memory_mb"), 0) for p in peers[:2]]
        difference = get("sdx", "difference")
        cells.append("–" if difference is None else f"{difference:.0e}")
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    for threads in report["threads"]:
        for peer in peers:
            found = summary(report["rows"], peer, threads, key)
            if found:
                lines.append(f"- {threads} thread{'s' * (threads > 1)}, against {peer}: geometric mean {found[0]:.2f}x over {found[2]} models, least {found[1][0]:.2f}x ({found[1][1]}).")
    errors = sorted({f"- {engine}, {row['model']}: {without_places(result['error'])}" for row in report["rows"] for engine, result in row["results"].items() if "error" in result})
    if errors:
        lines += ["", "Without figures:", ""] + errors
    return "\n".join(lines) + "\n"


def table(report):
    """What the documents' figures come from (bench/figures.py): a column with a peer's name has its ratio."""
    key, shown = key_of(report), "cpu_ms" if report["by"] == "cpu" else "p50_ms"
    peers = [e for e in report["engines"] if e != "sdx"]
    short = lambda value, digits: "" if value is None else f"{value:.{digits}f}"
    fields = ["model", "threads"] + [f"{e} {what}" for e in report["engines"] for what in ("ms", "start", "MB")] + peers + ["sdx cached", "sdx private MB"]
    text = io.StringIO()
    rows = csv.DictWriter(text, fields, lineterminator="\n")
    rows.writeheader()
    for row in report["rows"]:
        results = row["results"]
        cells = {"model": row["model"], "threads": row["threads"], "sdx cached": short(begin(results, "sdx", "cached_"), 1),
                 "sdx private MB": short(results.get("sdx", {}).get("cached_private_mb"), 1)}
        for engine in report["engines"]:
            result = results.get(engine, {})
            cells.update({f"{engine} ms": short(result.get(shown), 4), f"{engine} start": short(begin(results, engine), 1), f"{engine} MB": short(result.get("memory_mb"), 1)})
        cells.update({peer: short(ratio(results, "sdx", peer, key), 4) for peer in peers})
        rows.writerow(cells)
    return text.getvalue()


def save(report, folder):
    os.makedirs(folder, exist_ok=True)
    stem = os.path.join(folder, report["name"])
    for ending, text in ((".csv", table(report)), (".md", markdown(report))):
        with open(stem + ending + ".new", "w") as file:
            file.write(text)
        os.replace(stem + ending + ".new", stem + ending)


def compile_package():
    """As installing does. Without it each start compiles the package's sources anew, 9 ms of it."""
    found = importlib.util.find_spec("sardonyx")
    for folder in (found.submodule_search_locations if found else None) or []:
        compileall.compile_dir(folder, quiet=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(models.SUITE), help="of the suite, or paths of ONNX files")
    parser.add_argument("--engines", default="sdx,onnxruntime,openvino,tract,mnn,ncnn")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7, help="0: only starts and memory")
    parser.add_argument("--seconds", type=float, default=0.3, help="per engine and round")
    parser.add_argument("--starts", type=int, default=STARTS, help="processes of each engine")
    parser.add_argument("--by", choices=["time", "cpu"], default="time", help="cpu: ratios of CPU time, for a machine that is busy with other things")
    parser.add_argument("--folder", default="build/bench-models", help="where the models are made")
    parser.add_argument("--out", default=processor.folder(), help="default: bench/results/<processor>")
    parser.add_argument("--name", default="suite")
    args = parser.parse_args()
    starts = max(1, args.starts)
    compile_package()
    report = {"name": args.name, "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "machine": processor.machine(),
              "by": args.by, "starts": starts, "rounds": args.rounds, "seconds": args.seconds, "engines": args.engines.split(","), "versions": {},
              "threads": [int(t) for t in args.threads.split(",")], "rows": []}
    for name in args.models.split(","):
        path = name if os.path.exists(name) else models.make(args.folder, name)
        for threads in report["threads"]:
            limit = 0.25 if name in models.INTEGER else 0.02
            results = measure(path, report["engines"], threads, args.rounds, args.seconds, limit, starts=starts)
            report["rows"].append({"model": os.path.basename(name), "threads": threads, "load": os.getloadavg()[0], "results": results})
            for engine, result in results.items():
                if "version" in result:
                    report["versions"][engine] = result.pop("version")
            line = [f"{e} {results[e]['p50_ms']:.2f} ms" if "p50_ms" in results[e] else f"{e} –" for e in report["engines"]]
            print(f"{name} {threads}T: " + ", ".join(line), file=sys.stderr, flush=True)
            save(report, args.out)
    print(markdown(report))


if __name__ == "__main__":
    main()
