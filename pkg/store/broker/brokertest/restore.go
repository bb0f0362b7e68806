package brokertest

import (
	"os"
	"path/filepath"
	"testing"

	"agentteam/pkg/store/broker/embedded"
)

// Restorable is a server whose streams a test sets back, as a power cut or a partial backup does: the messages of a stream
// are then older than its consumers and than all other streams.
type Restorable struct {
	t    testing.TB
	dir  string
	port int
	srv  *embedded.Server
}

// NewRestorable starts a Restorable. It stops when the test ends.
func NewRestorable(t testing.TB) *Restorable {
	t.Helper()
	r := &Restorable{t: t, dir: t.TempDir(), port: Port()}
	r.start()
	t.Cleanup(func() { r.srv.Shutdown() })
	return r
}

// URL returns the server's address, the same after each restart.
func (r *Restorable) URL() string { return r.srv.URL() }

// Keep copies the messages of a stream; it restarts the server for that.
func (r *Restorable) Keep(stream string) {
	r.t.Helper()
	r.srv.Shutdown()
	KeepMessages(r.t, r.dir, stream)
	r.start()
}

// Restore replaces the messages of a stream by the kept copy. While the server is down it calls meanwhile, if not nil.
func (r *Restorable) Restore(stream string, meanwhile func()) {
	r.t.Helper()
	r.srv.Shutdown()
	RestoreMessages(r.t, r.dir, stream)
	if meanwhile != nil {
		meanwhile()
	}
	r.start()
}

func (r *Restorable) start() {
	r.t.Helper()
	var err error
	if r.srv, err = embedded.Start(embedded.Options{Dir: r.dir, Port: r.port}); err != nil {
		r.t.Fatal(err)
	}
}

// KeepMessages copies the messages of a stream in the folder of a stopped server.
func KeepMessages(t testing.TB, dir, stream string) {
	t.Helper()
	from := messagesOf(dir, stream)
	if err := os.CopyFS(from+".kept", os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// RestoreMessages replaces the messages of a stream by the kept copy.
func RestoreMessages(t testing.TB, dir, stream string) {
	t.Helper()
	to := messagesOf(dir, stream)
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(to+".kept", to); err != nil {
		t.Fatal(err)
	}
}

func messagesOf(dir, stream string) string {
	return filepath.Join(dir, "jetstream", "$G", "streams", stream, "msgs")
}
