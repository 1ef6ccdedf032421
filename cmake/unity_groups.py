"""unity_groups.py [--one-set] OUTPUT FOLDER ROOT... : reads from standard input a line for each target of CMake, its name and its C++ sources
between semicolons, writes files to FOLDER that include several sources each, to be compiled together (SDX_UNITY), and a CMake file to OUTPUT
that gives them to the targets. Sources share a file where nothing that one defines for itself, in an unnamed namespace or as a static, is a
word of another one, or of a header that comes in with it. Where it is, the name gets a suffix by #define, unless that would change other
words, too: of a header, or after `.`, `->` or `::`. ROOT: where the project's headers are looked for.
--one-set: kernels are compiled for one instruction set, so their files do not include themselves for others and may join, too."""

import re
import sys
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

LARGEST = 16  # sources: more save little when compiling, and two cores have to share the work
LARGEST_OF_SET = 24  # without optimisation, and with kernels of one set, the headers are more of the work
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"\w*\((?:.|\n)*?\)\w*"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
FIRST_INCLUDES = re.compile(r"^#include (?:<[^>]+>|\"[^\"]+\.h\")", re.M)
CONDITION = re.compile(r"^\s*#\s*(?:if|define|undef)", re.M)
DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)", re.M)
TOKEN = re.compile(r"[A-Za-z_]\w*|::|[{}()<>=;\[\]]")
# Directives, attributes and what else stands beside a declared name.
BESIDE = re.compile(r"^\s*#(?:[^\n\\]|\\\n|\\.)*|\[\[[^\]]*\]\]|\b(?:decltype|alignas|noexcept|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)", re.M)
TYPES = {"bool", "char", "double", "float", "int", "long", "short", "unsigned", "void"}  # a pointer to a function has its name in brackets
WORD = re.compile(r"[A-Za-z_]\w*")
PER_SET = {"HWY_TARGET_INCLUDE", "SDX_PLAIN_LOOPS"}  # macros that every kernel defines anew, for what one set does without
BOUND = re.compile(r"(?:\.|->|::)\s*([A-Za-z_]\w*)")  # a member of something
FREE = re.compile(r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*")  # not a member of something


def name_of(statement):
    """What a declaration at namespace scope declares, or None: the statement's tokens up to its first ; { or }."""
    if statement[:1] == ["namespace"] or statement[:2] in (["using", "enum"], ["using", "namespace"]):  # borrowed_names(), directives()
        return None
    if statement[:1] == ["using"]:
        return statement[1] if "=" in statement[:3] else statement[-1]
    depth, before = 0, None
    for i, token in enumerate(statement):
        if token in ("struct", "class", "enum", "union") and depth == 0:
            words = [t for t in statement[i + 1:] if t not in ("class", "struct")]
            return words[0] if words and WORD.fullmatch(words[0]) and words[1:2] != ["::"] else None
        if token == "<":
            depth += 1
        elif token == ">":
            depth -= 1
        elif depth == 0 and token in ("(", "=", "["):
            break
        elif depth == 0:
            before = None if before == "::" and WORD.fullmatch(token) else token
    return before if before and WORD.fullmatch(before) and before not in TYPES else None


def scope_names(text, all_names=False):
    """Names that a file declares at namespace scope: those that belong to it alone, without macros, or all."""
    names = set()
    stack, statement, brackets = [], [], 0
    for token in TOKEN.findall(BESIDE.sub("", text)):
        at_scope = not {"enum", "other"} & set(stack)
        if token == "{" and brackets == 0:
            if at_scope and (statement[:1] == ["namespace"] or statement[:2] == ["inline", "namespace"]):
                stack.append("own" if statement[-1] == "namespace" else "named")
            else:
                if at_scope:
                    note(names, statement, all_names or "own" in stack)
                stack.append("enum" if at_scope and statement[:1] == ["enum"] else "other")
            statement = []
        elif token == "}" and brackets == 0:
            if stack and stack.pop() == "enum":
                names.update(t for t in statement if WORD.fullmatch(t))
            statement = []
        elif token == ";" and brackets == 0:
            if at_scope:
                note(names, statement, all_names or "own" in stack)
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
            names.update(further_names(statement))


def further_names(statement):
    """What `constexpr int kA = 1, kB = 2` declares beside the first."""
    if statement[0] not in ("const", "constexpr", "static"):
        return []
    brackets = [sum((t == "(") - (t == ")") for t in statement[:i]) for i in range(len(statement))]
    return [t for i, t in enumerate(statement[:-1]) if statement[i + 1] == "=" and brackets[i] == 0 and WORD.fullmatch(t)]


class Reader:
    def __init__(self, roots):
        self.roots = [Path(r) for r in roots]
        self.holders_of = defaultdict(set)

    @lru_cache(maxsize=None)
    def text(self, path):
        return NOISE.sub('""', self.source(path))

    @lru_cache(maxsize=None)
    def source(self, path):
        return Path(path).read_text(errors="replace")

    @lru_cache(maxsize=None)
    def words(self, path):
        return frozenset(FREE.findall(self.text(path)))

    @lru_cache(maxsize=None)
    def declared(self, header):
        """What a header declares, other than members of classes, and its macros."""
        return scope_names(self.text(header), all_names=True) | set(DEFINE.findall(self.text(header)))

    @lru_cache(maxsize=None)
    def note(self, header):
        for word in self.words(header):
            self.holders_of[word].add(header)

    def holders(self, name):
        """The headers that have a word, of those seen so far."""
        return self.holders_of.get(name, frozenset())

    @lru_cache(maxsize=None)
    def direct(self, path):
        found = []
        for name in INCLUDE.findall(self.source(path)):
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
                self.note(header)
                todo += self.direct(header)
        return frozenset(seen)


def usings(text):
    """Declarations `using NAMESPACE::NAME;` and `using NAME = TYPE;` outside of functions, which several files of a group may repeat: name to
    declaration."""
    found = {name: space + name for space, name in re.findall(r"^using ((?:\w+::)+)(\w+);", text, re.M)}
    return found | dict(re.findall(r"^using (\w+) = ([^;]+);", text, re.M))


def directives(text):
    """Namespaces of `using namespace NAME;` outside of functions. Files with the same ones may share a group."""
    return frozenset(re.findall(r"^using namespace ([\w:]+);", text, re.M))


class Source:
    """What decides whether a source may share a file with others."""

    def __init__(self, reader, path, one_set):
        text = reader.text(path)
        self.path, self.words, self.headers = path, reader.words(path), reader.headers(path)
        self.spaces, self.usings = directives(text), usings(text)
        self.macros = set(DEFINE.findall(text)) - (PER_SET if one_set else set())
        self.borrowed = borrowed_names(reader, path)
        own = scope_names(text)
        self.usings |= self.borrowed or {}
        self.names = own | set(self.borrowed or {})
        self.fixed = self.names - changeable(reader, path, own - set(self.usings))
        self.before = first_includes(path, reader.source(path))


def changeable(reader, path, names):
    """Those of a source's own names that a macro may replace, because it changes no other word."""
    text = reader.text(path)
    if "HWY_" in text:  # Highway's headers come in later, once for each instruction set
        return set()
    headers = reader.headers(path)
    bound = set(BOUND.findall(text))
    return {name for name in names - bound if not any(name in reader.declared(header) for header in reader.holders(name) & headers)}


def first_includes(path, source):
    """The headers that a source includes before anything that may change what they say; those beside it by their whole path."""
    condition = CONDITION.search(source)
    lines = FIRST_INCLUDES.findall(source[:condition.start()] if condition else source)
    folder = Path(path).parent
    beside = {line: (folder / line.split('"')[1]).resolve() for line in lines if '"' in line}
    return [f'#include "{beside[line]}"' if line in beside and beside[line].is_file() else line for line in lines]


class Group:
    def __init__(self, reader, first):
        self.reader, self.spaces = reader, first.spaces
        self.sources, self.changed = [], []
        self.headers, self.owners = set(), {}
        self.add(first, [set()])

    def changes_for(self, source):
        """The names that have to change in each source and in a new one, which comes last, or None where it does not fit."""
        if self.spaces != source.spaces:
            return None
        changes = [set() for _ in range(len(self.sources) + 1)]
        new_headers, known_headers = source.headers - self.headers, self.headers - source.headers
        for name in source.names:
            if self.reader.holders(name) & known_headers:
                if name in source.fixed:
                    return None
                changes[-1].add(name)
        for name, owners in self.owners.items():
            in_headers = bool(self.reader.holders(name) & new_headers)
            if not in_headers and name not in source.words and name not in source.names:
                continue
            for i in owners:
                owner = self.sources[i]
                if name in source.usings and source.usings[name] == owner.usings.get(name):
                    continue
                if name not in owner.fixed:
                    changes[i].add(name)
                elif name in source.names and name not in source.fixed and not in_headers:
                    changes[-1].add(name)
                else:
                    return None
        return changes

    def add(self, source, changes):
        self.changed = [names | more for names, more in zip([*self.changed, set()], changes)]
        for name in source.names:
            self.owners.setdefault(name, []).append(len(self.sources))
        self.sources.append(source)
        self.headers |= source.headers

    def text(self):
        """A file that includes the sources, all headers first: they see no source's names."""
        lines = list(dict.fromkeys(line for source in self.sources for line in source.before))
        for i, (source, changed) in enumerate(zip(self.sources, self.changed)):
            lines += [f"#define {name} {name}_of_{i}" for name in sorted(changed)]
            lines.append(f'#include "{source.path}"')
            lines += [f"#undef {name}" for name in sorted(changed | source.macros)]
        return "\n".join(lines) + "\n"


def borrowed_names(reader, path):
    """The enumerators that `using enum STRUCT::ENUM;` outside of functions brings into a file, with the enum, or None if that was not found."""
    names = {}
    for struct, enum in re.findall(r"^using enum (?:\w+::)*?(\w+)::(\w+);", reader.text(path), re.M):
        pattern = re.compile(rf"^struct {struct} \{{(?:(?!^\}}).)*?\benum {enum}\b[^{{;]*\{{([^}}]*)\}}", re.M | re.S)
        found = next(filter(None, (pattern.search(reader.text(h)) for h in sorted(reader.headers(path)) + [path])), None)
        if not found:
            return None
        names |= {name: f"enum {struct}::{enum}" for name in WORD.findall(re.sub(r"=[^,}]*", "", found[1]))}
    return names


def together(paths, reader, largest=LARGEST, one_set=False, changes=True):
    """Groups of sources that may be compiled together, at most `largest` each. Sources that have to be compiled alone are in none. Without
    `changes`, no name of a source may have to change."""
    alone = r"^using enum \w+;|" + ("HWY_PUSH_ATTRIBUTES" if one_set else "foreach_target|HWY_")
    sources = [Source(reader, path, one_set) for path in sorted(paths) if not re.search(alone, reader.text(path), re.M)]
    sources = [source for source in sources if source.borrowed is not None]
    if not changes:
        for source in sources:
            source.names |= source.macros
            source.fixed = source.names
    groups = []
    enough = -(-len(sources) // largest)
    # Those that fit few others come first, and each into the group with which it shares most headers.
    for source in sorted(sources, key=lambda source: (-len(source.fixed), source.path)):
        fitting = []
        for group in groups:
            found = group.changes_for(source) if len(group.sources) < largest else None
            if found is not None:
                fitting.append((len(group.headers & source.headers) / len(group.headers | source.headers), len(fitting), group, found))
        if not fitting or len(groups) < enough:
            groups.append(Group(reader, source))
        else:
            _, _, group, found = max(fitting, key=lambda fit: fit[0])
            group.add(source, found)
    return groups


def groups_of(paths, reader, largest=LARGEST):
    """Lists of sources that may be compiled as one text, without changes."""
    return [[source.path for source in group.sources] for group in together(paths, reader, largest, changes=False)]


def write(path, text):
    """Ninja compiles again what was written, so an equal file stays."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main():
    one_set = sys.argv[1] == "--one-set"
    output, folder, *roots = sys.argv[1 + one_set:]
    reader, lines = Reader(roots), []
    for line in filter(None, sys.stdin.read().splitlines()):
        target, *paths = filter(None, line.split(";"))
        for i, group in enumerate(together(set(paths), reader, LARGEST_OF_SET if one_set else LARGEST, one_set)):
            if len(group.sources) == 1:
                continue
            joined = Path(folder, target, f"{i}.cc")
            write(joined, group.text())
            lines.append(f"target_sources({target} PRIVATE {joined})")
            lines.append(f"set_source_files_properties({' '.join(s.path for s in group.sources)} TARGET_DIRECTORY {target} PROPERTIES HEADER_FILE_ONLY ON)")
    write(Path(output), "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
