package main

import (
	"strings"
	"testing"

	"github.com/soloist-dev/soloist/internal/redistest"
)

// The verbs work on Sentinels and on a cluster as on one server.
func TestSeveralServers(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (url string){
		"sentinel": func(t *testing.T) string {
			s := redistest.StartSentinels(t)
			return "redis+sentinel://" + strings.Join(s.Addrs(), ",") + "/" + s.Name()
		},
		"cluster": func(t *testing.T) string {
			return "redis+cluster://" + strings.Join(redistest.StartCluster(t).Addrs()[:2], ",")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := "--store=" + start(t)
			for _, lock := range []string{"a", "b", "c"} { // each on another node, perhaps
				j := runs(t, store, "--lock="+lock, "--", "sh", "-c", "echo $SOLOIST_HELD")
				if code := j.ends(); code != 0 || j.String() != lock+"\n" {
					t.Errorf("run: %d %s", code, j)
				}
			}
			if code, out, stderr := verb(t, "locks", store); code != 0 || strings.Count(out, "\n") != 4 {
				t.Errorf("locks: %d %s%s", code, out, stderr)
			}
			if code, out, _ := verb(t, "unlock", store, "--lock=a"); code != 0 || out != "a: nobody holds it\n" {
				t.Errorf("unlock: %d %s", code, out)
			}
		})
	}
}
