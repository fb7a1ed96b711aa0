package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/soloist-dev/soloist/internal/config"
)

func printVersion(_ context.Context, p program) int {
	if p.Output == "json" {
		err := json.NewEncoder(p.stdout).Encode(struct {
			Version  string `json:"version"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
		}{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
		if err != nil {
			return p.fail(err)
		}
		return config.ExitOK
	}
	fmt.Fprintf(p.stdout, "sidecar %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return config.ExitOK
}
