#!/bin/bash
# Installs what the tests of the extras need: Debian packages, and what sweeps and reports need, PyOpenCL, LZ4, NVRTC,
# PyTorch for the CPU, Triton and transformers into the given Python's environment. Installed packages are left alone; those
# that can't be installed are named, with exit code 1.
#
#   tools/install_extras.sh .venv/bin/python
set -uo pipefail
python=${1:?expected the path of a Python: tools/install_extras.sh .venv/bin/python}

# Compilers of captured programs; OpenCL on the CPU, with Oclgrind to check it; images to train on; a browser that opens
# reports.
packages=(
    gcc g++ gfortran libc6-dev binutils xz-utils openssl
    clang-15 llvm-15-dev pocl-opencl-icd ocl-icd-opencl-dev opencl-headers
    oclgrind liboclgrind-dev llvm-14-dev
    dataset-fashion-mnist
    chromium
)
# Workers, clusters and tables of sweeps: the extra `sweep` of pyproject.toml.
sweep=(distributed dask-jobqueue duckdb pyarrow pandas bokeh)
# "+cpu": the plain wheel brings gigabytes of CUDA libraries along.
torch='torch==2.13.0+cpu'
torch_index=https://download.pytorch.org/whl/cpu
# Kernels of tests/capture/triton; compiles for GPUs without one.
triton='triton==3.9.0'
# Models of tests/training/transformers, made from their configurations: nothing is downloaded.
transformers='transformers==5.24.0'

say() { echo "buddysim: $*" >&2; }
failed=0

missing_packages() {
    for package in "${packages[@]}"; do
        dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || echo "$package"
    done
}

# Debian's npm brings hundreds of packages: it is installed only where no other npm is there.
if ! command -v npm >/dev/null; then packages+=(npm); fi

install_packages() {
    local as_root=()
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "not Debian: the tests of the extras need the equivalents of Debian's ${packages[*]}"
        return 1
    fi
    mapfile -t missing < <(missing_packages)
    ((${#missing[@]})) || return 0
    if ((EUID)); then
        if ! sudo -n true 2>/dev/null; then
            say "missing, and only root can install it: apt install ${missing[*]}"
            return 1
        fi
        as_root=(sudo -n)
    fi
    say "installing ${missing[*]}"
    local quiet=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
    "${as_root[@]}" "${quiet[@]}" update >/dev/null || say "apt-get update failed; continuing with the old package lists"
    if ! "${as_root[@]}" "${quiet[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null; then
        for package in "${missing[@]}"; do # a package that this release lacks must not block the others
            "${as_root[@]}" "${quiet[@]}" install -y --no-install-recommends "$package" >/dev/null 2>&1
        done
    fi
    mapfile -t missing < <(missing_packages)
    ((${#missing[@]})) || return 0
    say "could not be installed: ${missing[*]}"
    return 1
}

install_python_packages() {
    local status=0 pip=("$python" -m pip install --disable-pip-version-check --retries 2)
    if ! "$python" -c 'import distributed, dask_jobqueue, duckdb, pyarrow, pandas, bokeh' 2>/dev/null; then
        say "installing the extra sweep"
        "${pip[@]}" --quiet "${sweep[@]}" || { say "could not be installed: ${sweep[*]}"; status=1; }
    fi
    if ! "$python" -c 'import pyopencl' 2>/dev/null; then
        say "installing pyopencl"
        "${pip[@]}" --quiet pyopencl || { say "could not be installed: pyopencl"; status=1; }
    fi
    if ! "$python" -c 'import lz4.block' 2>/dev/null; then
        say "installing lz4"
        "${pip[@]}" --quiet lz4 || { say "could not be installed: lz4"; status=1; }
    fi
    if ! "$python" -c 'import playwright' 2>/dev/null; then
        say "installing playwright, which drives the browser"
        "${pip[@]}" --quiet playwright || { say "could not be installed: playwright"; status=1; }
    fi
    if ! "$python" -c 'import plotly' 2>/dev/null; then
        say "installing plotly"
        "${pip[@]}" --quiet plotly || { say "could not be installed: plotly"; status=1; }
    fi
    if ! "$python" -c 'import nvidia.cuda_nvrtc' 2>/dev/null; then
        say "installing nvidia-cuda-nvrtc-cu12, which compiles the CUDA kernels without a GPU"
        "${pip[@]}" --quiet nvidia-cuda-nvrtc-cu12 || { say "could not be installed: nvidia-cuda-nvrtc-cu12"; status=1; }
    fi
    install_torch || { say "could not be installed: $torch"; return 1; }
    if ! "$python" -c 'import triton' 2>/dev/null; then
        say "installing $triton"
        "${pip[@]}" --quiet "$triton" || { say "could not be installed: $triton"; status=1; }
    fi
    # Behind PyTorch, which it would otherwise install in another form.
    if ! "$python" -c 'import transformers' 2>/dev/null; then
        say "installing $transformers"
        "${pip[@]}" --quiet "$transformers" || { say "could not be installed: $transformers"; status=1; }
    fi
    return $status
}

install_torch() {
    local pip=("$python" -m pip install --disable-pip-version-check --retries 2)
    "$python" -c 'import torch' 2>/dev/null && return
    say "installing $torch"
    # First from the indexes that pip is configured for (local wheels, a mirror): an unreachable one takes minutes to fail.
    "${pip[@]}" -qqq "$torch" 2>/dev/null && return
    "${pip[@]}" --quiet --extra-index-url "$torch_index" "$torch"
}

install_packages || failed=1
install_python_packages || failed=1
exit $failed
