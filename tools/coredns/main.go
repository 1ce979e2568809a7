// Command coredns is CoreDNS with the plugins that the end-to-end tests need. The whole CoreDNS has the libraries of many clouds, and takes
// several times as long to build.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() {
	// Order of the plugins in a chain, as upstream has it.
	dnsserver.Directives = []string{"bind", "errors", "kubernetes"}
	coremain.Run()
}
