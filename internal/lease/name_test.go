package lease_test

import (
	"testing"

	"github.com/soloist-dev/soloist/internal/lease"
)

func TestNames(t *testing.T) {
	for _, name := range []string{"a", "0", "city-ids", "a/b.c_d", "team/jobs/nightly-1"} {
		if err := lease.CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "-a", "a-", "a.", "/a", "A", "a b", "a{b}", "a#1", "é", "a\x00b", "a\n"} {
		if err := lease.CheckName(name); err == nil {
			t.Errorf("%q passes", name)
		}
	}
}
