package lease

import "time"

// A Rate allows Burst at once and Burst in every Per, evenly refilled.
type Rate struct {
	Burst int           // ≥ 1
	Per   time.Duration // > 0
}

// A Taken is the answer to a request under a [Rate].
type Taken struct {
	OK         bool
	Remaining  int           // what could be taken at once now
	RetryAfter time.Duration // if not OK: when it could be
}
