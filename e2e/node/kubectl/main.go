// Command kubectl is Kubernetes' own, of the node's version. It is apart from hyper because it runs often: hyper
// takes longer to start.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // prints it and exits
		os.Exit(1)
	}
}
