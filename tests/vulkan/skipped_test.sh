#!/bin/sh
# Runs a test program that lacks its device: skipped_test.sh STATUS PROGRAM ARGUMENT... It fails nothing, says
# SKIPPED, and ends with 77 where it tested nothing, else with 0.
want=$1
shift
output=$("$@" 2>&1)
status=$?
echo "$output"
echo "$output" | grep -q SKIPPED && [ $status -eq "$want" ] && exit 0
echo "status $status; wanted are $want and a line with SKIPPED" >&2
exit 1
