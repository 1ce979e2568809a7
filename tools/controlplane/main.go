// Command controlplane is a Kubernetes control plane in one file: etcd, etcdutl, kube-apiserver, kube-controller-manager,
// kube-proxy and kubectl, told apart by the first argument. The end-to-end tests and the demo run on it.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"

	// Registered by upstream's own mains too: without them the programs lack their client and version metrics.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// programs maps a first argument to what runs; the function returns the exit code.
var programs = map[string]func(arguments []string) int{
	"etcd": func(arguments []string) int {
		etcdmain.Main(arguments)
		return 0
	},
	"etcdutl":                 run(newEtcdutlCommand),
	"kube-apiserver":          run(apiserver.NewAPIServerCommand),
	"kube-controller-manager": run(controllermanager.NewControllerManagerCommand),
	"kube-proxy":              run(proxy.NewProxyCommand),
	"kubectl":                 run(kubectl.NewDefaultKubectlCommand),
}

// newEtcdutlCommand returns the part of etcdutl that restores a snapshot.
func newEtcdutlCommand() *cobra.Command {
	command := &cobra.Command{Use: "etcdutl"}
	command.AddCommand(etcdutl.NewSnapshotCommand())
	return command
}

// run makes a program of one of upstream's commands. It builds the command late, since building kubectl's already
// looks at os.Args and at the environment.
func run(build func() *cobra.Command) func([]string) int {
	return func(arguments []string) int {
		os.Args = arguments
		return cli.Run(build())
	}
}

func main() {
	if len(os.Args) < 2 {
		fail("no program named")
	}
	program, known := programs[os.Args[1]]
	if !known {
		fail(fmt.Sprintf("unknown program %q", os.Args[1]))
	}
	os.Exit(program(os.Args[1:]))
}

func fail(reason string) {
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "controlplane: %s; usage: controlplane %s [flags]\n", reason, strings.Join(names, "|"))
	os.Exit(2)
}
