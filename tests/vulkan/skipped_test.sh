#!/bin/sh
# Runs a test program that lacks its device: skipped_test.sh STATUS PROGRAM ARGUMENT... The program must fail nothing,
# say SKIPPED, and end with STATUS: 77 if it tests nothing then, else 0.
want=$1
shift
output=$("$@" 2>&1)
status=$?
echo "$output"
echo "$output" | grep -q SKIPPED && [ $status -eq "$want" ] && exit 0
echo "status $status; wanted are $want and a line with SKIPPED" >&2
exit 1
