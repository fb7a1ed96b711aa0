#!/bin/sh
# The client side of a job lock, with curl alone. Copy what you need.
#
#   lock.sh ask URL NAME     asks for the lock, and releases it
#   lock.sh hold URL NAME    holds it with an open connection, and so no longer than it lives
set -eu

# work takes WORK seconds, in steps that are short beside what the lock is valid for.
work() {
    steps=$((${WORK:-1} * 10))
    while [ $steps -gt 0 ]; do
        sleep 0.1
        steps=$((steps - 1))
    done
}

# field prints one field of a JSON object without objects in it.
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }

# ask asks again where no answer came, or 503: the id of the request makes one attempt of it.
# curl prints what it was told each time: the last line counts.
ask() { curl -sS --max-time 30 --retry 2 --retry-all-errors -X "$1" -d "$2" "$url" | tail -n 1; }

# now counts seconds that nobody sets back, where there are such.
now() { cut -d. -f1 /proc/uptime 2>/dev/null || date +%s; }

undo() {
    echo "lock: not held to the end; undo what was done: $1" >&2
    exit 1
}

# taken reads the answer to an acquire.
taken() {
    token=$(printf %s "$1" | field token)
    if [ -z "$token" ]; then
        echo "lock: nothing may be done: ${1:-no answer}" >&2
        exit 1
    fi
    echo "fence $(printf %s "$1" | field fence)"
}

release() {
    answer=$(ask DELETE "{\"token\":\"$token\"}")
    case $answer in
    '{"held":true'*) echo released ;;
    *) undo "${answer:-no answer}" ;;
    esac
}

# The sidecar may outlive us, and shall not renew for the dead: hence at_most_for.
by_asking() {
    id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    asked=$(now) # the answer counts from before the question
    answer=$(ask POST "{\"request\":\"$id\",\"wait\":\"5s\",\"at_most_for\":\"30s\"}")
    taken "$answer"
    end=$((asked + $(printf %s "$answer" | field valid_for_ms) / 1000 - 1)) # whole seconds: one less
    [ "$(now)" -lt "$end" ] || undo "it was valid for too short a time"
    work
    release
}

# The stream says when the lock is lost. It says something each 4 s: if it does not, curl
# gives up before the 19 s are over for which the last word was valid.
by_holding() {
    dir=$(mktemp -d)
    mkfifo "$dir/stream"
    curl -sSN --speed-limit 1 --speed-time 15 -d '{"wait":"5s"}' "$url/hold" >"$dir/stream" &
    started=$!
    trap 'kill $started 2>/dev/null || :' EXIT
    trap 'exit 143' HUP INT TERM
    exec 3<"$dir/stream"
    rm -r "$dir"
    read -r answer <&3 || :
    taken "$answer"
    work 3<&- & # nobody but this script shall keep the stream open
    job=$!
    { # reads on until the lock is lost, the stream ends, or this script has died
        while read -r line <&3 && kill -0 $$ && [ "${line#*'"lost"'}" = "$line" ]; do :; done
        kill $job
    } 2>/dev/null &
    watch=$!
    started="$started $job $watch"
    wait $job || undo "the stream ended, or the work failed"
    kill $watch 2>/dev/null || :
    release # closing the stream would do, but would not say whether it was held to the end
}

[ $# = 3 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
url=$2/locks/$3
case $1 in ask) by_asking ;; hold) by_holding ;; *) exit 2 ;; esac
