"""A process with one engine and one model: worker.py ENGINE MODEL INPUTS.npz OUTPUTS.npz THREADS.

Answers in lines of JSON on its first standard output: once about loading, then to every line "SECONDS LEAST" with the times of runs that
took about as long together. What libraries print goes to standard error.
"""

import json
import os
import sys
import time


def memory_mb(field):
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


def main():
    engine, model, inputs_file, outputs_file, threads = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(**fields):
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    import numpy as np

    from engines import ENGINES

    with np.load(inputs_file) as file:
        inputs = {name: file[name] for name in file.files}
    before, private = memory_mb("VmRSS"), memory_mb("RssAnon")
    try:
        start = time.perf_counter()
        session = ENGINES[engine](model, int(threads))
        loaded = time.perf_counter()
        outputs = [np.array(o) for o in session.run(inputs)]
        first = time.perf_counter()
    except Exception as error:  # reported, whatever an engine throws
        say(error=" ".join(str(error).split())[:300] or type(error).__name__)
        return
    np.savez(outputs_file, **{str(i): o for i, o in enumerate(outputs)})
    say(version=session.version, load_ms=(loaded - start) * 1e3, first_ms=(first - loaded) * 1e3, start_memory_mb=memory_mb("VmHWM") - before,
        private_mb=memory_mb("RssAnon") - private)
    for line in sys.stdin:
        if line.strip() == "memory":
            say(memory_mb=memory_mb("VmHWM") - before)
            continue
        seconds, least = line.split()
        session.run(inputs)  # the others emptied the caches
        times, end, cpu = [], time.perf_counter() + float(seconds), time.process_time_ns()
        while len(times) < int(least) or time.perf_counter() < end:
            start = time.perf_counter_ns()
            session.run(inputs)
            times.append((time.perf_counter_ns() - start) / 1e6)
        say(times_ms=times, cpu_ms=(time.process_time_ns() - cpu) / 1e6 / len(times))


main()
