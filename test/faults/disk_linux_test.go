package faults

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/provider"
	streams "github.com/toolcrib/toolcrib/registry/stream/connect"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// diskVariable names the folder of a small file system that is there for the test alone.
const diskVariable = "FAULTS_TEST_DISK"

// The stream server keeps 64 MiB free.
const smallDisk = "size=96m"

// mountThenRun mounts the small file system on $1 and becomes the program that follows.
const mountThenRun = `mount -t tmpfs -o ` + smallDisk + ` tmpfs "$1" && shift && exec "$@"`

// A disk that is full is told to callers and in the log, by every part that wanted to write. Once there is room again,
// everything goes on.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(diskVariable); dir != "" {
		(&fullDisk{T: t, dir: dir}).run()
		return
	}
	dir := t.TempDir()
	probe := exec.Command("sh", "-c", mountThenRun, "sh", dir, "true")
	probe.SysProcAttr = ownMounts()
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %v: %s", err, out)
	}
	again := exec.CommandContext(bounded(t), "sh", "-c", mountThenRun, "sh", dir, os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	again.SysProcAttr = ownMounts()
	again.Env = append(os.Environ(), diskVariable+"="+dir)
	if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk") {
		t.Errorf("%v\n%s", err, out)
	}
}

// ownMounts gives a process mounts of its own, which go when it ends.
func ownMounts() *syscall.SysProcAttr {
	if os.Getuid() == 0 {
		return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	}
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
}

const diskConfig = `
listen: 127.0.0.1:0
workers: {enabled: true, listen: "127.0.0.1:0"}
tools:
  built_in: [text.echo]
flows:
  - {name: twice, entry: a, exit: a, nodes: [{id: a, tool: text.echo, inputs: {text: x}}]}
`

// fullDisk is the test in a process that has the small file system.
type fullDisk struct {
	*testing.T
	dir  string
	gate *gate
	api  *api.Server
}

func (d *fullDisk) run() {
	if err := d.know("known"); err != nil {
		d.Fatal(err)
	}
	log := &peertest.Log{}
	cfg := gatewaytest.Parse(d, diskConfig)
	d.gate = &gate{gatewaytest.Open(d, cfg, &gateway.Options{Logger: log.Logger(slog.LevelInfo), DataDir: filepath.Join(d.dir, "data")}), log}
	d.api = d.gate.LocalAPI()
	d.serve()
	for what, err := range d.everything() {
		if err != nil {
			d.Errorf("%s, with room: %v", what, err)
		}
	}
	release := d.fill()
	d.full()
	d.startOnFull()
	release()
	for what, err := range d.everything() {
		if err != nil {
			d.Errorf("%s, with room again: %v", what, err)
		}
	}
	d.logged("room for the database again")
}

// know opens a gateway with a data folder, and closes it.
func (d *fullDisk) know(dir string) error {
	g, err := gateway.Open(bounded(d), gatewaytest.Parse(d, diskConfig), &gateway.Options{DataDir: filepath.Join(d.dir, dir)})
	if err != nil {
		return err
	}
	return g.Close(bounded(d))
}

// serve runs a worker until the test ends.
func (d *fullDisk) serve() {
	cat := tools.NewCatalog()
	err := inproc.RegisterFunc(cat, "post.send", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil },
		tools.WithDescription("Sends."), tools.WithSideEffect(tools.SideEffectWrite))
	if err != nil {
		d.Fatal(err)
	}
	at, _ := d.gate.WorkersAddress()
	client, err := streams.Client(bounded(d), at.URL, &streams.Options{TokenFile: at.TokenFile})
	if err != nil {
		d.Fatal(err)
	}
	ctx, stop := context.WithCancel(d.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- provider.Serve(ctx, client, "post", provider.FromCatalog(cat), provider.Options{Pong: provider.Pong(client, "")})
	}()
	d.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, client.Close()); err != nil {
			d.Errorf("the worker: %v", err)
		}
	})
	await(d, "the worker's tool is there", func() bool { return d.gate.has(d, "post.send") })
}

// everything does, of each kind, what writes to the disk.
func (d *fullDisk) everything() map[string]error {
	ctx, done := d.gate.LocalContext(bounded(d)), map[string]error{}
	_, done["upload"] = d.api.PutArtifact(ctx, strings.NewReader(strings.Repeat("x", 1<<20)), "x.txt", "text/plain")
	_, done["flow"] = d.api.Call(ctx, api.CallRequest{Name: "twice"})
	_, done["worker"] = d.api.Call(ctx, api.CallRequest{Name: "post.send"})
	large, err := d.api.Call(ctx, api.CallRequest{Name: "text.echo", Arguments: []byte(`{"text":"` + strings.Repeat("y", 100<<10) + `"}`), Bounded: true})
	if err == nil && len(large.Artifacts) == 0 {
		err = errors.New(string(large.Content[len(large.Content)-1].JSON))
	}
	done["large result"] = err
	return done
}

// fill leaves no room.
func (d *fullDisk) fill() (release func()) {
	name := filepath.Join(d.dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		d.Fatal(err)
	}
	zeros, _ := os.Open("/dev/zero")
	_, err = io.Copy(f, io.LimitReader(zeros, 1<<30))
	if err = errors.Join(f.Close(), zeros.Close(), err); !errors.Is(err, syscall.ENOSPC) {
		d.Fatalf("filling the disk: %v", err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			d.Fatal(err)
		}
	}
}

func (d *fullDisk) full() {
	for what, err := range d.everything() {
		says := map[string]string{"upload": "no room left", "large result": "no room left", "worker": "room", "flow": "disk is full"}[what]
		if err == nil || !strings.Contains(err.Error(), says) {
			d.Errorf("%s on a full disk: %v", what, err)
		}
	}
	_, err := d.api.PutArtifact(d.gate.LocalContext(bounded(d)), strings.NewReader("x"), "x.txt", "text/plain")
	if fault := api.ErrorFrom(err); fault == nil || fault.Code != api.CodeStorageFull || !fault.Retryable || strings.Contains(fault.Message, d.dir) {
		d.Errorf("the failure of an upload: %+v", fault)
	}
	d.logged("content could not be kept", "no room for the database", "the stream server has no room")
}

// startOnFull opens a gateway where nothing can be written.
func (d *fullDisk) startOnFull() {
	for what, dir := range map[string]string{"a new folder": "other", "no folder": "", "a folder that it knows": "known"} {
		opts := &gateway.Options{DataDir: filepath.Join(d.dir, dir)}
		if dir == "" {
			opts.DataDir = ""
			d.Setenv("TMPDIR", d.dir)
		}
		g, err := gateway.Open(bounded(d), gatewaytest.Parse(d, diskConfig), opts)
		if err == nil {
			_ = g.Close(bounded(d))
		}
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, store.ErrFull) {
			d.Errorf("opening a gateway with %s: %v", what, err)
		}
	}
}

func (d *fullDisk) logged(lines ...string) {
	for _, line := range lines {
		await(d, "the log says "+line, func() bool { return strings.Contains(d.gate.log.String(), line) })
	}
	if d.Failed() {
		d.Logf("the log:\n%s", d.gate.log)
	}
}
