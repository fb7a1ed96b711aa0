package api

import (
	"strings"
	"testing"
)

func TestLockRefusals(t *testing.T) {
	jobs(t, func(t *testing.T, a, _ *jobPod) {
		token := strings.Repeat("0", 32)
		for _, c := range []struct {
			method, path, body string
			status             int
			code               string
		}{
			{"POST", "/locks/A", "", 400, "invalid"},
			{"POST", "/locks/a%20b", "", 400, "invalid"},
			{"POST", "/locks/x", `{"lese":"1s"}`, 400, "invalid"},
			{"POST", "/locks/x", `{"lease":5}`, 400, "invalid"},
			{"POST", "/locks/x", `{"lease":"5"}`, 400, "invalid"},
			{"POST", "/locks/x", `{"wait":"-1s"}`, 400, "invalid"},
			{"POST", "/locks/x", `{"slots":-1}`, 400, "invalid"},
			{"POST", "/locks/x", `{"owner":"` + strings.Repeat("x", 200) + `"}`, 400, "invalid"},
			{"POST", "/locks/x", `{"owner":"` + strings.Repeat("x", 70000) + `"}`, 413, "too_large"},
			{"PUT", "/locks/x", `{}`, 400, "invalid"},
			{"PUT", "/locks/x", `{"token":"` + token + `","done":true}`, 400, "invalid"},
			{"PUT", "/locks/x", `{"token":"` + token + `"}`, 409, "lost"},
			{"DELETE", "/locks/x", `{"token":"0"}`, 400, "invalid"},
			{"DELETE", "/locks/x", `{"token":"` + token + `","done":true}`, 400, "invalid"},
			{"DELETE", "/locks/x", `{"token":"` + token + `"}`, 409, "lost"},
			{"POST", "/rate/x", `{"rate":"5"}`, 400, "invalid"},
			{"POST", "/rate/x", `{"rate":"0/1m"}`, 400, "invalid"},
			{"POST", "/rate/x", `{"rate":"5/1m","cost":6}`, 400, "invalid"},
			{"PATCH", "/locks/x", ``, 405, "method"},
		} {
			if g := a.json(c.method, c.path, c.body, c.status); g.Error != c.code || g.Message == "" {
				t.Errorf("%s %s %.60s: %+v, want %s", c.method, c.path, c.body, g, c.code)
			}
		}
	})
}

// A refusal says what is wrong, in the words of who asked.
func TestRefusalsNameTheFault(t *testing.T) {
	jobs(t, func(t *testing.T, a, _ *jobPod) {
		for body, want := range map[string]string{
			`{"lese":"1s"}`:  `the body has an unknown field "lese"`,
			`{"lease":"5"}`:  `"5" is no duration such as "30s"`,
			`{"wait":"-1s"}`: `"-1s" is no duration such as "30s"`,
			`{"slots":"2"}`:  `slots must not be a string`,
			`[]`:             `the body must be one JSON object, not a array`,
		} {
			if g := a.json("POST", "/locks/x", body, 400); g.Message != want {
				t.Errorf("%s: %q, want %q", body, g.Message, want)
			}
		}
	})
}
