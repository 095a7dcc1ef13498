#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the polynomials of src/kernels/body/math.h: minimax fits (Remez exchange in 60 digits),
rounded to float from the lowest coefficient up, each later one fitted to what rounding left.

Needs mpmath. The result is checked by `1bit-check --func math`, which measures errors in ULP."""
import struct

from mpmath import mp, mpf, matrix, lu_solve, exp, log, tanh, erf, erfc, sqrt, cos, pi, atanh

mp.dps = 60


def f32(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def remez(f, weight, lo, hi, degree):
    """Minimax coefficients of sum c[i] x^i for weight * (poly - f) on [lo, hi]."""
    n = degree + 2
    node = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * k / (n - 1)) for k in range(n)]
    grid = [lo + (hi - lo) * mpf(k) / 4000 for k in range(4001)]
    for _ in range(12):
        a, b = matrix(n, n), matrix(n, 1)
        for r, x in enumerate(node):
            for i in range(degree + 1):
                a[r, i] = x**i
            a[r, degree + 1] = (-1) ** r / weight(x)
            b[r] = f(x)
        c = list(lu_solve(a, b))[: degree + 1]
        error = [weight(x) * (sum(k * x**i for i, k in enumerate(c)) - f(x)) for x in grid]
        # One extremum in each run of equal sign.
        peak = []
        for x, e in zip(grid, error):
            if peak and (e > 0) == (peak[-1][1] > 0):
                if abs(e) > abs(peak[-1][1]):
                    peak[-1] = (x, e)
            else:
                peak.append((x, e))
        if len(peak) < n:
            break
        while len(peak) > n:
            peak.pop(0 if abs(peak[0][1]) < abs(peak[-1][1]) else -1)
        node = [x for x, _ in peak]
    return c, max(abs(e) for e in error)


def rounded(f, weight, lo, hi, degree):
    """Rounds c0, refits the rest to (f - c0) / x, and so on."""
    out, g, w = [], f, weight
    for d in range(degree, -1, -1):
        c, e = remez(g, w, lo, hi, d)
        if d == degree:
            print(f"    # minimax error {float(e):.2e}")
        k = f32(c[0])
        out.append(k)
        g = (lambda g, k: lambda x: (g(x) - k) / x)(g, k)
        w = (lambda w: lambda x: w(x) * x)(w)
    return out


def show(name, c):
    print(name, ", ".join(f"{float(k).hex()}f" for k in c))


ln2 = log(2)
tiny = mpf(10) ** -6
print("ln2 hi, lo", (float(f32(mpf(int(ln2 * 2**15)) / 2**15))).hex(),
      float(f32(ln2 - mpf(int(ln2 * 2**15)) / 2**15)).hex(), "1/ln2", float(f32(1 / ln2)).hex())
# exp(r) = 1 + r + r^2 P(r)
half = ln2 / 2 * mpf("1.01")
series = lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > tiny else mpf(1) / 2 + r / 6
found = remez(series, lambda r: r**2 / exp(r) + mpf(10) ** -9, -half, half, 4)
show("exp", [f32(k) for k in found[0]])
# atanh(x) = x + x^3 P(x^2), x in [0, 1/3]
a = lambda z: (atanh(sqrt(z)) / sqrt(z) - 1) / z
show("softplus", rounded(a, lambda z: z * sqrt(z) / atanh(sqrt(z)), tiny, mpf(1) / 9, 3))
# tanh(x) = x + x^3 P(x^2), x in [0, 0.625]
t = lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z
show("tanh", rounded(t, lambda z: z * sqrt(z) / tanh(sqrt(z)), tiny, mpf("0.625") ** 2, 4))
# erf(x) = x + x P(x^2), x in [0, 1]
e = lambda z: erf(sqrt(z)) / sqrt(z) - 1
show("erf small", rounded(e, lambda z: sqrt(z) / erf(sqrt(z)), tiny, mpf("1.0"), 6))
# erf(x) = 1 - exp(-x P(x)), x in [1, 4]: P = -log(erfc(x)) / x
p = lambda x: -log(erfc(x)) / x
show("erf large", [f32(k) for k in remez(p, lambda x: x * erfc(x), mpf(1), mpf("3.95"), 6)[0]])
