#!/bin/bash
# Installs the Debian 12 packages that a group of steps needs and that are not there yet.
#   scripts/install_packages.sh build|test|runtime...
# Nothing missing: no network, no root, a few milliseconds. Otherwise runs apt-get as root, or through sudo.
set -euo pipefail

build_packages=(
  g++ make cmake ninja-build pkg-config
  libgrpc++-dev protobuf-compiler-grpc protobuf-compiler libprotobuf-dev libabsl-dev grpc-proto
  libssl-dev nlohmann-json3-dev libcli11-dev
  libcivetweb-dev prometheus-cpp-dev
  libgmock-dev libbenchmark-dev
)
# From `build` as well: the tests are built from source.
test_packages=(
  clang-14 libclang-rt-14-dev llvm-14 clang-format-14 clang-tidy-14  # llvm-14: names in the stacks of sanitizers
  python3 python3-grpcio python3-protobuf python3-yaml
  gcovr git
  libceres-dev libcsv-dev  # sliceplan-calibrate
  yamllint nghttp2-client libfaketime openssl  # deploy/, drills
)
runtime_packages=(
  libgrpc++1.51 libprotobuf32 libabsl20220623 libcivetweb1 libprometheus-cpp-core1.0 ca-certificates
)

if [[ $# -eq 0 ]]; then
  echo "usage: $0 build|test|runtime..." >&2
  exit 2
fi

wanted=()
for group in "$@"; do
  case $group in
    build) wanted+=("${build_packages[@]}") ;;
    test)
      wanted+=("${test_packages[@]}")
      # Other builds of node (Node.js's own, a version manager's) bring npm along and conflict with Debian's package.
      command -v node >/dev/null || wanted+=(nodejs)
      command -v npm >/dev/null || wanted+=(npm)
      command -v kubectl >/dev/null || wanted+=(kubernetes-client)
      ;;
    runtime) wanted+=("${runtime_packages[@]}") ;;
    *)
      echo "$0: no such group: $group" >&2
      exit 2
      ;;
  esac
done

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p' | sort -u)
missing=()
for package in "${wanted[@]}"; do
  grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "$0: not root and no sudo; as root, run: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
