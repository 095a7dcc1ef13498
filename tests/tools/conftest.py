# SPDX-License-Identifier: Apache-2.0
"""Where the tests of scripts/ and tools/ find them."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))
