// Command mkimage writes a container image, as package image does:
//
//	mkimage FILE REF PROGRAM…	static programs, the first of which is the entrypoint
//	mkimage FILE REF redis		the Redis that is installed here
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/soloist-dev/soloist/e2e/internal/image"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: mkimage FILE REF PROGRAM… | mkimage FILE REF redis")
		os.Exit(2)
	}
	out, ref, programs := os.Args[1], os.Args[2], os.Args[3:]
	var err error
	if len(programs) == 1 && programs[0] == "redis" {
		err = image.Redis(context.Background(), out, ref)
	} else {
		err = image.Static(out, ref, programs...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}
