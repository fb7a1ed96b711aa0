//go:build !linux

package lease

import "time"

func boottime() time.Duration { return 0 }
