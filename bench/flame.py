#!/usr/bin/env python3
"""Draws where time goes: reads `perf script`, writes a flame graph as SVG.

    perf record --call-graph dwarf,16384 -F 2000 -o perf.data PROGRAM...
    perf script -i perf.data --no-inline | bench/flame.py --title "A step" \\
      --below KEEP --out docs/flame.svg

Width is the share of samples, from the bottom up: who calls is below who is called.
`--below` keeps only stacks with a function whose name contains KEEP, from it on.
Functions that did less than 0.3 % are left out. Hover to read a name in full.
"""

import argparse
import html
import re
import sys

ROW = 17       # Pixels.
WIDTH = 1180
LEAST = 0.003  # Share below which nothing is drawn.


def short(name):
    """A function without template arguments, parameters and offset."""
    name = re.sub(r"\+0x[0-9a-f]+$", "", name)
    name = name.replace("(anonymous namespace)::", "").replace("kvtide::", "")
    depth, out = 0, []
    for char in name.replace("operator<", "operator less").replace("->", ""):
        if char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
        elif depth == 0:
            out.append(char)
    return "".join(out).strip() or name


def stacks(lines):
    """Lists of names, the outermost first."""
    frames = []
    for line in lines:
        if not line.strip():
            if frames:
                yield frames[::-1]
            frames = []
        elif line[0] in "\t " and (found := re.match(r"\s+[0-9a-f]+ (.*) \(.*\)$",
                                                       line.rstrip())):
            frames.append(short(found.group(1)))
    if frames:
        yield frames[::-1]


class Node:
    def __init__(self):
        self.count = 0
        self.callees = {}


def tree_of(samples, keep):
    root = Node()
    for names in samples:
        if keep:
            places = [i for i, name in enumerate(names) if keep in name]
            if not places:
                continue
            names = names[places[0]:]
        root.count += 1
        node = root
        for name in names:
            node = node.callees.setdefault(name, Node())
            node.count += 1
    return root


def depth_of(node, least):
    shown = [x for x in node.callees.values() if x.count >= least]
    return 1 + max((depth_of(x, least) for x in shown), default=0)


def color(name):
    value = sum(ord(x) * (i + 7) for i, x in enumerate(name))
    return f"hsl({18 + value % 34}, {62 + value % 23}%, {66 + value % 13}%)"


def draw(node, name, left, level, out, total, height, least):
    width = WIDTH * node.count / total
    y = height - (level + 1) * ROW
    share = f"{100 * node.count / total:.1f} %"
    letters = int(width / 6.6)
    text = name if len(name) <= letters else name[:max(0, letters - 1)] + "…"
    out.append(f'<g><title>{html.escape(name)}: {share}</title>'
               f'<rect x="{left:.1f}" y="{y}" width="{max(width - 0.5, 0.5):.1f}" '
               f'height="{ROW - 1}" fill="{color(name)}"/>')
    if letters > 3:
        out.append(f'<text x="{left + 3:.1f}" y="{y + 12}">{html.escape(text)}</text>')
    out.append("</g>")
    for callee, child in sorted(node.callees.items()):
        if child.count >= least:
            draw(child, callee, left, level + 1, out, total, height, least)
        left += WIDTH * child.count / total


def svg(root, title):
    least = root.count * LEAST
    height = depth_of(root, least) * ROW + 34
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11">',
           f'<rect width="{WIDTH}" height="{height}" fill="#fffdf7"/>',
           f'<text x="6" y="18" font-size="14">{html.escape(title)} '
           f'({root.count} samples)</text>']
    draw(root, "all", 0.0, 0, out, root.count, height, least)
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--title", default="Where time goes")
    parser.add_argument("--below", default="", metavar="KEEP")
    parser.add_argument("--out", required=True, help="the SVG file")
    args = parser.parse_args()
    root = tree_of(stacks(sys.stdin), args.below)
    if root.count == 0:
        sys.exit("no sample came that is to be shown; is this `perf script`, and "
                 "does --below name a function of it?")
    with open(args.out, "w", encoding="utf-8") as file:
        file.write(svg(root, args.title))


if __name__ == "__main__":
    main()
