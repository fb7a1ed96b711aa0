package api

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// daprs runs f with a pod, and what Dapr's clients ask of it and of another.
func daprs(t *testing.T, f func(t *testing.T, pod *jobPod, a, b *sidecar)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		memory := leasetest.NewMemory(leasetest.Config{Lease: joblock.DefaultLease})
		p, q := newJobPod(t, memory, "pod-a"), newJobPod(t, memory, "pod-b")
		f(t, p, serve(t, Config{Locks: p.locks, Store: p.link, Dapr: true}), serve(t, Config{Locks: q.locks, Store: q.link, Dapr: true}))
	})
}

const (
	daprLockPath   = "/v1.0-alpha1/lock/redis"
	daprUnlockPath = "/v1.0-alpha1/unlock/redis"
)

func (s *sidecar) says(path, body string, status int, want string) {
	s.t.Helper()
	if code, got := s.do("POST", path, body); code != status || got != want {
		s.t.Errorf("%s %s: %d %s, want %d %s", path, body, code, got, status, want)
	}
}

func TestDapr(t *testing.T) {
	daprs(t, func(t *testing.T, _ *jobPod, a, b *sidecar) {
		vader := `{"resourceId":"Lock 1","lockOwner":"vader","expiryInSeconds":60}`
		luke := `{"resourceId":"Lock 1","lockOwner":"luke","expiryInSeconds":60}`
		a.says(daprUnlockPath, vader, 200, `{"status":1}`)
		a.says(daprLockPath, vader, 200, `{"success":true}`)
		a.says(daprLockPath, vader, 200, `{"success":false}`)
		b.says(daprLockPath, luke, 200, `{"success":false}`)
		b.says(daprUnlockPath, luke, 200, `{"status":2}`)
		a.says(daprUnlockPath, vader, 200, `{"status":0}`)
		a.says(daprUnlockPath, vader, 200, `{"status":1}`)
		b.says(daprLockPath, luke, 200, `{"success":true}`)
	})
}

// It is not renewed, as in Dapr: who forgets it loses it.
func TestDaprExpires(t *testing.T) {
	daprs(t, func(t *testing.T, _ *jobPod, a, b *sidecar) {
		vader := `{"resourceId":"x","lockOwner":"vader","expiryInSeconds":5}`
		a.says(daprLockPath, vader, 200, `{"success":true}`)
		time.Sleep(5*time.Second - time.Millisecond)
		b.says(daprLockPath, `{"resourceId":"x","lockOwner":"luke","expiryInSeconds":5}`, 200, `{"success":false}`)
		time.Sleep(3 * time.Millisecond)
		b.says(daprLockPath, `{"resourceId":"x","lockOwner":"luke","expiryInSeconds":5}`, 200, `{"success":true}`)
		a.says(daprUnlockPath, vader, 200, `{"status":2}`)
	})
}

func TestDaprRefusals(t *testing.T) {
	daprs(t, func(t *testing.T, p *jobPod, a, _ *sidecar) {
		for _, body := range []string{
			`{"resourceId":"","lockOwner":"v","expiryInSeconds":1}`, `{"resourceId":"x","lockOwner":"","expiryInSeconds":1}`,
			`{"resourceId":"x","lockOwner":"v","expiryInSeconds":0}`, `{"resourceId":"x","lockOwner":"v","expiryInSeconds":-1}`,
		} {
			if code, got := a.do("POST", daprLockPath, body); code != 400 || !strings.Contains(got, `"errorCode":"ERR_MALFORMED_REQUEST"`) {
				t.Errorf("%s: %d %s", body, code, got)
			}
		}
		p.link.SetDown(true)
		if code, body := a.do("POST", daprLockPath, `{"resourceId":"x","lockOwner":"v","expiryInSeconds":1}`); code != 500 ||
			!strings.Contains(body, "ERR_TRY_LOCK") {
			t.Errorf("%d %s", code, body)
		}
	})
}
