#!/bin/bash
# Build buddysim for aarch64 on x86-64, and compare replays under qemu with this machine's, bit for bit.
#
#   tools/aarch64.sh [FOLDER]     (out/aarch64; `make arm` builds first what Cython writes)
#
# Debian's compiler and emulator, Debian's Python of aarch64 unpacked in FOLDER, wheels of PyPI. Some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-out/aarch64}") python=${PYTHON:-.venv/bin/python}
version=3.11 # of Debian 12; the wheels' must be the same
packages="python$version-minimal libpython$version-minimal libpython$version-stdlib libpython$version-dev libc6 zlib1g
    libexpat1 libssl3 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 libstdc++6 libgcc-s1 libcrypt1"
mkdir -p "$folder"/{lists/partial,cache/archives/partial,debs,root,site,build}

echo "compiler, emulator, Python and wheels of aarch64"
command -v aarch64-linux-gnu-gcc qemu-aarch64-static > "$folder/found" ||
    { echo "expected: apt install gcc-aarch64-linux-gnu qemu-user-static"; exit 2; }
touch "$folder/status"
cat > "$folder/apt.conf" << END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
Dir::State::status "$folder/status";
Dir::State::lists "$folder/lists";
Dir::Cache "$folder/cache";
END
export APT_CONFIG=$folder/apt.conf
if ! ls "$folder"/debs/*.deb > "$folder/found" 2>&1; then
    apt-get -qq update
    (cd "$folder/debs" && apt-get -qq download $packages)
fi
unset APT_CONFIG
for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$folder/root"; done
"$python" -m pip download -q --only-binary=:all: --python-version "$version" --implementation cp --abi "cp${version/./}" \
    --abi none --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
    -d "$folder/wheels" numpy zstandard zlib-ng pydantic rich shtab
for wheel in "$folder"/wheels/*.whl; do unzip -qo "$wheel" -d "$folder/site"; done

echo compiling
cp -r buddysim "$folder/build/"
find "$folder/build" -name '*.so' -delete
mapfile -t includes < <(find build/cython -name '*.h' -printf '-I%h\n' | sort -u)
export FOLDER=$folder SUFFIX=".cpython-${version/./}-aarch64-linux-gnu.so"
export FLAGS="-shared -fPIC -O2 -ffp-contract=off -g0 -w -DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION ${includes[*]}
    -I$folder/root/usr/include/python$version -I$folder/root/usr/include -I$folder/site/numpy/_core/include"
compile() {
    local replay=()
    case $1 in */replay/*)
        replay=(-fno-tree-vectorize '-DCYTHON_INLINE=__inline__ __attribute__((always_inline))') ;;
    esac
    local target=$FOLDER/build/${1#build/cython/}
    # shellcheck disable=SC2086 # several flags
    aarch64-linux-gnu-gcc $FLAGS "${replay[@]}" "$1" -o "${target%.c}$SUFFIX"
}
export -f compile
find build/cython -name '*.c' -print0 | xargs -0 -P "$(nproc)" -I{} bash -c 'compile "$1"' compile {}

emulated() {
    env PYTHONPATH="$folder/build:$folder/site" PYTHONHOME="$folder/root/usr" \
        qemu-aarch64-static -L "$folder/root" "$folder/root/usr/bin/python$version" -P "$@"
}
emulated -c 'import platform; print("emulated:", platform.machine(), platform.python_version())'
schemes=ideal,bandwidth-compression,buddy,unified-memory,pinned-host
for trace in vectoradd-turing jacobi2d; do
    command=(-m buddysim run "traces/$trace.bin" --scheme "$schemes" --no-sensitivity --json)
    emulated "${command[@]}" "$folder/$trace.aarch64.json" > "$folder/screen"
    "$python" "${command[@]}" "$folder/$trace.x86-64.json" > "$folder/screen"
    "$python" - "$folder/$trace" << 'END'
import json, sys
results = [json.load(open(f"{sys.argv[1]}.{machine}.json")) for machine in ("aarch64", "x86-64")]
for of_machine in results:
    for result in of_machine.values():
        for name in ("buddysim", "python", "numpy"):
            del result["provenance"][name]
counters = sum(map(len, results[0].values()))
print(f"{sys.argv[1]}: {len(results[0])} schemes, {counters} counters:", "equal" if results[0] == results[1] else "DIFFER")
sys.exit(results[0] != results[1])
END
done
