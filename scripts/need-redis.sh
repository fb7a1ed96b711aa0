#!/bin/sh
# Makes sure that the tests find a Redis or Valkey server of version 6.2 or later. If there is
# none, installs one where that needs no password, unless NO_INSTALL is set. The tests start
# their own servers: a service that the package would start stays off.
set -eu

say() { echo "need-redis: $*" >&2; }

# usable NAME: NAME runs and is at least 6.2.
usable() {
	v=$("$1" --version 2>/dev/null | sed -n 's/.* v=\([0-9]*\.[0-9]*\).*/\1/p')
	[ -n "$v" ] || return 1
	if [ "${v%%.*}" -gt 6 ] || { [ "${v%%.*}" -eq 6 ] && [ "${v#*.}" -ge 2 ]; }; then
		return 0
	fi
	say "$(command -v "$1") is version $v, too old"
	return 1
}

found() {
	if [ -n "${REDISTEST_SERVER:-}" ]; then
		usable "$REDISTEST_SERVER" || { say "REDISTEST_SERVER=$REDISTEST_SERVER is no such server"; exit 1; }
	else
		usable redis-server || usable valkey-server
	fi
}

# as_root CMD…: fails where that would ask for a password.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n -- "$@"; fi
}

may_be_root() { as_root true 2>/dev/null; }

# Debian starts a service when its package is installed, and at each boot from then on. A
# policy that forbids the first stands for as long as the installation takes (one that is
# there already is left alone); the second is switched off.
apt_install() {
	policy=/usr/sbin/policy-rc.d
	if [ ! -e $policy ]; then
		trap 'as_root rm -f $policy' EXIT
		trap 'exit 130' INT TERM
		printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
		as_root chmod 755 $policy
	fi
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends redis-server
	if command -v systemctl >/dev/null; then as_root systemctl disable -q redis-server 2>/dev/null || :; fi
}

install_one() {
	if command -v apt-get >/dev/null && may_be_root; then
		say "installing redis-server with apt-get"
		apt_install >&2 || { as_root apt-get update -qq >&2 && apt_install >&2; }
	elif command -v apk >/dev/null && may_be_root; then
		say "installing redis with apk"
		as_root apk add --no-cache redis >&2
	elif command -v brew >/dev/null && [ "$(id -u)" -ne 0 ]; then
		say "installing redis with brew"
		brew install redis >&2
	else
		return 1
	fi
}

if found; then exit 0; fi
if [ -z "${REDISTEST_SERVER:-}" ] && [ -z "${NO_INSTALL:-}" ] && install_one && found; then exit 0; fi

say "the tests need Redis 6.2 or later, or Valkey, and find neither. Install one:"
say "  Debian, Ubuntu: apt-get install redis-server (or valkey-server)"
say "  Alpine: apk add redis (or valkey)      macOS: brew install redis (or valkey)"
say "or name the binary: REDISTEST_SERVER=/path/to/redis-server"
exit 1
