package supervisor

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

// What a supervisor is sent, and sends, arrives as it was.
func TestMessages(t *testing.T) {
	var pipe bytes.Buffer
	spec := Spec{
		Args: []string{"sh", "-c", "", "a\nb\x00c"}, Env: []string{"A=" + strings.Repeat("x", 1<<17)}, Under: []string{"bwrap"},
		Files: []string{"\x00\x01\xff", ""}, Open: []string{"/etc/hosts"}, Gate: true, Memory: 1 << 40, Processes: 7, Threads: 9, FileSize: 1 << 33, Confined: true, Filter: "\x01\x00",
	}
	report := Report{Code: -1, How: "signal: killed", Ended: Memory, Failed: "x"}
	for _, err := range []error{spec.Send(&pipe), SendLeft(&pipe, 90*time.Minute), report.send(&pipe)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	all := bytes.Clone(pipe.Bytes())
	if got, err := receiveSpec(&pipe); err != nil || !reflect.DeepEqual(got, spec) {
		t.Errorf("the command arrives as %.200v, %v", got, err)
	}
	if got, err := receiveLeft(&pipe); err != nil || got != 90*time.Minute {
		t.Errorf("the time arrives as %v, %v", got, err)
	}
	if got, err := ReceiveReport(&pipe); err != nil || got != report {
		t.Errorf("the report arrives as %v, %v", got, err)
	}
	if _, err := ReceiveReport(&pipe); err != io.EOF {
		t.Errorf("behind the last message: %v", err)
	}
	for n := range 200 { // a sender that is killed in the middle
		if got, err := receiveSpec(bytes.NewReader(all[:n])); err == nil {
			t.Errorf("the first %d bytes are taken for %.200v", n, got)
		}
	}
}

// Numbers that are not those of a message are an error.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x08\x00\x00\x00\x01\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = receiveSpec(bytes.NewReader(data))
		_, _ = receiveLeft(bytes.NewReader(data))
		_, _ = ReceiveReport(bytes.NewReader(data))
	})
}
