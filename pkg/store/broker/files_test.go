package broker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

func readFile(t *testing.T, bt *broker.Storage, name string) ([]byte, error) {
	t.Helper()
	r, err := bt.Files.Open(t.Context(), name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func TestFiles(t *testing.T) {
	ctx := t.Context()
	bt, err := brokertest.Connect(t, brokertest.Server(t)).Make(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("交付物 📦\n"), 100_000) // many chunks
	for _, content := range [][]byte{nil, []byte("first"), large} {
		digest, err := bt.Files.Put(ctx, "T-001/1/报告.md", bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); digest != want {
			t.Errorf("digest %s, want %s", digest, want)
		}
		if got, err := readFile(t, bt, "T-001/1/报告.md"); err != nil || !bytes.Equal(got, content) {
			t.Errorf("got %d bytes back of %d: %v", len(got), len(content), err)
		}
		if got, err := bt.Files.Digest(ctx, "T-001/1/报告.md"); err != nil || got != digest {
			t.Errorf("told the digest %q, want %q: %v", got, digest, err)
		}
	}
	if _, err := bt.Files.Open(ctx, "T-001/2/other.md"); team.CodeOf(err) != team.NotFound {
		t.Errorf("a file that was never stored: %v, want not_found", err)
	}
}

// A file that is deleted is gone with its content, whoever looks, and however often; others stay, and
// its name can be used again.
func TestFileDelete(t *testing.T) {
	ctx, bt := t.Context(), brokertest.Team(t, "t")
	large := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	for _, name := range []string{"a", "b"} {
		if _, err := bt.Files.Put(ctx, name, bytes.NewReader(large)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := bt.Files.Delete(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := bt.Files.Open(ctx, "a"); team.CodeOf(err) != team.NotFound {
			t.Errorf("it is opened: %v", err)
		}
	}
	if names, err := bt.Files.List(ctx, ""); err != nil || len(names) != 1 || names[0] != "b" {
		t.Errorf("there are %v, %v", names, err)
	}
	js, err := jetstream.New(bt.Conn.NATS())
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(ctx, "OBJ_"+subject.Files("t"))
	if err != nil {
		t.Fatal(err)
	}
	if state := s.CachedInfo().State; state.Bytes > uint64(len(large))*3/2 {
		t.Errorf("%d bytes are stored", state.Bytes)
	}
	for name, content := range map[string][]byte{"a": []byte("again"), "b": large} {
		if name == "a" {
			if _, err := bt.Files.Put(ctx, name, bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := readFile(t, bt, name); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s has %d bytes, %v", name, len(got), err)
		}
	}
}

// A reading goes on behind a connection that was lost, and ends with its context.
func TestFileReadThroughTrouble(t *testing.T) {
	t.Parallel()
	url := brokertest.Server(t)
	proxy := brokertest.NewProxy(t, url)
	bt, err := brokertest.Connect(t, proxy.URL).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("0123456789abcde\n"), 1<<18) // 4 MiB: more chunks than are fetched ahead
	if _, err := bt.Files.Put(t.Context(), "large", bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	begin := func(ctx context.Context) (io.ReadCloser, []byte) {
		t.Helper()
		r, err := bt.Files.Open(ctx, "large")
		if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 1000)
		if _, err := io.ReadFull(r, head); err != nil {
			t.Fatal(err)
		}
		return r, head
	}
	r, got := begin(t.Context())
	proxy.Close()
	proxy.Open()
	rest, err := io.ReadAll(r)
	if got = append(got, rest...); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes of %d: %v", len(got), len(content), err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	r, _ = begin(ctx)
	cancel()
	if rest, err := io.ReadAll(r); team.CodeOf(err) != team.Unavailable {
		t.Errorf("after its context had ended it read %d bytes more: %v, want unavailable", len(rest), err)
	}
}

// A file that is not what was stored is an error, and so is a connection that is gone.
func TestFileDamaged(t *testing.T) {
	bt := brokertest.Team(t, "t")
	if _, err := bt.Files.Put(t.Context(), "f", strings.NewReader("right")); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(bt.Conn.NATS())
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "OBJ_"+subject.Files("t"))
	if err != nil {
		t.Fatal(err)
	}
	chunk, err := s.GetLastMsgForSubject(t.Context(), "$O."+subject.Files("t")+".C.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(t.Context(), jetstream.WithPurgeSubject(chunk.Subject)); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), chunk.Subject, []byte("wrong")); err != nil {
		t.Fatal(err)
	}
	if got, err := readFile(t, bt, "f"); team.CodeOf(err) != team.Unavailable || !strings.Contains(err.Error(), "digest") {
		t.Errorf("read %q: %v, want unavailable for its digest", got, err)
	}
	bt.Conn.Close()
	if _, err := bt.Files.Digest(t.Context(), "f"); team.CodeOf(err) != team.Unavailable {
		t.Errorf("without a connection: %v, want unavailable", err)
	}
}
