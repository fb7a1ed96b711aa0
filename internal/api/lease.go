package api

import (
	"strconv"
	"time"

	"github.com/soloist-dev/soloist/internal/joblock"
)

// appendLease appends what a client is told of its lease.
func appendLease(b []byte, l *joblock.Lease, secret bool) []byte {
	b = append(b, `{"lock":`...)
	b = appendString(b, l.Lock)
	b = append(b, `,"slot":`...)
	b = strconv.AppendInt(b, int64(l.Slot), 10)
	if secret {
		b = append(b, `,"token":`...)
		b = appendString(b, l.Token.Reveal())
	}
	if l.Fence > 0 { // else it is known where the lock was acquired
		b = append(b, `,"fence":`...)
		b = strconv.AppendUint(b, l.Fence, 10)
	}
	b = append(b, `,"owner":`...)
	b = appendString(b, l.Owner)
	b = append(b, `,"count":`...)
	b = strconv.AppendInt(b, int64(l.Count), 10)
	if !secret {
		b = append(b, `,"since":"`...)
		b = l.Since.UTC().AppendFormat(b, time.RFC3339)
		b = append(b, '"')
	}
	b = append(b, `,"valid_for_ms":`...)
	b = strconv.AppendInt(b, l.Valid.Milliseconds(), 10)
	return append(b, '}')
}
