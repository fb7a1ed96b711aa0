#!/bin/bash
# certs.sh DIR URL NODE NODE-ADDRESS: writes into DIR a certificate authority, the certificates and keys of a
# cluster, and a kubeconfig for each of its clients with that URL. They last a month; each start makes new ones.
set -euo pipefail
mkdir -p "$1"
cd "$1"
url=$2 node=$3 address=$4
umask 077

key() { openssl ecparam -genkey -name prime256v1 -noout -out "$1"; }

# cert NAME SUBJECT EXTENSIONS
cert() {
	key "$1.key"
	openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
	openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out "$1.crt" \
		-extfile <(printf '%s\n' "$3") 2>>openssl.log
	rm "$1.csr"
}

# client NAME SUBJECT: a certificate and a kubeconfig
client() {
	cert "$1" "$2" extendedKeyUsage=clientAuth
	cat >"$1.kubeconfig" <<K
apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: "$url", certificate-authority-data: "$(base64 -w0 ca.crt)"}}]
users: [{name: $1, user: {client-certificate-data: "$(base64 -w0 "$1.crt")", client-key-data: "$(base64 -w0 "$1.key")"}}]
contexts: [{name: e2e, context: {cluster: e2e, user: $1}}]
current-context: e2e
K
}

key ca.key
openssl req -x509 -new -key ca.key -subj /CN=soloist-e2e -days 30 -out ca.crt
key sa.key
openssl ec -in sa.key -pubout -out sa.pub 2>>openssl.log

names=DNS:localhost
for n in kubernetes{,.default{,.svc{,.cluster.local}}}; do names+=,DNS:$n; done
cert apiserver /CN=kube-apiserver "extendedKeyUsage=serverAuth
subjectAltName=$names,IP:127.0.0.1,IP:10.96.0.1,IP:$address"
cert apiserver-kubelet /O=system:masters/CN=kube-apiserver-kubelet extendedKeyUsage=clientAuth
client admin /O=system:masters/CN=admin
client kcm /CN=system:kube-controller-manager
client scheduler /CN=system:kube-scheduler
client proxy /CN=system:kube-proxy
client kubelet "/O=system:nodes/CN=system:node:$node"
