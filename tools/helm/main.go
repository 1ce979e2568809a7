// Command helm is Helm, as its own main builds it. The end-to-end tests install the charts with it.
package main

import (
	"log/slog"
	"os"

	helm "helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
)

func main() {
	// The name of the field manager, as upstream sets it. Otherwise it is the name of the executable.
	kube.ManagedFieldsManager = "helm"
	command, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
	if err != nil {
		slog.Warn("command failed", slog.Any("error", err))
		os.Exit(1)
	}
	if err := command.Execute(); err != nil {
		if failed, ok := err.(helm.CommandError); ok {
			os.Exit(failed.ExitCode)
		}
		os.Exit(1)
	}
}
