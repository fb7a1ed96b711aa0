# shellcheck shell=bash
# What node and start.sh share. Sourced, with these set:
#   H     the directory of all state      B  the binaries
#   LOGS  the logs of this start

CG=soloist-e2e-$(cksum <<<"$H" | cut -d' ' -f1) # the node's cgroup, in each hierarchy

die() {
	echo "node: $*" >&2
	exit 1
}

# bg NAME CMD…: starts CMD in the background, with its log and its process id in files. Descriptors 3 and 9 are
# the relay's listener and the lock: who inherits them keeps them open.
bg() {
	local name=$1
	shift
	"$@" >"$LOGS/$name.log" 2>&1 3>&- 9>&- </dev/null &
	echo $! >"$LOGS/$name.pid"
}

# ends NAME…: the ends of those logs.
ends() {
	local n
	for n in "$@"; do
		echo "--- $n: the last ${LINES_SHOWN:=40} lines of $LOGS/$n.log"
		tail -n "$LINES_SHOWN" "$LOGS/$n.log" 2>&1 | cut -c1-400 || true
	done
}

# etcd DIR PORT: nothing here outlives a crash of the machine, so nothing is synced to the disk.
etcd() {
	bg etcd "$B/etcd" --data-dir "$1" --unsafe-no-fsync --log-level warn \
		--listen-client-urls "http://127.0.0.1:$2" --advertise-client-urls "http://127.0.0.1:$2" \
		--listen-peer-urls http://127.0.0.1:0
}

# apiserver PKI ETCD-PORT PORT FLAG…
apiserver() {
	local pki=$1 etcd=$2 port=$3
	shift 3
	bg apiserver "$B/kube-apiserver" --etcd-servers "http://127.0.0.1:$etcd" --secure-port "$port" \
		--service-cluster-ip-range 10.96.0.0/16 --allow-privileged=true --profiling=false \
		--client-ca-file "$pki/ca.crt" --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
		--service-account-issuer https://kubernetes.default.svc.cluster.local \
		--service-account-key-file "$pki/sa.pub" --service-account-signing-key-file "$pki/sa.key" "$@"
}

# until_ok SECONDS CMD…: repeats CMD until it succeeds; fails when the time is up.
until_ok() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		((SECONDS < end)) || return 1
		sleep 0.2
	done
}

listens() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# api_ready SECONDS PORT KUBECONFIG: asks whether the port is open first, which costs less than to start kubectl.
api_ready() { until_ok "$1" listens "$2" && until_ok "$1" "$B/kubectl" --kubeconfig "$3" get --raw /readyz; }
