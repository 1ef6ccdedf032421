"""Chat templates of real models, with the prompts that Jinja2 makes of conversations.

usage: recorded_templates.py RENDER_TEMPLATES [FOLDER]
FOLDER: chat_templates of the test models, else that of SDX_TEST_MODELS. Exit code 77 without it.
"""
import json
import os
import pathlib
import subprocess
import sys

# The immutable sandbox forbids what these two templates do (list.append); refusing and rendering are both fine.
EITHER = {"SecurityError"}
BOUNDED = {"RecursionError"}


def cases(folder):
    for file in sorted(folder.glob("*.cases.json")):
        template = (folder / file.name.replace(".cases.json", ".jinja")).read_bytes().decode()
        for case in json.loads(file.read_text(encoding="utf-8")):
            yield f"{file.name.removesuffix('.cases.json')}: {case['name']}", template, case["context"], case
    features = json.loads((folder / "features" / "features.cases.json").read_text(encoding="utf-8"))
    for case in features["cases"]:
        yield f"features: {case['template']!r}", case["template"], features["context"], case


def explain(case, answer):
    if "expected" in case:
        return None if answer.get("text") == case["expected"] else f"expected {case['expected']!r}\n     got {answer!r}"
    if case["error_type"] in EITHER:
        return None
    if "error" not in answer:
        return f"expected {case['error_type']}: {case['error']}\n     got {answer!r}"
    if case["error_type"] == "TemplateError" and answer["error"] != case["error"]:
        return f"expected the message {case['error']!r}\n     got {answer!r}"
    if case["error_type"] in BOUNDED and answer["type"] != "limit":
        return f"expected a limit to stop it\n     got {answer!r}"
    return None


def main():
    models = os.environ.get("SDX_TEST_MODELS", "")
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(models) / "chat_templates")
    if not (folder / "features").is_dir():
        print("no recorded chat templates here")
        return 77
    every = list(cases(folder))
    requests = "".join(json.dumps({"template": template, "context": context}) + "\n" for _, template, context, _ in every)
    answers = subprocess.run([sys.argv[1]], input=requests, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(answers) == len(every), f"{len(every)} cases, {len(answers)} answers"
    failed = 0
    for (name, _, _, case), line in zip(every, answers):
        if difference := explain(case, json.loads(line)):
            failed += 1
            print(f"{name}\n{difference}")
    print(f"{len(every)} cases, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
