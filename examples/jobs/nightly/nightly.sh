#!/bin/sh
# Writes the nightly report, once, in however many clusters this runs at the same time.
#
#   SOLOIST_STORE=redis://HOST:6379 nightly.sh FILE
#
# SIDECAR is the program (sidecar), CLUSTER the name of this cluster (that of the host).
set -eu
[ $# = 1 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }

# The day is that of UTC, so that all clusters name the same run; away from midnight, so that
# clocks that differ do so too. --at-least-for keeps the lock taken for one that is late and
# knows no run by that name; --skip-ok makes it a success that another has run it.
exec "${SIDECAR:-sidecar}" run --lock nightly --once "$(date -u +%F)" --at-least-for 5s --skip-ok \
    --name "${CLUSTER:-$(hostname)}" -- \
    sh -c 'echo "report of $1, with fence $SOLOIST_FENCE" >>"$2"' report "${CLUSTER:-$(hostname)}" "$1"
