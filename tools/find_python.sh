#!/bin/sh
# Prints the Python that the environment is made from: PYTHON if it is set, else the first usable one.
# Usable means 3.11 or newer, with venv and ensurepip (Debian splits those off into python3-venv).

is_usable() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

if [ -n "${PYTHON:-}" ]; then
    candidates=$PYTHON
else
    # 3.11 first: it is the version on which the whole suite runs, Spark included.
    candidates="python3.11 python3.12 python3.13 python3 python"
    for folder in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[1-3].*/bin; do
        candidates="$candidates $folder/python3"
    done
fi

for candidate in $candidates; do
    if is_usable "$candidate"; then
        command -v "$candidate"
        exit 0
    fi
done

echo "Python 3.11 or newer with the venv module is needed, and none of these is: $candidates." \
    "Install one (Debian, Ubuntu: 'apt-get install python3 python3-venv'; macOS: 'brew install python@3.11')" \
    "or name it: make PYTHON=/path/to/python3." >&2
exit 1
