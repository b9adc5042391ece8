#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the layout of all structs of kvtide.h with a list.

    layout.py --cc CC --include FOLDER LIST            the C compiler's view
    layout.py --cc CC --include FOLDER --update LIST   writes the list
    layout.py --python MODULE LIST                     structs of ctypes in a file

A line of the list is "struct.member offset size"; a struct itself has a line
"struct - size". With --python only structs that the module has are looked at, but
these member by member. A member may be added at the end of a struct that begins
with its size; any other change needs another SONAME.
"""

import argparse
import ctypes
import importlib.util
import os
import re
import subprocess
import sys
import tempfile


def structs_of(header):
    """Names of structs and of their members, as the header has them."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header, flags=re.DOTALL)
    out = {}
    for name, body in re.findall(
            r"typedef struct (kvtide_\w+) \{(.*?)\n\} \1;", text, re.DOTALL):
        # A union is a member like others, and its members are looked at as well.
        inner = re.search(r"union \{(.*?)\} (\w+);", body, re.DOTALL)
        members = []
        if inner:
            body = body.replace(inner.group(0), "")
            union = inner.group(2)
            members = [union] + [f"{union}.{one}"
                                 for one in member_names(inner.group(1))]
        out[name] = member_names(body) + members
    return out


def member_names(body):
    names = []
    for declaration in body.split(";"):
        if declaration.strip():
            names.append(re.search(r"(\w+)(\[\w+\])?\s*$", declaration).group(1))
    return names


def compiled(args):
    """The lines that belong into the list."""
    with open(os.path.join(args.include, "kvtide/kvtide.h")) as file:
        text = file.read()
    structs = structs_of(text)
    # What the pattern misses must not be missed by the test.
    if len(structs) != len(re.findall(r"typedef struct kvtide_\w+ \{", text)):
        sys.exit("layout.py does not understand a struct of kvtide.h")
    source = ["#include <kvtide/kvtide.h>", "#include <stdio.h>",
              "int main(void) {"]
    for name, members in structs.items():
        source.append(f'printf("{name} - %zu\\n", sizeof({name}));')
        for member in members:
            source.append(
                f'printf("{name}.{member} %zu %zu\\n", '
                f"offsetof({name}, {member}), sizeof((({name}*)0)->{member}));")
    source.append("return 0; }")
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "layout")
        with open(path + ".c", "w") as file:
            file.write("\n".join(source) + "\n")
        subprocess.run([args.cc, "-std=c99", "-I", args.include, "-o", path,
                        path + ".c"], check=True)
        return subprocess.run([path], check=True, capture_output=True,
                              text=True).stdout.splitlines()


def of_python(path):
    """The lines for all structs that a module has."""
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    out = []
    for name, struct in vars(module).items():
        if not name.startswith("kvtide_"):
            continue
        out.append(f"{name} - {ctypes.sizeof(struct)}")
        for member, kind in struct._fields_:
            place = getattr(struct, member)
            out.append(f"{name}.{member} {place.offset} {place.size}")
    if not out:
        sys.exit(f"{path} has no structs")
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc")
    parser.add_argument("--include")
    parser.add_argument("--python")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("list")
    args = parser.parse_args()
    if args.update:
        with open(args.list, "w") as file:
            file.write("\n".join(compiled(args)) + "\n")
        return 0
    with open(args.list) as file:
        listed = file.read().splitlines()
    if args.python:
        there = of_python(args.python)
        # A union may have fewer members there, but no struct may.
        named = {line.split(" ")[0].split(".")[0] for line in there}
        listed = [line for line in listed
                  if line.split(".")[0].split(" ")[0] in named
                  and ".as." not in line]
    else:
        there = compiled(args)
    wrong = 0
    for line in sorted(set(there) - set(listed)):
        print(f"not in the list: {line}")
        wrong += 1
    for line in sorted(set(listed) - set(there)):
        print(f"in the list only: {line}")
        wrong += 1
    print(f"{len(there)} lines, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
