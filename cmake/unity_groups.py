"""unity_groups.py [--one-set] OUTPUT ROOT... : reads from standard input a line for each target of CMake, its name and its C++ sources between semicolons, and
writes a CMake file to OUTPUT that gives them groups to be compiled together (SDX_UNITY). Files share a group where nothing that one defines for itself, in an unnamed namespace, as a
static or by #define, is a word of a later one, or of a header that comes in with it. ROOT: where the project's headers are looked for.
--one-set: kernels are compiled for one instruction set, so their files do not include themselves for others and may join, too."""

import re
import sys
from functools import lru_cache
from pathlib import Path

LARGEST = 12  # files: more save little when compiling, and two cores have to share the work
LARGEST_OF_SET = 24  # without optimisation, and with kernels of one set, the headers are more of the work
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"\w*\((?:.|\n)*?\)\w*"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)", re.M)
TOKEN = re.compile(r"[A-Za-z_]\w*|::|[{}()<>=;\[\]]")
WORD = re.compile(r"[A-Za-z_]\w*")
PER_SET = {"HWY_TARGET_INCLUDE", "SDX_PLAIN_LOOPS"}  # macros that every kernel defines anew, for what one set does without
FREE = re.compile(r"(?<![\w.])(?<!->)(?<!std::)(?<!hn::)[A-Za-z_]\w*")  # not a member of something, nor the standard library's or Highway's


def name_of(statement):
    """What a declaration at namespace scope declares, or None: the statement's tokens up to its first ; { or }."""
    if statement[:1] == ["namespace"] or statement[:2] in (["using", "enum"], ["using", "namespace"]):  # borrowed_names(), directives()
        return None
    if statement[:1] == ["using"]:
        return statement[1] if "=" in statement[:3] else statement[-1]
    depth, before = 0, None
    for i, token in enumerate(statement):
        if token in ("struct", "class", "enum", "union") and depth == 0:
            names = [t for t in statement[i + 1:] if WORD.fullmatch(t) and t not in ("class", "struct", "final")]
            return names[0] if names else None
        if token == "<":
            depth += 1
        elif token == ">":
            depth -= 1
        elif depth == 0 and token in ("(", "=", "["):
            break
        elif depth == 0:
            before = None if before == "::" and WORD.fullmatch(token) else token
    return before if before and WORD.fullmatch(before) else None


def own_names(text):
    """Names that belong to this file alone."""
    names = set(DEFINE.findall(text))
    stack, statement, brackets = [], [], 0
    for token in TOKEN.findall(re.sub(r"^\s*#(?:[^\n\\]|\\\n|\\.)*", "", re.sub(r"\[\[[^\]]*\]\]", "", text), flags=re.M)):
        at_scope = not {"enum", "other"} & set(stack)
        if token == "{" and brackets == 0:
            if at_scope and (statement[:1] == ["namespace"] or statement[:2] == ["inline", "namespace"]):
                stack.append("own" if statement[-1] == "namespace" else "named")
            else:
                if at_scope:
                    note(names, statement, "own" in stack)
                stack.append("enum" if at_scope and statement[:1] == ["enum"] else "other")
            statement = []
        elif token == "}" and brackets == 0:
            if stack and stack.pop() == "enum":
                names.update(t for t in statement if WORD.fullmatch(t))
            statement = []
        elif token == ";" and brackets == 0:
            if at_scope:
                note(names, statement, "own" in stack)
            statement = []
        else:
            brackets += (token == "(") - (token == ")")
            if token in "{}":
                continue
            statement.append(token)
    return names


def note(names, statement, own):
    if own or (statement and statement[0] in ("static", "constexpr", "const", "using")):
        name = name_of(statement)
        macro = name and re.fullmatch("[A-Z_]+", name) and statement[0] != "using"  # TEST and its like
        if name and name != "static_assert" and not macro:
            names.add(name)


class Reader:
    def __init__(self, roots):
        self.roots = [Path(r) for r in roots]

    @lru_cache(maxsize=None)
    def text(self, path):
        return NOISE.sub('""', Path(path).read_text(errors="replace"))

    @lru_cache(maxsize=None)
    def words(self, path):
        return frozenset(FREE.findall(self.text(path)))

    @lru_cache(maxsize=None)
    def direct(self, path):
        found = []
        for name in INCLUDE.findall(Path(path).read_text(errors="replace")):
            for root in [Path(path).parent, *self.roots]:
                if (root / name).is_file():
                    found.append(str((root / name).resolve()))
                    break
        return found

    @lru_cache(maxsize=None)
    def headers(self, path):
        seen, todo = set(), list(self.direct(path))
        while todo:
            header = todo.pop()
            if header not in seen:
                seen.add(header)
                todo += self.direct(header)
        return frozenset(seen)


def usings(text):
    """Declarations `using NAMESPACE::NAME;` outside of functions, which several files of a group may repeat: name to declaration."""
    return {name: space + name for space, name in re.findall(r"^using ((?:\w+::)+)(\w+);", text, re.M)}


def directives(text):
    """Namespaces of `using namespace NAME;` outside of functions. Files with the same ones may share a group."""
    return frozenset(re.findall(r"^using namespace ([\w:]+);", text, re.M))


class Group:
    def __init__(self, spaces):
        self.spaces, self.files, self.names, self.headers, self.usings = spaces, [], set(), set(), {}

    def takes(self, reader, path, names):
        if self.spaces != directives(reader.text(path)):
            return False
        same = {name for name, what in usings(reader.text(path)).items() if self.usings.get(name) == what}
        if (self.names - same) & (reader.words(path) | names):
            return False
        headers = reader.headers(path)
        return not (any(self.names & reader.words(h) for h in headers - self.headers) or
                    any((names - same) & reader.words(h) for h in self.headers - headers))

    def add(self, reader, path, names):
        self.files.append(path)
        self.names |= names
        self.headers |= reader.headers(path)
        self.usings |= usings(reader.text(path))


def borrowed_names(reader, path):
    """The enumerators that `using enum STRUCT::ENUM;` outside of functions brings into a file, or None if the enum was not found."""
    names = set()
    for struct, enum in re.findall(r"^using enum (?:\w+::)*?(\w+)::(\w+);", reader.text(path), re.M):
        pattern = re.compile(rf"^struct {struct} \{{(?:(?!^\}}).)*?\benum {enum}\b[^{{;]*\{{([^}}]*)\}}", re.M | re.S)
        found = next(filter(None, (pattern.search(reader.text(h)) for h in sorted(reader.headers(path)) + [path])), None)
        if not found:
            return None
        names.update(WORD.findall(re.sub(r"=[^,}]*", "", found[1])))
    return names


def groups_of(paths, reader, largest=LARGEST, one_set=False):
    """Lists of files that may be compiled together, at most `largest` each. Files that have to be compiled alone are in none."""
    groups = []
    alone = r"^using enum \w+;|" + ("HWY_PUSH_ATTRIBUTES" if one_set else "foreach_target|HWY_")
    for path in sorted(paths):
        text = reader.text(path)
        if re.search(alone, text, re.M):
            continue
        borrowed = borrowed_names(reader, path)
        if borrowed is None:
            continue
        names = own_names(text) - (PER_SET if one_set else set()) | borrowed
        group = next((g for g in groups if len(g.files) < largest and g.takes(reader, path, names)), None)
        if group is None:
            groups.append(group := Group(directives(text)))
        group.add(reader, path, names)
    return [group.files for group in groups]


def main():
    one_set = sys.argv[1] == "--one-set"
    output, *roots = sys.argv[1 + one_set:]
    reader, lines = Reader(roots), []
    for line in filter(None, sys.stdin.read().splitlines()):
        target, *paths = filter(None, line.split(";"))
        for i, files in enumerate(groups_of(set(paths), reader, LARGEST_OF_SET if one_set else LARGEST, one_set)):
            lines += [f"set_source_files_properties({f} TARGET_DIRECTORY {target} PROPERTIES UNITY_GROUP group{i})" for f in files]
    Path(output).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
