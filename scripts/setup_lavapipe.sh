#!/usr/bin/env bash
# Installs Mesa's Vulkan driver for CPUs and Khronos' validation layers, which the Vulkan tests use where there is no
# GPU; does nothing where a Vulkan driver and the layers are there. Needs apt and root.
set -euo pipefail

# One that has cooperative matrices, beside the system's: only their tests run on it.
"$(dirname "$0")/fetch_debian.sh" mesa mesa-vulkan-drivers ||
  echo "setup: no newer Mesa from Debian 13; the tests of cooperative matrices will be skipped" >&2

if ls /usr/share/vulkan/icd.d/*.json >/dev/null 2>&1 && [ -e /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ]; then
  exit 0
fi
suite=()
# Debian 12's own driver is of 2022; the one seen to work is in backports.
if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then
  echo 'deb http://deb.debian.org/debian bookworm-backports main' >/etc/apt/sources.list.d/aerie-backports.list
  suite=(-t bookworm-backports)
fi
apt-get update -qq >&2
export DEBIAN_FRONTEND=noninteractive
apt-get install -y -qq --no-install-recommends libvulkan1 vulkan-validationlayers spirv-tools >&2
apt-get install -y -qq --no-install-recommends "${suite[@]}" mesa-vulkan-drivers >&2
