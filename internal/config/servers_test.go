package config

import (
	"reflect"
	"testing"
)

func TestServers(t *testing.T) {
	for raw, want := range map[string]Servers{
		"redis://u:p@r/1":        {URL: "redis://u:p@r/1"},
		"unix:///run/redis?db=1": {URL: "unix:///run/redis?db=1"},
		"redis+sentinel://u:p%40@a,b:1,[::1],[::2]:3/main?db=2": {
			URL: "redis://u:p%40@a?db=2", Master: "main",
			Sentinels: []string{"a:26379", "b:1", "[::1]:26379", "[::2]:3"},
		},
		"rediss+cluster://a,b:1": {URL: "rediss://a", Cluster: []string{"a:6379", "b:1"}},
	} {
		u := NewStoreURL(raw)
		if _, err := u.parse(); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		if got := u.Servers(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", raw, got, want)
		}
	}
	if got, want := NewStoreURL("redis+sentinel://u:hunter2@a,b:1/main").String(), "redis+sentinel://REDACTED@a,b:1/main"; got != want {
		t.Errorf("printed as %s, want %s", got, want)
	}
}
