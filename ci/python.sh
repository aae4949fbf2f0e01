#!/bin/sh
# Does the Python package install from a wheel in a fresh environment, pass its tests on every engine, and have types?
#
#     ci/python.sh [arguments of pytest]
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
folder="$target/python"
sh ci/needs.sh python java
# The build of `make test` includes the command.
cargo test --no-run --quiet --workspace --locked --features gristmill-cli/columnar --test answers

# 1. The wheel, of the development profile, shares what cargo has built.
rm -rf "$folder"
python3 -m venv "$folder/venv"
python="$folder/venv/bin/python"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
"$python" -m pip install --quiet 'pyspark>=4'
spark=$("$python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$folder" -C profile=dev -C command="$target/debug/gristmill" -C spark="$spark" .
wheel=$(echo "$folder"/gristmill-*.whl)
"$python" -m pip install --quiet "${wheel}[test,spark]"
"$folder/venv/bin/gristmill" --version
"$folder/venv/bin/gristmill" run --workers 2 python/examples/word_count.py README.md >/dev/null

# 2. With these names, no engine is left out because it cannot be imported. On Spark, where a job takes half a second,
#    every function and every program runs once, beside the others, which often leave a processor idle.
spark_tests=
if [ $# = 0 ]; then
    GRISTMILL_ENGINES=spark JDK_JAVA_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" \
        "$python" -m pytest --quiet python/tests/test_spark.py python/tests/test_examples.py python/tests/test_programs.py \
        >"$folder/spark.log" 2>&1 &
    spark_tests=$!
fi
passed=0
GRISTMILL_ENGINES="${GRISTMILL_ENGINES:-local,machine}" "$python" -m pytest --quiet "$@" || passed=$?
if [ -n "$spark_tests" ]; then
    wait $spark_tests || passed=$?
    cat "$folder/spark.log"
fi
[ "$passed" = 0 ] || exit "$passed"

# 3. The installed package tells type checkers that it has types. `make lint` checks them.
ls "$folder"/venv/lib/python3*/site-packages/gristmill/py.typed >/dev/null

# 4. The benchmark runs, and its programs agree. Its figures are not of use here.
"$python" bench/python/compare.py --tasks tiny,groups,second --rows 20000 --rounds 1 2>/dev/null
