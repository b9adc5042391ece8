"""Finds what can be changed in function bodies of C++ sources.

Works on text that clang-format has formatted: a statement starts on a line of
its own, or is the only one between two braces of one line.
"""

import re

KINDS = ("drop", "negate", "swap", "off by one")

# No statement that can be dropped, or of no effect.
_KEYWORDS = re.compile(
    r"(return\b(?!;)|if\b|for\b|while\b|switch\b|case\b|else\b|do\b|using\b|"
    r"static_assert\b|assert\b|const\b|constexpr\b|auto\b|throw\b|default\b|"
    r"static\b|static_cast<void>|struct\b|class\b|public\b|private\b|friend\b|"
    r"template\b|typedef\b|goto\b|\}|#)")
_DECLARATION = re.compile(r"[\w:<>,&*\s]+?[\s&*]\w+\s*(=(?!=)|;|\{|\()")
_STARTS = re.compile(r"\+\+|--|[\w*(]")
# What only the log, the allocator or the clock notices.
_UNSEEN = re.compile(
    r"\blog\(\)|\blogger\b|^[\w.]+\.reserve\(|\bshrink_to_fit\(|"
    r"\.forget_before\(|(^|\.|->)(expect|look_ahead|look_up)\(|__builtin_prefetch\(")
# Functions of that kind.
_UNSEEN_BODIES = re.compile(r"::expect$")
_SENDS = re.compile(r"\b(send|anon_send|delayed_send|enqueue|broadcast|submit|"
                    r"answer|report|say_ready|send_begin_step)\(")


class Mutant:
    """One change of one file."""

    def __init__(self, file, text, kind, start, end, new, function):
        self.file = file
        self.kind = kind
        self.start = start
        self.end = end
        self.new = new
        self.function = function
        self.line = text.count("\n", 0, start) + 1
        old = " ".join(text[start:end].split())
        shown = " ".join(new.split())
        self.change = f"`{old}`" if kind == "drop" else f"`{old}` -> `{shown}`"

    @property
    def key(self):
        """Names it however the lines around it move."""
        return f"{self.file} :: {self.function} :: {self.kind}: {self.change}"

    def apply(self, text):
        return text[:self.start] + self.new + text[self.end:]


# -- reading --------------------------------------------------------------------


def mask(text):
    """`text` with blanks for comments, literals and preprocessor lines."""
    pattern = re.compile(
        r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])'|"
        r"^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)

    def blank(found):
        out = re.sub(r"[^\n]", " ", found.group())
        # A literal stays an operand.
        return '"' + out[1:-1] + '"' if found.group()[0] in "\"'" else out
    return pattern.sub(blank, text)


def closing(text, at):
    """Index of the bracket that closes the one at `at`."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    stack = []
    for i in range(at, len(text)):
        if text[i] in pairs:
            stack.append(pairs[text[i]])
        elif stack and text[i] == stack[-1]:
            stack.pop()
            if not stack:
                return i
    return len(text) - 1


def bodies(text):
    """(name, start, end) of each function body of a masked text."""
    out, head, i = [], 0, 0
    while i < len(text):
        if text[i] in ";}":
            head = i + 1
        elif text[i] == "{":
            before = text[head:i].strip()
            if re.search(r"\b(namespace|class|struct|union|extern)\b[^()]*$",
                         before):
                head = i + 1  # Look inside.
            elif "(" in before and not before.endswith("="):
                end = closing(text, i)
                out.append((name_of(before), i + 1, end))
                i, head = end, end + 1
            else:  # An enumeration, or values.
                i = closing(text, i)
        i += 1
    return out


def name_of(head):
    found = re.search(r"((?:\w+::)*~?(?:\w+|operator\s*\S+?))\s*\(", head)
    return found.group(1) if found else "?"


def statements(text, start, end):
    """(start, end) of each expression statement of a body, in order."""
    out = []
    line = re.compile(r"(?:(?<=[;{}:)])|(?<=\belse)|(?<=\bdo))\s*\n\s*(?=\S)"
                      r"|(?<=\{) (?=\S)|^\s*\n\s*(?=\S)")
    for found in line.finditer(text, start, end):
        first = found.end()
        last = _end_of(text, first, end)
        if last is None:
            continue
        what = text[first:last]
        if not _STARTS.match(what) or _KEYWORDS.match(what):
            continue
        if _DECLARATION.match(what) or _UNSEEN.search(what):
            continue
        out.append((first, last))
    return out


def _end_of(text, first, end):
    """Behind the next semicolon on the same level, or None."""
    i = first
    while i < end:
        if text[i] in "({[":
            i = closing(text, i)
        elif text[i] == ";":
            return i + 1
        elif text[i] in ")}]":
            return None
        i += 1
    return None


# -- changing -------------------------------------------------------------------


def drops(text, found):
    for first, last in found:
        yield first, last, ";"


def swaps(text, found, original):
    for (a, b), (c, d) in zip(found, found[1:]):
        if text[b:c].strip() == "" and _SENDS.search(text[a:b]) \
                and _SENDS.search(text[c:d]):
            yield a, d, original[c:d] + original[b:c] + original[a:b]


def negations(text, start, end, original):
    for found in re.finditer(r"\b(?:if|while) \(", text[start:end]):
        first = start + found.end()
        last = closing(text, first - 1)
        if re.match(r"\)\s*log\(\)", text[last:]):
            continue  # Only the log notices.
        parts = text[first:last]
        declared = _end_of(text, first, last)
        if declared:  # The condition stands behind it.
            first = declared
        elif re.match(r"\s*(const )?[\w:<>]+[&*]* [&*]?\w+\s*=(?!=)", parts):
            continue
        what = original[first:last].strip()
        at = original.index(what, first)
        if what:
            yield at, at + len(what), f"!({what})"


def off_by_ones(text, start, end):
    other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
    for found in re.finditer(r"(?<=[ \n])(<=|>=|<|>)(?= )", text[start:end]):
        # A bracket of a template has no blanks on both sides.
        yield start + found.start(), start + found.end(), other[found.group()]
    for found in re.finditer(r"(?<=[ \n])[+-] 1\b(?![.'])", text[start:end]):
        at = start + found.start()
        yield at, at + 3, text[at] + " 0"
    for found in re.finditer(r"(?<=[ \n])[+-]= 1\b(?![.'])", text[start:end]):
        at = start + found.start()
        yield at, at + 4, text[at] + "= 2"


def context(mutant, text):
    """Shows the line of a change that is a mere operator."""
    first = text.rfind("\n", 0, mutant.start) + 1
    last = text.find("\n", mutant.end)
    old = text[first:last]
    new = old[:mutant.start - first] + mutant.new + old[mutant.end - first:]
    mutant.change = f"`{' '.join(old.split())}` -> `{' '.join(new.split())}`"


def mutants_of(file, text):
    """All mutants of one file, in order of place."""
    masked = mask(text)
    out = []
    for name, start, end in bodies(masked):
        if _UNSEEN_BODIES.search(name):
            continue
        found = statements(masked, start, end)

        def add(kind, changes):
            for first, last, new in changes:
                out.append(Mutant(file, text, kind, first, last, new, name))
        add("drop", drops(masked, found))
        add("swap", swaps(masked, found, text))
        add("negate", negations(masked, start, end, text))
        before = len(out)
        add("off by one", off_by_ones(masked, start, end))
        for mutant in out[before:]:
            context(mutant, text)
    asserts = [(x.start(), closing(masked, x.end() - 1))
               for x in re.finditer(r"\b(?:static_)?assert\(", masked)]
    out = [m for m in out
           if not any(a <= m.start <= b for a, b in asserts)]
    return sorted(out, key=lambda m: (m.start, m.end, m.kind))
