package embedded

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// store makes a data folder with two streams, one of which has gaps, and a durable consumer that has a
// message in its hands. It returns what they hold.
func store(t *testing.T, dir string) string {
	t.Helper()
	s, err := Start(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	js := connectTo(t, nats.Connect, s.URL())
	for _, cfg := range []jetstream.StreamConfig{{Name: "KEPT", Subjects: []string{"kept.>"}}, {Name: "AGED", Subjects: []string{"aged.>"}, MaxAge: time.Hour}} {
		if _, err := js.CreateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		for _, subject := range []string{"kept.a", "kept.b", "aged.a"} {
			if _, err := js.Publish(t.Context(), subject, []byte(strings.Repeat(fmt.Sprint(i), 1000))); err != nil {
				t.Fatal(err)
			}
		}
	}
	kept, err := js.Stream(t.Context(), "KEPT")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(kept.DeleteMsg(t.Context(), 3), kept.Purge(t.Context(), jetstream.WithPurgeSubject("kept.b"), jetstream.WithPurgeKeep(5))); err != nil {
		t.Fatal(err)
	}
	cons, err := kept.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "reader", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m, err := cons.Next()
		if err == nil && m.Subject() == "kept.a" {
			err = m.DoubleAck(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return held(t, js)
}

func connectTo(t *testing.T, connect func(string, ...nats.Option) (*nats.Conn, error), url string, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	nc, err := connect(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// held is what each stream and consumer holds: counts and sequences.
func held(t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	var text strings.Builder
	for info := range js.ListStreams(t.Context()).Info() {
		s := info.State
		fmt.Fprintf(&text, "%s: %d messages, %d bytes, %d to %d, %d deleted\n", info.Config.Name, s.Msgs, s.Bytes, s.FirstSeq, s.LastSeq, s.NumDeleted)
		stream, err := js.Stream(t.Context(), info.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		for c := range stream.ListConsumers(t.Context()).Info() {
			fmt.Fprintf(&text, "%s: %s has %d, and %d acknowledged\n", info.Config.Name, c.Name, c.Delivered.Stream, c.AckFloor.Stream)
		}
	}
	return text.String()
}

// tree is all that a folder holds: names, modes, times and contents.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s %v %v", path, info.Mode(), info.ModTime())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, " %x", sha256.Sum256(data))
		}
		text.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// tmp makes a folder the only one for temporary files, and returns what is in it.
func tmp(t *testing.T) (left func() []string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return func() []string { return list(t, dir) }
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// A reader shows all that is stored. Writes to it change nothing in the folder, nothing of it is left, and it
// has no address.
func TestRead(t *testing.T) {
	dir, left := t.TempDir(), tmp(t)
	want := store(t, dir)
	before := tree(t, dir)
	for range 2 {
		r, err := Read(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if at := r.s.Addr(); at != nil || r.s.MonitorAddr() != nil {
			t.Errorf("the server listens at %v", at)
		}
		js := connectTo(t, nats.Connect, "", nats.InProcessServer(r))
		if got := held(t, js); got != want {
			t.Errorf("a reader shows\n%s\nwant\n%s", got, want)
		}
		stream, err := js.Stream(t.Context(), "KEPT")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.Publish(t.Context(), "kept.a", []byte("more")); err != nil {
			t.Error(err)
		}
		if err := errors.Join(stream.DeleteConsumer(t.Context(), "reader"), js.DeleteStream(t.Context(), "AGED")); err != nil {
			t.Error(err)
		}
		r.Close()
		if names := left(); len(names) > 0 {
			t.Errorf("it leaves %v", names)
		}
	}
	if after := tree(t, dir); after != before {
		t.Errorf("the folder was\n%s\nand is\n%s", before, after)
	}
	s, err := Start(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	if got := held(t, connectTo(t, nats.Connect, s.URL())); got != want {
		t.Errorf("the next server holds\n%s\nwant\n%s", got, want)
	}
}

// Where a server runs nothing is read, and one that starts while the data is copied is not held up: what was
// copied by then is thrown away.
func TestReadGivesWayToServer(t *testing.T) {
	dir, left := t.TempDir(), tmp(t)
	store(t, dir)
	s, err := Start(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), dir); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("where a server runs: %v", err)
	}
	s.Shutdown()

	for name, ends := range map[string]bool{"runs": false, "has ended again": true} {
		var s *Server
		err := undisturbed(dir, func() (err error) {
			if s, err = Start(Options{Dir: dir}); err == nil && ends {
				s.Shutdown()
			}
			if err != nil {
				t.Errorf("a server is in the way of its reader: %v", err)
			}
			return errors.New("a file is gone")
		})
		if !errors.Is(err, ErrInUse) {
			t.Errorf("a server that began meanwhile and %s: %v", name, err)
		}
		if s != nil && !ends {
			s.Shutdown()
		}
	}
	if names := left(); len(names) > 0 {
		t.Errorf("they leave %v", names)
	}
}

// What cannot be read, or not all of it, is refused in one line, and nothing of it is left.
func TestReadRefuses(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	left := tmp(t)
	for name, tt := range map[string]struct {
		ctx   context.Context
		spoil func(store string) error
		want  string
	}{
		"too much data":  {t.Context(), func(dir string) error { return os.Truncate(filepath.Join(dir, "more"), 2*mostRead) }, "the stored data has 2048 MiB, and at most 1024 MiB are read without a cluster"},
		"no data":        {t.Context(), os.RemoveAll, "no such file"},
		"a link":         {t.Context(), func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "link")) }, "link"},
		"a pipe":         {t.Context(), func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600) }, "pipe"},
		"no time":        {ended, func(string) error { return nil }, "context canceled"},
		"no such folder": {t.Context(), func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in := filepath.Join(dir, storeDir)
			if err := errors.Join(os.Mkdir(in, 0o700), os.WriteFile(filepath.Join(in, "more"), []byte("x"), 0o600), tt.spoil(in)); err != nil {
				t.Fatal(err)
			}
			_, err := Read(tt.ctx, dir)
			if team.CodeOf(err) != team.Unavailable || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("it is refused so: %v", err)
			}
		})
	}
	if names := left(); len(names) > 0 {
		t.Errorf("they leave %v", names)
	}
}

const readEnv = "EMBEDDED_TEST_READS"

// Of a reader that is killed nothing is left. It is a separate process here, and has the folder on a file system that
// takes no writes, where one can be mounted.
func TestReadIsKilled(t *testing.T) {
	if dir := os.Getenv(readEnv); dir != "" {
		mounted := syscall.Mount(dir, dir, "", syscall.MS_BIND, "") == nil && syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "") == nil
		if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); mounted != errors.Is(err, syscall.EROFS) {
			t.Errorf("it is mounted (%v), and a file in it: %v", mounted, err)
		}
		fmt.Println("takes no writes:", mounted)
		r, err := Read(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("\nheld: %q\n", held(t, connectTo(t, nats.Connect, "", nats.InProcessServer(r))))
		select {}
	}
	dir, tmp := t.TempDir(), t.TempDir()
	want := store(t, dir)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), readEnv+"="+dir, "TMPDIR="+tmp)
	cmd.Stderr = os.Stderr
	ids := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: ids(os.Getuid()), GidMappings: ids(os.Getgid())}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	testenv.Need(t, err)
	var got string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "held: %q", &got); err == nil {
			break
		}
		t.Log(lines.Text())
	}
	if got != want {
		t.Errorf("it shows\n%s\nwant\n%s", got, want)
	}
	if names := list(t, tmp); len(names) != 1 {
		t.Errorf("it works in %v", names)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for late := time.After(time.Minute); len(list(t, tmp)) > 0; {
		select {
		case <-late:
			t.Fatalf("it leaves %v", list(t, tmp))
		case <-time.After(10 * time.Millisecond):
		}
	}
}
