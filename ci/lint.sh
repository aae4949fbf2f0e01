#!/bin/sh
# Do ruff, mypy and shellcheck find nothing in programs in Python and shell?
#
# ci/tools.txt names the tools; a virtual environment in target/ has them.
set -eu
cd "$(dirname "$0")/.."
folder=${CARGO_TARGET_DIR:-target}/lint
export PIP_DISABLE_PIP_VERSION_CHECK=1

# 1. The tools, installed again when their versions change.
if ! cmp -s ci/tools.txt "$folder/installed.txt"; then
    rm -rf "$folder"
    python3 -m venv --without-pip "$folder"
    python3 -m pip --python "$folder" install --quiet --no-compile --requirement ci/tools.txt
    cp ci/tools.txt "$folder/installed.txt"
fi

# 2. Python: pyproject.toml has the rules.
"$folder/bin/ruff" format --check --quiet --cache-dir "$folder/ruff"
"$folder/bin/ruff" check --quiet --cache-dir "$folder/ruff"
MYPYPATH=python "$folder/bin/python" -m mypy --no-error-summary --cache-dir "$folder/mypy" --package gristmill
MYPYPATH=python "$folder/bin/python" -m mypy --no-error-summary --cache-dir "$folder/mypy" python/examples python/backend

# 3. Shell: .shellcheckrc has the rules.
git ls-files '*.sh' .ci/run | xargs "$folder/bin/shellcheck"
