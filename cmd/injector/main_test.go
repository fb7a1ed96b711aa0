package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	env := func(string) string { return "soloist" }
	s, err := parse([]string{
		"--image=i:1", "--store=redis://r", "--default=on-lost=exit", "--store-secret=s/k", "--store-password-secret=p",
		`--resources={"limits":{"memory":"1Mi"}}`, "--restart-rules=on",
	}, env, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	o := s.inject
	if o.Image != "i:1" || o.Defaults["store"] != "redis://r" || o.Defaults["on-lost"] != "exit" || o.StoreSecret != "s" ||
		o.StoreKey != "k" || o.PasswordSecret != "p" || o.Resources.Limits.Memory().String() != "1Mi" || s.namespace != "soloist" {
		t.Errorf("%+v", s)
	}
}

func TestBadFlags(t *testing.T) {
	var out bytes.Buffer
	code := run(t.Context(), []string{
		"--default=lock=x", "--default=nonsense=1", "--image-pull-policy=Sometimes", "--restart-rules=maybe",
		"--resources=x", "--store-secret=s", "--certificate-lifetime=1s", "stray",
	}, func(string) string { return "" }, &out)
	if code != exitUsage || strings.Count(out.String(), "\n") < 10 {
		t.Errorf("%d\n%s", code, &out)
	}
	out.Reset()
	if code := run(t.Context(), []string{"--help"}, func(string) string { return "" }, &out); code != 0 || !strings.Contains(out.String(), "--certificate-lifetime") {
		t.Errorf("%d\n%s", code, &out)
	}
	if code := run(t.Context(), []string{"--image=x", "--namespace=y"}, func(string) string { return "" }, &out); code != exitFailed {
		t.Errorf("outside a cluster: %d", code)
	}
}
