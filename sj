#!/usr/bin/env bash
# streamjoin's one command: sets up what is missing, then does what was asked.
#
#   ./sj test              the check: static, tests, coverage
#   ./sj test-streams      the tests that run streaming queries, and kill some   (CI runs both)
#   ./sj test-browser      reports in a real browser, Debian's Chromium; with --screenshots also the pictures of the docs
#   ./sj test ARGS...      only pytest, with ARGS
#   ./sj test-wheel        build the package, install it into an empty environment, and walk through the tutorial there
#   ./sj test-postgres     the guide to PostgreSQL, with a server that is started for it
#   ./sj test-spark 4.2    what works with another version of Spark, in an environment of its own, against what the guide says
#   ./sj docs              the documents as a site, in build/site: fails on warnings and on links that lead nowhere
#   ./sj lint              the static part of the check
#   ./sj lock              choose the newest allowed versions anew and write requirements.lock
#   ./sj python ARGS...    the project's Python
#   ./sj ANYTHING ELSE     the streamjoin command line: ./sj version, ./sj --help
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
venv=$root/.venv
lock=$root/requirements.lock

say() { printf 'sj: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Install a Debian package where that is allowed: as root, with apt-get. Otherwise fail, and the caller says what is missing.
debian() {
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || return 1
    say "installing $1 ..."
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >/dev/null || true # older package lists may still do
    apt-get install -y -qq --no-install-recommends "$1" >/dev/null
}

# --- Python -----------------------------------------------------------------------------------------------------------

find_python() {
    local name
    for name in python3.11 python3; do
        # ensurepip is a package of its own on Debian, so it has to be looked for too.
        if "$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    return 1
}

checksum() { { printf '%s\n' "$root"; cat "$@"; } | cksum; } # the path too: a .venv that was moved does not work

project_checksum() { checksum "$root/pyproject.toml"; }

install_dependencies() {
    local python
    python=$(find_python) || { debian python3-venv && python=$(find_python); } ||
        die "Python 3.11 or newer with its venv module is missing: install it (Debian: apt-get install python3-venv) and run this again."
    say "making .venv with $("$python" --version); the first time takes a few minutes, Spark alone is 450 MB ..."
    rm -rf "$venv"
    "$python" -m venv "$venv"
    # Spark comes as source: --use-pep517 builds it in an environment of its own with every version of pip.
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check --use-pep517 --require-hashes -r "$lock"
    checksum "$lock" >"$venv/.lock-installed"
}

install_project() {
    say "installing streamjoin itself ..."
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable "$root"
    project_checksum >"$venv/.project-installed"
}

# The stamps are written last, so a set-up that was interrupted starts again.
current() { [[ -x $venv/bin/python && -f $venv/$1 && $(<"$venv/$1") == "$2" ]]; }

setup_python() {
    current .lock-installed "$(checksum "$lock")" && current .project-installed "$(project_checksum)" && return
    (
        if command -v flock >/dev/null; then flock 9; fi # two at a time would spoil each other's work
        current .lock-installed "$(checksum "$lock")" || install_dependencies
        current .project-installed "$(project_checksum)" || install_project
    ) 9<"$root/pyproject.toml"
}

# --- Java -------------------------------------------------------------------------------------------------------------

java_is_new_enough() {
    local version
    version=$("$1" -version 2>&1) || return 1
    [[ $version =~ version\ \"([0-9]+) ]] && ((BASH_REMATCH[1] >= 17))
}

find_java() {
    local java
    if [[ -n ${JAVA_HOME:-} ]] && java_is_new_enough "$JAVA_HOME/bin/java"; then return; fi
    unset JAVA_HOME # Spark would prefer it to a better one on PATH
    if java_is_new_enough java; then return; fi
    for java in /usr/lib/jvm/*/bin/java; do
        if java_is_new_enough "$java"; then
            export JAVA_HOME=${java%/bin/java}
            return
        fi
    done
    return 1
}

setup_java() {
    find_java || { debian default-jre-headless && find_java; } ||
        die "Java 17 or newer is missing: install it (Debian: apt-get install default-jre-headless), or point JAVA_HOME to it, and run this again."
}

# --- A browser --------------------------------------------------------------------------------------------------------

find_browser() {
    local name
    for name in chromium-headless-shell chromium chromium-browser google-chrome; do
        command -v "$name" >/dev/null && return
    done
    return 1
}

setup_browser() {
    find_browser || { debian chromium-headless-shell && find_browser; } ||
        die "Chromium is missing: install it (Debian: apt-get install chromium-headless-shell) and run this again."
}

# --- Kernels ----------------------------------------------------------------------------------------------------------

# numba's cache notices a change of a kernel's own file only, not of the files it calls: after any change compile all anew.
forget_stale_kernels() {
    local kernels=$root/src/streamjoin/kernels newest
    newest=$(find "$kernels" -name '*.py' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2-)
    find "$kernels/__pycache__" -name '*.nb[ci]' ! -newer "$newest" -delete 2>/dev/null || true
}

# --- The check --------------------------------------------------------------------------------------------------------

# phase HEADING COMMAND...: run it, say how long it took, stop everything if it fails.
phase() {
    local heading=$1 start=$SECONDS
    shift
    printf '\n== %s\n' "$heading"
    "$@" || { printf '== %s: FAILED after %d s\n' "$heading" $((SECONDS - start)); exit 1; }
    printf '== %s: ok, %d s\n' "$heading" $((SECONDS - start))
}

check_static() {
    phase "ruff check" ruff check .
    phase "ruff format" ruff format --check .
    phase "mypy" mypy
    phase "lint-imports" lint-imports
}

# numba's compiled code is invisible to coverage, so the kernels run once more as plain Python: slower, hence fewer runs.
measure_coverage() {
    NUMBA_DISABLE_JIT=1 STREAMJOIN_SIMULATOR_RUNS=60 STREAMJOIN_SPILLED_RUNS=6 \
        pytest -q -n 2 -m "not spark and not long and not compiled" --cov --cov-report= \
        tests/algebra tests/kernels tests/state tests/operators
}

check_coverage() {
    coverage json --quiet && python tools/coverage_gate.py build/coverage.json 95 algebra kernels state operators
}

check_all() {
    check_static
    # Two at a time, each with a Spark of its own: a test on Spark waits more than it works.
    phase "pytest" pytest -n 2 --dist worksteal -m "not long and not stream"
    phase "pytest without JIT, for coverage" measure_coverage
    phase "coverage" check_coverage
    printf '\nAll is well: %d s\n' "$SECONDS"
}

check_streams() {
    # The folders that RUN_STREAMS of tests/conftest.py names: the others need not be collected.
    phase "pytest on running streams" pytest -n 2 --dist worksteal -m "stream and not long" \
        tests/chaos tests/cli tests/docs tests/spark
    printf '\nAll is well: %d s\n' "$SECONDS"
}

make_lock() {
    # --universal: one lock for every platform and Python. Hashes but no addresses: pip finds the files where it always does.
    local how=(--universal --python-version 3.11 --upgrade --quiet --generate-hashes --no-header --no-annotate
        --no-emit-index-url --no-strip-extras)
    uv pip compile pyproject.toml --all-extras "${how[@]}" --output-file requirements.lock
    uv pip compile tools/site/requirements.in "${how[@]}" --output-file tools/site/requirements.txt
}

# --- The site ---------------------------------------------------------------------------------------------------------

# What builds the site has an environment of its own: nothing else needs it, and it shall not choose versions for others.
make_site() {
    local tools=$root/build/site-tools wanted=tools/site/requirements.txt
    if [[ ! -f $tools/.installed || $(<"$tools/.installed") != "$(checksum "$wanted")" ]]; then
        say "making build/site-tools ..."
        rm -rf "$tools"
        "$venv/bin/python" -m venv "$tools"
        "$tools/bin/python" -m pip install -qq --disable-pip-version-check --require-hashes -r "$wanted"
        checksum "$wanted" >"$tools/.installed"
    fi
    "$venv/bin/python" -m tools.site "$tools/bin/zensical"
}

# A server and its driver from Debian's packages: installed where that is allowed.
setup_postgresql() {
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || debian postgresql ||
        die "PostgreSQL is missing: install it (Debian: apt-get install postgresql) and run this again."
    [[ -f /usr/share/java/postgresql.jar ]] || debian libpostgresql-jdbc-java ||
        die "PostgreSQL's JDBC driver is missing: install it (Debian: apt-get install libpostgresql-jdbc-java) and run this again."
}

# ----------------------------------------------------------------------------------------------------------------------

setup_python
forget_stale_kernels
export PATH=$venv/bin:$PATH PYSPARK_PYTHON=$venv/bin/python
unset SPARK_HOME # another Spark than the locked one would be started
unset PYTHONDONTWRITEBYTECODE # every worker, daemon and driver of a test would compile all modules anew

case ${1:-} in
test)
    shift
    setup_java
    cd "$root"
    if (($#)); then exec pytest "$@"; fi
    check_all
    ;;
lint) cd "$root" && check_static ;;
test-streams)
    setup_java
    cd "$root"
    check_streams
    ;;
test-wheel)
    setup_java
    cd "$root" && exec pytest -m long tests/docs/test_wheel.py
    ;;
test-postgres)
    setup_java
    setup_postgresql
    cd "$root" && exec pytest -m long tests/spark/test_postgresql.py
    ;;
test-spark)
    setup_java
    cd "$root" && exec "$venv/bin/python" -m tests.spark_versions "${@:2}"
    ;;
docs) cd "$root" && make_site ;;
test-browser)
    setup_java
    setup_browser
    cd "$root"
    if [[ ${2:-} == --screenshots ]]; then export STREAMJOIN_SCREENSHOTS=1; fi
    exec pytest -m browser tests/browser
    ;;
lock) cd "$root" && make_lock ;;
python)
    setup_java
    exec "$venv/bin/python" "${@:2}"
    ;;
*)
    setup_java
    exec "$venv/bin/streamjoin" "$@"
    ;;
esac
