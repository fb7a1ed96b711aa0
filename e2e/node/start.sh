#!/bin/bash
# start.sh H: process 1 of the node's namespaces, started by node. When it ends, all in them ends. It writes
# nothing outside of H, except cgroups, which node removes.
set -euo pipefail
H=$1 B=$1/bin R=$1/run LOGS=$1/logs
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$HERE/lib.sh"
NAME=node1 ADDRESS=10.123.0.1
PATH=$PATH:/usr/sbin:/sbin

# The programs make files and directories at paths that are fixed in them. What they write there is private, and
# so are the directories that are mounted on: if another node removed one of the machine's, our mount would end.
mkdir "$R/private"
mount -t tmpfs tmpfs "$R/private"
for d in /run /var/lib /var/log; do
	mkdir -p "$R/private$d"/{upper,work}
	mount -t overlay -o "lowerdir=$d,upperdir=$R/private$d/upper,workdir=$R/private$d/work" overlay "$d"
done

# over DIR SOURCE: mounts SOURCE, or memory, on a directory, which hides what another Kubernetes has there.
over() {
	mkdir -p "$1"
	if [ "$2" = memory ]; then mount -t tmpfs -o mode=755 tmpfs "$1"; else mkdir "$2" && mount --bind "$2" "$1"; fi
}
over /run/containerd memory
over /var/lib/cni memory
over /var/log/containers memory
over /var/log/pods "$R/pods"
over /var/lib/kubelet "$R/kubelet"

# The kubelet sets these for the whole machine, unless it finds them as it wants them: so let it find that.
mkdir "$R/sysctl"
for s in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
	kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	[ -e "/proc/sys/${s%=*}" ] || continue
	f=$R/sysctl/$(tr / . <<<"${s%=*}")
	echo "${s#*=}" >"$f"
	mount --bind "$f" "/proc/sys/${s%=*}"
done

# The address is on a bridge without ports: not every kernel has dummy devices. The default route leads nowhere,
# but the kubelet and the API server look for one.
ip link set lo up
ip link add node0 type bridge
ip address add $ADDRESS/24 dev node0
ip link set node0 up
ip route add default via 10.123.0.254 dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward

if [ -e /sys/fs/cgroup/cgroup.controllers ]; then # v2
	mkdir -p "/sys/fs/cgroup/$CG"
	for c in $(cat /sys/fs/cgroup/cgroup.controllers); do
		echo "+$c" >/sys/fs/cgroup/cgroup.subtree_control || true # refused for some, which the kubelet then reports
		echo "+$c" >"/sys/fs/cgroup/$CG/cgroup.subtree_control" || true
	done
else
	for d in /sys/fs/cgroup/*/; do
		if [ -e "$d/cgroup.procs" ] && [ ! -e "$d/cgroup.controllers" ]; then mkdir -p "$d/$CG"; fi
	done
	for f in cpuset.cpus cpuset.mems; do # empty ones accept no process
		cat "/sys/fs/cgroup/cpuset/$f" >"/sys/fs/cgroup/cpuset/$CG/$f"
	done
fi

cni=/usr/lib/cni # Debian's place
[ -x $cni/bridge ] || cni=/opt/cni/bin
cat >"$R/containerd.toml" <<T
version = 2
root = "$R/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$R/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/soloist-e2e/pause:1"
  netns_mounts_under_state_dir = true
  disable_apparmor = true # its profiles would stay in the machine's kernel
  restrict_oom_score_adj = true # where root may not lower it, sandboxes would fail
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$cni"
    conf_dir = "$HERE/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
T
cat >"$R/kubelet.yaml" <<T
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $R/pki/ca.crt}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: /$CG
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
volumePluginDir: $R/volume-plugins
resolvConf: ""
clusterDNS: [$ADDRESS]
clusterDomain: cluster.local
imageGCHighThresholdPercent: 100 # images cannot be pulled again
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
nodeStatusUpdateFrequency: 5s
T
cat >"$R/proxy.yaml" <<T
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: $R/pki/proxy.kubeconfig}
clusterCIDR: 10.244.0.0/16
conntrack: {maxPerCore: 0} # the table's size belongs to the machine
T

bg containerd containerd -c "$R/containerd.toml"
etcd "$R/etcd" 2379
bash "$HERE/certs.sh" "$R/pki" https://127.0.0.1:6443 $NAME $ADDRESS
apiserver "$R/pki" 2379 6443 --bind-address 0.0.0.0 --advertise-address $ADDRESS \
	--authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
	--kubelet-client-certificate "$R/pki/apiserver-kubelet.crt" --kubelet-client-key "$R/pki/apiserver-kubelet.key" \
	--kubelet-preferred-address-types InternalIP
until_ok 120 ctr version || die "containerd does not answer"
ctr -n k8s.io images import "$H/pause.tar"
export KUBECONFIG=$R/pki/admin.kubeconfig
api_ready 120 6443 "$KUBECONFIG" || die "the API server is not ready"
bg kcm "$B/kube-controller-manager" --kubeconfig "$R/pki/kcm.kubeconfig" --leader-elect=false --bind-address 127.0.0.1 \
	--use-service-account-credentials --service-account-private-key-file "$R/pki/sa.key" --root-ca-file "$R/pki/ca.crt" \
	--cluster-signing-cert-file "$R/pki/ca.crt" --cluster-signing-key-file "$R/pki/ca.key" \
	--flex-volume-plugin-dir "$R/volume-plugins"
bg scheduler "$B/kube-scheduler" --kubeconfig "$R/pki/scheduler.kubeconfig" --leader-elect=false --bind-address 127.0.0.1
bg kubelet "$B/kubelet" --config "$R/kubelet.yaml" --kubeconfig "$R/pki/kubelet.kubeconfig" \
	--hostname-override $NAME --node-ip $ADDRESS -v 2
bg proxy "$B/kube-proxy" --config "$R/proxy.yaml" --hostname-override $NAME
bg dns "$B/dns" $ADDRESS:53 https://127.0.0.1:6443 "$R/pki"
"$B/relay" serve 127.0.0.1:6443 &
exec 3>&-
"$B/kubectl" wait --for=create node/$NAME --timeout=120s
"$B/kubectl" wait --for=condition=Ready node/$NAME --timeout=120s
touch "$R/ready"
sleep infinity # bash reaps what the containers' shims leave behind
