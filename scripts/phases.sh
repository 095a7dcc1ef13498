# SPDX-License-Identifier: Apache-2.0
# phases.sh: sourced by test, lint, fuzz and mutate. `phase NAME COMMAND...` runs one command with
# its output in build-logs/, prints a line with its seconds, and at the first failure shows the end
# of that output and ends the script, unless keep_going is set. `finish` prints the sums:
# "N passed, N failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
logs=$PWD/build-logs
mkdir -p "$logs"
passed=0
failed=0

# What a finished command counted: cmocka's, pytest's and our own summary lines; a command that
# counts nothing (a build) is one.
sum_of() {  # CMOCKA_WORD WORD LOG
    sed -nE "s/^\\[  $1  \\] ([0-9]+) test\\(s\\).*/\\1/p; s/^(.*[ =])?([0-9]+) $2.*/\\2/p" "$3" |
        awk '{s += $1} END {print s + 0}'
}
count() {  # LOG STATUS
    local p f
    p=$(sum_of PASSED passed "$1")
    f=$(sum_of FAILED failed "$1")
    if [ "$2" -eq 0 ]; then
        [ "$p" -gt 0 ] || p=1
        f=0
    else
        [ "$f" -gt 0 ] || f=1
    fi
    passed=$((passed + p))
    failed=$((failed + f))
}

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

phase() {  # NAME COMMAND...
    local name=$1 log=$logs/${1//[^a-zA-Z0-9]/-}.log start=$SECONDS status=0
    shift
    "$@" >"$log" 2>&1 </dev/null || status=$?
    count "$log" "$status"
    printf '%-44s %-6s %4d s\n' "$name" "$([ $status -eq 0 ] && echo ok || echo FAILED)" \
        $((SECONDS - start))
    if [ $status -ne 0 ]; then
        tail -60 "$log"
        echo "(all of it: $log)"
        [ -n "${keep_going:-}" ] || { finish; exit 1; }
    fi
}

# A build folder: set up once, its -D options kept in step, then built.
build() {  # DIR MESON_ARGUMENT...
    local dir=$1 arg options=()
    shift
    if [ -f "$dir/build.ninja" ]; then
        for arg; do [[ $arg != -D* ]] || options+=("$arg"); done
        # A folder made before an option was there does not know it: made again, it does.
        [ ${#options[@]} -eq 0 ] || meson configure "$dir" "${options[@]}" ||
            meson setup --reconfigure "$dir" "$@"
    else
        meson setup "$dir" "$@"
    fi
    ninja -C "$dir"
}
