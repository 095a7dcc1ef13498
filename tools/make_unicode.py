#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/text/unicode_table.h: one byte of properties for each code point.

The answers come from the `tokenizers` package itself (its regex engine is asked about every code
point), so that our pre-tokenizers see the same letters as the reference, whatever Unicode version
it was built with. Its NFC is older (Unicode 9.0), so the code points at which it acts are marked; at
others our normalization must not act either.

usage: make_unicode.py > src/text/unicode_table.h    (needs: tokenizers)
"""
import sys
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = ("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp "
              "Cc Cf Co").split()
SPACE, ACTS, BEFORE = 0x20, 0x40, 0x80
BLOCK = 64
POINTS = [c for c in range(0x110000) if not 0xd800 <= c <= 0xdfff]
TEXT = "".join(map(chr, POINTS))


def members(pattern):
    """The code points that match a one-character pattern."""
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    found = set()
    for _, (start, end) in split.pre_tokenize_str(TEXT):
        found.update(POINTS[start:end])
    return found


def normalization():
    """The code points at which the package's NFC acts, and those before which it may."""
    nfc = normalizers.NFC().normalize_str
    acts, before = set(), set()
    for c in POINTS:
        s = chr(c)
        marks = ("\u4e00\u0345" + s, "\u4e00" + s + "\u0334")  # highest and lowest class around it
        if unicodedata.combining(s) and all(
                nfc(t) == unicodedata.normalize("NFC", t) for t in marks):
            acts.add(c)
        parts = unicodedata.decomposition(s).split()
        if not parts or parts[0].startswith("<"):
            continue
        apart = "".join(chr(int(p, 16)) for p in parts)
        if nfc(s) != s:
            acts.add(c)
        elif nfc(apart) == s:
            before.update((c, ord(apart[0])))
            acts.add(ord(apart[1]))
    acts.update(range(0x1161, 0x1176), range(0x11a8, 0x11c3))  # Hangul vowels and tails
    before.update(range(0x1100, 0x1113), range(0xac00, 0xd7a4))
    return acts, before


def check(acts, before):
    """The package agrees with Unicode at the points we found, and changes nothing elsewhere."""
    nfc = normalizers.NFC().normalize_str
    for c in POINTS:
        s = chr(c)
        if c in acts:
            assert nfc(s) == unicodedata.normalize("NFC", s), hex(c)
            continue
        for t in (s, "a" + s, "\u1100" + s, "\uac00" + s, "\u4e00\u0345" + s,
                  "\u4e00" + s + "\u0334"):
            assert nfc(t) == t, hex(c)
        if c not in before:
            for mark in "\u0301\u3099\u1161\u11a8\u09be":
                assert nfc(s + mark) == s + mark, hex(c)


def main():
    table = bytearray(0x110000)
    for value, name in enumerate(CATEGORIES):
        if name != "Cn":
            for c in members(r"\p{%s}" % name):
                assert table[c] == 0, hex(c)
                table[c] = value
    for c in members(r"\s"):
        table[c] |= SPACE
    acts, before = normalization()
    check(acts, before)
    for c in range(0x110000):
        table[c] |= (ACTS if c in acts else 0) | (BEFORE if c in before else 0)
    blocks, index = {}, []
    for at in range(0, 0x110000, BLOCK):
        index.append(blocks.setdefault(bytes(table[at:at + BLOCK]), len(blocks)))
    out = [
        "/* SPDX-License-Identifier: Apache-2.0",
        " * unicode_table.h: made by tools/make_unicode.py from tokenizers %s; do not edit." %
        tokenizers.__version__,
        " * Bits 0-4: enum unicode_category; the others: see unicode.h. */",
    ]
    def rows(head, values):
        out.append(head)
        line = ""
        for value in values:
            if len(line) + len(str(value)) + 1 > 98:
                out.append(line)
                line = ""
            line += "%d," % value
        out.extend([line, "};"])
    rows("static const uint16_t block_of[%d] = {" % len(index), index)
    rows("static const uint8_t properties[%d] = {" % (len(blocks) * BLOCK), b"".join(blocks))
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
