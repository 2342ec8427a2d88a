#!/bin/sh
# Runs the compiler (arguments) through ccache. A precompiled header that is about to be made again is deleted first: its
# command includes the header itself, so that ccache would take the old file for what the new one is made of, and could
# find that one again.
for word; do
  [ "$before" != -o ] || made=$word
  before=$word
done
case $made in *.gch | *.pch) rm -f "$made" ;; esac
CCACHE_SLOPPINESS=pch_defines,time_macros exec ccache "$@"
