// Package redislease keeps leases in Redis, or a server that speaks like it.
//
// # Keys
//
// All keys of a lock NAME share the hash tag {NAME}, and all expire:
//
//	soloist:{NAME}:lk     the lease of a plain lock; :lk:0, :lk:1 … of a slotted one
//	soloist:{NAME}:fn     hash: f fence, x released tokens, k kind, n slots, r highest fence revoked, l last run done
//	soloist:{NAME}:q      sorted set: waiter → time of joining, by the server's clock
//	soloist:{NAME}:done:RUN  the record of a run; :rate for a rate limit of that name
//	soloist:in:INSTANCE   channel: the inbox of one process; in a cluster one for each lock,
//	                      soloist:{NAME}:in:INSTANCE, in the lock's slot and sharded (since 7.0)
//
// # Protocol
//
// Each operation is one script (the *.lua files, each behind common.lua), so that no
// step of it is ever seen alone, and may be sent again with the same token.
//
// A released or expired slot is not left for whoever comes first: it is kept for a
// claim's time (100 ms) for the first in line, who is told so on its inbox. Only that
// waiter's own ACQUIRE makes it a lease; a reservation is never a grant. The next four
// are told their rank and the time left, and look again when their turn comes, so a
// waiter that has died costs one claim. The others sleep long.
//
// # Errors
//
// A reply that is no verdict is an *[Error] with a kind from a closed set. LOADING,
// READONLY, OOM, MISCONF, a refused connection, a time-out: none of them says that a
// lease is lost.
//
// # Permissions
//
// The smallest ACL rule that works, for the prefix "soloist":
//
//	~soloist:* &soloist:* +eval +evalsha +get +set +del +pttl +pexpire +time +hget +hset
//	+hmget +zadd +zrem +zrange +zrank +zcard +publish +subscribe +pubsub|numsub
//	+info +hello +client|setname +ping
//
// and +select for a URL that names a database, +scan for [Store.Locks]. In a cluster of 7.0
// or later, besides:
//
//	+cluster|slots +ssubscribe +spublish +pubsub|shardnumsub
package redislease
