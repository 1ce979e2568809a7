package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	protocols "k8s.io/apimachinery/pkg/util/remotecommand"
	client "k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/cert"
	"k8s.io/kubelet/pkg/cri/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// Limits of kubelet-streams.
const (
	idleLimit     = 4 * time.Hour
	creationLimit = 30 * time.Second
	logInterval   = 100 * time.Millisecond
	// A process that a command left behind may keep the output or the terminal open.
	leftoverLimit = time.Second
)

// streams answers the API server for `kubectl exec` and `kubectl logs`. A kubelet in Rust runs the pods; it writes a folder
// for each pod, NAMESPACE_POD, with two files for each container: NAME.json (type target) and NAME.log.
type streams struct {
	folder string
}

// target names the processes of a container.
type target struct {
	// Waiter is the process whose only child is process 1 of the container.
	Waiter      int               `json:"waiter"`
	Environment map[string]string `json:"environment"`
}

// Only Linux has the namespaces of pods.
func init() {
	programs["kubelet-streams"] = run(newStreamsCommand)
}

func newStreamsCommand() *cobra.Command {
	var s streams
	var address string
	command := &cobra.Command{Use: "kubelet-streams", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		return s.serve(address)
	}}
	command.Flags().StringVar(&address, "address", "", "host and port to serve at")
	command.Flags().StringVar(&s.folder, "folder", "", "folder with the pods of the node")
	return command
}

// serve serves without authentication, since only the namespaces of a test reach the address.
func (s streams) serve(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.ParseIP(host)}, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", s.exec)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	// SPDY takes over a connection of HTTP/1.1.
	settings := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	server := &http.Server{Addr: address, Handler: mux, TLSConfig: settings, ReadHeaderTimeout: creationLimit}
	fmt.Fprintln(os.Stderr, "serving at", address)
	return server.ListenAndServeTLS("", "")
}

// file returns a file of the container that a request names.
func (s streams) file(r *http.Request, extension string) string {
	pod := r.PathValue("namespace") + "_" + r.PathValue("pod")
	return filepath.Join(s.folder, filepath.Base(pod), filepath.Base(r.PathValue("container"))+extension)
}

func (s streams) exec(w http.ResponseWriter, r *http.Request) {
	text, err := os.ReadFile(s.file(r, ".json"))
	if err != nil {
		http.Error(w, "no such container: "+err.Error(), http.StatusNotFound)
		return
	}
	var it target
	if err := json.Unmarshal(text, &it); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	words := r.URL.Query()[core.ExecCommandParam]
	remotecommand.ServeExec(w, r, it, r.PathValue("pod"), "", r.PathValue("container"), words, options, idleLimit, creationLimit,
		protocols.SupportedStreamingProtocols)
}

// ExecInContainer implements [remotecommand.Executor].
func (it target) ExecInContainer(ctx context.Context, _ string, _ types.UID, _ string, words []string, in io.Reader,
	out, errs io.WriteCloser, tty bool, sizes <-chan client.TerminalSize, _ time.Duration) error {
	call, err := it.command(ctx, words)
	if err != nil {
		return err
	}
	if tty {
		err = runOnTerminal(call, in, out, sizes)
	} else {
		err = runOnPipes(call, in, out, errs)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

// runOnPipes runs a command whose streams are those of the connection.
func runOnPipes(call *exec.Cmd, in io.Reader, out, errs io.Writer) error {
	if in != nil {
		feed, err := call.StdinPipe()
		if err != nil {
			return err
		}
		// Ends with the connection, which may be later than the end of the command.
		go func() {
			_, _ = io.Copy(feed, in)
			_ = feed.Close()
		}()
	}
	call.Stdout, call.Stderr = out, errs
	call.WaitDelay = leftoverLimit
	if err := call.Run(); !errors.Is(err, exec.ErrWaitDelay) {
		return err
	}
	return nil
}

// command returns a command in the namespaces of the container.
func (it target) command(ctx context.Context, words []string) (*exec.Cmd, error) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", it.Waiter))
	if err != nil {
		return nil, errors.New("the container does not run")
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(children)), " ")
	if _, err := strconv.Atoi(first); err != nil {
		return nil, errors.New("the container does not run")
	}
	call := exec.CommandContext(ctx, "nsenter", append([]string{"--target", first, "--mount", "--net", "--pid", "--"}, words...)...)
	call.Env = []string{}
	for name, value := range it.Environment {
		call.Env = append(call.Env, name+"="+value)
	}
	call.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	call.Cancel = func() error { return syscall.Kill(-call.Process.Pid, syscall.SIGKILL) }
	return call, nil
}

// runOnTerminal runs a command on a terminal of its own.
func runOnTerminal(call *exec.Cmd, in io.Reader, out io.Writer, sizes <-chan client.TerminalSize) error {
	outer, inner, err := openTerminal()
	if err != nil {
		return err
	}
	defer outer.Close()
	call.Stdin, call.Stdout, call.Stderr = inner, inner, inner
	call.SysProcAttr.Setctty = true
	err = call.Start()
	_ = inner.Close()
	if err != nil {
		return err
	}
	go func() {
		for size := range sizes {
			_ = unix.IoctlSetWinsize(int(outer.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Height, Col: size.Width})
		}
	}()
	if in != nil {
		go func() { _, _ = io.Copy(outer, in) }()
	}
	copied := make(chan struct{})
	go func() {
		// Ends with an error when nobody has the inner end open.
		_, _ = io.Copy(out, outer)
		close(copied)
	}()
	err = call.Wait()
	select {
	case <-copied:
	case <-time.After(leftoverLimit):
	}
	return err
}

// openTerminal returns both ends of a new terminal.
func openTerminal() (outer, inner *os.File, err error) {
	if outer, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(int(outer.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(outer.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		inner, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		_ = outer.Close()
		return nil, nil, err
	}
	return outer, inner, nil
}

// logs sends the output of a container, and with `follow` also what it writes later, until the pod is gone.
func (s streams) logs(w http.ResponseWriter, r *http.Request) {
	file, err := os.Open(s.file(r, ".log"))
	if err != nil {
		http.Error(w, "no such container: "+err.Error(), http.StatusNotFound)
		return
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if lines, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil {
		text = lastLines(text, lines)
	}
	_, err = w.Write(text)
	follow := r.URL.Query().Get("follow") == "true"
	for follow && err == nil {
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(logInterval):
		}
		_, err = io.Copy(w, file)
		if _, gone := os.Stat(s.file(r, ".json")); gone != nil {
			return
		}
	}
}

// lastLines returns the last lines of a text.
func lastLines(text []byte, count int) []byte {
	end := len(strings.TrimSuffix(string(text), "\n"))
	for at := end; at > 0; at-- {
		if text[at-1] == '\n' {
			if count--; count <= 0 {
				return text[at:]
			}
		}
	}
	if count <= 0 {
		return nil
	}
	return text
}
